"""What is sent twice is written once: by two at once, and by a client whose connection was cut."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

import hitherto
from hitherto import Memory, assistant, user
from hitherto.errors import IdempotencyKeyReused, ServiceUnavailable, TooManyRequests
from hitherto.http.operations import AGENT, IDEMPOTENCY_KEY, PREFIX, USER
from tests.conftest import SCOPE
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE

HERE = f"{PREFIX}/conversations/c/messages"

Cut = Literal["before", "after", "in the answer"]


async def texts(memory: Memory) -> list[str]:
    return [one.message.text for one in await memory.conversation("c", scope=SCOPE).messages()]


async def test_one_key_twice_at_once_writes_once(memory: Memory) -> None:
    secret = (await memory.keys(SCOPE.tenant).create("tests")).secret
    headers = {"Authorization": f"Bearer {secret}", USER: SCOPE.user, AGENT: SCOPE.agent}
    async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        for number in range(5):
            body = {"messages": [{"role": "user", "content": f"hello {number}"}]}
            sent = (client.post(HERE, headers={**headers, IDEMPOTENCY_KEY: f"k-{number}"}, json=body) for _ in range(8))
            answers = [one.json() for one in await asyncio.gather(*sent)]
            assert sorted(one.pop("replayed") for one in answers) == [False, *[True] * 7]
            assert all(one == answers[0] for one in answers)
        other = {"messages": [{"role": "user", "content": "something else"}]}
        found = await client.post(HERE, headers={**headers, IDEMPOTENCY_KEY: "k-0"}, json=other)
        assert (found.status_code, found.json()["type"]) == (409, f"urn:hitherto:{IdempotencyKeyReused.__name__}")
    assert await texts(memory) == [f"hello {number}" for number in range(5)]


class Proxy:
    """Stands before a service, and cuts the connections of the next requests: before a request has gone through, or
    after the service has done it."""

    def __init__(self, url: str) -> None:
        self._service = urlsplit(url)
        self.cuts = list[Cut]()
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection(self._service.hostname, self._service.port)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = await reader.readexactly(length(head))
                writes = not head.startswith(b"GET")
                cut = self.cuts.pop(0) if writes and self.cuts else None
                self.requests += writes
                if cut == "before":
                    break
                questions.write(head + body)
                head = await answers.readuntil(b"\r\n\r\n")
                body = await answers.readexactly(length(head))
                if cut == "in the answer":
                    writer.write(head + body[: len(body) // 2])
                    await writer.drain()
                if cut:
                    break
                writer.write(head + body)
        for one in (writer, questions):
            one.close()


def length(head: bytes) -> int:
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(found[0].split(b":")[1]) if found else 0


@pytest.fixture
async def proxy(memory: Memory) -> AsyncIterator[tuple[Proxy, Memory]]:
    """One, and a client through it."""
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["read", "write", "review"])).secret
    async with serving(memory) as url:
        made = Proxy(url)
        async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            async with hitherto.connect(f"http://127.0.0.1:{port}", key=secret) as remote:
                yield made, remote


@pytest.mark.parametrize("cuts", [["before"], ["after"], ["in the answer"], ["before", "after", "in the answer"]])
async def test_an_append_whose_connection_is_cut_writes_once(
    memory: Memory, proxy: tuple[Proxy, Memory], cuts: list[Cut]
) -> None:
    between, remote = proxy
    chat = remote.conversation("c", scope=SCOPE)
    await chat.append(user("before"))
    between.cuts, between.requests = list[Cut](cuts), 0
    done = await chat.append(user("hello"), assistant("hi"))
    assert between.requests == len(cuts) + 1
    assert (done.start, done.end, done.replayed) == (1, 2, cuts != ["before"])
    assert await texts(memory) == ["before", "hello", "hi"]


async def test_a_turn_whose_connection_is_cut_writes_once(memory: Memory, proxy: tuple[Proxy, Memory]) -> None:
    between, remote = proxy
    chat = remote.conversation("c", scope=SCOPE)
    async with chat.turn("hello", key="t-1") as turn:
        between.cuts.append("after")
        await turn.add(assistant("hi"))
    assert await texts(memory) == ["hello", "hi"]
    async with chat.turn("hello", key="t-1") as turn:
        assert turn.done
    assert await texts(memory) == ["hello", "hi"]


async def test_what_may_be_done_twice_is_not_sent_twice(memory: Memory, proxy: tuple[Proxy, Memory]) -> None:
    """It says so: it may have been done or not."""
    between, remote = proxy
    chat = remote.conversation("c", scope=SCOPE)
    await chat.append(*(user(text) for text in "abcdef"))
    facts, documents = remote.facts(SCOPE), remote.documents(SCOPE)
    fact = await facts.add("The user lives in Lisbon.", category="other")
    document = await documents.add("Lisbon has seven hills.", title="Lisbon")
    verbs: list[Callable[[], Awaitable[object]]] = [
        chat.pop,
        partial(chat.rewind, to=1),
        partial(chat.replace, [{"role": "user", "content": "other"}]),
        chat.clear,
        partial(facts.edit, fact.id, content="The user lives in Porto."),
        partial(facts.delete, fact.id),
        partial(documents.remove, document.id),
        chat.delete,
    ]
    for verb in verbs:
        between.requests = 0
        between.cuts.append("after")
        with pytest.raises(ServiceUnavailable):
            await verb()
        assert between.requests == 1


async def test_a_wait_may_take_longer_than_a_request(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [10.0, 0.0]

    async def wait(self: Memory, *, tenant: str | None = None) -> bool:
        await asyncio.sleep(waits.pop(0))
        return True

    monkeypatch.setattr(Memory, "wait_for_index", wait)
    secret = (await memory.keys(SCOPE.tenant).create("tests")).secret
    limits = replace(LIMITS, seconds=1.0)
    async with (
        serving(memory, limits=limits) as url,
        hitherto.connect(url, key=secret, timeout=0.5) as remote,
    ):
        assert await remote.wait_for_index(tenant=SCOPE.tenant)


async def test_an_import_that_is_refused_is_not_sent_again(memory: Memory) -> None:
    """It was read, and cannot be read once more."""
    file = io.BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    file.seek(0)
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["admin"], requests=1)).secret
    async with serving(memory) as url, hitherto.connect(url, key=secret) as remote:
        with pytest.raises(TooManyRequests):
            await remote.import_from(file)


async def test_a_pause_that_is_asked_for_is_kept_or_refused(memory: Memory) -> None:
    asked = list[float]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                asked.append(asyncio.get_running_loop().time())
                answer = b"HTTP/1.1 503 Away\r\nRetry-After: %d\r\nContent-Length: 0\r\n\r\n"
                writer.write(answer % (1 if len(asked) < 2 else 60))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(ServiceUnavailable):
            async with hitherto.connect(f"http://127.0.0.1:{port}", key="k", timeout=20):
                pass
        assert len(asked) == 2
        assert asked[1] - asked[0] >= 1


async def test_a_key_that_may_only_write_connects(memory: Memory) -> None:
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["write"])).secret
    async with serving(memory) as url, hitherto.connect(url, key=secret) as remote:
        await remote.conversation("c", scope=SCOPE).append(user("hello"))
    assert await texts(memory) == ["hello"]


@pytest.mark.parametrize(
    "end", [0, 10, -5, None], ids=["at once", "in the first line", "in the last line", "before it"]
)
async def test_an_export_whose_connection_is_cut(memory: Memory, end: int | None) -> None:
    """Nothing says how long it is, as behind a proxy that speaks HTTP/1.0."""
    await memory.conversation("c", scope=SCOPE).append(user("hello"))
    file = io.BytesIO()
    await memory.export_to(file, tenant=SCOPE.tenant)
    whole = file.getvalue()
    part = whole[: whole.rindex(b"\n", 0, -1) + 1] if end is None else whole[:end]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
        writer.write(part if b"/export" in head else b'{"conversations": [], "next": null}')
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with hitherto.connect(f"http://127.0.0.1:{port}") as remote:
            with pytest.raises(ServiceUnavailable, match="cut off"):
                await remote.export_to(io.BytesIO(), tenant=SCOPE.tenant)
