"""The jobs that the store puts into the queue: in the very transaction that makes a digest due, whoever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitherto.core.log.frontier import DigestAction
from hitherto.errors import Conflict, StoreError
from hitherto.ports.log import Changes
from hitherto.ports.queue import DigestJob
from hitherto.stores.postgres.row_security import roles
from hitherto.stores.postgres.store import PostgresStore
from hitherto.testing.conformance.digests.samples import CALL, begun, row_of
from hitherto.testing.conformance.digests.stage_samples import stage_row, staged
from hitherto.testing.conformance.samples import (
    AT_ONCE,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    claimed,
    dialogue,
    digest_of,
    digested,
    ending,
    fire,
    write,
)
from tests.postgres.asking import rows


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    made = PostgresStore(database, patience=5)
    await made.open()
    yield made
    await made.aclose()


async def jobs(database: str) -> list[dict[str, Any]]:
    return await rows(database, "select * from procrastinate_jobs order by id")


async def hinted(database: str) -> list[tuple[str, int]]:
    """The tenant and the digest of each job."""
    return [(job["args"]["tenant"], job["args"]["digest"]) for job in await jobs(database)]


class TestInTheTransaction:
    async def test_what_is_committed_has_its_job(self, database: str, store: PostgresStore) -> None:
        await write(store, "c", *dialogue(3))
        assert await jobs(database) == []
        made = await fire(store, "c", 0, 5)
        (job,) = await jobs(database)
        assert job["args"] == {"tenant": SCOPE.tenant, "digest": made}
        shown = {name: job[name] for name in ("queue_name", "task_name", "status", "attempts", "scheduled_at")}
        assert shown == {
            "queue_name": "hitherto",
            "task_name": "hitherto.digest",
            "status": "todo",
            "attempts": 0,
            "scheduled_at": None,
        }
        assert (job["lock"], job["queueing_lock"]) == (None, None), "a lock would make appends wait for each other"

    async def test_each_digest_in_progress_has_one(self, database: str, store: PostgresStore) -> None:
        written = await write(store, "c", *dialogue(3), fire=[digest_of(0, 5), digest_of(0, 5, stage=OTHER_STAGE)])
        assert await hinted(database) == [(SCOPE.tenant, made) for made in written.fired]
        await staged(store, "c", stage_row(DigestAction.DROP, 0, 5))
        assert len(await hinted(database)) == 2, "none for what is complete at once"

    async def test_what_is_rolled_back_has_none(self, database: str, store: PostgresStore) -> None:
        await write(store, "c", *dialogue(3))
        await digested(store, "c", 0, 5)
        running = await fire(store, "c", 0, 5)
        before = await hinted(database)
        async with store.write(SCOPE, "c") as unit:
            changes = Changes(
                head=unit.head, fire=(digest_of(0, 5, stage=OTHER_STAGE),), outcomes=(ending("completed", running),)
            )
            with pytest.raises(Conflict):
                await unit.commit(changes)
        async with store.write(SCOPE, "c") as unit:
            with pytest.raises(Conflict):
                await unit.commit(Changes(head=unit.head, fire=(digest_of(0, 5, stage=OTHER_STAGE), digest_of(0, 3))))
        assert await hinted(database) == before

    async def test_no_job_names_an_erased_tenant(self, database: str, store: PostgresStore) -> None:
        for name in ("waiting", "in work"):
            await write(store, name, *dialogue(3))
            made = await fire(store, name, 0, 5)
        await rows(database, f"update procrastinate_jobs set status = 'doing' where args ->> 'digest' = '{made}'")
        await store.end_erasure(await store.begin_erasure(tenant=SCOPE.tenant, user=None))
        assert {tenant for tenant, _ in await hinted(database)} == {""}
        assert await store.claim("", made, lease=HOUR) is None

    async def test_put_off_it_has_one_for_later(self, database: str, store: PostgresStore) -> None:
        made = await begun(store)
        work = await claimed(store, made)
        assert await store.put_off(work, wait=HOUR / 2)
        assert not await store.put_off(work, wait=AT_ONCE), "one that does not hold has none"
        assert await hinted(database) == [(SCOPE.tenant, made)] * 2
        due_at = (await row_of(store, made)).due_at
        assert [job["scheduled_at"] for job in await jobs(database)] == [None, due_at]
        await rows(database, "update digest set due_at = now()")
        await store.put_off(await claimed(store, made), wait=AT_ONCE)
        assert [job["scheduled_at"] for job in await jobs(database)] == [None, due_at, None]

    @pytest.mark.parametrize("path", ["nowhere", "pg_temp, public", "public"])
    async def test_it_needs_no_search_path(self, admin: Any, database: str, path: LiteralString) -> None:
        """Nor does a table of that name in another schema get it."""
        name = sql.Identifier(str(conninfo_to_dict(database)["dbname"]))
        await admin.execute(sql.SQL("alter database {} set search_path = {}").format(name, sql.SQL(path)))
        as_admin = make_conninfo(database, user=conninfo_to_dict(str(admin.info.dsn))["user"])
        await rows(as_admin, "create table public.procrastinate_jobs (like hitherto.procrastinate_jobs)")
        store = PostgresStore(database)
        await store.open()
        made = await begun(store)
        await store.put_off(await claimed(store, made), wait=AT_ONCE, calls=[CALL])
        await store.aclose()
        assert await hinted(database) == [(SCOPE.tenant, made)] * 2
        events = await rows(database, "select type::text from procrastinate_events order by id")
        assert [event["type"] for event in events] == ["deferred", "deferred"]
        assert await rows(as_admin, "select * from public.procrastinate_jobs") == []


class TestRights:
    """A role to which `hitherto migrate --grant` gave what it needs."""

    async def test_it_may_do_all_that_a_worker_does(self, database: str, stranger: str) -> None:
        await roles.grant(database, stranger)
        url = make_conninfo(database, user=stranger)
        store = PostgresStore(url)
        await store.open()
        made = await begun(store)
        work = await claimed(store, made)
        assert await store.prolong([work.claim], lease=HOUR) == {work.claim}
        assert await store.put_off(work, wait=AT_ONCE, calls=[CALL])
        await store.note_calls(SCOPE, "c", [CALL])
        assert (await store.backlog()).due == 1
        await write(store, "c", outcomes=[ending("completed", made)])
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await store.head(SCOPE, "c") is None
        await store.aclose()

        async with await psycopg.AsyncConnection[Any].connect(url, autocommit=True) as connection:

            async def ask(query: str) -> Any:
                row = await (await connection.execute(query.encode())).fetchone()
                return None if row is None else row[0]

            worker = await ask("select worker_id from hitherto.procrastinate_register_worker_v1()")
            for _ in range(2):
                job = await ask(f"select id from hitherto.procrastinate_fetch_job_v2(array['hitherto'], {worker})")
                await ask(f"select hitherto.procrastinate_finish_job_v1({job}, 'succeeded', true)")
            await ask(f"select hitherto.procrastinate_update_heartbeat_v1({worker})")
            await ask("select count(*) from hitherto.procrastinate_prune_stalled_workers_v1(1000)")
            await ask(f"select hitherto.procrastinate_unregister_worker_v1({worker})")
        assert await jobs(database) == []

    async def test_a_table_that_was_not_granted_is_named(self, database: str, stranger: str) -> None:
        """As after an upgrade that brought it: rights are to be given again."""
        await roles.grant(database, stranger)
        await rows(database, sql.SQL("revoke all on hitherto.model_call from {}").format(sql.Identifier(stranger)))
        store = PostgresStore(make_conninfo(database, user=stranger))
        await store.open()
        with pytest.raises(StoreError, match=r"model_call.*hitherto migrate --grant ROLE"):
            await store.spent(SCOPE.tenant)
        await roles.grant(database, stranger)
        assert (await store.spent(SCOPE.tenant)).tokens == 0
        await write(store, "c", *dialogue(2))
        await write(store, "c", fire=[digest_of(0, 3)])
        await store.aclose()


class TestOtherDefaults:
    @pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
    async def test_of_isolation(self, admin: Any, database: str, isolation: str) -> None:
        """Claims that meet each other do not fail for it: one of them waits, and then sees what the other did."""
        name = sql.Identifier(str(conninfo_to_dict(database)["dbname"]))
        change = sql.SQL("alter database {} set default_transaction_isolation = {}")
        await admin.execute(change.format(name, sql.Literal(isolation)))
        store = PostgresStore(database)
        await store.open()
        for n in range(10):
            made = await begun(store, f"{n}")
            got = await asyncio.gather(*(store.claim(SCOPE.tenant, made, lease=HOUR) for _ in range(5)))
            (work,) = [one for one in got if one is not None]
            await asyncio.gather(
                *(store.prolong([work.claim], lease=HOUR) for _ in range(3)),
                write(store, f"{n}", outcomes=[ending("completed", made)]),
                store.put_off(work, wait=AT_ONCE),
            )
        await store.aclose()


class TestMeetings:
    """Whoever locks several rows does so in one order: nobody waits for each other for ever."""

    async def test_of_renewals_and_a_clear(self, store: PostgresStore) -> None:
        await write(store, "c", *dialogue(3))
        for n in range(25):
            fired = (await write(store, "c", fire=[digest_of(0, 5, stage=f"{n}-{s}") for s in "abcd"])).fired
            works = [await claimed(store, made) for made in fired]
            outcomes = [ending("superseded", made) for made in fired]
            await asyncio.gather(
                *(store.prolong([work.claim for work in works[::step]], lease=HOUR) for step in (1, -1, 1, -1)),
                write(store, "c", outcomes=outcomes),
            )
            assert await store.prolong([work.claim for work in works], lease=HOUR) == frozenset()

    async def test_of_putting_off_and_deleting(self, store: PostgresStore) -> None:
        async def delete() -> None:
            async with store.write(SCOPE, "c") as unit:
                await unit.delete()

        for _ in range(25):
            works = [await claimed(store, await begun(store))]
            works.append(await claimed(store, await fire(store, "c", 0, 3, stage=OTHER_STAGE)))
            await asyncio.gather(
                *(store.put_off(work, wait=AT_ONCE, calls=[CALL]) for work in works),
                store.prolong([work.claim for work in works], lease=HOUR),
                delete(),
            )
            assert (await store.backlog()).due == 0


class TestAClockThatWasPutBack:
    """Times that lie further ahead than any that is set are over."""

    @pytest.mark.parametrize("in_hand", [False, True])
    async def test_what_it_left_behind_is_taken_up(self, database: str, store: PostgresStore, in_hand: bool) -> None:
        far, near, due = [await begun(store, name) for name in ("far", "near", "due")]
        if in_hand:
            await claimed(store, far)
        for digest, ahead in ((far, timedelta(hours=3)), (near, timedelta(hours=1))):
            await rows(database, f"update digest set due_at = now() + '{ahead}' where id = {digest}")
        assert [job.digest for job in await store.overdue(since=AT_ONCE)] == [due, far]
        assert [job.digest for job in await store.overdue(since=HOUR, limit=1)] == [far]
        jobs = [DigestJob(SCOPE.tenant, digest) for digest in (far, near, due)]
        assert set(await store.unsettled(jobs)) == {jobs[0], jobs[2]}
        assert (await store.backlog()).due == 2
        assert await store.claim(SCOPE.tenant, near, lease=HOUR) is None
        work = await claimed(store, far)
        assert work.digest.attempt == (2 if in_hand else 1)
        assert await store.claim(SCOPE.tenant, far, lease=HOUR) is None
