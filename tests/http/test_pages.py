"""Pages end by bytes as well as by number: what is large is read a little at a time, and whoever reads on gets all."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import AsyncCursor

from hitherto import Memory, user
from hitherto.core.log.message import Logged, Payload, Wire
from hitherto.errors import InvalidInput
from hitherto.http.client.remote import RemoteMemory
from hitherto.http.client.service import scope_headers
from hitherto.http.operations import OPERATIONS, PREFIX
from hitherto.http.shapes import _MESSAGES_IN, adapter
from hitherto.store import rows
from hitherto.wire import read
from tests.conftest import SCOPE
from tests.http.serving import over_http
from tests.store.digests.samples import add_failed

LARGE = "long text " * 40_000
"""400 kB. Ten of these are more than a page."""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each list of messages that the store has read."""
    sizes, fetched = list[int](), rows.fetched

    async def counted(cursor: AsyncCursor[Any]) -> list[Any]:
        read = await fetched(cursor)
        sizes.append(sum(len(one.message.raw) + len(one.message.text) for one in read if isinstance(one, Logged)))
        return read

    monkeypatch.setattr(rows, "fetched", counted)
    return sizes


async def test_large_messages_are_read_a_page_at_a_time(memory: Memory, at_once: list[int]) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    for number in range(15):
        await chat.append(user(f"{number} {LARGE}"))
    at_once.clear()
    async with over_http(memory) as remote:
        there = remote.conversation("c", scope=SCOPE)
        assert [one.message.text[:2].strip() for one in await there.messages()] == [str(n) for n in range(15)]
        assert [one.seq for one in await there.messages(start=2, limit=12)] == list(range(2, 14))
        assert (await there.expand((0, 14), budget=2_000)).seqs
        assert await remote.around(await _hit(remote), scope=SCOPE, radius=15)
        await remote.export_to(BytesIO(), tenant=SCOPE.tenant)
    assert 0 < max(at_once) <= rows.PAGE["size"]


async def test_many_small_messages_are_read_a_page_at_a_time(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    for _ in range(3):
        await chat.append(*[user("x")] * 700)
    pages, following = list[int](), 0
    while following is not None and sum(pages) < 2_050:
        page = await chat.log_page(start=following, limit=2_050 - sum(pages))
        following = page.next
        pages.append(len(page.messages))
    assert (pages, following) == ([1_000, 1_000, 50], 2_050)
    async with over_http(memory) as remote:
        assert await remote.conversation("c", scope=SCOPE).messages() == await chat.messages()


async def _hit(memory: Memory) -> Any:
    await memory.wait_for_index()
    return (await memory.recall("long text", scope=SCOPE, kinds=["message"], limit=1)).hits[0]


MESSAGES: list[tuple[Wire, Payload]] = [
    ("openai.chat", {"role": "user", "content": LARGE}),
    ("openai.chat", {"role": "user", "content": [{"type": "text", "text": LARGE}]}),
    ("openai.chat", {"role": "user", "content": [{"type": "text", "text": LARGE + end} for end in "ab\0"]}),
    ("openai.chat", {"role": "assistant", "content": "é" + LARGE, "refusal": LARGE}),
    (
        "openai.chat",
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": LARGE}}]},
    ),
    ("openai.chat", {"role": "tool", "tool_call_id": "1", "content": LARGE}),
    ("openai.responses", {"role": "assistant", "content": [{"type": "output_text", "text": LARGE}]}),
    ("openai.responses", {"type": "function_call", "call_id": "2", "name": "f", "arguments": LARGE}),
    ("openai.responses", {"type": "function_call_output", "call_id": "2", "output": LARGE}),
    ("anthropic", {"role": "user", "content": [{"type": "text", "text": LARGE}]}),
    (
        "anthropic",
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "3", "name": "f", "input": {"b": 1, "a": [LARGE]}}],
        },
    ),
    ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "3", "content": LARGE}]}),
]


