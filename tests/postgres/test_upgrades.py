"""Upgrades of a database that is in use: what was under way goes on, nobody is stopped, nobody waits for long."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hitherto.core.digest import Status
from hitherto.errors import StoreError
from hitherto.ports.queue import DigestJob
from hitherto.ports.store import Outcome
from hitherto.stores.postgres import schema
from hitherto.stores.postgres.store import PostgresStore
from hitherto.testing.material import AT_ONCE, HOUR, SCOPE, claimed, digest_of, head_of, user, write
from hitherto.testing.material_claims import row_of
from tests.postgres.asking import rows
from tests.postgres.test_migrations import WRITTEN, migrated

Connection = psycopg.AsyncConnection[Any]

_BLOCKS = re.split(
    r"^-- name: (\w+)\n",
    Path(__file__).with_name("statements_0002.sql").read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)
OLD = {name: body.strip().rstrip(";").encode() for name, body in zip(_BLOCKS[1::2], _BLOCKS[2::2], strict=True)}
"""Statements that processes of revision 0002 still run."""

RUNNING = """
    insert into digest (tenant, conversation, stage, spec, done, start_seq, end_seq, base_id, status, attempt,
        fired_rev, created_at)
    values ('acme', 1, 't', '{}', 'summarise', 4, 7, 1, 'processing', 1, 9, '2004-05-06Z');
    update conversation set failed = true where id in ('c', 'plain');
