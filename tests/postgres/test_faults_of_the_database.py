"""What the database does to us: away, read-only, gone in the middle, set up otherwise than usual."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import hitherto
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestJob, Status
from hitherto.core.log.append import extended
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.probe import TurnAt
from hitherto.core.run import EventKind, Run, RunStatus, new_event
from hitherto.errors import DatabaseReadOnly, DatabaseUnavailable, StoreError
from hitherto.store.sql import SQL
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.faults.waiting import until
from tests.memories import open_on
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.postgres.verbs import ALL, VERBS, WRITING
from tests.store.samples import dialogue, digest_of, fire, head_of, log_of, snapshot, user, write

Connection = psycopg.AsyncConnection[Any]


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    """An open store with the conversation "c" in it."""
    made = Store(database, patience=5)
    await made.open()
    await write(made, "c", *dialogue(2))
    yield made
    await made.aclose()


async def alter(admin: Connection, database: str, change: sql.SQL | sql.Composed) -> None:
    name = sql.Identifier(str(conninfo_to_dict(database)["dbname"]))
    await admin.execute(sql.SQL("alter database {} {}").format(name, change))


async def kill(admin: Connection, database: str) -> int:
    """End all connections of stores to the database; how many there were."""
    cursor = await admin.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where application_name = 'hitherto' and datname = %s",
        [conninfo_to_dict(database)["dbname"]],
    )
    return cursor.rowcount


async def begin_run(store: Store) -> Run:
    return await store.runs.begin(SCOPE, "c", strategy=None, injection=False)


async def widen(store: Store, connections: int) -> None:
    """Have the pool hold so many connections."""
    async with AsyncExitStack() as held:
        for n in range(connections):
            await held.enter_async_context(store.write(SCOPE, f"wide {n}"))


class TestUnreachable:
    @pytest.fixture
    def closed_port(self) -> int:
        return free_port()

    @pytest.mark.parametrize(
        "address",
        [
            "postgresql://me:pa55word@127.0.0.1:{}/mine",
            "host=127.0.0.1 port={} user=me password=pa55word dbname=mine",
        ],
    )
    async def test_nobody_listens(self, closed_port: int, address: str) -> None:
        store = Store(address.format(closed_port), patience=2)
        with pytest.raises(
            DatabaseUnavailable, match=rf"127\.0\.0\.1:{closed_port}/mine.*refused.*HITHERTO_DATABASE"
        ) as raised:
            await store.open()
        assert "pa55word" not in "".join(traceback.format_exception(raised.value))
        await store.aclose()

    @pytest.mark.parametrize(
        "address", ["postgresql://me:pa%55word%@host/mine", "pa55word", "host=a password='pa55word"]
    )
    async def test_not_an_address(self, address: str) -> None:
        store = Store(address, patience=2)
        with pytest.raises(DatabaseUnavailable, match="neither a PostgreSQL URL nor") as raised:
            await store.open()
        assert "word" not in "".join(traceback.format_exception(raised.value)).replace("password percent", "")
        await store.aclose()

    async def test_no_such_database(self, database: str) -> None:
        store = Store(make_conninfo(database, dbname="no_such"), patience=2)
        with pytest.raises(DatabaseUnavailable, match='"no_such" does not exist'):
            await store.open()

    @pytest.mark.parametrize("verb", ALL.values(), ids=ALL.keys())
    async def test_a_store_that_is_not_open(self, database: str, verb: Callable[[Store], Awaitable[object]]) -> None:
        store = Store(database, patience=2)
        with pytest.raises(StoreError, match="not open"):
            await verb(store)
        await store.open()
        await store.aclose()
        with pytest.raises(StoreError, match="not open"):
            await verb(store)
        await store.aclose()


def test_a_loop_ends_while_a_connection_is_made() -> None:
    """As the one of a program that has left its memory open."""

    async def leave_open(silent: socket.socket) -> None:
        store = Store(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x", patience=PATIENCE)
        opening = asyncio.create_task(store._connections.open())
        await asyncio.to_thread(silent.accept)
        assert not opening.done()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        thread = threading.Thread(target=lambda: asyncio.run(leave_open(silent)), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()


class TestReadOnly:
    @pytest.fixture
    async def read_only(self, admin: Connection, database: str, store: Store) -> AsyncIterator[Store]:
        """A store opened on a database that refuses to write by now."""
        await fire(store, "c", 0, 3)
        async with open_on(store, worker=False) as memory:
            await memory.conversation("keyed", scope=SCOPE).append(user(), key="k")
        await alter(admin, database, sql.SQL("set default_transaction_read_only = on"))
        made = Store(database)
        await made.open()
        yield made
        await made.aclose()

    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
    async def test_reading_works(
        self, read_only: Store, store: Store, verb: Callable[[Store], Awaitable[object]]
    ) -> None:
        if verb is VERBS["head"]:
            assert await snapshot(read_only, "c") == await snapshot(store, "c")
        await verb(read_only)

    @pytest.mark.parametrize("verb", WRITING.values(), ids=WRITING.keys())
    async def test_writing_is_refused(
        self, read_only: Store, store: Store, verb: Callable[[Store], Awaitable[object]]
    ) -> None:
        before = await snapshot(store, "c")
        with pytest.raises(DatabaseReadOnly, match=r"primary.*default_transaction_read_only"):
            await verb(read_only)
        assert await snapshot(store, "c") == before
        assert await store.head(SCOPE, "new") is None

    @pytest.mark.parametrize("facts", [True, False])
    async def test_what_has_expired_and_cannot_be_erased_is_not_shown(
        self, read_only: Store, store: Store, facts: bool
    ) -> None:
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        await write(store, "secrets", user("A secret.").expiring(soon))  # its connection was there before
        await asyncio.sleep(max(0.0, (soon - datetime.now(UTC)).total_seconds()) + 0.05)
        async with open_on(read_only, worker=False) as memory:
            with pytest.raises(DatabaseReadOnly):
                await memory.conversation("secrets", scope=SCOPE).context(budget=500, facts=facts)

    async def test_it_is_over_for_all_connections_once_it_is_over(
        self, admin: Connection, database: str, store: Store
    ) -> None:
        """One that was opened meanwhile would refuse to write for as long as it lasts."""
        await alter(admin, database, sql.SQL("set default_transaction_read_only = on"))
        await kill(admin, database)
        async with AsyncExitStack() as held:  # the pool has several that were opened meanwhile
            for _ in range(4):
                await held.enter_async_context(store._connections.borrowed())
        for _ in range(3):
            with pytest.raises(DatabaseReadOnly):
                await write(store, "c", user("refused"))
            await VERBS["head"](store)
        await alter(admin, database, sql.SQL("set default_transaction_read_only = off"))
        with suppress(DatabaseReadOnly):
            await write(store, "c", user("perhaps refused"))
        await asyncio.sleep(0.5)
        for _ in range(12):
            await write(store, "c", user("written"))
        await asyncio.gather(*(write(store, f"c{n}", user("written")) for n in range(8)))


class TestKilled:
    @pytest.mark.parametrize("verb", ALL.values(), ids=ALL.keys())
    async def test_between_units(
        self, admin: Connection, database: str, store: Store, verb: Callable[[Store], Awaitable[object]]
    ) -> None:
        """The very next verb works: what has written nothing yet is tried again on a fresh connection."""
        await widen(store, 4)
        assert await kill(admin, database) >= 4
        await verb(store)

    @pytest.mark.parametrize("name", ["c", "new"])
    async def test_in_a_unit(self, admin: Connection, database: str, store: Store, name: str) -> None:
        before = await snapshot(store, name)
        async with store.write(SCOPE, name, key="k") as unit:
            logged, head = extended(unit.head, dialogue(50), [1] * 100)
            receipt = Receipt(start=logged[0].seq, end=head.last_seq, rev=head.rev, fingerprint="f")
            assert await kill(admin, database) == 1
            with pytest.raises(DatabaseUnavailable, match=r"not known whether it was written.*same key"):
                await unit.commit(
                    Changes(head=head, messages=logged, key="k", receipt=receipt, fire=(digest_of(0, head.last_seq),))
                )
        assert await snapshot(store, name) == before
        async with store.write(SCOPE, name, key="k") as unit:
            assert unit.receipt is None

    @pytest.mark.parametrize("verb", ["begin", "add", "end"])
    async def test_while_a_run_is_written(self, store: Store, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
        """Lost after the statement, before its answer: it is not written a second time, and the caller is told."""
        run = await begin_run(store)
        event = new_event(EventKind.MESSAGE, "Hello.")
        verbs: dict[str, Callable[[], Awaitable[object]]] = {
            "begin": lambda: begin_run(store),
            "add": lambda: store.runs.add(SCOPE, run.id, [event]),
            "end": lambda: store.runs.end(SCOPE, run.id, status=RunStatus.COMPLETED, freed=0),
        }
        execute, lost = Connection.execute, list[str]()

        async def losing(connection: Connection, query: Any, *given: Any, **options: Any) -> Any:
            found = await execute(connection, query, *given, **options)
            if not lost and re.search(r"(insert into|update) hitherto\.run\b", str(query)):
                lost.append(str(query))
                await connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return found

        with monkeypatch.context() as patched:
            patched.setattr(psycopg.AsyncConnection, "execute", losing)
            with pytest.raises(DatabaseUnavailable, match="not known whether it was written"):
                await verbs[verb]()
        assert lost
        (found,) = await store.runs.runs(SCOPE, "c", limit=9)
        assert found == run, "here it was not"
        await verbs[verb]()

    @pytest.mark.parametrize("verb", ["probe", "tail", "next_digest", "expired", "digests", "current_facts", "delete"])
    async def test_every_verb_of_a_unit_says_so(
        self, admin: Connection, database: str, store: Store, verb: str
    ) -> None:
        before = await snapshot(store, "c")
        async with store.write(SCOPE, "c") as unit:
            await kill(admin, database)
            verbs: dict[str, Callable[[], Awaitable[object]]] = {
                "probe": lambda: unit.probe(TurnAt(1)),
                "tail": lambda: unit.tail(3),
                "next_digest": unit.next_digest,
                "expired": unit.expired,
                "digests": unit.digests,
                "current_facts": lambda: unit.current_facts("mum"),
                "delete": unit.delete,
            }
            with pytest.raises(DatabaseUnavailable):
                await verbs[verb]()
        assert await snapshot(store, "c") == before

    async def test_a_unit_that_is_left_anyway_leaves_quietly(
        self, admin: Connection, database: str, store: Store
    ) -> None:
        async with store.write(SCOPE, "c"):
            await kill(admin, database)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with store.write(SCOPE, "c"):
                await kill(admin, database)
                raise ZeroDivisionError
        assert (await head_of(store, "c")).next_seq == 4

    async def test_while_waiting_for_another_process(self, admin: Connection, database: str, store: Store) -> None:
        """A unit that waits for the conversation goes on waiting on a fresh connection."""
        other = Store(database)
        await other.open()
        async with await Connection.connect(database) as holding:
            await holding.execute("select from hitherto.conversation for update")
            waiting = asyncio.create_task(write(other, "c", user("waited")))
            await asyncio.sleep(0.1)
            assert await kill(admin, database) >= 1
            await asyncio.sleep(0.1)
            assert not waiting.done()
        written = await waiting
        assert written.logged[0].seq == 4
        await other.aclose()

    async def test_a_transaction_that_the_server_ends_for_taking_too_long(
        self, admin: Connection, database: str, store: Store
    ) -> None:
        """Whatever else went wrong meanwhile, its connection is replaced, and who asks next is served."""
        await alter(admin, database, sql.SQL("set idle_in_transaction_session_timeout = '1s'"))
        hurried = Store(database, pool_size=2, patience=2)
        await hurried.open()
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with hurried.write(SCOPE, "c") as unit:
                    await unit.tail(1)  # only from a statement by itself on, the server counts
                    await asyncio.sleep(1.2)
                    raise ZeroDivisionError
        async with hurried.write(SCOPE, "c") as unit:
            await unit.tail(1)
            await asyncio.sleep(1.2)
            with pytest.raises(DatabaseUnavailable):
                await unit.tail(1)
        await widen(hurried, 2)
        await hurried.aclose()

    @pytest.mark.parametrize("by", ["cancel", "timeout"])
    async def test_a_cancellation_while_the_others_are_replaced_is_one(
        self, admin: Connection, database: str, store: Store, monkeypatch: pytest.MonkeyPatch, by: str
    ) -> None:
        await widen(store, 4)
        pool = store._connections._pool
        await asyncio.wait(store._connections._returning)
        really = pool.drain

        async def drain() -> None:
            await asyncio.sleep(0.05)
            await really()

        monkeypatch.setattr(pool, "drain", drain)
        await admin.execute("select pg_terminate_backend(%s, 5000)", [pool._pool[0].info.backend_pid])
        writing = asyncio.create_task(write(store, "c", user("cancelled")))
        if by == "cancel":
            await asyncio.sleep(0.03)
            assert writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(writing, timeout=0.03)
        await asyncio.sleep(0.3)
        assert (await head_of(store, "c")).next_seq == 4
        monkeypatch.undo()
        await widen(store, 10)

    async def test_in_a_verb_while_the_store_is_closed(
        self, admin: Connection, database: str, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nothing is lost that anybody needs, so no warning says so."""
        async with await Connection.connect(database) as holding:
            await holding.execute("lock table hitherto.conversation")
            reading = asyncio.create_task(head_of(store, "c"))
            await asyncio.sleep(0.1)
            await store.aclose()
            await kill(admin, database)
            with pytest.raises(StoreError, match="not open"):
                await reading
        assert not caplog.records

    async def test_again_and_again(self, admin: Connection, database: str, store: Store) -> None:
        """Writers that repeat a lost append with its key; in the end each batch is there once, and whole."""
        batches = 25

        async def append(key: str) -> None:
            batch = [user(f"{key}.{n}") for n in range(3)]
            async with store.write(SCOPE, "much", key=key) as unit:
                if unit.receipt is None:
                    logged, head = extended(unit.head, batch, [1, 1, 1])
                    receipt = Receipt(start=logged[0].seq, end=head.last_seq, rev=head.rev, fingerprint=key)
                    await unit.commit(Changes(head=head, messages=logged, key=key, receipt=receipt))

        async def writer(name: str) -> None:
            for n in range(batches):
                while True:
                    try:
                        await append(f"{name}{n}")
                        break
                    except DatabaseUnavailable:
                        continue

        async def killer() -> None:
            while True:
                await asyncio.sleep(0.01)
                await kill(admin, database)

        killing = asyncio.create_task(killer())
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(writer(name) for name in "abc"))
        killing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await killing
        log = await log_of(store, "much")
        assert [logged.seq for logged in log] == list(range(3 * 3 * batches))
        texts = [logged.message.text for logged in log]
        keys = [text.split(".")[0] for text in texts[::3]]
        assert sorted(keys) == sorted(f"{name}{n}" for name in "abc" for n in range(batches))
        assert texts == [f"{key}.{n}" for key in keys for n in range(3)]