async def test_long_texts_go_once(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    for wire, item in MESSAGES:
        await chat.append(read(item, wire))
    there = await chat.messages()
    async with over_http(memory) as remote:
        assert await remote.conversation("c", scope=SCOPE).messages() == there
        service = cast(RemoteMemory, remote)._service
        path = f"{PREFIX}/conversations/c/messages"
        for one in there:
            seq = {"start": one.seq, "limit": 1}
            body = await service.request("GET", path, headers=scope_headers(SCOPE), params=seq)
            assert len(body) <= 1.2 * len(one.message.raw), one.message.wire
            assert one.message.text not in ("", json.loads(body)[0]["message"].get("text"))


def test_it_is_known_where_messages_stand() -> None:
    """In the answer of each verb that has any."""
    answers = [list[Logged], *(one.hints["return"] for one in OPERATIONS)]
    having = [one for one in answers if "Message" in adapter(one).json_schema(mode="serialization").get("$defs", {})]
    assert having == [one for one in answers if one in _MESSAGES_IN]


async def test_large_events_are_read_a_page_at_a_time(memory: Memory) -> None:
    async with over_http(memory) as remote:
        runs = remote.runs(SCOPE)
        run = await runs.begin("c")
        for number in range(30):
            await runs.add(run.id, {"kind": "tool_result", "payload": f"{number} {LARGE}"})
        pages, after = list[int](), -1
        while page := await runs.events(run.id, after=after):
            pages.append(len(page))
            assert [one.no for one in page] == list(range(after + 1, after + 1 + len(page)))
            after = page[-1].no
    assert sum(pages) == 30
    assert max(pages) * len(LARGE) <= rows.PAGE["size"]


async def test_digests_are_read_a_page_at_a_time(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("x"))
    await add_failed(memory._services.store, "c", [len(LARGE)] * 30 + [1] * 1_200)
    async with over_http(memory) as remote:
        there, pages, after = remote.conversation("c", scope=SCOPE), list[int](), None
        while page := await there.digests(after=after):
            pages.append(len(page))
            assert sum(len(one.text) for one in page) <= rows.PAGE["size"]
            after = page[-1].id
        assert (sum(pages), max(pages)) == (1_230, 1_000)
        assert len(await there.digests(limit=2)) == 2
        for unusable in ({"limit": 0}, {"limit": 1_001}, {"after": -1}):
            with pytest.raises(InvalidInput):
                await there.digests(**unusable)


@pytest.mark.parametrize("size", [1, 20_000])
async def test_whoever_reads_on_gets_all(memory: Memory, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rows.PAGE, "size", size)
    for number in range(12):
        metadata = {"number": number, "more": "x" * 300 * number}
        chat = memory.conversation(f"c{number}", scope=SCOPE)
        await chat.append(user(f"{number}"))
        await chat.configure(metadata=metadata, create=True)
        await memory.documents(SCOPE).add(f"document {number}", metadata=metadata)
        await memory.conversation("kept", scope=SCOPE).context(f"{number}", instructions="y" * 500 * number)
    async with over_http(memory) as remote:
        kept, documents, cursor = remote.conversation("kept", scope=SCOPE), remote.documents(SCOPE), None
        found, before = list[str](), None
        for _ in range(13):
            page = await remote.conversations(SCOPE, cursor=cursor)
            found += [one.conversation for one in page.conversations]
            if (cursor := page.next) is None:
                break
        assert found == [f"c{number}" for number in reversed(range(12))]
        found.clear()
        while some := await documents.list(before=before):
            found += [one.text for one in some]
            before = some[-1].id
        assert found == [f"document {number}" for number in reversed(range(12))]
        ids, last = list[int](), None
        while contexts := await kept.contexts(before=last):
            ids += [one.id for one in contexts]
            last = ids[-1]
        assert len({*ids}) == 10, "as many as are kept"
        assert len(await documents.list()) == 1 if size == 1 else 1 < len(await documents.list()) < 12


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    sizes=st.lists(st.integers(0, 3_000), max_size=12),
    start=st.integers(0, 13),
    stop=st.none() | st.integers(0, 13),
    limit=st.none() | st.integers(0, 13),
)
async def test_pages_of_any_messages_join(
    memory: Memory, sizes: list[int], start: int, stop: int | None, limit: int | None
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(rows.PAGE, "size", 5_000)
        name = json.dumps([sizes, start, stop, limit])[:150]
        chat = memory.conversation(name, scope=replace(SCOPE, user="pages"))
        for size in sizes:
            await chat.append(user("x" * size))
        there, found, at, left = list[Logged](), list[Logged](), start, limit
        there = await chat.messages(start=start, stop=stop, limit=limit)
        following: int | None = start
        while following is not None and left != 0:
            page = await chat.log_page(start=at, stop=stop, limit=left)
            following, here = page.next, page.messages
            assert len(here) <= 1 or sum(2 * len(one.message.text) for one in here) <= 5_000
            found += here
            at, left = following or 0, None if left is None else left - len(here)
        assert found == there
