"""What the service itself does holds up nobody; what an operator sees of requests, in the log and at /metrics."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Container
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import hitherto
from hitherto import Memory, none, user
from hitherto.errors import DatabaseUnavailable
from hitherto.http.operations import AGENT, PREFIX, USER
from hitherto.store.keys import KeyStore
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE

LOCAL = replace(SCOPE, tenant="local")
LONGEST = 0.05
"""Seconds of a piece of work."""


async def asked(url: str, method: str, path: str, body: bytes = b"") -> tuple[int, int]:
    """The status of an answer and its size; nothing is kept of it, so that this takes next to no time."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    names = f"{USER}: {SCOPE.user}\r\n{AGENT}: {SCOPE.agent}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{names}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode())
    for start in range(0, len(body), 65_536):
        writer.write(body[start : start + 65_536])
        await writer.drain()
    status, size = int((await reader.readline()).split()[1]), 0
    while part := await reader.read(65_536):
        size += len(part)
    writer.close()
    return status, size


@asynccontextmanager
async def watched(url: str) -> AsyncGenerator[list[float]]:
    """Asks for the service's health all the time. The pieces of work of the event loop, in seconds, are in the list,
    without the garbage collector: how long it takes depends on all that the tests of this process have left."""
    pieces, asking = list[float](), True

    async def look() -> None:
        while asking:
            before = time.thread_time()
            await asyncio.sleep(0)
            pieces.append(time.thread_time() - before)

    async def ask() -> None:
        while asking:
            assert (await asked(url, "GET", "/healthz"))[0] == 200

    gc.collect()
    gc.disable()
    tasks = [asyncio.create_task(look()), asyncio.create_task(ask())]
    try:
        yield pieces
    finally:
        asking = False
        await asyncio.gather(*tasks)
        gc.enable()


async def check(url: str, load: Callable[[], Awaitable[object]]) -> None:
    longest = list[float]()
    for _ in range(3):  # what else runs may slow the processor once
        async with watched(url) as pieces:
            await load()
        longest.append(max(pieces))
        if longest[-1] <= LONGEST:
            return
    pytest.fail(f"the longest pieces took {longest} s")


async def check_request(
    url: str, method: str, path: str, body: bytes = b"", *, statuses: Container[int] = (200,), size: int = 0
) -> None:
    """The answer has one of the statuses, and at least this size."""

    async def load() -> None:
        status, answered = await asked(url, method, PREFIX + path, body)
        assert status in statuses
        assert answered >= size

    await check(url, load)


