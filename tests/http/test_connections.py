"""Connections have times: for a head, for what nobody reads; and there are no more of them than files may be open."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvloop

import hitherto
from hitherto import Memory, user
from hitherto.http.operations import AGENT, PREFIX, USER
from hitherto.http.server import gate, serve
from hitherto.http.server.app import create_app
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(url: str) -> Connection:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


async def ended(connection: Connection) -> bytes:
    """What comes until the service closes the connection."""
    with suppress(ConnectionError):
        return await connection[0].read()
    return b""


async def asked(connection: Connection) -> bytes:
    """The status line of an answer, whose connection stays."""
    connection[1].write(HEAD + b"\r\n")
    head = await connection[0].readuntil(b"\r\n\r\n")
    await connection[0].readexactly(len(b'{"status":"ok"}'))
    return head.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET", HEAD, b"\r\n", HEAD + b"\r\n\r\n", HEAD + b"Content-Length: 5\r\n\r\nx", HEAD + b"\r\n" + HEAD],
    ids=["nothing", "a word", "half a head", "a line", "a line behind", "half a body", "half of the next head"],
)
async def test_one_that_sends_no_whole_head_is_cut_off(
    memory: Memory, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_LOOK", 0.1)
    monkeypatch.setattr(gate, "_STRANGERS", 0.1)
    async with serving(memory, keys=False) as url:
        silent = await connected(url)
        silent[1].write(sent[:4])
        if sent[4:]:
            await asyncio.sleep(0.01)  # so that it comes in two parts; in one, the test holds too
            silent[1].write(sent[4:])
        if b"\r\n\r\n" in sent:  # answered: it may be idle, until it sends something
            with suppress(ConnectionError, asyncio.IncompleteReadError):  # where the machine was too slow for that
                await silent[0].readuntil(b"ok")
            silent[1].write(b"X")
        await ended(silent)
        silent[1].close()


async def test_blanks_around_what_a_header_says_do_not_count(memory: Memory) -> None:
    await memory.conversation("c", scope=replace(SCOPE, tenant="local")).append(user("hello"))
    head = f"GET {PREFIX}/conversations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    async with serving(memory, keys=False) as url:
        connection = await connected(url)
        connection[1].write(f"{head}{USER}:  {SCOPE.user} \t\r\n{AGENT}: {SCOPE.agent} \r\n\r\n".encode())
        assert b'"conversation":"c"' in (await ended(connection)).replace(b" ", b"")
        connection[1].close()


async def test_one_that_is_idle_between_requests_stays(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    made, begins = list[serve._Connection](), serve._Connection.connection_made

    def connection_made(self: serve._Connection, transport: asyncio.Transport) -> None:
        made.append(self)
        begins(self, transport)

    monkeypatch.setattr(serve._Connection, "connection_made", connection_made)
    async with serving(memory, keys=False) as url:
        patient = await connected(url)
        for _ in range(3):
            assert b" 200 " in await asked(patient)
            with monkeypatch.context() as later:
                later.setattr(serve, "_LOOK", 0.0)  # its time is over
                made[0]._look(False)
        assert b" 200 " in await asked(patient)
        patient[1].close()


async def test_an_answer_that_nobody_reads_ends_with_its_connection(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_LOOK", 0.1)
    lost = asyncio.Event()

    class Watched(serve._Connection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    monkeypatch.setattr(serve, "_Connection", Watched)
    async with serving(memory, keys=False) as url:
        address = urlsplit(url)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, (address.hostname, address.port))
            request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n"
            await loop.sock_sendall(deaf, request + b"\r\n" + request + b"Connection: close\r\n\r\n")
            await lost.wait()


async def test_more_than_there_may_be(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that were silent longest make room, and the log says what to do."""
    monkeypatch.setattr(serve, "most_connections", lambda: 5)
    monkeypatch.setattr(serve._Connection, "_told", -serve._TOLD)
    caplog.set_level(logging.WARNING)
    async with serving(memory, keys=False) as url:
        silent = [await connected(url) for _ in range(5)]
        others = [await connected(url) for _ in range(3)]
        for one in others:
            assert b" 200 " in await asked(one)
        assert [await ended(one) for one in silent[:3]] == [b""] * 3
        for _, writer in (*silent, *others):
            writer.close()
    told = [one.getMessage() for one in caplog.records if "connections" in one.getMessage()]
    assert len(told) == 1
    assert "ulimit -n" in told[0]


