"""The cut in steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.context.budget import cut, step_of

amounts = st.integers(0, 100_000)


@given(amounts, amounts, st.integers(1, 10_000))
def test_what_is_left_fits_and_no_step_too_many_is_taken(total: int, room: int, step: int) -> None:
    taken = cut(total, room, step)
    assert taken % step == 0
    assert total - taken <= room
    assert taken == 0 or total - (taken - step) > room


@given(amounts, amounts, st.integers(1, 10_000), st.integers(0, 10_000))
def test_a_cut_only_moves_forward(total: int, room: int, step: int, more: int) -> None:
    assert cut(total, room, step) <= cut(total + more, room, step)


@given(st.integers(1, 10_000_000))
def test_a_step_is_a_third(budget: int) -> None:
    assert step_of(budget) == max(1, budget // 3)
