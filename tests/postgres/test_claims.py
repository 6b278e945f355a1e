"""Claims on digests: the rights that a worker needs, other defaults of the database, and meetings of those who lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitherto.core.digests.digest import DigestJob
from hitherto.errors import StoreError
from hitherto.store.connections import row_security
from hitherto.store.store import Store
from tests.postgres.asking import rows
from tests.store.digests.samples import CALL, begun
from tests.store.samples import (
    AT_ONCE,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    claimed,
    dialogue,
    digest_of,
    ending,
    fire,
    write,
)


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    made = Store(database, patience=5)
    await made.open()
    yield made
    await made.aclose()


class TestRights:
    """A role to which `hitherto migrate --grant` gave what it needs."""

    async def test_it_may_do_all_that_a_worker_does(self, database: str, stranger: str) -> None:
        await row_security.grant(database, stranger)
        url = make_conninfo(database, user=stranger)
        store = Store(url)
        await store.open()
        made = await begun(store)
        work = await claimed(store, made)
        assert await store.prolong([work.claim], lease=HOUR) == {work.claim}
        assert await store.put_off(work, wait=AT_ONCE, calls=[CALL])
        await store.note_calls(SCOPE, "c", [CALL])
        await store.show_worker(UUID(int=1))
        load = await store.backlog()
        assert (load.due, load.workers) == (1, 1)
        await store.forget_worker(UUID(int=1))
        await write(store, "c", outcomes=[ending("completed", made)])
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await store.head(SCOPE, "c") is None
        await store.aclose()

    async def test_a_table_that_was_not_granted_is_named(self, database: str, stranger: str) -> None:
        """As after an upgrade that brought it: rights are to be given again."""
        await row_security.grant(database, stranger)
        await rows(database, sql.SQL("revoke all on hitherto.model_call from {}").format(sql.Identifier(stranger)))
        store = Store(make_conninfo(database, user=stranger))
        await store.open()
        with pytest.raises(StoreError, match=r"model_call.*hitherto migrate --grant ROLE"):
            await store.spent(SCOPE.tenant)
        await row_security.grant(database, stranger)
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
        store = Store(database)
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

    async def test_of_renewals_and_a_clear(self, store: Store) -> None:
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

    async def test_of_putting_off_and_deleting(self, store: Store) -> None:
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
    async def test_what_it_left_behind_is_taken_up(self, database: str, store: Store, in_hand: bool) -> None:
        far, near, due = [await begun(store, name) for name in ("far", "near", "due")]
        if in_hand:
            await claimed(store, far)
        for digest, ahead in ((far, timedelta(hours=3)), (near, timedelta(hours=1))):
            await rows(database, f"update digest set due_at = now() + '{ahead}' where id = {digest}")
        assert [job.digest for job in await store.due_digests()] == [due, far]
        jobs = [DigestJob(SCOPE.tenant, digest) for digest in (far, near, due)]
        assert set(await store.unsettled(jobs)) == {jobs[0], jobs[2]}
        assert (await store.backlog()).due == 2
        assert await store.claim(SCOPE.tenant, near, lease=HOUR) is None
        work = await claimed(store, far)
        assert work.digest.attempt == (2 if in_hand else 1)
        assert await store.claim(SCOPE.tenant, far, lease=HOUR) is None
