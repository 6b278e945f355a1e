"""Labeled pairs of facts: what must not be merged, and what says the same in other words.

Both sentences of a pair are about the same subject of the same user. The labels mean:

- repetition: whoever knows one learns nothing worth keeping from the other, whichever comes first.
- change: both cannot hold at once, or one says what became of the other ("likes coffee" / "dislikes coffee", "has two
  sons" / "has three sons", "smokes" / "quit smoking"): the later one may supersede the earlier.
- near_miss: alike in words, and both may well be true ("has two sons" / "has two dogs"), or one says more than the
  other, and that would be lost ("has a dog" / "has a dog named Biscuit").
- unrelated: nothing in common but the subject and perhaps a word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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


def labeled_pairs() -> list[Pair]:
    """All of them, in the order in which they were written."""
    return [Pair(**json.loads(line)) for line in _FILE.read_text(encoding="utf-8").splitlines()]
