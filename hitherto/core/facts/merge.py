"""Merging extracted statements into the known facts: each is new, repeats a known fact, or replaces one.

Nothing here compares meanings. A statement repeats a known fact if it is worded the same (`fingerprint_of_fact`), or if
the model that found it says that it does. In doubt a statement becomes a new fact: one too many can be deleted, one
that was merged away cannot be brought back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hitherto.core.facts.fact import (
    OTHER,
    ExtractedFact,
    KnownFact,
    LearnedFacts,
    NewFact,
    RepeatedFact,
    fingerprint_of_fact,
    strengthened,
)
from hitherto.core.log.ranges import Ranges


def merged(
    known: Sequence[KnownFact],
    found: Sequence[ExtractedFact],
    *,
    subject: str,
    extracted: Ranges,
    single: Collection[str],
    count: Callable[[str], int],
    said_at: Mapping[int, datetime] | None = None,
) -> LearnedFacts:
    """What the statements `found` change for the owner of the current facts `known` about the same subject.

    - Messages in `extracted` have been read before. They do not count as sources, and a statement that rests on no
      others is ignored, whatever became of its fact.
    - A statement that is worded like a known fact, or that `repeats` one, strengthens it.
    - A statement that `replaces` a known fact of its own category ends it, unless a person has confirmed that fact.
    - In each category of `single`, the latest statement ends the other facts, whether it is new or repeats a known
      fact. New statements before it in these messages are not written. A known fact under "other" that is repeated
      there moves to that category.
    - A statement is late if it would end one that was said after it (`said_at`, by seq, or later in these messages). It
      then ends nothing, and if it is new, it is left out.

    `count` gives the canonical tokens of a text.
    """
    merger = _Merger(known, frozenset(single), said_at or {})
    said = merger.read(_unread(found, extracted))
    last = {one.category: one for one in said}
    facts: list[NewFact] = []
    repeated: list[RepeatedFact] = []
    ended: set[int] = set()
    for at, one in enumerate(said):
        is_value = one.category in single and last[one.category] is one
        ends = merger.others(one.category, one.known) if is_value else merger.replaced(one)
        late = merger.is_late(one.seqs, ends)
        if one.known is not None:
            repeated.append(_repeated(one, one.known, single_valued=is_value and bool(ends) and not late))
        elif not late and (is_value or one.category not in single) and not _any_of(ends, said[at + 1 :]):
            supersedes = [there.id for there in ends if there.id not in ended and (is_value or not there.confirmed)]
            ended.update(supersedes)
            facts.append(_new(one, supersedes, count))
    again = tuple(one for one in repeated if one.fact not in ended)
    return LearnedFacts(subject=subject, facts=tuple(facts), repeated=again)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Statement:
    """A statement in the messages: it repeats the fact `known`, or it is new (`known` is None) and was `found`
    there."""

    found: ExtractedFact
    known: KnownFact | None
    category: str
    seqs: tuple[int, ...]
    confidence: float


class _Merger:
    """The known facts, with the categories that they have after the statements read so far."""

    def __init__(self, known: Sequence[KnownFact], single: Collection[str], said_at: Mapping[int, datetime]) -> None:
        self._by_id = {one.id: one for one in known}
        self._by_fingerprint = {fingerprint_of_fact(one.content): one for one in known}
        self._categories = {one.id: one.category for one in known}
        self._single, self._said_at = single, said_at

    def read(self, found: Iterable[ExtractedFact]) -> list[_Statement]:
        """The statements, each once, in the order in which they were last said."""
        said: dict[int | str, _Statement] = {}
        for one in found:
            fingerprint = fingerprint_of_fact(one.content)
            known = self._by_fingerprint.get(fingerprint) or self._of(one.repeats)
            key = fingerprint if known is None else known.id
            said[key] = self._said(one, known, said.pop(key, None))
        return list(said.values())

    def _said(self, one: ExtractedFact, known: KnownFact | None, before: _Statement | None) -> _Statement:
        was = before or known or one
        category = was.category
        if category == OTHER and one.category in self._single:
            late = self.is_late(one.seqs, self.others(one.category, known))
            category = category if late else one.category
        if known is not None:
            self._categories[known.id] = category
        return _Statement(
            found=before.found if before is not None and before.category == category else one,
            known=known,
            category=category,
            seqs=one.seqs if before is None else tuple(sorted({*before.seqs, *one.seqs})),
            confidence=max(was.confidence, one.confidence)
            if known is None
            else strengthened(was.confidence, one.confidence),
        )

    def others(self, category: str, but: KnownFact | None) -> list[KnownFact]:
        """The other facts of a category."""
        return [one for one in self._by_id.values() if self._categories[one.id] == category and one is not but]

    def replaced(self, one: _Statement) -> list[KnownFact]:
        """The fact of its own category that a new statement replaces, if the model says so."""
        there = self._of(one.found.replaces)
        return [] if there is None or self._categories[there.id] != one.category else [there]

    def is_late(self, seqs: Iterable[int], ended: Iterable[KnownFact]) -> bool:
        """Whether any of these facts was said after these messages."""
        at = max((self._said_at[seq] for seq in seqs if seq in self._said_at), default=None)
        return at is not None and any(one.said_at is not None and one.said_at > at for one in ended)

    def _of(self, id: int | None) -> KnownFact | None:
        return None if id is None else self._by_id.get(id)


def _unread(found: Sequence[ExtractedFact], extracted: Ranges) -> list[ExtractedFact]:
    """The statements that rest on messages not read before, with these alone as their sources, in the order of their
    last source."""
    return [
        replace(one, seqs=seqs)
        for one in sorted(found, key=lambda one: one.seqs[-1])
        if (seqs := tuple(seq for seq in one.seqs if not any(first <= seq <= last for first, last in extracted)))
    ]


def _any_of(facts: Iterable[KnownFact], said: Iterable[_Statement]) -> bool:
    return not {one.id for one in facts}.isdisjoint(one.known.id for one in said if one.known is not None)


def _repeated(one: _Statement, known: KnownFact, *, single_valued: bool) -> RepeatedFact:
    moved = None if one.category == known.category else one.category
    return RepeatedFact(
        fact=known.id, seqs=one.seqs, confidence=one.confidence, category=moved, single_valued=single_valued
    )


def _new(one: _Statement, supersedes: Sequence[int], count: Callable[[str], int]) -> NewFact:
    content = one.found.content
    return NewFact(
        category=one.category,
        content=content,
        fingerprint=fingerprint_of_fact(content),
        tokens=count(content),
        confidence=one.confidence,
        seqs=one.seqs,
        supersedes=tuple(supersedes),
        metadata=one.found.metadata,
    )
