"""What becomes of the statements that a digest's messages make about a subject: new, said again, or a change.

A statement that repeats a known one strengthens it. Likeness decides where it can; where it cannot tell a repetition
from a change, what the model said of the facts it was shown does; and where that said nothing, the statement is a fact
of its own: a fact too many can be put right, one that was merged away cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hitherto.core.analysis import analysed
from hitherto.core.comparisons import Comparisons, Cosine, judged
from hitherto.core.digest import Ranges
from hitherto.core.fact import OTHER, Extracted, KnownFact, Learnt, NewFact, Repeated, strengthened
from hitherto.core.repetition import Statement, Verdict

BEARING = 30
"""So many of the known facts are shown to a model: those that bear most on the messages."""

_FEW = 10
"""So many known facts are shown in any case."""

_SOMEWHAT_ALIKE, _HARDLY_ALIKE = 0.4, 0.2
"""The cosine from which on a model is believed that two statements go together that have no words in common, and that
below which it is not even of two of one category."""


@dataclass(slots=True, eq=False)
class _There:
    """A fact that there is: `known`, or `new` and first said by `found`. `again`: it was known, and the messages say
    it. `ended_by` is what took its place."""

    place: int
    category: str
    content: str
    said_at: datetime | None = None
    known: KnownFact | None = None
    new: NewFact | None = None
    found: Extracted | None = None
    again: Repeated | None = None
    ended_by: _There | None = None

    @property
    def confidence(self) -> float:
        told = self.again or self.new or self.known
        assert told is not None, "it is known or new"
        return told.confidence

    @property
    def heir(self) -> _There:
        """What stands in its place at last."""
        return self if self.ended_by is None else self.ended_by.heir


@dataclass(slots=True, eq=False)
class _Merging:
    single: frozenset[str]
    said_at: Mapping[int, datetime]
    cosine: Cosine
    comparisons: Comparisons
    apart: dict[str, Statement]
    known: dict[int, _There] = field(default_factory=dict[int, _There])
    new: list[_There] = field(default_factory=list[_There])
    by_content: dict[str, list[_There]] = field(default_factory=dict[str, list[_There]])
    by_fingerprint: dict[str, list[_There]] = field(default_factory=dict[str, list[_There]])

    def add(self, there: _There) -> None:
        if there.known is not None:
            self.known[there.known.id] = there
            self.by_content.setdefault(there.content, []).append(there)
        else:
            self.new.append(there)
        self.by_fingerprint.setdefault(self.comparisons.fingerprint(there.content), []).append(there)

    def judged(self, one: Extracted, there: _There) -> tuple[Verdict, float]:
        return judged(one.content, there.content, self.cosine, self.apart)

    def said(self, one: Extracted) -> datetime | None:
        return max((self.said_at[seq] for seq in one.seqs if seq in self.said_at), default=None)

    def value(self, category: str) -> list[_There]:
        """What holds in the category, if that holds one value at a time."""
        if category not in self.single:
            return []
        everything = (*self.known.values(), *self.new)
        return [there for there in everything if there.category == category and there.ended_by is None]


def merged(
    known: Sequence[KnownFact],
    found: Sequence[Extracted],
    *,
    subject: str,
    extracted: Ranges,
    single: Collection[str],
    cosine: Cosine,
    count: Callable[[str], int],
    said_at: Mapping[int, datetime] | None = None,
    comparisons: Comparisons | None = None,
) -> Learnt:
    """What `found` teaches to whoever has the current facts `known` about the same subject.

    Messages in `extracted` have said what they had to say before: they count for nothing, and a statement that rests on
    none but those is not a fact again, whatever became of it. Of each category in `single` the latest statement ends
    the others, whether it is new or said again; what is said again there, and was under "other", is of that category
    from then on. A statement that would end one which was said after it (`said_at`, by seq) came to be known too late:
    it ends nothing, and if it is new, it is left out. `count` gives the canonical tokens of a text. `comparisons` is
    what was found of the same statements with the same `cosine` before, and is what was found afterwards: it spares
    time, and changes nothing.
    """
    comparisons = comparisons or Comparisons()
    unread = [
        replace(one, seqs=seqs)
        for one in sorted(found, key=lambda one: one.seqs[-1])
        if (seqs := tuple(seq for seq in one.seqs if not any(first <= seq <= last for first, last in extracted)))
    ]
    comparisons.add((one.content for one in unread), (one.content for one in known), cosine)
    apart: dict[str, Statement] = {}
    while True:
        state = _Merging(frozenset(single), said_at or {}, cosine, comparisons, apart)
        for place, one in enumerate(known):
            state.add(_There(place, one.category, one.content, one.said_at, known=one))
        undone = next((gone for one in unread if (gone := _take(state, one, count)) is not None), None)
        if undone is None:
            return _learnt(state, subject)
        # What was known is said again, and ends what the same messages have brought: that never was, nor what it did.
        unread = [one for one in unread if one is not undone]


def bearing(known: Sequence[KnownFact], texts: Sequence[str], *, single: Collection[str] = ()) -> tuple[KnownFact, ...]:
    """Those of the known facts that bear most on messages with these texts, the most first: all, where there are few;
    else those of `single` categories, and those that have most of their rarer words in common with them."""
    said = {term for text in texts for term in analysed(text).hashes.tolist()}
    of_fact = [set(analysed(one.content).hashes.tolist()) for one in known]
    having: dict[int, int] = {}
    for terms in of_fact:
        for term in terms & said:
            having[term] = having.get(term, 0) + 1
    weights = {at: sum(1.0 / having[term] for term in terms & said) for at, terms in enumerate(of_fact)}
    held = [at for at, one in enumerate(known) if one.category in single][-_FEW:]
    ranked = sorted(weights, key=lambda at: (weights[at], at), reverse=True)
    chosen = dict.fromkeys([*held, *(at for at in ranked if weights[at] > 0), *ranked[:_FEW]])
    return tuple(known[at] for at in list(chosen)[:BEARING])


def _take(state: _Merging, one: Extracted, count: Callable[[str], int]) -> Extracted | None:
    """What becomes of a statement. Returns that which should not have been taken, if there is one."""
    same = _same(state, one)
    if same is not None:
        return _say_again(state, same, one)
    back = _ended_here(state, one)
    if back is not None and back.ended_by is not None and not _later([back.ended_by], state.said(one)):
        if back.ended_by.found is not None:
            return back.ended_by.found
        back.ended_by = None
        return _say_again(state, back, one)
    ended = {there.place: there for there in (*state.value(one.category), *_replaced(state, one))}.values()
    said_at = state.said(one)
    if _later(ended, said_at):
        return None
    new = NewFact(
        category=one.category,
        content=one.content,
        fingerprint=state.comparisons.fingerprint(one.content),
        tokens=count(one.content),
        confidence=one.confidence,
        seqs=one.seqs,
        metadata=one.metadata,
    )
    place = len(state.known) + len(state.new)
    taken = _There(place, one.category, one.content, said_at, new=new, found=one)
    for there in ended:
        there.ended_by = taken
    state.add(taken)
    return None


def _same(state: _Merging, one: Extracted) -> _There | None:
    """What it says again: by its likeness, else by the model's word."""
    alike = state.by_fingerprint.get(state.comparisons.fingerprint(one.content), ())
    same = next((there for there in alike if there.ended_by is None), None)
    return same or _repeated(state, one) or _told(state, one.repeats, one)