BODIES = {
    "too large": b'{"text": "' + b"x" * 20_000_000,
    "too many values": b'{"messages": [{"x": [' + b"1," * 3_000_000,
    "too many texts": b'{"messages": ["' + b'","' * 3_000_000,
    "too deep": b'{"messages": ' + (b"[" * 90 + b"]" * 90) * 200 + b"[" * 500_000,
    "one text": b'{"texts": "' + b"x" * 8_000_000 + b'"}',
    "one text of escapes": b'{"texts": "' + b"\\u00e9" * 1_000_000 + b'"}',
    "many values": b'{"texts": [' + b"1," * 45_000 + b"1]}",
    "many objects": b'{"texts": [' + b"{}," * 22_000 + b"1]}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_while_bodies_are_read_and_refused(memory: Memory, body: bytes) -> None:
    async with serving(memory, keys=False, limits=LIMITS) as url:
        await check_request(url, "POST", "/documents", body, statuses=(413, 422))


async def test_while_long_lists_and_exports_are_sent(memory: Memory) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    for _ in range(12):
        await chat.append(*(user("x" * 2_000) for _ in range(250)))
    async with serving(memory, keys=False) as url:
        for path in ("/conversations/c/messages", "/export"):
            await check_request(url, "GET", path, size=6_000_000)


LONG_TEXT = "hello world, " * 300_000
SCHEMAS = [
    {
        "type": "function",
        "function": {"name": f"f{one}", "parameters": {"properties": {name: {} for name in "abcdefgh"}}},
    }
    for one in range(1_400)
]
HEAVY: dict[str, tuple[str, dict[str, object]]] = {
    "append many": ("messages", {"messages": [{"role": "user", "content": "hello"}] * 9_000}),
    "append a long text": ("messages", {"messages": [{"role": "user", "content": LONG_TEXT}]}),
    "a context of a long text": ("contexts", {"incoming": LONG_TEXT, "budget": 10_000_000}),
    "a context with many tools": ("contexts", {"tools": SCHEMAS, "budget": 10_000_000}),
    "a context of a long conversation": ("contexts", {"incoming": "hello", "budget": 400_000}),
    "take back many": ("rewind", {"to": 9_000}),
    "append what are no messages": ("messages", {"messages": [1] * 45_000}),
}
OF_A_LONG_CONVERSATION = [
    HEAVY[name][1] for name in ("a context of a long text", "a context of a long conversation", "take back many")
]


@pytest.mark.parametrize(("path", "body"), HEAVY.values(), ids=HEAVY)
async def test_while_a_verb_has_much_to_do(memory: Memory, path: str, body: dict[str, object]) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    for _ in range(2 if body in OF_A_LONG_CONVERSATION else 0):
        await chat.append(*(user(f"I said {number}.") for number in range(9_000)))
    encoded = json.dumps(body).encode()
    async with serving(memory, keys=False) as url:
        await check_request(url, "POST", f"/conversations/c/{path}", encoded, statuses=(200, 422))


WORDS = "hello world, " * 600_000
LONG: dict[str, tuple[str, str, dict[str, object]]] = {
    "items in place of others": ("PUT", "/conversations/c/items", {"items": [{"role": "user", "content": WORDS}]}),
    "metadata": ("PATCH", "/conversations/c", {"metadata": {"text": WORDS * 2}}),
    "a document": ("POST", "/documents", {"text": WORDS}),
    "events of a run": (
        "POST",
        "/runs/{run}/events",
        {"events": [{"kind": "message", "payload": {"text": WORDS[:2_000]}}] * 7_000},
    ),
}


@pytest.mark.parametrize(("method", "path", "body"), LONG.values(), ids=LONG)
async def test_while_bodies_near_the_limit_are_worked_on(
    memory: Memory, method: str, path: str, body: dict[str, object]
) -> None:
    await memory.conversation("c", scope=LOCAL, policy=none()).append(user("Hello."))
    run = await memory.runs(LOCAL).begin("c")
    encoded = json.dumps(body).encode()
    assert len(encoded) < LIMITS.size
    async with serving(memory, keys=False) as url:
        await check_request(url, method, path.format(run=run.id), encoded, statuses=(200, 204, 422))


async def test_while_a_conversation_with_many_gaps_is_read(memory: Memory) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    for _ in range(2):
        await chat.append(*(user(f"I said {number}.") for number in range(9_000)))
    await chat.erase(range(0, 18_000, 2))
    encoded = json.dumps({"incoming": "hello", "budget": 2_000}).encode()
    async with serving(memory, keys=False) as url:
        await check_request(url, "POST", "/conversations/c/contexts", encoded)
        for path in ("head", "items"):
            await check_request(url, "GET", f"/conversations/c/{path}")


async def test_while_very_long_messages_are_read(memory: Memory) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    for _ in range(2):
        await chat.append(*(user("x" * 2_000_000) for _ in range(7)))
    encoded = json.dumps({"what": [0, 4], "budget": 10_000_000}).encode()
    async with serving(memory, keys=False) as url:
        await check_request(url, "GET", "/conversations/c/items")
        await check_request(url, "POST", "/conversations/c/expand", encoded)


async def test_while_long_messages_are_read(memory: Memory) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    for text in ("é" * 20_000, "x" * 100_000):
        await chat.append(*(user(text) for _ in range(24)))
    async with serving(memory, keys=False) as url:
        await check_request(url, "GET", "/conversations/c/items")


async def test_while_a_long_conversation_is_read(memory: Memory) -> None:
    chat = memory.conversation("c", scope=LOCAL, policy=none())
    await chat.append(*(user(f"I said {number}.") for number in range(9_000)))
    async with serving(memory, keys=False) as url:
        for path in ("items", "items?wire=anthropic", "view", "messages"):
            await check_request(url, "GET", f"/conversations/c/{path}")


async def test_while_many_append(memory: Memory) -> None:
    async with serving(memory, keys=False) as url:
        body = json.dumps({"messages": [{"role": "user", "content": "hello"} for _ in range(500)]}).encode()

        async def load() -> None:
            names = (f"c{number}" for number in range(5))
            done = (asked(url, "POST", f"{PREFIX}/conversations/{name}/messages", body) for name in names)
            assert {status for status, _ in await asyncio.gather(*done)} == {200}

        await check(url, load)


async def test_while_texts_full_of_quotes_are_stored(memory: Memory) -> None:
    run = await memory.runs(LOCAL).begin("c")
    text = 'He said "no". ' * 100_000
    async with serving(memory, keys=False) as url:
        bodies: dict[str, Any] = {
            f"/runs/{run.id}/events": {"events": [{"kind": "tool_result", "payload": text}]},
            "/documents": {"text": text},
        }
        for path, body in bodies.items():
            await check_request(url, "POST", path, json.dumps(body).encode(), statuses=(200, 204))


HEAD = PREFIX + "/conversations/{conversation}/head"


async def test_each_request_is_counted_and_what_fails_is_logged(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    async with hitherto.open(database) as memory:
        made = await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])
        headers = {"Authorization": f"Bearer {made.secret}", USER: SCOPE.user, AGENT: SCOPE.agent}
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
            path = HEAD.format(conversation="a-name")
            await client.patch(f"{PREFIX}/conversations/a-name", json={"title": "A title", "create": True})
            assert (await client.get(path)).status_code == 200
            assert (await client.get(HEAD.format(conversation="another"))).status_code == 404
            assert (await client.get("/no/such/a-name")).status_code == 404
            assert (await client.request("PURGE", path)).status_code == 405
            assert (await client.get(path, headers={"Authorization": ""})).status_code == 401
            told = (await client.get("/metrics")).text
            with monkeypatch.context() as changed:
                changed.setattr(type(memory._services.store.keys), KeyStore.find.__name__, away)
                assert (await client.get(path)).status_code == 503
    families = text_string_to_metric_families(told)
    samples = [one for family in families for one in family.samples if one.name == "hitherto_request_seconds_count"]
    counted = {tuple(one.labels[name] for name in ("method", "path", "status")): one.value for one in samples}
    of_conversation = PREFIX + "/conversations/{conversation}"
    assert counted == {
        ("PATCH", of_conversation, "204"): 1,
        ("GET", HEAD, "200"): 1,
        ("GET", HEAD, "404"): 1,
        ("", "", "404"): 1,
        ("", HEAD, "405"): 1,
        ("", "", "401"): 1,
    }
    lines = [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "hitherto.http"]
    refused = [(level, line.split(" in ")[0], line.split(" ms")[-1]) for level, line in lines if " ms" in line]
    assert refused == [
        ("INFO", f"GET {HEAD}: 404", ": NotFound"),
        ("INFO", "GET: 404", ""),
        ("INFO", f"PURGE {HEAD}: 405", ""),
        ("INFO", "GET: 401", ": Unauthorized"),
        ("WARNING", "GET: 503", ": DatabaseUnavailable (no database at db.internal)"),
    ]


async def away(*_: object) -> None:
    raise DatabaseUnavailable("no database at db.internal")
