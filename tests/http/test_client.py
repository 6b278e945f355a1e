"""The client: every verb is there, odd names and values arrive, and whatever else answers is told plainly."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

import hitherto
from hitherto import Call, Memory, Scope, assistant, tool_result, user
from hitherto.core.log.message import DEPTH
from hitherto.engine.conversation import Conversation
from hitherto.engine.documents.documents import Documents
from hitherto.engine.facts.facts import Facts
from hitherto.engine.runs import Runs
from hitherto.errors import HithertoError, InvalidInput, InvalidMessage, ServiceError, ServiceUnavailable, StoreError
from hitherto.http.client import remote
from hitherto.http.client.service import Service
from hitherto.http.operations import OPERATIONS
from tests.conftest import SCOPE
from tests.http.serving import serving
from tests.patience import PATIENCE

REMOTE: dict[type, type] = {
    Memory: remote.RemoteMemory,
    Conversation: remote.RemoteConversation,
    Documents: remote.RemoteDocuments,
    Facts: remote.RemoteFacts,
    Runs: remote.RemoteRuns,
}
LOCAL = {(Conversation, "turn")}
"""Done by the client itself, with other verbs."""

NAMES = (
    ".",
    "..",
    "...",
    "a/b",
    "/",
    "//",
    "a/../b",
    "%",
    "%2F",
    "%25",
    "a b",
    "a+b",
    "?x=1",
    "#",
    "ä/ö",
    "日本語",
    "🎈",
    "a\nb",
    "\\",
    ";",
    "é%é",
)


@pytest.fixture
async def service(memory: Memory) -> AsyncIterator[tuple[str, str]]:
    """Its address, and a key."""
    secret = (await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])).secret
    async with serving(memory) as url:
        yield url, secret


@pytest.fixture
async def client(service: tuple[str, str]) -> AsyncIterator[Memory]:
    async with hitherto.connect(service[0], key=service[1]) as opened:
        yield opened


@pytest.mark.parametrize("owner", REMOTE)
def test_every_verb_is_in_the_table_or_the_clients_own(owner: type) -> None:
    public = {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}
    here = {one.verb for one in OPERATIONS if one.owner is owner} | set(vars(REMOTE[owner]))
    missing = {name for name in public if name not in here and (owner, name) not in LOCAL}
    assert not missing, f"{owner.__name__}: add these to OPERATIONS, or define them in {REMOTE[owner].__name__}"


class TestOddNamesAndValues:
    async def test_names_arrive_as_they_are(self, memory: Memory, client: Memory) -> None:
        for name in NAMES:
            scope = Scope(tenant=SCOPE.tenant, user=name, agent=name)
            chat = client.conversation(name, scope=scope, subject=name)
            await chat.append(user(f"hello {name}"), key=name)
            assert (await chat.append(user(f"hello {name}"), key=name)).replayed
            await client.configure_subject(tenant=SCOPE.tenant, subject=name, name=name, members=[name])
            there = memory.conversation(name, scope=scope)
            assert [one.message.text for one in await there.messages()] == [f"hello {name}"]
            assert [one.message.text for one in await chat.messages()] == [f"hello {name}"]
            found = await client.subject(name, tenant=SCOPE.tenant)
            assert found is not None
            assert (found.id, found.name, found.members) == (name, name, (name,))
            (only,) = (await client.conversations(scope)).conversations
            assert only.conversation == name
        for name in NAMES:
            await client.erase_user(SCOPE.tenant, name)
        await client.wait_for_erasure()
        assert (await client.conversations(tenant=SCOPE.tenant)).conversations == ()

    async def test_a_private_conversation_is_private_there(self, memory: Memory, client: Memory) -> None:
        await memory.conversation("other", scope=SCOPE).append(user("The boat is green."))
        for remember in (True, False):
            chat = client.conversation(f"remember {remember}", scope=SCOPE, remember=remember)
            assert bool((await chat.context(user("Which boat is green?"))).manifest.recalled) is remember
            await chat.append(user("Hello."))
            head = await chat.head()
            assert head is not None
            assert head.private is not remember
            await chat.configure(remember=not remember, create=True)
            assert bool((await chat.context(user("Which boat is green?"))).manifest.recalled) is not remember
        with pytest.raises(InvalidInput, match="remember is 1"):
            client.conversation("c", scope=SCOPE, remember=cast(Any, 1))

    async def test_values_arrive_as_they_are(self, memory: Memory, client: Memory) -> None:
        odd: dict[str, Any] = {
            "item": {"item": 1},
            "": "",
            "é": [None, True, 1.5, 2**60, {"a/b": "\x00"}],
            "half": "\ud800",
            "policy": {"wire": "openai.chat"},
        }
        chat, there = client.conversation("c", scope=SCOPE), memory.conversation("c", scope=SCOPE)
        await chat.append(user("hello").with_metadata(odd), {"role": "user", "content": "x", "item": odd})
        await chat.append(
            assistant(calls=[Call(id="1", name="f/é", arguments=json.dumps(odd))]), tool_result("1", "\x00\ud800")
        )
        assert await chat.messages() == await there.messages()
        assert (await chat.messages())[0].message.metadata == odd
        tools = [{"type": "function", "function": {"name": "f", "parameters": odd}}]
        assert await chat.context("x", tools=tools) == await there.context("x", tools=tools)
        await chat.configure(metadata=odd, title="é/ü", create=True)
        assert await chat.info() == await there.info()
        run = await client.runs(SCOPE).begin("c")
        await client.runs(SCOPE).add(run.id, {"kind": "tool_call", "payload": odd, "name": "é"})
        assert await client.runs(SCOPE).events(run.id) == await memory.runs(SCOPE).events(run.id)
        added = await client.documents(SCOPE).add("A text.", metadata={"é": ["x"]})
        assert [one.metadata for one in await client.documents(SCOPE).list()] == [{"é": ["x"]}]
        assert [one.id for one in await client.documents(SCOPE).list(metadata={"é": "x"})] == [added.id]

    async def test_what_is_stored_as_deep_as_may_be_is_given(self, memory: Memory, client: Memory) -> None:
        deepest = json.loads('{"a":' * DEPTH + "1" + "}" * DEPTH)
        there, chat = memory.conversation("c", scope=SCOPE), client.conversation("c", scope=SCOPE)
        await there.append(user("hello").with_metadata(deepest))
        assert await chat.messages() == await there.messages()
        run = await memory.runs(SCOPE).begin("c")
        await memory.runs(SCOPE).add(run.id, {"kind": "tool_call", "payload": deepest})
        assert await client.runs(SCOPE).events(run.id) == await memory.runs(SCOPE).events(run.id)

    @pytest.mark.parametrize("incoming", [5, {"role": "user"}, [5]])
    async def test_what_is_no_message(self, client: Memory, incoming: Any) -> None:
        with pytest.raises(InvalidMessage):
            await client.conversation("c", scope=SCOPE).context(incoming)


HTML = "<html><h1>It works!</h1></html>"


@asynccontextmanager
async def answering(status: str, kind: str, body: str, *, length: int | None = None) -> AsyncGenerator[str]:
    """The address of something that answers everything in this way."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        content = body.encode()
        size = len(content) if length is None else length
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {size}\r\n\r\n".encode() + content)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