def _repeated(state: _Merging, one: Extracted) -> _There | None:
    """By its likeness, the most alike; of equals, the first."""
    found: list[tuple[float, int, _There]] = []
    for text, cosine in state.comparisons.repeated[one.content].items():
        found += [(cosine, -there.place, there) for there in state.by_content[text] if there.ended_by is None]
    for there in state.new:
        if there.ended_by is None:
            verdict, cosine = state.judged(one, there)
            if verdict is Verdict.REPEATS:
                found.append((cosine, -there.place, there))
    return max(found)[2] if found else None


def _ended_here(state: _Merging, one: Extracted) -> _There | None:
    """A known fact that it says again, though what the same messages brought has ended it."""
    alike = state.by_fingerprint.get(state.comparisons.fingerprint(one.content), ())
    found = [(1.0, -there.place, there) for there in alike]
    for text, cosine in state.comparisons.repeated[one.content].items():
        found += [(cosine, -there.place, there) for there in state.by_content[text]]
    found = [one for one in found if one[2].known is not None and one[2].ended_by is not None]
    return max(found)[2] if found else None


def _replaced(state: _Merging, one: Extracted) -> list[_There]:
    """What it ends, by the model's word. Of its own category that is believed of what is less alike, too, but not where
    a person has said that it is right."""
    there = _of_id(state, one.replaces)
    if there is not None and there.category == one.category and there.confidence < 1:
        _, cosine = state.judged(one, there)
        return [] if -1 < cosine < _HARDLY_ALIKE else [there]
    there = _told(state, one.replaces, one)
    return [] if there is None else [there]


