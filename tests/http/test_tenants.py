"""What is waited for and counted over HTTP is the key's own tenant's."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import pytest

import hitherto
from hitherto import Memory, user
from hitherto.errors import DatabaseUnavailable, Forbidden
from hitherto.limiter import served_caller
from tests.conftest import SCOPE
from tests.http.serving import over_http, serving
from tests.patience import PATIENCE

OTHER = replace(SCOPE, tenant="globex")


async def test_nobody_waits_for_another_tenant_or_does_its_work(database: str) -> None:
    async with (
        hitherto.open(database, worker=False) as memory,
        over_http(memory, SCOPE.tenant) as ours,
        over_http(memory, OTHER.tenant) as theirs,
    ):
        chat = memory.conversation("c", scope=OTHER, policy=hitherto.chunks(threshold=2, batch=2))
        await chat.append(*(user(f"Message {n}.") for n in range(4)))
        store = memory._services.store
        await store.begin_erasure(tenant=OTHER.tenant, user="mallory")

        async with asyncio.timeout(PATIENCE):
            await ours.wait_for_digests()
            await ours.wait_for_index()
            await ours.wait_for_erasure()
        assert (await ours.backlog()).due == 0
        assert (await memory._services.store.index.backlog(None)).waiting == 1
        assert [one.tenant for one in await store.erasures()] == [OTHER.tenant]

        assert (await theirs.backlog()).due == (await memory.backlog()).due == 1
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(theirs.wait_for_digests(), 0.5)
        await theirs.wait_for_index()
        assert (await memory._services.store.index.backlog(None)).waiting == 0
        await theirs.wait_for_erasure()
        assert await store.erasures() == []


async def test_nobody_asks_for_another_tenants(database: str) -> None:
    async with hitherto.open(database, worker=False) as memory, over_http(memory, SCOPE.tenant) as ours:
        for verb in (ours.backlog, ours.wait_for_digests, ours.wait_for_index, ours.wait_for_erasure):
            with pytest.raises(Forbidden):
                await verb(tenant=OTHER.tenant)


async def test_nobody_waits_behind_another_tenants_requests(database: str) -> None:
    """However many it sends at once."""
    async with (
        hitherto.open(database, worker=False, pool_size=4, database_timeout=PATIENCE) as memory,
        over_http(memory, SCOPE.tenant) as ours,
        over_http(memory, OTHER.tenant) as theirs,
    ):
        await theirs.conversation("c", scope=OTHER).append(user("Hello."))
        many = [theirs.conversation(f"c{n}", scope=OTHER) for n in range(300)]
        flood = [asyncio.create_task(one.append(user("Hello."))) for one in many]
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        await ours.conversation("c", scope=SCOPE).append(user("Hello."))
        assert sum(not one.done() for one in flood) > 250
        await asyncio.gather(*flood)


async def test_at_most_eight_large_bodies_of_a_tenant_are_received_at_once(memory: Memory) -> None:
    """The next ones wait, and another tenant's do not."""
    theirs, ours = [(await memory.keys(one).create("tests", rights=["write"])).secret for one in ("globex", "acme")]
    body = json.dumps({"messages": [{"role": "user", "content": "a" * 100_000}]}).encode()

    async def begun(key: str, *lines: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = [
            "POST /api/v1/conversations/c/messages HTTP/1.1",
            *("Host: localhost", f"Authorization: Bearer {key}", "Hitherto-User: ann", "Hitherto-Agent: a"),
            *("Content-Type: application/json", f"Content-Length: {len(body)}", *lines),
        ]
        writer.write("".join(f"{line}\r\n" for line in [*head, ""]).encode())
        return reader, writer

    async def answered(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        connection[1].write(body)
        assert b" 200 " in await connection[0].readline()
        connection[1].close()

    async with serving(memory) as url, asyncio.timeout(PATIENCE):
        address = urlsplit(url)
        slow = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
        for _ in range(8):
            await answered(await begun(theirs))
            slow.append(await begun(theirs, "Expect: 100-continue"))
            assert b" 100 " in await slow[-1][0].readuntil(b"\r\n\r\n"), "its body is waited for"
        next_one = asyncio.create_task(answered(await begun(theirs)))
        for _ in range(3):
            await answered(await begun(ours))
        assert not next_one.done()
        for one in slow:
            await answered(one)
        await next_one


async def test_a_tenant_exports_once_at_a_time(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each export takes a connection and a processor."""
    running, most = Counter[str](), Counter[str]()
    export_to = memory.export_to

    async def watched(*given: Any, tenant: str, **options: Any) -> None:
        running[tenant] += 1
        most[tenant] = max(most[tenant], running[tenant])
        await export_to(*given, tenant=tenant, **options)
        running[tenant] -= 1

    monkeypatch.setattr(memory, "export_to", watched)
    async with over_http(memory, SCOPE.tenant) as ours, over_http(memory, OTHER.tenant) as theirs:
        exports = [(one, tenant) for one, tenant in ((ours, SCOPE.tenant), (theirs, OTHER.tenant)) for _ in range(4)]
        await asyncio.gather(*(one.export_to(BytesIO(), tenant=tenant) for one, tenant in exports))
    assert most == {SCOPE.tenant: 1, OTHER.tenant: 1}


async def test_a_tenant_has_three_quarters_of_the_connections_at_most(database: str) -> None:
    async with (
        hitherto.open(database, worker=False, pool_size=4, database_timeout=0.5) as memory,
        AsyncExitStack() as held,
    ):
        connections = memory._services.store._connections
        served_caller.set((OTHER.tenant, ""))
        for _ in range(3):
            await held.enter_async_context(connections.borrowed())
        with pytest.raises(DatabaseUnavailable, match="a tenant of a service 3 of them"):
            await held.enter_async_context(connections.borrowed())
        served_caller.set((SCOPE.tenant, ""))
        await held.enter_async_context(connections.borrowed())
