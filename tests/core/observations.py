"""LoCoMo's `observation` sentences fed as facts: each repeats one that is kept, or is kept itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

from hitherto.core.repetition import Statement, Verdict, compared, statement
from hitherto.ports.embedder import Embedder, Vectors

_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Observation:
    """A sentence about one speaker of one conversation, and the ids of the messages that say so."""

    subject: tuple[str, str]
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Merge:
    """A sentence that was taken for a repetition of one that was there."""

    kept: Observation
    merged: Observation
    disjoint: bool
    """Whether no message said the one and the other, or any that had been merged into it."""


@dataclass
class Fed:
    """What became of all sentences."""

    kept: int = 0
    unsure: int = 0
    """Pairs of which a model would have been asked, of a kept sentence and one that was there before it."""
    added_again: int = 0
    """Sentences that the second pass added."""
    merges: list[Merge] = field(default_factory=list[Merge])


def observations(path: Path) -> list[Observation]:
    """All sentences of LoCoMo's file, in its order."""
    found: list[Observation] = []
    for sample in json.loads(path.read_bytes()):
        for session in sample["observation"].values():
            for speaker, said in session.items():
                subject = (str(sample["sample_id"]), str(speaker))
                found.extend(
                    Observation(subject, text, frozenset(_EVIDENCE.findall(str(evidence)))) for text, evidence in said
                )
    return found


async def fed_twice(sentences: Sequence[Observation], *, random: Random, embedder: Embedder | None) -> Fed:
    """Every subject's sentences in random order, and once more in another; without an embedder, by words alone."""
    fed = Fed()
    by_subject: dict[tuple[str, str], list[Observation]] = {}
    for one in sentences:
        by_subject.setdefault(one.subject, []).append(one)
    for those in by_subject.values():
        vectors = None if embedder is None else (await embedder.documents([one.text for one in those])).vectors
        known = _Subject(those, [statement(one.text) for one in those], vectors)
        order = list(range(len(those)))
        for again in (False, True):
            random.shuffle(order)
            for new in order:
                known.feed(new, fed, again=again)
        fed.kept += len(known.kept)
    return fed


@dataclass
class _Subject:
    sentences: list[Observation]
    statements: list[Statement]
    vectors: Vectors | None
    kept: list[int] = field(default_factory=list[int])
    evidence: dict[int, set[str]] = field(default_factory=dict[int, set[str]])

    def feed(self, new: int, fed: Fed, *, again: bool) -> None:
        unsure = 0
        for known, cosine in self._most_alike(new):
            verdict = compared(self.statements[known], self.statements[new], cosine=cosine)
            if verdict is Verdict.REPEATS:
                evidence = self.sentences[new].evidence
                if not again:
                    disjoint = self.evidence[known].isdisjoint(evidence)
                    fed.merges.append(Merge(self.sentences[known], self.sentences[new], disjoint))
                self.evidence[known] |= evidence
                return
            unsure += verdict is Verdict.UNSURE
        fed.unsure += unsure
        fed.added_again += again
        self.kept.append(new)
        self.evidence[new] = set(self.sentences[new].evidence)

    def _most_alike(self, new: int) -> Iterator[tuple[int, float | None]]:
        """The kept sentences, those most like the new one first."""
        if self.vectors is None or not self.kept:
            yield from ((known, None) for known in self.kept)
            return
        cosines = self.vectors[self.kept] @ self.vectors[new]
        for place in np.argsort(-cosines, kind="stable").tolist():
            yield self.kept[place], float(cosines[place])
