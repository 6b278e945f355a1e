"""Ranges of messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.ranges import Ranges, ranges, without

SEQS = st.frozensets(st.integers(0, 20))


def seqs(found: Ranges) -> set[int]:
    return {seq for first, last in found for seq in range(first, last + 1)}


@given(some=SEQS, others=SEQS)
def test_what_is_not_in_others(some: frozenset[int], others: frozenset[int]) -> None:
    found = without(ranges(some), ranges(others))
    assert seqs(found) == some - others
    assert found == ranges(some - others)
