"""What becomes of the statements that a digest's messages make about a subject: new, said again, or a change.

A statement that repeats a known one strengthens it. Likeness decides where it can; where it cannot tell a repetition
from a change, what the model said of the facts it was shown does; and where that said nothing, the statement is a fact
of its own: a fact too many can be put right, one that was merged away cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from hitherto.core.analysis import analysed
from hitherto.core.digest import Ranges
from hitherto.core.fact import Extracted, KnownFact, Learnt, NewFact, Repeated, strengthened
from hitherto.core.repetition import LEAST_COSINE, Statement, Verdict, compared, fingerprint_of_fact, statement

Cosine = Callable[[str, str], float | None]
"""The cosine of two statements' vectors; None where there is none."""

BEARING = 30
"""So many of the known facts are shown to a model: those that bear most on the messages."""

_FEW = 10
"""So many known facts are shown in any case."""

_SOMEWHAT_ALIKE, _HARDLY_ALIKE = 0.4, 0.2
"""The cosine from which on a model is believed that two statements go together that have no words in common, and that
below which it is not even of two of one category."""


@dataclass
class _There:
    """A fact that there is: known, or one of the new ones."""

    category: str
    content: str
    confidence: float
    fingerprint: str
    said_at: datetime | None = None
    known: int | None = None
    new: int | None = None

    @cached_property
    def stated(self) -> Statement:
        """Taken apart only where it is compared."""
        return statement(self.content)


@dataclass
class _Merging:
    there: list[_There]
    said_at: Mapping[int, datetime]
    facts: list[NewFact | None] = field(default_factory=list["NewFact | None"])
    repeated: dict[int, Repeated] = field(default_factory=dict[int, Repeated])


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
) -> Learnt:
    """What `found` teaches to whoever has the current facts `known` about the same subject.

    Messages in `extracted` have said what they had to say before: they count for nothing, and a statement that rests on
    none but those is not a fact again, whatever became of it. Of each category in `single` the latest statement ends
    the others. A statement that would end one which was said after it (`said_at`, by seq) came to be known too late,
    and is left out. `count` gives the canonical tokens of a text.
    """
    state = _Merging([_of_known(one) for one in known], said_at or {})
    for one in sorted(found, key=lambda one: one.seqs[-1]):
        seqs = tuple(seq for seq in one.seqs if not any(first <= seq <= last for first, last in extracted))
        if seqs:
            _take(state, replace(one, seqs=seqs), frozenset(single), cosine, count)
    return Learnt(
        subject=subject,
        facts=tuple(one for one in state.facts if one is not None),
        repeated=tuple(state.repeated.values()),
    )


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


def _of_known(one: KnownFact) -> _There:
    return _There(
        category=one.category,
        content=one.content,
        confidence=one.confidence,
        fingerprint=fingerprint_of_fact(one.content),
        said_at=one.said_at,
        known=one.id,
    )


def _take(state: _Merging, one: Extracted, single: frozenset[str], cosine: Cosine, count: Callable[[str], int]) -> None:
    stated, fingerprint = statement(one.content), fingerprint_of_fact(one.content)
    verdicts = _verdicts(state, one, stated, cosine)
    same = next((there for there in state.there if there.fingerprint == fingerprint), None)
    if same is None:
        same = _repeated(state, one, verdicts)
    if same is not None:
        _strengthen(state, same, one)
        return
    ended = [there for there in state.there if one.category in single and there.category == one.category]
    for there in _replaced(state, one, verdicts):
        if there not in ended:
            ended.append(there)
    said_at = max((state.said_at[seq] for seq in one.seqs if seq in state.said_at), default=None)
    if said_at is not None and any(there.said_at is not None and there.said_at > said_at for there in ended):
        return
    supersedes = tuple(there.known for there in ended if there.known is not None)
    for there in ended:
        state.there.remove(there)
        if there.new is not None:
            # What the same messages took back again never was one.
            gone = state.facts[there.new]
            supersedes += () if gone is None else gone.supersedes
            state.facts[there.new] = None
        elif there.known is not None:
            state.repeated.pop(there.known, None)
    new = NewFact(
        category=one.category,
        content=one.content,
        fingerprint=fingerprint,
        tokens=count(one.content),
        confidence=one.confidence,
        seqs=one.seqs,
        supersedes=supersedes,
        metadata=one.metadata,
    )
    state.there.append(_There(one.category, one.content, one.confidence, fingerprint, said_at, new=len(state.facts)))
    state.facts.append(new)


Judged = Mapping[int, tuple[Verdict, float]]
"""By the place of what there is: the verdict, and the cosine (-1 where there is none)."""


def _verdicts(state: _Merging, one: Extracted, stated: Statement, cosine: Cosine) -> Judged:
    found: dict[int, tuple[Verdict, float]] = {}
    for at, there in enumerate(state.there):
        alike = cosine(one.content, there.content)
        if alike is not None and alike < LEAST_COSINE:
            found[at] = Verdict.DIFFERS, alike
        else:
            found[at] = compared(stated, there.stated, cosine=alike), -1.0 if alike is None else alike
    return found


def _repeated(state: _Merging, one: Extracted, verdicts: Judged) -> _There | None:
    """What it says again: by its likeness, else by the model's word."""
    same = [at for at, (verdict, _) in verdicts.items() if verdict is Verdict.REPEATS]
    if same:
        return state.there[max(same, key=lambda at: (verdicts[at][1], -at))]
    return next((there for there in _told(state, one.repeats, verdicts)), None)


def _replaced(state: _Merging, one: Extracted, verdicts: Judged) -> list[_There]:
    """What it ends, by the model's word. Of its own category that is believed of what is less alike, too, but not where
    a person has said that it is right."""
    return [
        *_told(state, one.replaces, verdicts),
        *(
            there
            for at, there in enumerate(state.there)
            if one.replaces is not None
            and there.known == one.replaces
            and there.category == one.category
            and there.confidence < 1
            and not -1 < verdicts[at][1] < _HARDLY_ALIKE
        ),
    ]


def _told(state: _Merging, id: int | None, verdicts: Judged) -> list[_There]:
    """The fact of that id, where the statement has so much to do with it that the model is believed: it may have been
    told in the messages what to say."""
    return [
        there
        for at, there in enumerate(state.there)
        if id is not None
        and there.known == id
        and (verdicts[at][0] is not Verdict.DIFFERS or verdicts[at][1] >= _SOMEWHAT_ALIKE)
    ]


def _strengthen(state: _Merging, there: _There, one: Extracted) -> None:
    if there.new is not None:
        fact = state.facts[there.new]
        assert fact is not None, "what is gone is not there"
        seqs = tuple(sorted({*fact.seqs, *one.seqs}))
        confidence = max(fact.confidence, one.confidence)
        state.facts[there.new] = replace(fact, seqs=seqs, confidence=confidence)
        return
    assert there.known is not None, "it is known or new"
    before = state.repeated.get(there.known)
    seqs = one.seqs if before is None else tuple(sorted({*before.seqs, *one.seqs}))
    there.confidence = strengthened(there.confidence, one.confidence)
    state.repeated[there.known] = Repeated(fact=there.known, seqs=seqs, confidence=there.confidence)
