"""Requests that are too large, too slow, cut off, or not what they say they are: each is refused in our words, nothing
is written, and the service goes on."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from hitherto import Memory, user
from hitherto.errors import InvalidInput
from hitherto.http.operations import (
    AGENT,
    IDEMPOTENCY_KEY,
    LINES,
    OPERATIONS,
    POLICY,
    PREFIX,
    REMEMBER,
    SUBJECT,
    TENANT,
    USER,
)
from hitherto.http.server import gate
from tests.conftest import SCOPE
from tests.faults.waiting import until
from tests.http.serving import LIMITS, serving
from tests.http.test_keys import filled
from tests.lengths import at_length, lasting
from tests.patience import PATIENCE

NAMES = {USER: SCOPE.user, AGENT: SCOPE.agent}
JSON = {**NAMES, "Content-Type": "application/json"}
HERE = f"{PREFIX}/conversations/c/messages"
SIZE = 300_000


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    await memory.conversation("c", scope=replace(SCOPE, tenant="local")).append(user("hello"))
    return memory


@pytest.fixture
async def service(memory: Memory) -> AsyncIterator[httpx.AsyncClient]:
    """Without keys; what is written is the tenant local's."""
    limits = replace(LIMITS, size=SIZE, seconds=PATIENCE)
    async with (
        serving(memory, keys=False, limits=limits) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE, verify=False) as client,
    ):
        yield client
        assert (await client.get("/healthz")).status_code == 200
        chat = memory.conversation("c", scope=replace(SCOPE, tenant="local"))
        assert [one.message.text for one in await chat.messages()] == ["hello"]


OWN = [(one.method, PREFIX + one.path) for one in OPERATIONS]
STREAMED = [("GET", HERE), ("GET", f"{PREFIX}/export"), ("POST", f"{PREFIX}/import")]


async def test_an_unknown_query_parameter_is_named_with_the_known_ones(service: httpx.AsyncClient) -> None:
    for method, path in (*OWN, *STREAMED):
        response = await service.request(method, re.sub(r"{\w+}", "1", path), params={"limt": "1"}, headers=NAMES)
        assert kind(response) == (422, "InvalidInput"), path
        assert "there is no query parameter 'limt' here; th" in response.json()["detail"]
    for path, known in ((HERE, "there are limit, start, stop"), (f"{PREFIX}/conversations/c", "this path has none")):
        assert str((await service.get(f"{path}?limt=1", headers=NAMES)).json()["detail"]).endswith(known)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("context", {"incoming": 3}),
    ("context", {"incoming": "hi", "policy": 3}),
    ("context", {"incoming": "hi", "recall": 1.5}),
    ("context", {"incoming": "hi", "cross_session": ["never"]}),
    ("context", {"incoming": "hi", "wait": "long"}),
    ("configure", {"recall": "everywhere"}),
    ("configure", {"cross_session": 3}),
    ("expand", {"what": [1]}),
    ("erase", {"seqs": {"a": 1}}),
]


@pytest.mark.parametrize(("verb", "given"), REFUSED)
async def test_what_has_none_of_several_types_is_refused_as_in_python(
    service: httpx.AsyncClient, memory: Memory, verb: str, given: dict[str, Any]
) -> None:
    chat = memory.conversation("c", scope=replace(SCOPE, tenant="local"))
    with pytest.raises(InvalidInput) as refused:
        await getattr(chat, verb)(**given)
    operation = next(one for one in OPERATIONS if one.name == f"conversation_{verb}")
    path = PREFIX + operation.path.format(conversation="c")
    response = await service.request(operation.method, path, json=given, headers=NAMES)
    assert kind(response)[0] == 422
    assert response.json()["detail"] == str(refused.value)


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"incoming": "hi", "recall": {"limit": "two"}}, "body.recall.limit"),
        ({"incoming": [3]}, "body.incoming.0"),
        ({"incoming": {"item": user("hi").payload, "wires": 1}}, "body.incoming.wires"),
        ({"incoming": [{"item": user("hi").payload, "wires": 1}]}, "body.incoming.0.wires"),
    ],
)
async def test_where_an_object_is_wrong_is_named(service: httpx.AsyncClient, given: object, where: str) -> None:
    response = await service.post(f"{PREFIX}/conversations/c/contexts", json=given, headers=NAMES)
    assert [one["where"] for one in response.json()["errors"]] == [where]


def appending(text: str) -> bytes:
    return b'{"messages": [{"role": "user", "content": "%s"}]}' % text.encode()


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, str(response.json()["type"]).removeprefix("urn:hitherto:")


