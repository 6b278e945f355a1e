"""The queue in the database, by itself: the contract of `DigestQueue`, whatever becomes of the database."""

from __future__ import annotations

import asyncio
from typing import LiteralString

import pytest

from hitherto.queues import procrastinate
from hitherto.queues.procrastinate import ProcrastinateQueue
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.patience import PATIENCE
from tests.queues.conftest import AT_ONCE, SESSIONS, Rows
from tests.queues.hand import Hand, job

_COMMITS_RECORDED: tuple[LiteralString, ...] = (
    "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$",
    "create table hitherto.recorded (setting text)",
    "create function hitherto.record() returns trigger language plpgsql as $$ begin "
    "insert into hitherto.recorded values (current_setting('synchronous_commit')); return null; end $$",
    "create trigger recorded after update or delete on hitherto.procrastinate_jobs execute function hitherto.record()",
)
"""Turns durability off, and records what holds where the queue changes its jobs."""


async def _empty(tables: Tables) -> bool:
    return await tables.jobs() == []


class TestWork:
    async def test_at_most_so_many_at_once(self, queue: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        """They are taken in the order of their commits, and gone from the queue once they are done."""
        for number in range(5):
            await tables.put_job(number)
        await hand.holds(job(0), job(1))
        hand.finish(job(1))
        await hand.holds(job(0), job(2))
        hand.finish_all()
        await hand.has_done(job(3), job(4))
        await until(lambda: _empty(tables), "the queue is empty")
        assert hand.begun == [job(number) for number in range(5)]
        assert hand.most == AT_ONCE

    async def test_commits_wait_for_the_disk(self, idle: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        """Whatever the database's default: a pooler may give the store the same session."""
        for statement in _COMMITS_RECORDED:
            await tables.all(statement)
        hand.finish_all()
        await idle.start(hand)
        await tables.put_job(1)
        await hand.has_done(job(1))
        await until(lambda: _empty(tables), "the queue is empty")
        assert await tables.all("select distinct setting from hitherto.recorded") == [("on",)]

    async def test_jobs_found_otherwise_count_too(self, queue: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        assert [queue.take(job(number)) for number in range(3)] == [True, True, False]
        await tables.put_job(7)
        await hand.holds(job(0), job(1))
        hand.finish(job(0))
        await hand.holds(job(1), job(7))
        assert not queue.take(job(8))
        assert hand.most == AT_ONCE

    async def test_what_is_due_later(
        self, idle: ProcrastinateQueue, hand: Hand, tables: Tables, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has no notification and is looked for."""
        monkeypatch.setattr(procrastinate, "_POLL", 0.05)
        await tables.put_job(1)
        await tables.all("update hitherto.procrastinate_jobs set scheduled_at = now() + interval '0.5 seconds'")
        hand.finish_all()
        began = asyncio.get_running_loop().time()
        await idle.start(hand)
        await hand.has_done(job(1))
        assert asyncio.get_running_loop().time() - began > 0.4

    async def test_what_a_dead_worker_had_taken(self, idle: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        """The hint is dropped: the row tells whether there is something to be done."""
        await tables.put_job(1)
        await tables.all("update hitherto.procrastinate_jobs set status = 'doing'")
        await tables.put_job(2)
        hand.finish_all()
        await idle.start(hand)
        await hand.has_done(job(2))
        await until(lambda: _empty(tables), "the queue is empty")
        assert hand.begun == [job(2)]


class TestSettled:
    async def test_others_do_the_work(self, idle: ProcrastinateQueue, rows: Rows) -> None:
        rows.unsettled = {job(1), job(2)}
        for number in (1, 2, 3):
            idle.submit(job(number))
        wait_for_digests = asyncio.create_task(idle.wait_for_digests())
        await until(lambda: rows.asked >= 2, "the rows are asked")
        rows.unsettled = {job(2)}
        await until(lambda: rows.asked >= 4, "the rows are asked again")
        assert not wait_for_digests.done()
        rows.unsettled = set()
        async with asyncio.timeout(PATIENCE):
            await wait_for_digests
        asked = rows.asked
        await idle.wait_for_digests()
        assert rows.asked == asked, "nothing is left to be asked for"

    async def test_what_is_due_later_is_not_waited_for(self, idle: ProcrastinateQueue, rows: Rows) -> None:
        rows.unsettled = {job(1)}
        idle.submit(job(1), after=60)
        async with asyncio.timeout(PATIENCE):
            await idle.wait_for_digests()

    async def test_what_was_given_back_is(
        self, queue: ProcrastinateQueue, hand: Hand, rows: Rows, tables: Tables
    ) -> None:
        """The work ends and the digest is due again at once."""
        rows.unsettled = {job(1)}
        await tables.put_job(1)
        queue.submit(job(1))
        wait_for_digests = asyncio.create_task(queue.wait_for_digests())
        await hand.holds(job(1))
        queue.submit(job(1))
        hand.finish(job(1))
        await hand.has_done(job(1))
        asked = rows.asked
        await until(lambda: rows.asked > asked + 1, "the rows are asked")
        assert not wait_for_digests.done()
        rows.unsettled = set()
        async with asyncio.timeout(PATIENCE):
            await wait_for_digests

    async def test_what_another_process_has_is(
        self, queue: ProcrastinateQueue, hand: Hand, rows: Rows, tables: Tables
    ) -> None:
        """The job came here, and there was nothing to claim."""
        rows.unsettled = {job(1)}
        hand.finish_all()
        queue.submit(job(1))
        await tables.put_job(1)
        await hand.has_done(job(1))
        wait_for_digests = asyncio.create_task(queue.wait_for_digests())
        await until(lambda: rows.asked > 1, "the rows are asked")
        assert not wait_for_digests.done()
        rows.unsettled = set()
        async with asyncio.timeout(PATIENCE):
            await wait_for_digests


class TestClosing:
    async def test_nothing_is_left(self, idle: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        """No task, no session, no sign of a worker in the tables."""
        before = asyncio.all_tasks()
        await idle.start(hand)
        await until(tables.listens, "it listens")
        await tables.put_job(1)
        await hand.holds(job(1))
        closing = asyncio.create_task(idle.aclose(grace=60))
        await asyncio.sleep(0)
        hand.finish(job(1))
        async with asyncio.timeout(PATIENCE):
            await closing
        assert hand.done == [job(1)]
        assert asyncio.all_tasks() - before - {closing} == set()

        async def gone() -> bool:
            return await tables.one(SESSIONS) == 0

        await until(gone, "its sessions have ended")
        assert await tables.all("select * from hitherto.procrastinate_workers") == []
        assert await tables.jobs() == []
        await idle.aclose(grace=60)

    async def test_what_takes_longer_than_its_grace(
        self, queue: ProcrastinateQueue, hand: Hand, tables: Tables
    ) -> None:
        """It is cancelled, and has ended when the queue is closed; what was not begun stays in the queue."""
        hand.tidies = 0.05
        for number in range(4):
            await tables.put_job(number)
        await hand.holds(job(0), job(1))
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=0.05)
        assert set(hand.cancelled) == {job(0), job(1)}
        assert hand.begun == [job(0), job(1)]
        assert [args["digest"] for _, args in await tables.jobs()] == [2, 3]

    async def test_a_second_time_without_grace(self, queue: ProcrastinateQueue, hand: Hand, tables: Tables) -> None:
        """While the first still waits; both return when nothing is left."""
        await tables.put_job(1)
        await hand.holds(job(1))
        patient = asyncio.create_task(queue.aclose(grace=600))
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=0)
            await patient
        assert hand.cancelled == [job(1)]

    async def test_before_the_database_was_there(self, hand: Hand, rows: Rows) -> None:
        before = asyncio.all_tasks()
        queue = ProcrastinateQueue("host=127.0.0.1 port=9 dbname=none", unsettled=rows)
        await queue.start(hand)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=60)
        assert asyncio.all_tasks() - before == set()


async def test_what_asyncio_tells_of_others_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    """Without an exception too, as of a task that is destroyed while it waits."""
    asyncio.get_running_loop().call_exception_handler({"message": "something was destroyed"})
    assert "something was destroyed" in caplog.text
