"""The breaker: never more than one probe at once, whatever its calls do and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.breaker import Breaker


def opened(failures: int = 3, rest: float = 10.0) -> Breaker:
    """A breaker that opened at second 0."""
    breaker = Breaker(failures=failures, rest=rest)
    assert [fails(breaker, 0.0) for _ in range(failures)] == [False] * (failures - 1) + [True]
    return breaker


def fails(breaker: Breaker, now: float) -> bool:
    """A call that is made and fails at once; whether the breaker opened with it."""
    return breaker.failed(ticket(breaker, now), now)


def ticket(breaker: Breaker, now: float) -> int:
    found = breaker.admitted(now)
    assert found is not None
    return found


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    breaker = Breaker(failures=3, rest=10)
    for _ in range(5):
        assert not fails(breaker, 0)
        assert not fails(breaker, 0)
        breaker.succeeded(ticket(breaker, 0))
    assert breaker.wait(0) == 0
    assert [fails(breaker, 1) for _ in range(3)] == [False, False, True]
    assert breaker.wait(1) == 10
    assert breaker.admitted(10.9) is None
    assert breaker.admitted(11) is not None


def test_it_closes_when_the_probe_succeeds() -> None:
    breaker = opened()
    probe = ticket(breaker, 10)
    assert breaker.wait(10) == 10
    assert breaker.admitted(10) is None, "one probe at a time"
    breaker.succeeded(probe)
    assert [breaker.wait(10), breaker.admitted(10) is None] == [0, False]
    assert [fails(breaker, 11) for _ in range(3)] == [False, False, True], "it counts anew"
    assert breaker.wait(11) == 10, "and rests as long as at first"


def test_the_rest_doubles_up_to_eightfold() -> None:
    breaker, now, rests = opened(rest=10), 0.0, list[float]()
    for _ in range(6):
        rests.append(breaker.wait(now))
        now += rests[-1]
        assert fails(breaker, now)
    assert rests == [10, 20, 40, 80, 80, 80]


def test_a_probe_that_was_given_up_lets_another_try() -> None:
    breaker = opened()
    breaker.abandoned(ticket(breaker, 10))
    assert breaker.admitted(10) is not None


def test_what_was_under_way_when_it_opened_changes_nothing() -> None:
    breaker = Breaker(failures=1, rest=10)
    first, second, third, fourth = (ticket(breaker, 0) for _ in range(4))
    assert breaker.failed(first, 0)
    assert not breaker.failed(second, 1)
    assert breaker.wait(1) == 9, "neither longer"
    breaker.succeeded(third)
    assert breaker.wait(1) == 9, "nor shorter"
    probe = ticket(breaker, 10)
    breaker.abandoned(fourth)
    assert breaker.admitted(10) is None, "the probe is still out"
    breaker.succeeded(probe)
    assert breaker.wait(10) == 0


steps = st.tuples(
    st.floats(0, 30),
    st.sampled_from(["ask", "ask", "succeeded", "failed", "failed", "abandoned"]),
    st.integers(0, 9),
)


@given(failures=st.integers(1, 4), history=st.lists(steps, max_size=80))
def test_never_more_than_one_probe_and_none_before_its_time(
    failures: int, history: list[tuple[float, str, int]]
) -> None:
    """Against a model that knows of each call that is out when it was let through: in which turn of the breaker, from
    open to closed or back, and whether it was open then."""
    breaker, now = Breaker(failures=failures, rest=10), 0.0
    out: list[tuple[int, int, bool]] = []
    since, rest, in_a_row, turn = 0.0, 0.0, 0, 0
    for passed, step, which in history:
        now += passed
        if step == "ask":
            probing = any(is_probe for *_, is_probe in out)
            allowed = not rest or (not probing and now >= since + rest)
            let = breaker.admitted(now)
            assert (let is not None) == allowed
            if let is not None:
                out.append((let, turn, bool(rest)))
            assert sum(is_probe for *_, is_probe in out) <= 1
        elif out:
            held, begun, is_probe = out.pop(which % len(out))
            counts = begun == turn
            if step == "failed":
                in_a_row += counts
                opens = counts and (is_probe or in_a_row == failures)
                assert breaker.failed(held, now) == opens
                if opens:
                    since, rest, in_a_row, turn = now, min(2 * rest, 80) if is_probe else 10, 0, turn + 1
            elif step == "succeeded":
                breaker.succeeded(held)
                if counts:
                    rest, in_a_row, turn = 0.0, 0, turn + is_probe
            else:
                breaker.abandoned(held)
        waits = bool(rest) and (any(is_probe for *_, is_probe in out) or now < since + rest)
        assert (breaker.wait(now) > 0) == waits
