"""Triggers: what each counts, where exactly it is due, how they combine; and spans that are laid over others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.ranges import ranges
from hitherto.core.policy.span import Fate, Reason, Span, overlaid
from hitherto.policies import (
    AllOf,
    AnyOf,
    Fraction,
    Messages,
    Seq,
    Tokens,
    Trigger,
    TriggerInput,
    Turns,
    Undigested,
    redact,
)
from tests.core.counted import Counted
from tests.core.policy.policies import triggers

NOTHING = TriggerInput(
    messages=0, turns=0, tokens=0, undigested=0, last_seq=-1, round_ended=False, window=1_000, budget=1_000
)


def seen(**counts: int | bool) -> TriggerInput:
    return replace(NOTHING, **counts)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("trigger", "not_yet", "due"),
    [
        (Messages(40), seen(messages=40), seen(messages=41)),
        (Turns(12), seen(turns=11), seen(turns=12)),
        (Tokens(10_000), seen(tokens=10_000), seen(tokens=10_001)),
        (Fraction(0.75), seen(tokens=749), seen(tokens=750)),
        (Fraction(1), seen(tokens=999), seen(tokens=1_000)),
        (Undigested(30), seen(undigested=30), seen(undigested=31)),
        (Seq(5), seen(last_seq=4, round_ended=True), seen(last_seq=5, round_ended=True)),
        (Seq(0), NOTHING, seen(last_seq=0, round_ended=True)),
    ],
)
def test_the_mark_itself(trigger: Trigger, not_yet: TriggerInput, due: TriggerInput) -> None:
    assert not trigger.due(not_yet)
    assert trigger.due(due)


def test_a_round_has_to_have_ended_for_a_seq() -> None:
    assert not Seq(5).due(seen(last_seq=50, round_ended=False))


def test_each_trigger_counts_one_thing_only() -> None:
    plenty = TriggerInput(
        messages=10**6,
        turns=10**6,
        tokens=10**6,
        undigested=10**6,
        last_seq=10**6,
        round_ended=True,
        window=1_000,
        budget=1_000,
    )
    counted = {Messages(1): "messages", Turns(1): "turns", Tokens(1): "tokens", Undigested(1): "undigested"}
    for trigger, name in counted.items():
        assert trigger.due(plenty)
        assert not trigger.due(replace(plenty, **{name: 0}))


def test_compacting_waits_until_its_trigger_is_exceeded() -> None:
    """The seed: "Once the trigger is exceeded"."""
    trigger = redact(trigger_turns=8).stages[0].trigger
    assert not trigger.due(seen(turns=8))
    assert trigger.due(seen(turns=9))


def test_a_fraction_is_of_the_window() -> None:
    assert Fraction(0.5).due(replace(seen(tokens=600), window=1_200))
    assert not Fraction(0.5).due(replace(seen(tokens=599), window=1_200))


counts = st.integers(0, 2_000)
sights = st.builds(
    TriggerInput,
    messages=counts,
    turns=counts,
    tokens=counts,
    undigested=counts,
    last_seq=st.integers(-1, 60),
    round_ended=st.booleans(),
    window=st.integers(1, 2_000),
    budget=st.integers(1, 2_000),
)


@given(st.lists(triggers, min_size=1, max_size=4), sights)
def test_any_of_and_all_of(of: list[Trigger], sight: TriggerInput) -> None:
    assert AnyOf(tuple(of)).due(sight) == any(one.due(sight) for one in of)
    assert AllOf(tuple(of)).due(sight) == all(one.due(sight) for one in of)


@given(triggers, sights, st.integers(0, 50), st.integers(0, 50), st.integers(0, 500))
def test_what_is_due_stays_due_while_the_conversation_grows(
    trigger: Trigger, sight: TriggerInput, messages: int, turns: int, tokens: int
) -> None:
    """At the ends of rounds: a mark that was passed stays passed, until its stage has acted."""
    later = replace(
        sight,
        messages=sight.messages + messages,
        turns=sight.turns + turns,
        tokens=sight.tokens + tokens,
        undigested=sight.undigested + messages,
        last_seq=sight.last_seq + messages,
    )
    assert later.round_ended is sight.round_ended
    assert not trigger.due(sight) or trigger.due(later)


@given(triggers)
def test_nothing_is_due_before_the_first_message(trigger: Trigger) -> None:
    assert not trigger.due(NOTHING)


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
