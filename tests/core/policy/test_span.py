"""Spans that are laid over others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.ranges import ranges
from hitherto.core.policy.span import Fate, Reason, Span, overlaid
from tests.core.counted import Counted

SEQS = st.frozensets(st.integers(0, 20))


def span(first: int, last: int, reason: Reason) -> Span:
    return Span(start=first, end=last, fate=Fate.DROPPED, reason=reason)


def by_seq(found: list[Span]) -> dict[int, Reason]:
    told = [(seq, one.reason) for one in found for seq in range(one.start, one.end + 1)]
    assert told == sorted(told, key=lambda one: one[0])
    assert len(told) == len(dict(told)), "each message has one fate"
    return dict(told)


@given(under=SEQS, over=SEQS)
def test_what_is_laid_over_counts(under: frozenset[int], over: frozenset[int]) -> None:
    below = [span(first, last, Reason.WINDOW) for first, last in ranges(under)]
    above = [span(first, last, Reason.ERASED) for first, last in ranges(over)]
    expected = {seq: Reason.ERASED if seq in over else Reason.WINDOW for seq in under}
    assert by_seq(list(overlaid(below, above))) == expected


def test_many_are_gone_through_once() -> None:
    below = [span(seq, seq, Reason.WINDOW) for seq in range(32_000)]
    over = Counted([span(seq, seq, Reason.ERASED) for seq in range(0, 32_000, 2)])
    assert len(list(overlaid(below, over))) == len(below)
    assert over.reads < 10 * len(below)
