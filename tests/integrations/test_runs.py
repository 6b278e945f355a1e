"""The SDK's real Runner with every session: what it sends, what it stores, and that the log is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from agents import Agent, RunConfig, RunContextWrapper, Runner, RunState, SessionSettings
from agents.testing import ScriptedModel

from hitherto import Memory, Scope
from hitherto.errors import InvalidScope
from hitherto.integrations.openai_agents import HithertoSession
from hitherto.other_systems.session_strategies.sessions import (
    CompactingSession,
    DefaultSession,
    SummarizingSession,
    TrackingCompactingSession,
    TrimmingSession,
)
from tests.conftest import SCOPE
from tests.integrations.planner import (
    QUIET,
    assert_no_orphans,
    calls,
    dialogue,
    kinds,
    payloads,
    planner,
    questions,
    says,
)

Make = Callable[[Memory], HithertoSession]

SESSIONS: dict[str, Make] = {
    "plain": lambda memory: HithertoSession("trip", memory, scope=SCOPE),
    "default": lambda memory: DefaultSession("trip", memory, scope=SCOPE),
    "trimming": lambda memory: TrimmingSession("trip", memory, scope=SCOPE, max_turns=3, keep_last_n_turns=1),
    "summarizing": lambda memory: SummarizingSession(
        "trip", memory, scope=SCOPE, context_limit=3, keep_last_n_turns=1, wait=10
    ),
    "compacting": lambda memory: CompactingSession("trip", memory, scope=SCOPE, trigger={"turns": 2}, keep=1),
    "tracking": lambda memory: TrackingCompactingSession("trip", memory, scope=SCOPE, trigger={"turns": 2}, keep=1),
    "budget": lambda memory: DefaultSession("trip", memory, scope=SCOPE, budget=900),
}


@pytest.fixture(params=sorted(SESSIONS))
async def session(request: pytest.FixtureRequest, memory: Memory) -> HithertoSession:
    """One of each class, with numbers that make it fire within a few turns."""
    return SESSIONS[request.param](memory)


async def test_hand_offs(session: HithertoSession) -> None:
    for turn in range(4):
        booker = Agent(name="booker", model=ScriptedModel(steps=[[says(f"Booked {turn}.")]]))
        agent, model = planner([[calls("transfer_to_booker", f"h{turn}")]], handoffs=[booker])
        result = await Runner.run(agent, f"Question {turn}", session=session, run_config=QUIET)
        assert result.final_output == f"Booked {turn}."
        model.assert_complete()
        assert_no_orphans(result.to_input_list())
    log = payloads(await session.messages())
    assert kinds(log) == ["user", "function_call", "function_call_output", "assistant"] * 4


async def test_streaming(session: HithertoSession) -> None:
    for turn in range(4):
        agent, model = planner([[calls("weather", f"s{turn}", city="Lisbon")], [says(f"Answer {turn}")]])
        result = Runner.run_streamed(agent, f"Question {turn}", session=session, run_config=QUIET)
        seen = [event.type async for event in result.stream_events()]
        assert "raw_response_event" in seen
        assert result.final_output == f"Answer {turn}"
        for call in model.calls:
            assert_no_orphans(call.input)
    log = payloads(await session.messages())
    assert kinds(log) == ["user", "function_call", "function_call_output", "assistant"] * 4


@pytest.mark.parametrize("approved", [True, False])
async def test_an_interrupted_run_is_resumed_from_its_json(session: HithertoSession, approved: bool) -> None:
    await dialogue(session, 2, tools=True)
    asking = [calls("book", "b1", hotel="Avenida"), calls("weather", "w1", city="Lisbon")]
    agent, model = planner([asking, [says("Done.")]])
    result = await Runner.run(agent, "Book it.", session=session, run_config=QUIET)
    [interruption] = cast("list[Any]", result.interruptions)
    saved = result.to_state().to_json()

    # While a person thinks it over, others look at the session.
    assert questions(await session.get_items())[-1] == "Book it."

    state: Any = await RunState.from_json(agent, saved)
    [again] = state.get_interruptions()
    assert again.raw_item.call_id == interruption.raw_item.call_id
    state.approve(again) if approved else state.reject(again)
    result = await Runner.run(agent, state, session=session, run_config=QUIET)

    assert result.final_output == "Done."
    assert model.last_call is not None
    assert_no_orphans(model.last_call.input)
    log = payloads(await session.messages())[8:]
    assert sorted(item["call_id"] for item in log if item.get("type") == "function_call") == ["b1", "w1"]
    assert sorted(item["call_id"] for item in log if item.get("type") == "function_call_output") == ["b1", "w1"]
    [booked] = [item["output"] for item in log if item.get("call_id") == "b1" and "output" in item]
    assert (booked == "booked Avenida") is approved
    await dialogue(session, 3, start=5)
    assert_no_orphans(await dialogue(session, 1, start=8))


@pytest.mark.parametrize("meanwhile", [1, 6])
async def test_an_approval_that_comes_turns_later(session: HithertoSession, meanwhile: int) -> None:
    """Whatever became of the call by then: nobody is sent a result without it."""
    agent, _ = planner([[calls("book", "b1", hotel="Avenida")], [says("Booked.")]])
    result = await Runner.run(agent, "Book it.", session=session, run_config=QUIET)
    await dialogue(session, meanwhile, tools=True)

    state = result.to_state()
    state.approve(state.get_interruptions()[0])
    result = await Runner.run(agent, state, session=session, run_config=QUIET)

    assert result.final_output == "Booked."
    for turn in range(6, 9):
        assert_no_orphans(await dialogue(session, 1, start=turn))
    log = payloads(await session.messages())
    assert [item["output"] for item in log if item.get("call_id") == "b1" and "output" in item] == ["booked Avenida"]


async def test_runs_of_one_session_at_once_keep_whole_groups(memory: Memory) -> None:
    """Each batch of a run is one append, so that runs mix batch by batch and never within one."""
    session = HithertoSession("trip", memory, scope=SCOPE)
    await asyncio.gather(*(dialogue(session, 1, tools=True, start=number) for number in range(6)))
    log = payloads(await session.messages())
    assert len(log) == 24
    assert_no_orphans(log)


@pytest.mark.parametrize("limit", range(1, 10))
async def test_a_limit_never_sends_the_model_an_orphan(memory: Memory, limit: int) -> None:
    """The SDK leaves out what the limit cut from its call; the session itself counts exactly."""
    session = HithertoSession("trip", memory, scope=SCOPE)
    await dialogue(session, 3, tools=True)
    assert len(await session.get_items(limit)) == limit

    agent, model = planner([[says("Yes.")]])
    config = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=limit))
    await Runner.run(agent, "And now?", session=session, run_config=config)

    assert model.last_call is not None
    assert_no_orphans(model.last_call.input)
    assert questions(model.last_call.input)[-1] == "And now?"


@dataclass
class Guest:
    tenant: str


def of_guest(wrapper: RunContextWrapper[Any] | None) -> Scope:
    if wrapper is None:
        raise InvalidScope("this session is asked in runs only")
    return Scope(tenant=wrapper.context.tenant, user="u", agent="planner")


@pytest.mark.parametrize("streamed", [False, True])
async def test_one_session_serves_the_tenant_of_the_run(memory: Memory, streamed: bool) -> None:
    session = TrimmingSession("trip", memory, scope=of_guest, max_turns=3, keep_last_n_turns=1)

    async def ask(tenant: str, question: str) -> list[str]:
        agent, model = planner([[calls("weather", "w", city="Lisbon")], [says("Yes.")]])
        if streamed:
            result = Runner.run_streamed(agent, question, session=session, context=Guest(tenant), run_config=QUIET)
            async for _ in result.stream_events():
                pass
        else:
            await Runner.run(agent, question, session=session, context=Guest(tenant), run_config=QUIET)
        assert model.last_call is not None
        return questions(model.last_call.input)

    for turn in range(2):
        await asyncio.gather(*(ask(tenant, f"{tenant} {turn}") for tenant in ("acme", "globex")))
    assert await ask("acme", "more?") == ["acme 0", "acme 1", "more?"]
    assert await ask("globex", "more?") == ["globex 0", "globex 1", "more?"]
    assert await ask("initech", "more?") == ["more?"]


@pytest.mark.parametrize("found", [None, "acme", {"tenant": "acme"}])
async def test_without_a_scope_nothing_is_read_or_written(memory: Memory, found: Any) -> None:
    session = HithertoSession("trip", memory, scope=lambda _: found)
    agent, model = planner([[says("Yes.")]])
    with pytest.raises(InvalidScope):
        await Runner.run(agent, "Where to?", session=session, run_config=QUIET)
    assert model.calls == ()
    for verb in (session.get_items(0), session.add_items([]), session.pop_item(), session.clear_session()):
        with pytest.raises(InvalidScope):
            await verb


async def test_a_scope_function_that_wants_a_run_refuses_calls_without_one(memory: Memory) -> None:
    session = HithertoSession("trip", memory, scope=of_guest)
    with pytest.raises(InvalidScope, match="in runs only"):
        await session.get_items()
