"""Several processes on one database: as stores that know nothing of each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from hitherto.core.changes import Changes
from hitherto.core.log.append import extended
from hitherto.core.log.head import Head
from hitherto.store.store import Store
from tests.databases import OpenStore
from tests.store.samples import SCOPE, dialogue, log_of, user, write

pytestmark = pytest.mark.slow


@pytest.fixture
async def others(store: OpenStore) -> AsyncIterator[list[Store]]:
    """More stores on the same database: as in other processes, none knows of another."""
    stores = [Store(store.url, pool_size=2) for _ in range(7)]
    for one in stores:
        await one.open()
    yield list(stores)
    for one in stores:
        await one.aclose()


async def test_processes_share_a_conversation(store: Store, others: list[Store]) -> None:
    await asyncio.gather(*(write(one, "c", *dialogue(1)) for one in [store, *others] for _ in range(5)))
    assert [logged.seq for logged in await log_of(store, "c")] == list(range(80))


async def test_processes_wait_for_each_other(store: Store, others: list[Store]) -> None:
    async def second() -> Head:
        async with others[0].write(SCOPE, "c") as unit:
            return unit.head

    async with store.write(SCOPE, "c") as unit:
        waiting = asyncio.create_task(second())
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        logged, head = extended(unit.head, dialogue(1), [1, 1])
        await unit.commit(Changes(head=head, messages=logged))
    found = await waiting
    assert found.next_seq == 2
    assert found.now >= unit.head.now + timedelta(seconds=0.045), "read after the conversation is held"


async def test_processes_make_and_delete_a_conversation(store: Store, others: list[Store]) -> None:
    """One may find it there, and gone again when its turn comes, and there again when it looks."""

    async def delete(one: Store) -> None:
        async with one.write(SCOPE, "c") as unit:
            await unit.delete()

    for _ in range(40):
        deleting = [delete(one) for one in others[::2]]
        await asyncio.gather(*deleting, *(write(one, "c", user()) for one in [store, *others]))
        await write(store, "c", user())
        log = await log_of(store, "c")
        assert [logged.seq for logged in log] == list(range(len(log)))
        assert [logged.rev for logged in log] == list(range(1, len(log) + 1))
