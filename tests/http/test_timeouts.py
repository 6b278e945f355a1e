"""A request that takes too long is cut off, and what was begun is ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.engine.log import erase_scope
from hitherto.errors import TimedOut
from hitherto.other_systems.chat_store import agent_runs
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE


async def test_an_erasure_that_has_begun_goes_on(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        await memory.conversation(f"{number}", scope=SCOPE).append(user("hello"))
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])).secret
    store = memory._services.store
    with monkeypatch.context() as patched:
        patched.setattr(erase_scope, "_REST", 10_000)
        async with (
            serving(memory, limits=replace(LIMITS, seconds=1.0)) as url,
            hitherto.connect(url, key=secret) as remote,
        ):
            with pytest.raises(TimedOut, match="erasure that has begun goes on"):
                await remote.erase_user(SCOPE.tenant, SCOPE.user)
    assert (await memory.conversations(tenant=SCOPE.tenant)).conversations != ()
    async with asyncio.timeout(PATIENCE):
        await memory.wait_for_erasure()
    assert await store.erasures() == []
    assert (await memory.conversations(tenant=SCOPE.tenant)).conversations == ()


async def test_a_streamed_run_that_is_cut_off_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that waits for its next event would be logged as an error."""
    begun = asyncio.Event()

    class Silent:
        def __init__(self, *_: object) -> None:
            self._stopped = asyncio.Event()

        async def ended(self) -> dict[str, Any]:
            begun.set()
            await self._stopped.wait()
            return {}

        async def stop(self) -> None:
            self._stopped.set()

    monkeypatch.setattr(agent_runs, "_Running", Silent)
    before = asyncio.all_tasks()
    nobody: Any = SimpleNamespace(session_id="s")
    stream = agent_runs._streamed(nobody, nobody, nobody)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await begun.wait()
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