async def test_where_all_are_in_use(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "most_connections", lambda: 2)
    async with serving(memory, keys=False) as url:
        used = [await connected(url) for _ in range(2)]
        for reader, writer in used:  # its body is waited for
            writer.write(b"POST /api/v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n")
            writer.write(b"Expect: 100-continue\r\n\r\n")
            assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        refused = await connected(url)
        assert (await ended(refused)).startswith(b"HTTP/1.1 503 ")
        for _, writer in (*used, refused):
            writer.close()


@pytest.mark.parametrize("sent", [b"FETCH / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"], ids=["a method", "TLS"])
async def test_what_is_no_http_fills_no_log(memory: Memory, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with serving(memory) as url:
        connection = await connected(url)
        connection[1].write(sent)
        assert b" 400 " in await ended(connection)
        connection[1].close()
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []


def test_one_that_closes_with_its_answer_unread_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Nor where another request of it waits; under uvloop, as services run."""
    caplog.set_level(logging.INFO)

    async def closes() -> None:
        async with hitherto.open("memory:") as memory, serving(memory, keys=False) as url:
            address, loop = urlsplit(url), asyncio.get_running_loop()
            await memory.conversation("c", scope=replace(SCOPE, tenant="local")).append(user("x" * 10_000_000))
            names = f"Host: localhost\r\n{USER}: {SCOPE.user}\r\n{AGENT}: {SCOPE.agent}\r\n\r\n"
            request = f"GET {PREFIX}/conversations/c/messages HTTP/1.1\r\n{names}".encode()
            for count in (1, 2):
                with socket.socket() as deaf:
                    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
                    deaf.setblocking(False)
                    await loop.sock_connect(deaf, (address.hostname, address.port))
                    await loop.sock_sendall(deaf, count * request)
                    await loop.sock_recv(deaf, 1)
            assert b" 200 " in await asked(await connected(url))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(closes())
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []


def test_there_are_fewer_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in ((256, 205), (1_024, 820), (60, 10), (20, 1), (resource.RLIM_INFINITY, 100_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert serve.most_connections() == most


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/readyz", b""), ("POST", f"{PREFIX}/recall", json.dumps({"question": "q" * 100_000}).encode())],
    ids=["a look at the database", "work on a large body"],
)
async def test_an_answer_that_nobody_reads_keeps_no_turn(memory: Memory, method: str, path: str, body: bytes) -> None:
    """It may be held for a minute, and others of the tenant, or all, would wait for its turn."""
    app = create_app(memory, keys=False, limits=LIMITS, origins=(), more=None)
    headers = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
    headers |= {USER: SCOPE.user or "", AGENT: SCOPE.agent or ""}
    scope: dict[str, Any] = {
        **{"type": "http", "http_version": "1.1", "scheme": "http", "method": method, "path": path},
        **{"raw_path": path.encode(), "root_path": "", "query_string": b"", "server": ("localhost", 80)},
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }

    async def answered(send: Callable[[Any], Awaitable[None]]) -> None:
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(parts, None) or await asyncio.Event().wait()

        await app(dict(scope), receive, send)

    begun, statuses = asyncio.Queue[None](), list[int]()

    async def unread(_: Any) -> None:
        begun.put_nowait(None)
        await asyncio.Event().wait()

    async def read(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        unread_ones = [group.create_task(answered(unread)) for _ in range(9)]
        for _ in unread_ones:
            await begun.get()
        await answered(read)
        for one in unread_ones:
            one.cancel()
    assert statuses[0] == 200
