"""Who waits for a lock and what is locked by then; and notifications, which no commit sends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from hitherto.core.context.manifest import ContextRecord
from hitherto.store import wake
from hitherto.store.sql import SQL
from hitherto.store.store import Store
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.store.facts.samples import new
from tests.store.samples import SCOPE, dialogue, fire, write

Connection = psycopg.AsyncConnection[Any]

WAITING = """
    select count(*) = %s from pg_stat_activity
    where wait_event_type = 'Lock' and application_name = 'hitherto' and datname = current_database()
"""


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    made = Store(database)
    await made.open()
    yield made
    await made.aclose()


@pytest.fixture
async def other(database: str) -> AsyncIterator[Connection]:
    """A session that holds what the store waits for."""
    async with await Connection.connect(database) as connection:
        yield connection


@pytest.fixture
async def looks_on(database: str) -> AsyncIterator[Connection]:
    async with await Connection.connect(database, autocommit=True) as connection:
        yield connection


async def wait(connection: Connection, count: int) -> None:
    """Until so many sessions of the store wait for a lock."""

    async def waiting() -> bool:
        row = await (await connection.execute(WAITING, [count])).fetchone()
        return row == (True,)

    await until(waiting, f"{count} wait for a lock")


async def with_a_context_and_a_run(store: Store) -> None:
    await write(store, "c", *dialogue(1))
    await store.index.take(space=None, lease=timedelta(minutes=1), limit=9)
    record = ContextRecord(
        manifest="{}", instructions=None, tools=None, shown=((0, 1),), next_seq=2, incoming=(), others={}
    )
    await store.contexts.keep(SCOPE, "c", record, newest=5, lifetime=None)
    await store.runs.begin(SCOPE, "c", strategy=None, injection=False)


async def delete(store: Store) -> None:
    async with store.write(SCOPE, "c") as unit:
        await unit.delete()


async def erase_first(store: Store) -> None:
    await write(store, "c", erase=((0, 0),))


@pytest.mark.parametrize("work", [delete, erase_first])
async def test_who_waits_for_an_index_has_no_contexts_and_runs(
    store: Store, other: Connection, looks_on: Connection, work: Any
) -> None:
    """The erasure of a user has the index when it deletes them."""
    await with_a_context_and_a_run(store)
    await other.execute("select from hitherto.search_scope for update")
    task = asyncio.create_task(work(store))
    await wait(looks_on, 1)
    for table in (b"context", b"run"):
        found = await looks_on.execute(b"select 1 from hitherto." + table + b" for update nowait")
        assert len(await found.fetchall()) == 1
    await other.rollback()
    await task


async def test_who_waits_for_an_erasure_has_no_index(store: Store, other: Connection, looks_on: Connection) -> None:
    """Who asks for it again has the erasure when it locks the index."""
    await with_a_context_and_a_run(store)
    erasure = await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user)
    await other.execute("select from hitherto.erasure for update")
    task = asyncio.create_task(store.end_erasure(erasure))
    await wait(looks_on, 1)
    found = await looks_on.execute("select 1 from hitherto.search_scope for update nowait")
    assert len(await found.fetchall()) == 1
    await other.rollback()
    await task


async def test_a_fact_is_added_once_where_an_erasure_has_just_ended(
    store: Store, other: Connection, looks_on: Connection
) -> None:
    await with_a_context_and_a_run(store)
    await store.facts.add(SCOPE, "mum", new("Fences."))
    sails = replace(new("Sails."), single_valued=True)
    await other.execute("select from hitherto.fact_subject for update")
    adding = [asyncio.create_task(store.facts.add(SCOPE, "mum", sails)) for _ in range(3)]
    await wait(looks_on, 3)
    await other.execute("delete from hitherto.fact_subject")
    async with looks_on.transaction():
        await looks_on.execute("select from hitherto.search_scope for update")
        await other.commit()
        await wait(looks_on, 3)
    assert sorted([(await one).new for one in adding]) == [False, False, True]


async def test_vectors_are_not_wanted_in_a_scope_that_was_removed(store: Store, looks_on: Connection) -> None:
    values = {"tenant": SCOPE.tenant, "ref": 1, "space": 1}
    for name in ("index_fill", "index_caught_up"):
        await looks_on.execute(SQL[name], values)
    assert await (await looks_on.execute("select from hitherto.search_filling")).fetchall() == []


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
