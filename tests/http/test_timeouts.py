"""A request that takes too long, or whose client has left, is cut off, and what was begun is ended."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import hitherto
from hitherto import Memory, Scope, user
from hitherto.engine.log import erase_scope
from hitherto.errors import TimedOut
from hitherto.http.operations import AGENT, IDEMPOTENCY_KEY, PREFIX, USER
from hitherto.http.server.callers import LOCAL
from hitherto.other_systems.chat_store import agent_runs
from tests.conftest import SCOPE
from tests.faults.waiting import until
from tests.http.conftest import REQUEST
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


READS = [
    ("GET", "/conversations/c/view", None),
    ("GET", "/conversations/c/messages", None),
    ("POST", "/conversations/c/contexts", {"incoming": "what?", "budget": 1_000}),
    ("POST", "/documents", {"text": "A text."}),
]
WRITES = [
    ("POST", "/conversations/c/messages", {"messages": [{"role": "user", "content": "hello"}]}),
    ("PATCH", "/conversations/c", {"title": "t", "create": True}),
]


def in_progress() -> int:
    return sum(getattr(task.get_coro(), "cr_code", None) is REQUEST for task in asyncio.all_tasks())


@pytest.mark.parametrize(("method", "path", "body"), READS + WRITES)
async def test_whoever_has_left_reads_no_more(memory: Memory, method: str, path: str, body: Any) -> None:
    """What writes goes on to its end."""
    connections = memory._services.store.keys._connections
    turns, connections._patience = connections._turns, 10 * PATIENCE
    async with serving(memory, keys=False, limits=replace(LIMITS, seconds=10 * PATIENCE)) as url:
        held = [await turns.acquire() for _ in range(10)]
        address, sent = urlsplit(url), b"" if body is None else json.dumps(body).encode()
        _, client = await asyncio.open_connection(address.hostname, address.port)
        names = f"Host: localhost\r\n{USER}: u\r\n{AGENT}: a\r\n{IDEMPOTENCY_KEY}: k\r\nContent-Type: application/json"
        head = f"{method} {PREFIX}{path} HTTP/1.1\r\n{names}\r\nContent-Length: {len(sent)}\r\n\r\n"
        client.write(head.encode() + sent)
        await until(lambda: LOCAL in turns._waiting, "the request waits for a connection")
        client.close()
        if (method, path, body) in READS:
            await until(lambda: not in_progress(), "the request has ended")
        else:
            await asyncio.sleep(0.1)  # in which the service sees that the client is gone
            assert in_progress()
        for tenant in held:
            turns.release(tenant)
        await until(lambda: not in_progress(), "the request has ended")
    written = await memory.conversations(tenant=LOCAL)
    assert bool(written.conversations) == ((method, path, body) in WRITES)
    assert await memory.documents(Scope(tenant=LOCAL, user="u", agent="a")).list() == []


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
