"""Notifications that wake workers: from any store on the database to all that listen, and never within a commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest

from hitherto.store import wake
from hitherto.store.store import Store
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.store.samples import dialogue, fire, write


class Heard:
    """Counts what a store hears while it listens."""

    def __init__(self, store: Store) -> None:
        self.times = 0
        self._listening = asyncio.create_task(store.listen(self._hear))

    def _hear(self) -> None:
        self.times += 1

    async def once_more_than(self, times: int) -> None:
        await until(lambda: self.times > times, "it is heard")

    async def aclose(self) -> None:
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    made = Store(database)
    await made.open()
    yield made
    await made.aclose()


@pytest.fixture
async def heard(store: Store, database: str) -> AsyncIterator[Heard]:
    found = Heard(store)
    await until(Tables(database).listens, "it listens")
    await found.once_more_than(0)
    yield found
    await found.aclose()


async def test_many_at_once_are_few(store: Store, heard: Heard) -> None:
    before, began = heard.times, time.monotonic()
    for _ in range(1_000):
        store.wake_workers()
        await asyncio.sleep(0)
    await heard.once_more_than(before)
    await asyncio.sleep(3 * wake._APART)
    assert heard.times - before <= 1 + (time.monotonic() - began) / wake._APART


async def test_both_ends_come_back(store: Store, heard: Heard, database: str) -> None:
    """After each loss whoever listens looks once, as something may have been missed."""
    for _ in range(2):
        before = heard.times
        store.wake_workers()
        await heard.once_more_than(before)
        before = heard.times
        await Tables(database).all(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        await heard.once_more_than(before)
        before = heard.times

        async def hears(before: int = before) -> bool:
            store.wake_workers()
            await asyncio.sleep(wake._APART)
            return heard.times > before

        await until(hears, "what is told again is heard again")


async def test_an_append_never_notifies(store: Store, database: str) -> None:
    """Nor does anything that runs within its transaction, though it sets off a digest."""
    async with await psycopg.AsyncConnection[object].connect(database, autocommit=True) as listening:
        await listening.execute("listen hitherto_digests")
        await write(store, "c", *dialogue(2))
        await fire(store, "c", 0, 1)
        await listening.execute("notify hitherto_digests, 'by the test'")
        heard = [one.payload async for one in listening.notifies(stop_after=1)]
    assert heard == ["by the test"]