async def raw(url: str, *parts: bytes, pause: float = 0, end: bool = False) -> bytes:
    """What the service answers to these bytes, however wrong they are, until it closes."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    answer = bytearray()

    async def read() -> None:
        with suppress(ConnectionError):  # what came before is the answer
            while part := await reader.read(65_536):
                answer.extend(part)

    reading = asyncio.create_task(read())
    with suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        if end:
            writer.write_eof()
    await reading
    writer.close()
    return bytes(answer)


def head(method: str = "POST", path: str = HERE, **more: str) -> bytes:
    headers = {"Host": "localhost", "Connection": "close", **JSON, **more}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


class TestTooLarge:
    async def test_as_it_says(self, service: httpx.AsyncClient) -> None:
        answer = await raw(str(service.base_url), head(**{"Content-Length": str(SIZE + 1)}))
        assert b" 413 " in answer.split(b"\r\n")[0]  # before one byte of it has come
        assert b"TooLarge" in answer

    async def test_without_saying_so(self, service: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """What comes is thrown away for a while, so that the answer is not lost; then the connection is closed."""

        async def endless() -> AsyncIterator[bytes]:
            yield b'{"messages": [{"role": "user", "content": "'
            while True:
                yield b"x" * 65_536

        address = urlsplit(str(service.base_url))
        monkeypatch.setattr(gate, "_LINGER", 0.2)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(head(**{"Transfer-Encoding": "chunked"}))
        answer = asyncio.create_task(reader.readline())
        with suppress(ConnectionError):
            async for part in endless():
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()
        assert b" 413 " in await answer
        writer.close()

    @pytest.mark.parametrize("more", [-1, 1, 1_000])
    async def test_in_chunks(self, service: httpx.AsyncClient, more: int) -> None:
        body = appending("x" * (SIZE - len(appending("")) + more))
        found = head(path=f"{PREFIX}/recall", **{"Transfer-Encoding": "chunked"})
        answer = await raw(str(service.base_url), found + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert (b" 413 " in answer.split(b"\r\n")[0]) == (more > 0)

    async def test_a_bomb_is_not_unpacked(self, service: httpx.AsyncClient) -> None:
        bomb = gzip.compress(b" " * 100_000_000, 1)[:SIZE]
        for encoding in ("gzip", "deflate", "br", "gzip, gzip", "zstd"):
            found = await service.post(HERE, headers={**JSON, "Content-Encoding": encoding}, content=bomb)
            assert kind(found) == (415, "UnsupportedMediaType")
        found = await service.post(
            f"{PREFIX}/import", headers={"Content-Type": LINES, "Content-Encoding": "gzip"}, content=bomb
        )
        assert found.status_code == 415

    @pytest.mark.parametrize("body", [b"[" * 250_000, b'{"a":' * 60_000, b"[" + b"0," * 149_000 + b"0]"])
    async def test_in_values(self, memory: Memory, body: bytes) -> None:
        async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            for path in (HERE, f"{PREFIX}/recall"):
                found = await client.post(path, headers=JSON, content=b'{"messages": [{"x": ' + body * 4 + b"}]}")
                assert kind(found) == (413, "TooLarge")
            found = await client.post(HERE, headers=JSON, content=body[: len(body) // 15])
            assert found.status_code in (413, 422)

    @pytest.mark.parametrize(("size", "answered"), [(1, b" 400 "), (100, b" 200 ")])
    async def test_in_parts_of_so_many_bytes(self, memory: Memory, size: int, answered: bytes) -> None:
        body = appending("x" * 2_000 * size)
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        async with serving(memory, keys=False) as url:
            answer = await raw(url, head(**{"Transfer-Encoding": "chunked"}), chunks)
        assert answered in answer.split(b"\r\n")[0]

    @pytest.mark.parametrize(("count", "answered"), [(201, b" 400 "), (150, b" 200 ")])
    async def test_in_headers(self, service: httpx.AsyncClient, count: int, answered: bytes) -> None:
        more = {f"X{number}": "" for number in range(count)}
        answer = await raw(str(service.base_url), head("GET", "/healthz", **more))
        assert answered in answer.split(b"\r\n")[0]

    async def test_in_query_parameters(self, service: httpx.AsyncClient) -> None:
        found = await service.get(f"{PREFIX}/documents?" + "&".join(["limit=1"] * 201), headers=NAMES)
        assert kind(found) == (422, "InvalidInput")
        assert "more than 200" in found.text

    async def test_signs_in_a_text_are_no_values(self, memory: Memory) -> None:
        async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            text = json.dumps({"text": 'one,"two":[{\\' * 60_000})
            found = await client.post(f"{PREFIX}/documents", headers=JSON, content=text)
            assert found.status_code == 200, found.text

    @pytest.mark.parametrize("depth", [100, 400, 900, 2_000, 60_000])
    async def test_in_depth(self, service: httpx.AsyncClient, depth: int) -> None:
        deep = "[" * depth + "]" * depth
        bodies = {
            f"{PREFIX}/documents": f'{{"text": "a text", "metadata": {{"x": {deep}}}}}',
            f"{PREFIX}/recall": f'{{"question": "a", "metadata": {{"x": {deep}}}}}',
            f"{PREFIX}/conversations/d/messages": f'{{"messages": [{{"role": "user", "content": {deep}}}]}}',
            f"{PREFIX}/conversations/d/contexts": f'{{"tools": [{{"x": {deep}}}]}}',
            f"{PREFIX}/conversations/e/items": f'{{"items": [{{"x": {deep}}}]}}',
        }
        for path, body in bodies.items():
            found = await service.request("PUT" if path.endswith("items") else "POST", path, headers=JSON, content=body)
            assert found.status_code < 500, (path, found.text)
        policy = {**NAMES, POLICY: f'{{"x":{deep}}}'}
        found = await raw(str(service.base_url), head("GET", f"{PREFIX}/conversations/c/view", **policy))
        assert b" 4" in found.split(b"\r\n")[0]
        found = await service.get(f"{PREFIX}/documents?metadata={{{'%22x%22'}:{deep[:40_000]}}}", headers=NAMES)
        assert found.status_code < 500


class TestTooSlowOrCut:
    async def test_a_body_that_drips(self, memory: Memory) -> None:
        async with serving(memory, keys=False, limits=replace(LIMITS, seconds=0.3)) as url:
            body = appending("dripping")
            drops = (bytes([byte]) for byte in body)
            answer = await raw(url, head(**{"Content-Length": str(len(body))}), *drops, pause=0.05)
            assert b" 408 " in answer.split(b"\r\n")[0]
            assert b"TimedOut" in answer
        assert len(await memory.conversation("c", scope=replace(SCOPE, tenant="local")).messages()) == 1

    async def test_a_body_that_drips_where_no_key_is_needed(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gate, "_STRANGERS", 0.3)
        monkeypatch.setattr(gate, "_LINGER", 0.2)
        drops = (b"a" for _ in range(1_000))
        there = head(path="/healthz", **{"Content-Length": "1000"})
        async with serving(memory) as url:
            answer = await raw(url, there, *drops, pause=0.05)
        assert b" 408 " in answer.split(b"\r\n")[0]

    @pytest.mark.parametrize("length", [0, 1, 20])
    async def test_a_body_that_is_cut(self, service: httpx.AsyncClient, length: int) -> None:
        body = appending("cut")
        size = {"Content-Length": str(len(body))}
        await raw(str(service.base_url), head(**size), body[: len(body) - length - 1], end=True)
        await raw(str(service.base_url), head(**{"Transfer-Encoding": "chunked"}), b"40\r\n" + body, end=True)

    async def test_an_import_that_is_cut(self, service: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
        there = head(path=f"{PREFIX}/import", **{"Content-Type": LINES, "Transfer-Encoding": "chunked"})
        caplog.set_level(logging.INFO)
        await raw(str(service.base_url), there, b'10\r\n{"hitherto":', end=True)

        def logged() -> list[str]:
            return [one.levelname for one in caplog.records if one.name == "hitherto.http"]

        await until(logged, "the request is logged")
        assert logged() == ["INFO"], "this is no failure of the service"


class TestNotWhatItSays:
    @pytest.mark.parametrize(
        "given", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "x", "json"]
    )
    async def test_of_another_type(self, service: httpx.AsyncClient, given: str) -> None:
        """A page of another site could send these: none changes anything."""
        for path in (HERE, f"{PREFIX}/conversations/c/clear", f"{PREFIX}/import"):
            headers = {**NAMES, "Content-Type": given} if given else NAMES
            found = await service.post(path, headers=headers, content=appending("simple"))
            assert kind(found) == (415, "UnsupportedMediaType")

    async def test_json_in_utf_8_alone(self, service: httpx.AsyncClient) -> None:
        for body in (b'{"messages": "\xff"}', b"\xff\xfe\x00", b"\x00", appending("x").decode().encode("utf-32")[:9]):
            found = await service.post(HERE, headers=JSON, content=body)
            assert found.status_code in (400, 422), body

    @pytest.mark.parametrize(
        "time",
        ["2016-12-31T23:59:60Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00+25:00", 7],
    )
    async def test_times_that_no_message_can_have(self, service: httpx.AsyncClient, time: object) -> None:
        for field in ("said_at", "expires_at"):
            message = {"item": {"role": "user", "content": "x"}, field: time}
            found = await service.post(HERE, headers=JSON, json={"messages": [message]})
            assert found.status_code == 422, found.text
            assert "give a time" in found.text

    async def test_what_json_does_not_have(self, service: httpx.AsyncClient) -> None:
        for number in ("NaN", "Infinity", "-Infinity", "1e999"):
            for body in (
                f'{{"messages": [{{"role": "user", "content": {number}}}]}}',
                f'{{"messages": [{{"item": {{"role": "user", "content": "x"}}, "metadata": {{"x": {number}}}}}]}}',
                f'{{"messages": [{{"role": "user", "content": "x", "other": {number}}}]}}',
                f'{{"messages": [], "expect": {number}}}',
            ):
                found = await service.post(HERE, headers=JSON, content=body)
                assert found.status_code == 422, (body, found.text)
            for path, body in {
                f"{PREFIX}/recall": f'{{"question": "x", "min_score": {number}}}',
                f"{PREFIX}/conversations/c/contexts": f'{{"wait": {number}}}',
                f"{PREFIX}/documents": f'{{"text": "text", "metadata": {{"x": {number}}}}}',
            }.items():
                found = await service.post(path, headers=JSON, content=body)
                assert found.status_code == 422, (path, body, found.text)

    @pytest.mark.parametrize("name", [USER, AGENT, POLICY, SUBJECT, REMEMBER, IDEMPOTENCY_KEY, TENANT, "Host"])
    async def test_a_header_twice(self, service: httpx.AsyncClient, name: str) -> None:
        more = "".join(f"{name}: {value}\r\n" for value in ("one", "two"))
        request = head().replace(b"Host:", more.encode() + b"Host:") + b"{}"
        answer = await raw(str(service.base_url), request)
        assert b" 422 " in answer.split(b"\r\n")[0]
        assert b"given twice" in answer

    async def test_two_ends_of_a_body(self, service: httpx.AsyncClient) -> None:
        """Whoever stands before the service may see another end of it: nothing more is read from this connection."""
        body = appending("x")
        framed = head(**{"Transfer-Encoding": "chunked", "Content-Length": "5"}).replace(b"Connection: close\r\n", b"")
        hidden = head("GET", "/healthz")
        answer = await raw(str(service.base_url), framed + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) + hidden)
        assert b" 400 " in answer.split(b"\r\n")[0]
        assert answer.count(b"HTTP/1.1") == 1

    async def test_a_trailer_is_no_header(self, service: httpx.AsyncClient) -> None:
        """Whoever stands before the service may set the user, and knows nothing of trailers."""
        body = appending("x")
        framed = head(**{"Transfer-Encoding": "chunked"}).replace(f"{USER}: {SCOPE.user}\r\n".encode(), b"")
        trailer = f"{USER}: {SCOPE.user}\r\n\r\n".encode()
        answer = await raw(str(service.base_url), framed + b"%x\r\n%s\r\n0\r\n" % (len(body), body) + trailer)
        assert b" 422 " in answer.split(b"\r\n")[0]
        assert b"InvalidScope" in answer

    @pytest.mark.parametrize("path", [f"{PREFIX}/recall", "/healthz"])
    async def test_a_body_for_another_protocol(self, service: httpx.AsyncClient, path: str) -> None:
        """It is not read, and not taken for a request."""
        hidden = head("GET", "/healthz")
        upgrade = {"Connection": "Upgrade", "Upgrade": "h2c", "Content-Length": str(len(hidden))}
        answer = await raw(str(service.base_url), head(path=path, **upgrade), hidden, pause=0.1)
        assert b" 4" in answer.split(b"\r\n")[0]
        assert answer.count(b"HTTP/1.1 ") == 1

    async def test_requests_that_do_not_wait_for_answers(self, service: httpx.AsyncClient) -> None:
        """One is kept until it is answered, too; of others nothing, and the connection ends."""
        request = head("GET", "/openapi.json").replace(b"Connection: close\r\n", b"")
        answer = await raw(str(service.base_url), request * 100)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1 200 ") == 2

    async def test_a_key_twice(self, service: httpx.AsyncClient) -> None:
        """The last one counts, as in Python."""
        body = (
            '{"messages": [], "messages": [{"role": "user", "content": 5, "content": "x"}], "expect": 7, "expect": 9}'
        )
        found = await service.post(HERE, headers=JSON, content=body)
        assert (kind(found), found.json()["actual"]) == ((409, "ConcurrentWrite"), 1)

    async def test_a_head_of_megabytes(self, service: httpx.AsyncClient) -> None:
        long = "x" * 2_000_000
        for request in (
            head("GET", f"{PREFIX}/conversations/{long}"),
            head("GET", f"{HERE}?cursor={long}"),
            head("GET", HERE, **{USER: long}),
            head("GET", HERE, Authorization=f"Bearer {long}"),
            head("GET", HERE, **{f"X-{n}": long[:50_000] for n in range(40)}),
            long.encode(),
        ):
            answer = await raw(str(service.base_url), request)
            assert answer == b"" or b" 4" in answer.split(b"\r\n")[0]

    @pytest.mark.parametrize("text", [b"%FF", b"%C3%28", b"%ED%A0%80", b"%00", b"%", b"%zz", b"\xff", b"\xc3\xa9"])
    async def test_texts_in_path_query_and_headers(self, service: httpx.AsyncClient, text: bytes) -> None:
        """Bytes that are no UTF-8, NUL, halves of characters: refused, or a name like any other."""
        url = str(service.base_url)
        for path in ("/conversations/{}", "/subjects/{}", "/conversations?cursor={}", "/facts?category={}"):
            request = head("GET", f"{PREFIX}{path}").replace(b"{}", text)
            status = int((await raw(url, request)).split(b" ")[1])
            assert status < 500, (path, status)
        for name in (
            USER,
            AGENT,
            POLICY,
            SUBJECT,
            REMEMBER,
            IDEMPOTENCY_KEY,
            "Hitherto-Tenant",
            "Authorization",
            "Host",
        ):
            request = head("GET", f"{PREFIX}/conversations/d/view", **{name: "{}"}).replace(b"{}", text)
            assert int((await raw(url, request)).split(b" ")[1]) < 500, name

    async def test_keys_that_are_not_utf_8_are_not_taken_for_one_another(self, service: httpx.AsyncClient) -> None:
        for given in ("%FF", "%FE", b"\xff"):
            headers = [(IDEMPOTENCY_KEY.encode(), given if isinstance(given, bytes) else given.encode())]
            headers += [(name.encode(), value.encode()) for name, value in JSON.items()]
            assert kind(await service.post(HERE, headers=headers, content=appending("x"))) == (422, "InvalidInput")


WEIRD: list[Any] = ["a\x00b", "x\udfffy", "x" * 200_000, -(2**63) - 1, "", []]
MORE_WEIRD: list[Any] = ["\x00", "\ud800", 2**63, 2**200, -1, 1e308, " ", {}, None, True]


@lasting
@pytest.mark.parametrize("value", [*WEIRD, *MORE_WEIRD] if at_length() else WEIRD, ids=lambda value: ascii(value)[:20])
async def test_any_value_in_any_place_is_answered(service: httpx.AsyncClient, value: Any) -> None:
    for operation in OPERATIONS:
        if operation.verb in ("erase_tenant", "erase_user", "delete", "clear", "pop", "replace", "append", "finish"):
            continue
        path, method = filled(operation, conversation="d"), operation.method
        usual = {"question": "x", "text": "a text", "content": "A text.", "ttl": "P1D", "what": 1, "to": 1, "seqs": [9]}
        for name in operation.given:
            given = {**{one: usual[one] for one in operation.given if one in usual}, name: value}
            if operation.has_body:
                body = json.dumps(given)
                found = await service.request(method, path, headers={**JSON, IDEMPOTENCY_KEY: "k"}, content=body)
            else:
                query = {name: json.dumps(value) if isinstance(value, dict | list) else str(value)}
                query = {name: value.encode(errors="surrogatepass") for name, value in query.items()}
                target = httpx.URL(path, params=cast(Any, {}))
                sent = "".join(f"%{byte:02X}" for byte in query[name][:10_000])
                found = await service.request(method, f"{target}?{name}={sent}", headers=NAMES)
            assert found.status_code < 500, (operation.name, name, found.text)
            assert found.is_success or len(found.content) < 50_000, "what was given is not sent back whole"
        for name in operation.in_path:
            text = str(value).encode(errors="surrogatepass")[:10_000]
            path = filled(operation, **{"conversation": "d", name: "".join(f"%{byte:02X}" for byte in text)})
            body = {"content": "{}", "headers": JSON} if operation.has_body else {"headers": NAMES}
            found = await service.request(method, path, **cast(Any, body))
            assert found.status_code < 500, (operation.name, name, found.text)
