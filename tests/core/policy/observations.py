"""LoCoMo's `observation` sentences fed as facts: each repeats one that is kept, or is kept itself."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from hitherto.core.facts.fact import ExtractedFact, KnownFact
from hitherto.core.facts.merge import merged

_EVIDENCE = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class Observation:
    """A sentence about one speaker of one conversation, and the ids of the messages that say so."""

    subject: tuple[str, str]
    text: str
    evidence: frozenset[str]


Kept = Sequence[Observation]
"""A sentence that is kept, and those that were merged into it."""


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


def fed_twice(sentences: Sequence[Observation]) -> tuple[list[Kept], int]:
    """What is kept of every subject's sentences, and how many facts come of feeding them once more."""
    kept: list[Kept] = []
    added = 0
    for _, group in groupby(sorted(sentences, key=lambda one: one.subject), key=lambda one: one.subject):
        those = list(group)
        found = [
            ExtractedFact(category="other", content=one.text, seqs=(seq,), confidence=0.5)
            for seq, one in enumerate(those)
        ]
        facts = merged([], found, subject="", extracted=(), single=(), count=len).facts
        kept += [[those[seq] for seq in fact.seqs] for fact in facts]
        known = [
            KnownFact(id=at, category="other", content=fact.content, confidence=0.5) for at, fact in enumerate(facts, 1)
        ]
        added += len(merged(known, found, subject="", extracted=(), single=(), count=len).facts)
    return kept, added


def disjoint(kept: Kept) -> int:
    """How many were merged though no message says them and those before."""
    said: set[str] = set()
    found = 0
    for one in kept:
        found += bool(said) and said.isdisjoint(one.evidence)
        said |= one.evidence
    return found
