"""Ranges of messages."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.ranges import Ranges, all_in, any_in, ranges, without
from tests.core.counted import Counted

SEQS = st.frozensets(st.integers(0, 20))


def seqs(found: Ranges) -> set[int]:
    return {seq for first, last in found for seq in range(first, last + 1)}


@given(some=SEQS, others=SEQS)
def test_what_is_not_in_others(some: frozenset[int], others: frozenset[int]) -> None:
    found = without(ranges(some), ranges(others))
    assert seqs(found) == some - others
    assert found == ranges(some - others)


def test_many_are_gone_through_once() -> None:
    every, third = range(0, 48_000, 2), range(0, 48_000, 6)
    others = Counted(ranges(third))
    assert without(ranges(every), cast("Any", others)) == ranges(set(every) - set(third))
    assert others.reads < 10 * len(every)


@given(some=SEQS, first=st.integers(0, 20), more=st.integers(0, 5))
def test_any_and_all_in(some: frozenset[int], first: int, more: int) -> None:
    asked = range(first, first + more + 1)
    assert any_in(ranges(some), first, first + more) is any(seq in some for seq in asked)
    assert all_in(ranges(some), first, first + more) is all(seq in some for seq in asked)