"""
NAMES = {"tenant": "acme", "user": "u-17", "agent": "planner", "conversation": "c"}
NEW = {
    "tenant": "acme", "ref": 1, "id": None, "stage": "u", "spec": "{}", "done": "summarise", "start": 4, "end": 6,
    "base": None, "status": "processing", "completed": False, "tokens": 0, "freed": 0, "since": 0, "kept_from": None,
    "opaque": None, "family": None, "rev": 9,
}  # fmt: skip
ENDED = {
    "tenant": "acme", "ref": 1, "status": "completed", "items": "[]", "text": "by an old one", "tokens": 3,
    "model": "m", "prompt_version": 1, "generation_time_ms": 5, "error": None, "opaque": None, "family": None,
    "visible_rev": 10,
}  # fmt: skip
COUNTERS = {
    "tenant": "acme", "ref": 1, "rev": 10, "next_seq": 8, "tokens": 36, "turns": 2, "talk": 4, "results": 10,
    "view_start": 4, "view_tokens": 10, "view_turns": 1, "view_talk": 2, "view_results": 3, "closed": True,
    "run_start": 0, "policy": None, "injection": None, "injected": None, "frontiers": "{}", "open_calls": "{}",
    "late": "[]", "failed": True, "erased": "[]", "next_expiry": None,
}  # fmt: skip


@pytest.fixture
async def before(empty: str) -> str:
    """The URL of a database at revision 0002, with digests in it, one of them in progress."""
    await rows(empty, "create schema hitherto")
    await asyncio.to_thread(migrated, empty, "0001")
    await rows(empty, WRITTEN)
    await asyncio.to_thread(migrated, empty, "0002")
    await rows(empty, RUNNING)
    return empty


async def opened(url: str) -> PostgresStore:
    store = PostgresStore(url)
    await store.open()
    return store


async def running(url: str) -> int:
    ((digest,),) = [tuple(row.values()) for row in await rows(url, "select id from digest where status = 'processing'")]
    return digest


class TestWhatWasUnderWay:
    async def test_a_digest_in_progress_goes_on(self, before: str) -> None:
        digest = await running(before)
        store = await opened(before)
        row = await row_of(store, digest)
        assert (row.attempt, row.tries, row.claimed) == (1, 0, False)
        assert await store.overdue(since=AT_ONCE) == [DigestJob("acme", digest)]
        work = await claimed(store, digest)
        assert (work.digest.attempt, work.digest.tries, work.conversation) == (2, 1, "c")
        assert [one.seq for one in work.messages] == [6, 7]
        await write(store, "c", outcomes=[Outcome(digest=digest, text="made")])
        assert (await row_of(store, digest)).status is Status.COMPLETED
        assert [one.due_at for one in await store.digests(SCOPE, "c")] == [None] * 5
        await store.aclose()

    async def test_failures_are_carried_over(self, before: str) -> None:
        store = await opened(before)
        heads = {name: await head_of(store, name) for name in ("c", "plain", "gone")}
        assert {name: (head.failures, head.resume_at) for name, head in heads.items()} == {
            "c": (1, None),
            "plain": (1, None),
            "gone": (0, None),
        }
        await write(store, "plain", failures=0, resume_at=None)
        await write(store, "gone", failures=4, resume_at=heads["c"].now + HOUR)
        await claimed(store, await running(before))
        await store.aclose()
        await asyncio.to_thread(migrated, before, "0002")
        found = await rows(before, "select id, failed from conversation order by ref")
        assert [tuple(row.values()) for row in found] == [("c", True), ("plain", False), ("gone", True)]
        assert await rows(before, "select attempt from digest where status = 'processing'") == [{"attempt": 2}]


class TestBesideOldProcesses:
    """Processes of the revision before go on with their statements, beside those of this one."""

    @pytest.fixture
    async def old(self, before: str) -> Any:
        await schema.ensure(before, patience=5)
        async with await Connection.connect(before, autocommit=True) as connection:
            yield connection

    async def ask(self, old: Connection, name: str, values: dict[str, Any]) -> list[Any]:
        cursor = await old.execute(OLD[name], values)
        return [] if cursor.description is None else await cursor.fetchall()

    async def test_they_set_off_and_end_digests(self, before: str, old: Connection) -> None:
        store = await opened(before)
        now = (await head_of(store, "c")).now
        ((digest,),) = await self.ask(old, "insert_digest", {**NEW, "now": now})
        row = await row_of(store, digest)
        assert (row.attempt, row.tries, row.claimed) == (1, 0, False)
        assert row.due_at is not None
        assert timedelta(seconds=50) < row.due_at - now < timedelta(seconds=70), "its own maker comes first"
        assert await store.claim("acme", digest, lease=HOUR) is None
        assert (await self.ask(old, "work_digest", {**NAMES, "digest": digest, "attempt": 1}))[0][0] == digest
        await self.ask(old, "end_digest", {**ENDED, "digest": digest, "now": now})
        await self.ask(old, "update_conversation", {**COUNTERS, "updated_at": now})
        head = await head_of(store, "c")
        assert (head.rev, head.failures) == (10, 1)
        assert (await row_of(store, digest)).text == "by an old one"
        ((complete,),) = await self.ask(
            old, "insert_digest", {**NEW, "now": now, "status": "completed", "completed": True, "stage": "v"}
        )
        assert digest not in [job.digest for job in await store.overdue(since=AT_ONCE)]
        assert await store.claim("acme", complete, lease=HOUR) is None
        await store.aclose()

    async def test_what_they_left_behind_is_taken_over_and_they_are_fenced(self, before: str, old: Connection) -> None:
        store = await opened(before)
        now = (await head_of(store, "c")).now
        ((digest,),) = await self.ask(old, "insert_digest", {**NEW, "now": now})
        await rows(before, f"update digest set due_at = now() where id = {digest}")
        assert (await claimed(store, digest)).digest.attempt == 2
        assert await self.ask(old, "work_digest", {**NAMES, "digest": digest, "attempt": 1}) == []
        (found,) = await self.ask(old, "head", NAMES)
        assert f'[{digest}, "u", 2, 4, 6' in found[39], "their fence is the attempt"
        await store.aclose()

    async def test_they_read_what_was_written_since(self, before: str, old: Connection) -> None:
        store = await opened(before)
        written = await write(store, "c", user("new"), fire=[digest_of(4, 8)])
        (head,) = await self.ask(old, "head", NAMES)
        assert head[1:3] == (10, 9)
        found = await self.ask(old, "digests", NAMES)
        assert [row[0] for row in found][-1] == written.fired[0]
        values = {"stuck_for": AT_ONCE, "limit": 9}
        assert [row[3] for row in await self.ask(old, "due", values)] == ["c"]
        await store.aclose()


class TestNobodyWaits:
    async def test_two_processes_upgrade_at_once(self, before: str, database: str) -> None:
        script = "import asyncio, sys, tests.postgres.test_upgrades as t; asyncio.run(t.opened_and_closed(sys.argv[1]))"
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", script, before, cwd=Path(__file__).parents[2])
            for _ in range(2)
        ]
        assert [await process.wait() for process in processes] == [0, 0]
        newest = await rows(database, "select * from alembic_version")
        assert await rows(before, "select * from alembic_version") == newest

    async def test_a_long_transaction_is_waited_for_in_turns(self, before: str) -> None:
        """Others get through meanwhile; once it is over, the upgrade succeeds."""
        async with await Connection.connect(before) as long, await Connection.connect(before, autocommit=True) as other:
            await long.execute("select from hitherto.digest")
            upgrading = asyncio.create_task(schema.ensure(before, patience=5, lock_timeout=0.2))
            longest = 0.0
            for _ in range(20):
                began = time.monotonic()
                await other.execute("select from hitherto.conversation join hitherto.digest on true")
                longest = max(longest, time.monotonic() - began)
                await asyncio.sleep(0.02)
            assert not upgrading.done()
            assert longest < 5
            await long.rollback()
            await upgrading
        assert await rows(before, "select * from alembic_version") == [{"version_num": schema.revisions()[-1]}]

    async def test_a_transaction_that_never_ends_is_named(self, before: str) -> None:
        async with await Connection.connect(before) as long:
            await long.execute("select from hitherto.conversation")
            with pytest.raises(StoreError, match=r"5 times .* than 0\.05 seconds, and nothing was changed; end them"):
                await schema.ensure(before, patience=5, lock_timeout=0.05)
        assert await rows(before, "select * from alembic_version") == [{"version_num": "0002"}]
        await schema.ensure(before, patience=5)

    async def test_units_of_work_go_on(self, before: str) -> None:
        """Each takes the conversation, then its digests; the upgrade takes the tables in this order too."""
        done = asyncio.Event()

        async def unit(connection: Connection) -> int:
            units = 0
            while not done.is_set():
                async with connection.transaction():
                    await connection.execute("select from hitherto.conversation where ref = 1 for no key update")
                    await asyncio.sleep(0)
                    await connection.execute(OLD["insert_digest"], {**NEW, "now": datetime.now().astimezone()})
                    await connection.execute("delete from hitherto.digest where stage = 'u'")
                units += 1
            return units

        async with await Connection.connect(before, autocommit=True) as connection:
            working = asyncio.create_task(unit(connection))
            await asyncio.sleep(0.05)
            await schema.ensure(before, patience=5)
            done.set()
            assert await working > 0


async def opened_and_closed(url: str) -> None:
    await (await opened(url)).aclose()