def _told(state: _Merging, id: int | None, one: Extracted) -> _There | None:
    """The fact of that id, where the statement has so much to do with it that the model is believed: it may have been
    told in the messages what to say."""
    there = _of_id(state, id)
    if there is None:
        return None
    verdict, cosine = state.judged(one, there)
    return there if verdict is not Verdict.DIFFERS or cosine >= _SOMEWHAT_ALIKE else None


def _of_id(state: _Merging, id: int | None) -> _There | None:
    there = None if id is None else state.known.get(id)
    return None if there is None or there.ended_by is not None else there


def _say_again(state: _Merging, there: _There, one: Extracted) -> Extracted | None:
    """It is strengthened, and where its category holds one value at a time, it is that value now."""
    moves = there.category == OTHER and OTHER not in state.single and one.category in state.single
    category = one.category if moves else there.category
    others = [other for other in state.value(category) if other is not there]
    said_at = state.said(one)
    if not _later(others, said_at):
        undone = next((other.found for other in others if other.found is not None), None)
        if undone is not None and there.known is not None:
            return undone
        for other in others:
            other.ended_by = there
        there.category = category
        if moves and there.new is not None:
            there.new = replace(there.new, category=category, metadata=one.metadata)
    there.said_at = max((at for at in (there.said_at, said_at) if at is not None), default=None)
    if there.new is not None:
        seqs = tuple(sorted({*there.new.seqs, *one.seqs}))
        there.new = replace(there.new, seqs=seqs, confidence=max(there.new.confidence, one.confidence))
    elif there.known is not None:
        seqs = one.seqs if there.again is None else tuple(sorted({*there.again.seqs, *one.seqs}))
        confidence = strengthened(there.confidence, one.confidence)
        there.again = Repeated(fact=there.known.id, seqs=seqs, confidence=confidence)
    return None


def _later(ended: Iterable[_There], said_at: datetime | None) -> bool:
    """Whether any of them was said after that."""
    return said_at is not None and any(there.said_at is not None and there.said_at > said_at for there in ended)


def _learnt(state: _Merging, subject: str) -> Learnt:
    """What is to be written. What is new and was ended never was; what it had ended, its heir has."""
    ended: dict[int, list[int]] = {}
    moved, repeated = list[Repeated](), list[Repeated]()
    for number, there in state.known.items():
        if there.ended_by is not None:
            ended.setdefault(there.heir.place, []).append(number)
    for there in state.known.values():
        if there.again is None or there.heir.new is not None:
            continue
        moves = there.known is not None and there.category != there.known.category
        again = replace(there.again, category=there.category if moves else None)
        if there.ended_by is None:
            repeated.append(replace(again, alone=there.place in ended))
        elif moves:
            moved.append(again)  # Else what ends it does not find it in the category.
    facts = [
        replace(there.new, supersedes=tuple(ended.get(there.place, ())))
        for there in state.new
        if there.new is not None and there.ended_by is None
    ]
    return Learnt(subject=subject, facts=tuple(facts), repeated=(*moved, *repeated))