class TestWhatIsNoService:
    @pytest.mark.parametrize(
        ("status", "kind", "body"),
        [
            ("200 OK", "text/html", HTML),
            ("200 OK", "application/json", '{"conversations": [], "nex'),
            ("200 OK", "application/json", '{"hello": "world"}'),
            ("200 OK", "application/json", "[" * 100_000),
            ("204 No Content", "text/plain", ""),
            ("301 Moved Permanently", "text/html", HTML),
            ("404 Not Found", "text/html", HTML),
            ("400 Bad Request", "application/json", "[1]"),
            ("400 Bad Request", "application/json", '{"type": ["x"], "detail": {"y": 1}}'),
            ("409 Conflict", "application/problem+json", '{"type": "urn:hitherto:ConcurrentWrite"}'),
            ("409 Conflict", "application/problem+json", '{"type": "urn:hitherto:ConcurrentWrite", "actual": "x"}'),
            ("500 Internal Server Error", "text/html", HTML),
            ("502 Bad Gateway", "text/html", HTML),
            ("503 Service Unavailable", "text/plain", "busy"),
        ],
    )
    async def test_is_told_as_what_it_is(self, status: str, kind: str, body: str) -> None:
        expected = StoreError if status[:3] in ("502", "503") else HithertoError
        async with answering(status, kind, body) as url:
            with pytest.raises(expected) as caught:
                async with hitherto.connect(url, timeout=0.3):
                    pass
        assert isinstance(caught.value, ServiceError | ServiceUnavailable), repr(caught.value)

    async def test_a_redirect_is_no_answer(self) -> None:
        async with answering("302 Found", "text/html", HTML) as url:
            memory = remote.RemoteMemory(Service(url, None, timeout=0.3))
            with pytest.raises(ServiceError, match="302"):
                await memory.metrics()
            await memory.aclose()

    async def test_one_who_reads_nothing(self) -> None:
        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            cast(asyncio.ReadTransport, writer.transport).pause_reading()
            await ended.wait()
            writer.close()

        ended = asyncio.Event()
        async with await asyncio.start_server(wait, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            memory = remote.RemoteMemory(Service(url, None, timeout=0.3))
            chat = memory.conversation("c", scope=SCOPE)
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(ServiceUnavailable):
                    await chat.append(user("x" * 16_000_000))
            await memory.aclose()
            ended.set()

    async def test_an_answer_that_is_cut(self) -> None:
        async with answering("200 OK", "application/json", '{"conversations"', length=1_000) as url:
            with pytest.raises(ServiceUnavailable):
                async with hitherto.connect(url, timeout=0.3):
                    pass

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "localhost:8480",
            "ftp://x",
            "http://",
            "http:///x",
            "http://[::1",
            "http://x:y",
            "http://x:99999",
            "http://a:b@x",
            "://",
        ],
    )
    async def test_wrong_addresses(self, url: str) -> None:
        with pytest.raises(InvalidInput, match="http://"):
            async with hitherto.connect(url):
                pass

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://no-such-host.invalid", "https://127.0.0.1:1"])
    async def test_nobody_there(self, url: str) -> None:
        with pytest.raises(ServiceUnavailable, match="hitherto serve"):
            async with hitherto.connect(url, timeout=0.3):
                pass

    async def test_a_closed_port_is_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = list[str]()
        once = Service._once  # pyright: ignore[reportPrivateUsage] — its attempts are counted

        async def counted(self: Service, method: str, path: str, repeatable: bool, **content: Any) -> bytes:
            asked.append(path)
            return await once(self, method, path, repeatable, **content)

        monkeypatch.setattr(Service, "_once", counted)
        with pytest.raises(ServiceUnavailable, match="hitherto serve"):
            async with asyncio.timeout(PATIENCE), hitherto.connect("http://127.0.0.1:1"):
                pass
        assert len(asked) == 1

    async def test_a_path_that_there_is_not(self, service: tuple[str, str]) -> None:
        memory = Service(*service, timeout=PATIENCE)
        with pytest.raises(ServiceError, match="the service has no such path"):
            await memory.request("GET", "/api/v1/conversation/c/head", headers={})
        await memory.aclose()

    async def test_http_spoken_to_tls(self, service: tuple[str, str]) -> None:
        """It is not tried again: that would not help."""
        with pytest.raises(ServiceUnavailable, match="no secure connection"):
            async with (
                asyncio.timeout(PATIENCE),
                hitherto.connect(service[0].replace("http:", "https:"), key=service[1]),
            ):
                pass

    @pytest.mark.parametrize("key", ["a\nb", "a\r\nX: y", "\x00", "ä", ""])
    async def test_keys_that_cannot_be_sent(self, service: tuple[str, str], key: str) -> None:
        with pytest.raises(InvalidInput, match="key"):
            async with hitherto.connect(service[0], key=key):
                pass


