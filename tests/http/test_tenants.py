"""What is waited for and counted over HTTP is the key's own tenant's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import hitherto
from hitherto import user
from hitherto.errors import Forbidden
from tests.conftest import SCOPE
from tests.http.serving import over_http
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