class TestAStatementThatFails:
    async def test_a_claim_does_not_make_a_worker_hurry(
        self, database: str, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It warns once, asks less and less often, and goes on when claims work again."""
        caplog.set_level(logging.DEBUG, "hitherto.digest")
        fired = [await fire(store, "c", 0, 1, stage=f"s{n}") for n in range(30)]
        async with await Connection.connect(database, autocommit=True) as owner:
            await owner.execute("revoke update on hitherto.digest from hitherto")
            async with hitherto.open(database, model="extractive"):
                await asyncio.sleep(2)
                tried = [one.levelname for one in caplog.records if "could not be claimed" in one.getMessage()]
                assert tried.count("WARNING") == 1
                assert len(tried) < 30
                await owner.execute("grant update on hitherto.digest to hitherto")

                async def made() -> bool:
                    return not await store.unsettled([DigestJob(SCOPE.tenant, digest) for digest in fired])

                await until(made, "all are made")

    @pytest.mark.parametrize("verb", ALL.values(), ids=ALL.keys())
    async def test_takes_no_other_with_it(
        self, database: str, store: Store, verb: Callable[[Store], Awaitable[object]]
    ) -> None:
        """Statements are prepared when they come for the sixth time; that time, the first of a pipeline is refused."""
        with_one_connection = Store(database, pool_size=1)
        await with_one_connection.open()
        for _ in range(5):
            await verb(with_one_connection)
        async with await Connection.connect(database, autocommit=True) as other:
            await other.execute("alter table hitherto.conversation rename to mislaid")
            with suppress(StoreError):  # some do not need it
                await verb(with_one_connection)
            await other.execute("alter table hitherto.mislaid rename to conversation")
        await verb(with_one_connection)
        await with_one_connection.aclose()


async def test_a_digest_that_the_database_does_not_take_fails_with_its_reason(database: str) -> None:
    async with await Connection.connect(database, autocommit=True) as connection:
        await connection.execute("alter table hitherto.digest add check (status <> 'completed')")
    given: dict[str, Any] = {"digest_max_attempts": 2, "backoff": 0.01, "lease_timeout": 1}
    async with hitherto.open(database, model="extractive", policy="rolling:threshold=3,keep_last=2", **given) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*dialogue(2))
        failed = None
        async with asyncio.timeout(PATIENCE):
            while failed is None or failed.error is None or failed.status is not Status.FAILED:
                failed = next(iter(await chat.digests()), None)
                await asyncio.sleep(0.05)
        assert re.match(r"given up after 2 tries: .* violates check constraint", failed.error)


class TestOthersOnTheSameDatabase:
    async def test_only_who_holds_our_tables_is_ended(self, database: str, store: Store) -> None:
        async def begin(statement: LiteralString) -> Connection:
            connection = await Connection.connect(make_conninfo(database, application_name="hitherto"))
            await connection.execute(statement)
            return connection

        ours = await begin("update hitherto.conversation set title = 'x'")
        theirs = await begin("create table public.theirs (id int)")
        async with store._connections.borrowed() as connection:
            await connection.execute(SQL["end_abandoned"], {"silent": "0s"})
        await theirs.commit()
        with pytest.raises(psycopg.OperationalError):
            await ours.commit()
        await asyncio.gather(ours.close(), theirs.close())


class TestOtherDefaults:
    async def test_of_isolation(self, admin: Connection, database: str) -> None:
        """Under repeatable read a unit would see what was there before it waited, and fail."""
        await alter(admin, database, sql.SQL("set default_transaction_isolation = 'serializable'"))
        stores = [Store(database) for _ in range(2)]
        for store in stores:
            await store.open()
        await asyncio.gather(*(write(store, "c", user()) for store in stores for _ in range(10)))
        assert [logged.seq for logged in await log_of(stores[0], "c")] == list(range(20))
        for store in stores:
            await store.aclose()

    @pytest.mark.parametrize(("default", "ours"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")])
    async def test_of_durability(self, admin: Connection, database: str, default: str, ours: str) -> None:
        """With `off`, a crash of the server loses what was acknowledged last; what waits for more is left as it is."""
        await alter(admin, database, sql.SQL("set synchronous_commit = {}").format(sql.Identifier(default)))
        store = Store(database)
        await store.open()
        async with AsyncExitStack() as held:
            for _ in range(3):
                connection = await held.enter_async_context(store._connections.borrowed())
                shown = await connection.execute("show synchronous_commit")
                assert await shown.fetchone() == (ours,)
        await store.aclose()

    async def test_of_the_time_zone(self, admin: Connection, database: str) -> None:
        await alter(admin, database, sql.SQL("set timezone = 'Pacific/Kiritimati'"))
        store = Store(database)
        await store.open()
        for_ever = datetime.max.replace(tzinfo=UTC)
        written = await write(store, "c", replace(user(), expires_at=for_ever), user())
        assert await log_of(store, "c") == list(written.logged)
        assert (await head_of(store, "c")).next_expiry == for_ever
        await store.aclose()