class TestItsLife:
    async def test_closing_twice(self, service: tuple[str, str]) -> None:
        opened = await hitherto.connect(service[0], key=service[1])
        await opened.aclose()
        await opened.aclose()
        with pytest.raises(InvalidInput, match="closed"):
            await opened.conversations(tenant=SCOPE.tenant)

    async def test_closing_while_requests_wait(self) -> None:
        arrived, most = asyncio.Semaphore(0), 100

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.release()
            await reader.read()
            writer.close()

        async with await asyncio.start_server(wait, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            memory = remote.RemoteMemory(Service(url, None, timeout=PATIENCE))
            asked = [asyncio.create_task(memory.conversations(tenant="local")) for _ in range(150)]
            for _ in range(most):
                await arrived.acquire()
            await memory.aclose()
            for one in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(one, InvalidInput), repr(one)

    async def test_a_file_that_cannot_be_read(self, client: Memory) -> None:
        class Truncated(io.BytesIO):
            def readline(self, size: int | None = -1, /) -> bytes:
                raise EOFError("the file ended early")

        with pytest.raises(EOFError, match="ended early"):
            await client.import_from(Truncated())

    async def test_another_event_loop(self, client: Memory) -> None:
        found = list[Exception]()

        def elsewhere() -> None:
            try:
                asyncio.run(client.conversation("c", scope=SCOPE).append(user("hello")))
            except Exception as error:  # noqa: BLE001 (whatever it is)
                found.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        (error,) = found
        assert isinstance(error, InvalidInput)
        assert "another event loop" in str(error)
        await client.conversation("c", scope=SCOPE).append(user("hello"))

    async def test_without_async(self, service: tuple[str, str]) -> None:
        def use() -> int:
            with hitherto.connect_sync(service[0], key=service[1]) as memory:
                chat = memory.conversation("c", scope=SCOPE)
                chat.append(user("hello"))
                found = len(chat.messages())
            memory.close()
            return found

        assert await asyncio.to_thread(use) == 1

    async def test_many_requests_at_once_take_turns(self, client: Memory) -> None:
        """More than there are connections: nobody gets a third one before everybody has had the first."""
        done = Counter[int]()

        async def ask(number: int) -> int:
            for _ in range(3):
                await client.conversations(tenant=SCOPE.tenant, limit=1)
                done[number] += 1
            return len(done)

        assert min(await asyncio.gather(*(ask(number) for number in range(150)))) == 150
