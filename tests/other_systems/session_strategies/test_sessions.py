"""Seed 003's strategies as sessions: what each shows, when it fires, and what its numbers may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import hitherto
from hitherto import Memory
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.presets import none, redact, summarize, trim
from hitherto.errors import InvalidPolicy
from hitherto.integrations.openai_agents import HithertoSession
from hitherto.other_systems.session_strategies.sessions import (
    CompactingSession,
    DefaultSession,
    Freed,
    SummarizingSession,
    TrackingCompactingSession,
    TrimmingSession,
)
from hitherto.providers.scripted import Gate, Hang, Scripted, items
from tests.conftest import SCOPE
from tests.integrations.planner import LONG, dialogue, kinds, payloads, questions, text


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    """The store has no part in this."""
    async with hitherto.open("memory:") as opened:
        yield opened


async def test_trimming_drops_the_oldest_turns_at_its_limit_and_not_before(memory: Memory) -> None:
    session = TrimmingSession("trip", memory, scope=SCOPE, max_turns=4, keep_last_n_turns=2)
    await dialogue(session, 3, tools=True)
    assert questions(await session.get_items()) == ["Question 0", "Question 1", "Question 2"]

    await dialogue(session, 1, tools=True, start=3)

    # "keeping only the last keep_last_n_turns user turns and their associated assistant/tool messages"
    shown = await session.get_items()
    assert questions(shown) == ["Question 2", "Question 3"]
    assert kinds(shown) == ["user", "function_call", "function_call_output", "assistant"] * 2
    assert len(await session.messages()) == 16
    assert [(one.action, one.start, one.end) for one in await session.digests()] == [(DigestAction.DROP, 0, 7)]


async def test_a_session_on_a_long_conversation_is_trimmed_at_once(memory: Memory) -> None:
    await dialogue(DefaultSession("trip", memory, scope=SCOPE), 10)
    session = TrimmingSession("trip", memory, scope=SCOPE, max_turns=4, keep_last_n_turns=2)
    assert questions(await session.get_items()) == ["Question 8", "Question 9"]
    assert len(await session.messages()) == 20


async def test_summarizing_puts_a_shadow_turn_before_the_newest_turns() -> None:
    model = Scripted([items("Ada wants to see Lisbon."), items("They leave in May.")])
    async with hitherto.open("memory:", model=model) as memory:
        session = SummarizingSession("trip", memory, scope=SCOPE, context_limit=3, keep_last_n_turns=1, wait=10)
        await dialogue(session, 2, tools=True)
        assert len(await session.get_items()) == 8
        assert model.calls == []

        await dialogue(session, 1, tools=True, start=2)

        shown = await session.get_items()
        assert kinds(shown)[:3] == ["user", "assistant", "user"]
        assert "Ada wants to see Lisbon." in text(shown[1])
        assert questions(shown)[1:] == ["Question 2"]

        # The next summary builds on the one before.
        await dialogue(session, 2, tools=True, start=3)
        shown = await session.get_items()
        assert "Ada wants to see Lisbon." in text(shown[1])
        assert "They leave in May." in text(shown[1])
        assert questions(shown)[1:] == ["Question 4"]
        assert len(await session.messages()) == 20


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_run_does_not_wait_for_the_summary_unless_told_to(by_hand: bool) -> None:
    gate = Gate(items("Ada wants to see Lisbon."))
    async with hitherto.open("memory:", model=Scripted([gate])) as memory:
        session = SummarizingSession("trip", memory, scope=SCOPE, context_limit=2, keep_last_n_turns=1)
        await dialogue(session, 2)
        await gate.reached()
        assert questions(await session.get_items()) == ["Question 0", "Question 1"]

        patient = SummarizingSession("trip", memory, scope=SCOPE, context_limit=2, keep_last_n_turns=1, wait=10)
        waiting = asyncio.create_task(session.run_compaction() if by_hand else patient.get_items())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        gate.open()
        await waiting
        assert questions(await session.get_items())[1:] == ["Question 1"]


async def test_a_wait_has_an_end() -> None:
    async with hitherto.open("memory:", model=Scripted([Hang()]), grace=0) as memory:
        session = SummarizingSession("trip", memory, scope=SCOPE, context_limit=2, keep_last_n_turns=1, wait=0.1)
        assert questions(await dialogue(session, 3)) == ["Question 0", "Question 1", "Question 2"]


async def test_compacting_replaces_the_results_of_older_turns(memory: Memory) -> None:
    session = CompactingSession("trip", memory, scope=SCOPE, trigger={"turns": 2}, keep=1)
    await dialogue(session, 2, tools=True)
    before: list[Any] = await session.get_items()
    assert [item["output"].count(LONG) for item in before if "output" in item] == [1, 1]

    await dialogue(session, 1, tools=True, start=2)  # "once the trigger is exceeded"

    shown: list[Any] = await session.get_items()
    assert kinds(shown) == ["user", "function_call", "function_call_output", "assistant"] * 3
    results = [item for item in shown if "output" in item]
    assert [item["call_id"] for item in results] == ["call_0", "call_1", "call_2"]
    assert [item["output"].startswith("⟦removed: ") for item in results] == [True, True, False]
    assert all("weather" in item["output"] for item in results[:2])
    assert [item["output"].count(LONG) for item in payloads(await session.messages()) if "output" in item] == [1] * 3


async def test_tracking_tells_per_turn_what_it_freed(memory: Memory) -> None:
    told: list[Freed] = []
    session = TrackingCompactingSession("trip", memory, scope=SCOPE, trigger={"turns": 2}, keep=1, on_freed=told.append)
    await dialogue(session, 2, tools=True)
    assert await session.freed() == []

    await dialogue(session, 4, tools=True, start=2)

    freed = await session.freed()
    assert told == freed
    assert [one.turn for one in freed] == sorted(one.turn for one in freed)
    assert freed[0].turn == 3
    assert all(one.tokens > 100 for one in freed)
    digests = [one for one in await session.digests() if one.action is DigestAction.REDACT]
    assert [(one.start, one.end, one.tokens) for one in freed] == [(one.start, one.end, one.tokens) for one in digests]


@pytest.mark.parametrize(
    ("make", "policy"),
    [
        (DefaultSession, none()),
        (TrimmingSession, trim()),
        (SummarizingSession, summarize()),
        (CompactingSession, redact()),
        (TrackingCompactingSession, redact()),
    ],
)
async def test_each_runs_by_its_name_alone(memory: Memory, make: Any, policy: Any) -> None:
    session = make("trip", memory, scope=SCOPE)
    assert session.policy == policy
    await dialogue(session, 1)


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (TrimmingSession, {"max_turns": 2, "keep_last_n_turns": 5}),
        (TrimmingSession, {"max_turns": 0}),
        (TrimmingSession, {"max_turns": "4"}),
        (SummarizingSession, {"context_limit": 3, "keep_last_n_turns": 4}),
        (CompactingSession, {"trigger": {"turns": 2}, "keep": 9}),
        (CompactingSession, {"trigger": {"tokens": 2}}),
        (CompactingSession, {"trigger": 0}),
        (TrackingCompactingSession, {"trigger": {"turns": 2}, "keep": -1}),
    ],
)
async def test_numbers_that_make_no_sense_are_refused(memory: Memory, make: Any, numbers: dict[str, Any]) -> None:
    with pytest.raises(InvalidPolicy):
        make("trip", memory, scope=SCOPE, **numbers)


async def test_a_session_without_a_policy_follows_the_conversations(memory: Memory) -> None:
    await memory.conversation("trip", scope=SCOPE).configure(policy="trim:max_turns=3,keep_turns=1", create=True)
    session = HithertoSession("trip", memory, scope=SCOPE)
    await dialogue(session, 3)
    assert questions(await session.get_items()) == ["Question 2"]
