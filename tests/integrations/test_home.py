"""Sessions from any thread and event loop: the memory stays on its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import Runner

import hitherto
from hitherto.errors import DatabaseUnavailable, InvalidInput
from hitherto.integrations.openai_agents import HithertoSession
from tests.conftest import SCOPE
from tests.integrations.planner import QUIET, kinds, planner, says

HELLO: list[Any] = [{"role": "user", "content": "Hello."}]


def ran(session: HithertoSession, turn: int) -> Any:
    """One `Runner.run_sync` in a fresh thread, which has no loop of its own before."""
    agent, model = planner([[says(f"Answer {turn}")]])
    with ThreadPoolExecutor(1) as thread:
        thread.submit(Runner.run_sync, agent, f"Question {turn}", session=session, run_config=QUIET).result()
    assert model.last_call is not None
    return model.last_call.input


def test_run_sync_works_with_a_memory_that_the_session_opens(database: str) -> None:
    session = HithertoSession("trip", hitherto.open(database), scope=SCOPE)
    assert kinds(ran(session, 0)) == ["user"]
    assert kinds(ran(session, 1)) == ["user", "assistant", "user"]
    session.close()

    again = HithertoSession("trip", hitherto.open(database), scope=SCOPE)
    assert kinds(ran(again, 2)) == ["user", "assistant"] * 2 + ["user"]
    again.close()


def test_run_sync_reuses_a_session_on_the_same_thread() -> None:
    session = HithertoSession("trip", hitherto.open("memory:"), scope=SCOPE)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        for turn in range(3):
            agent, model = planner([[says("Yes.")]])
            Runner.run_sync(agent, f"Question {turn}", session=session, run_config=QUIET)
            assert model.last_call is not None
            assert len(model.last_call.input) == 2 * turn + 1
    finally:
        session.close()
        asyncio.set_event_loop(None)
        loop.close()


def test_sessions_share_a_memory_and_outlive_each_other() -> None:
    with hitherto.open_sync("memory:") as memory:
        one, two = (HithertoSession(name, memory, scope=SCOPE) for name in ("one", "two"))
        asyncio.run(one.add_items(HELLO))
        one.close()
        asyncio.run(two.add_items(HELLO))
        assert asyncio.run(HithertoSession("one", memory, scope=SCOPE).get_items()) == HELLO
    with pytest.raises(InvalidInput, match="this memory is closed"):
        asyncio.run(two.get_items())


def test_a_memory_that_cannot_be_opened_is_tried_again() -> None:
    session = HithertoSession("trip", hitherto.open("postgresql://127.0.0.1:1/none", database_timeout=0.2), scope=SCOPE)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            asyncio.run(session.get_items())
    session.close()


def test_a_session_is_closed_from_async_code_without_blocking_it() -> None:
    async def use() -> None:
        session = HithertoSession("trip", hitherto.open("memory:"), scope=SCOPE)
        await session.add_items(HELLO)
        await session.aclose()
        with pytest.raises(InvalidInput, match="is closed"):
            await session.get_items()

    asyncio.run(use())


async def test_an_open_memory_serves_other_threads_while_its_loop_runs() -> None:
    async with hitherto.open("memory:") as memory:
        session = HithertoSession("trip", memory, scope=SCOPE)
        await asyncio.to_thread(ran, session, 0)
        assert kinds(await session.get_items()) == ["user", "assistant"]


def test_an_open_memory_whose_loop_has_ended_is_refused() -> None:
    async def make() -> HithertoSession:
        return HithertoSession("trip", await hitherto.open("memory:"), scope=SCOPE)

    session = asyncio.run(make())
    with pytest.raises(InvalidInput, match="does not run any more"):
        asyncio.run(session.get_items())
