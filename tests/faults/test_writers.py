"""API processes that are killed around a commit, and many writers and workers at the same conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from hitherto import assistant, user
from tests.faults.conftest import PATIENT, Api, Crew
from tests.faults.promises import check
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def blocker(database: str) -> AsyncIterator[Connection]:
    """A session that can lock a table against others."""
    async with await Connection.connect(database) as connection:
        yield connection


async def _waits_for_a_lock(tables: Tables) -> bool:
    query = (
        "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'hitherto')"
    )
    return await tables.one(query)


async def _only_this_process(tables: Tables) -> bool:
    """The sessions left are the store's here and the one that asks."""
    return await tables.one(
        "select count(*) <= 1 from pg_stat_activity where application_name = 'hitherto' and state <> 'idle' "
        "and datname = current_database()"
    )


class TestKill9OfAWriter:
    """The message, its receipt and its digest are there or not, all together; a retry by key finds out."""

    async def _goes_on(self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables, key: str) -> None:
        """The batch of `key` is in the log once, its digest is made once."""
        again = await api.append("c", key=key)
        before = await tables.digests()
        assert (again.start, again.end, again.digest) == (2, 3, None)
        assert [(row.status, row.start, row.end) for row in before] == [("processing", 0, 3)]
        assert await api.append("c", key=key) == again
        assert await tables.digests() == before
        await crew.worker(**PATIENT)
        await tables.wait_for_digests([before[0].id])
        assert len(model.calls) == 1
        await check(tables, api.acknowledged, model.calls)

    async def test_between_commit_and_answer(self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
        await api.append()
        writer = await crew.writer("after", "c")
        assert await writer.ended() == -9
        assert writer.acknowledged == []
        await self._goes_on(api, crew, model, tables, f"{writer.name}-0")

    async def test_in_the_middle_of_the_commit(
        self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables, blocker: Connection
    ) -> None:
        """All was sent, the commit too, and the server is held up at the digest: it goes on without the client."""
        await api.append()
        await blocker.execute("lock hitherto.digest in share mode")
        writer = await crew.writer("c")
        await until(lambda: _waits_for_a_lock(tables), "the commit waits")
        await writer.kill()
        assert await tables.digests() == []
        await blocker.rollback()
        await until(tables.digests, "the server commits what it was sent")
        await self._goes_on(api, crew, model, tables, f"{writer.name}-0")

    async def test_before_the_commit(
        self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables, blocker: Connection
    ) -> None:
        """Nothing was written; the retry by key writes it."""
        await api.append()
        await blocker.execute("lock hitherto.conversation in access exclusive mode")
        writer = await crew.writer("c")
        await until(lambda: _waits_for_a_lock(tables), "the unit of work waits")
        await writer.kill()
        await blocker.rollback()
        await until(lambda: _only_this_process(tables), "the writer's sessions have ended")
        assert await tables.digests() == []
        key = f"{writer.name}-0"
        done = await api.conversation("c").append(user(f"c/{key} asks"), assistant(f"c/{key} answers"), key=key)
        assert (done.start, done.replayed) == (2, False)
        assert done.digest is not None
        await self._goes_on(api, crew, model, tables, key)


async def test_writers_and_workers_at_the_same_conversations(crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """Four processes write the same three conversations, two make their digests: no gap, no overlap, none twice."""
    names, appends = ["a", "b", "c"], 45
    await crew.workers(2, **PATIENT)
    writers = await asyncio.gather(*(crew.writer(*names, appends=appends, **PATIENT) for _ in range(4)))
    assert [await writer.ended() for writer in writers] == [0] * 4
    await tables.wait_for_digests()
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    assert len(acknowledged) == 4 * appends
    assert not [one for one in acknowledged if one.replayed]
    fired = {one.digest for one in acknowledged if one.digest is not None}
    rows = await tables.digests()
    assert {row.id for row in rows} == fired
    assert {(row.status, row.attempt, row.tries) for row in rows} == {("completed", 1, 1)}
    assert {row.conversation for row in rows} == set(names)
    assert len(model.calls) == len(rows), "one call a digest"
    assert len({call.key for call in model.calls}) == 2, "both workers have worked"
    await check(tables, acknowledged, model.calls)
