"""Labelled pairs of facts: what `hitherto.core.repetition` is measured on, here and by `benchmarks.facts`.

Both sentences of a pair are about the same subject of the same user. The labels mean:

- repetition: whoever knows one learns nothing worth keeping from the other, whichever comes first.
- change: both cannot hold at once, or one says what became of the other ("likes coffee" / "dislikes coffee", "has two
  sons" / "has three sons", "smokes" / "quit smoking"): the later one may supersede the earlier.
- near_miss: alike in words, and both may well be true ("has two sons" / "has two dogs"), or one says more than the
  other, and that would be lost ("has a dog" / "has a dog named Biscuit").
- unrelated: nothing in common but the subject and perhaps a word.

All were written before any rule or threshold was tried. `tuning` splits them by a hash: thresholds and tables were
adjusted on the errors of the one half, those of the other were never looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from hitherto.ports.embedder import Embedder

Label = Literal["repetition", "change", "near_miss", "unrelated"]

_FILE = Path(__file__).with_name("fact_pairs.jsonl")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two facts and what the second is to the first. `category` is that of the facts."""

    label: Label
    category: str
    language: str
    one: str
    other: str

    @property
    def tuning(self) -> bool:
        """Whether it is of the half on which thresholds were chosen."""
        return sha256(f"{self.one}\n{self.other}".encode()).digest()[0] % 2 == 0


def labelled_pairs() -> list[Pair]:
    """All of them, in the order in which they were written."""
    return [Pair(**json.loads(line)) for line in _FILE.read_text(encoding="utf-8").splitlines()]


async def cosines_of(pairs: Sequence[Pair], embedder: Embedder) -> list[float]:
    """The cosine of each pair's two sentences in the embedder's space."""
    vectors = (await embedder.documents([text for pair in pairs for text in (pair.one, pair.other)])).vectors
    return [float(one @ other) for one, other in zip(vectors[0::2], vectors[1::2], strict=True)]
