"""The schema: made, found, refused, and as the design and the seeds want it."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitherto.core.digests.digest import DigestOutcome, Item
from hitherto.core.run import EventKind
from hitherto.errors import DatabaseUnavailable, SchemaMismatch, StoreError
from hitherto.other_systems.views import create_views
from hitherto.store import schema
from hitherto.store.connections import row_security
from hitherto.store.store import Store
from tests.conftest import SCOPE, SHARED
from tests.databases import Server
from tests.postgres.asking import rows
from tests.store.samples import clear, dialogue, digested, fire, head_of, write

SEED = SHARED / "seeds" / "000_149067916907d15a.txt"

# The first seed's section "Observability", to the letter.
HISTORY = """\
SELECT m.*,
       b.end_sequence as base_end_seq
FROM memory m
LEFT JOIN memory b ON m.base_memory_id = b.memory_id
WHERE m.conversation_id = 'conv_123'
ORDER BY m.end_sequence DESC;
"""
STUCK = """\
SELECT conversation_id, memory_id, created_at,
       NOW() - created_at as age
FROM memory
WHERE status = 'processing'
  AND created_at < NOW() - INTERVAL '5 minutes';
"""
PROGRESSION = """\
SELECT
    conversation_id,
    start_sequence,
    end_sequence,
    end_sequence - start_sequence + 1 as window_size,
    generation_time_ms
FROM memory
WHERE status = 'completed'
ORDER BY created_at DESC
LIMIT 20;
"""
AVERAGE = """\
SELECT
    AVG(generation_time_ms) as avg_ms,
    MAX(generation_time_ms) as max_ms,
    COUNT(*) as total_summaries
FROM memory
WHERE status = 'completed'
  AND generation_time_ms IS NOT NULL;
"""


async def opened(url: str) -> None:
    store = Store(url, patience=5)
    try:
        await store.open()
        await store.head(SCOPE, "any")
    finally:
        await store.aclose()


async def everything(url: str) -> list[dict[str, Any]]:
    """All that is in the schema, and the transaction that made or last changed it."""
    found = await rows(url, "select relname, oid, xmin from pg_class where relnamespace = 'hitherto'::regnamespace")
    return found + await rows(url, "select version_num, xmin from alembic_version")


class TestOpening:
    async def test_an_empty_database_gets_the_schema(self, empty: str) -> None:
        store = Store(empty)
        await store.open()
        await write(store, "c", *dialogue(1))
        assert (await head_of(store, "c")).next_seq == 2
        await store.aclose()
        assert await rows(empty, "select version_num from alembic_version") == [{"version_num": schema.revisions()[-1]}]
        tables = await rows(empty, "select relname from pg_class where relnamespace = 'hitherto'::regnamespace")
        assert {"conversation", "message", "digest", "receipt"} <= {row["relname"] for row in tables}

    async def test_opening_again_changes_nothing(self, empty: str) -> None:
        await opened(empty)
        before = await everything(empty)
        await opened(empty)
        assert await everything(empty) == before

    async def test_a_statement_that_is_refused_is_no_lost_connection(self, empty: str) -> None:
        refused = "refused to set up the schema: canceling .* statement timeout"
        with pytest.raises(StoreError, match=refused) as told:
            await opened(make_conninfo(empty, options="-c statement_timeout=1ms"))
        assert not isinstance(told.value, DatabaseUnavailable)

    async def test_many_tasks_open_at_once(self, empty: str) -> None:
        await asyncio.gather(*(opened(empty) for _ in range(6)))
        assert len(await rows(empty, "select * from alembic_version")) == 1

    async def test_several_processes_open_at_once(self, empty: str) -> None:
        script = "import asyncio, sys, tests.postgres.test_schema as t; asyncio.run(t.opened(sys.argv[1]))"
        root = Path(__file__).parents[2]
        processes = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", script, empty, cwd=root) for _ in range(2)
        ]
        assert [await process.wait() for process in processes] == [0, 0]
        assert len(await rows(empty, "select * from alembic_version")) == 1

    async def test_a_newer_database_is_refused_and_left_alone(self, database: str) -> None:
        await rows(database, "update alembic_version set version_num = '9876'")
        before = await everything(database)
        with pytest.raises(SchemaMismatch, match=rf"revision 9876, but .* up to {schema.revisions()[-1]}.*upgrade"):
            await opened(database)
        assert await everything(database) == before

    @pytest.mark.parametrize("encoded", ["SQL_ASCII", "LATIN1", "EUC_JP"], indirect=True)
    async def test_another_encoding_than_utf8_is_refused(self, encoded: str) -> None:
        with pytest.raises(SchemaMismatch, match=r"encoding is [A-Z0-9_]+; Hitherto needs one of encoding UTF8"):
            await opened(encoded)

    @pytest.mark.parametrize("revision", ["0001", "0005"])
    async def test_a_database_of_a_development_version_is_refused_and_left_alone(
        self, database: str, revision: str
    ) -> None:
        await rows(database, f"update alembic_version set version_num = '{revision}'")
        before = await everything(database)
        with pytest.raises(SchemaMismatch, match=rf"revision {revision}: .*development version.* use a new database"):
            await opened(database)
        assert await everything(database) == before

    async def test_an_upgrade_that_was_broken_off_leaves_nothing(self, empty: str) -> None:
        """Something stands in its way half through; once it is gone, the next start succeeds."""
        await rows(empty, "create schema hitherto; create table hitherto.receipt ()")
        with pytest.raises(StoreError, match='"receipt" already exists'):
            await opened(empty)
        found = await rows(empty, "select relname from pg_class where relnamespace = 'hitherto'::regnamespace")
        assert found == [{"relname": "receipt"}]
        await rows(empty, "drop table receipt")
        await opened(empty)


class TestIdentities:
    """Each database's begin in a range of its own, so that rows can move with theirs."""

    async def first(self, url: str) -> int:
        store = Store(url)
        await store.open()
        await write(store, "c", *dialogue(1))
        head = await head_of(store, "c")
        await store.aclose()
        return head.ref

    async def test_the_range_that_is_set(self, empty: str) -> None:
        assert await self.first(make_conninfo(empty, options="-c hitherto.id_range=7")) == 7_000_000_001

    async def test_one_by_chance(self, empty: str) -> None:
        url = make_conninfo(empty, options="-c hitherto.id_range=")  # a server of Hitherto's own has 0
        place, number = divmod(await self.first(url), 1_000_000_000)
        assert (place > 0, number) == (True, 1)
        assert place < 9_000_000, "exact in a double"

    async def test_there_are_only_so_many(self, empty: str) -> None:
        with pytest.raises(StoreError, match="9000000; it must be from 0 to 8999999"):
            await opened(make_conninfo(empty, options="-c hitherto.id_range=9000000"))


class TestTablesOfOthers:
    """The server's role is named as the schema, which the default search_path of such a role begins with."""

    async def test_are_not_taken_for_ours_nor_ours_for_theirs(self, empty: str) -> None:
        async with await psycopg.AsyncConnection[Any].connect(empty, autocommit=True) as owner:
            usual = sql.SQL("alter role hitherto in database {} set search_path = '$user', public")
            await owner.execute(usual.format(sql.Identifier(str(conninfo_to_dict(empty)["dbname"]))))
        await opened(empty)
        async with await psycopg.AsyncConnection[Any].connect(empty, autocommit=True) as application:
            for name in ("agent_messages", "message", "conversation"):
                table = sql.Identifier(name)
                await application.execute(sql.SQL("create table if not exists {} (id text)").format(table))
                await application.execute(sql.SQL("insert into {} values ('theirs')").format(table))
                found = await application.execute(sql.SQL("select * from {}").format(table))
                assert await found.fetchall() == [("theirs",)]
        store = Store(empty)
        await store.open()
        await write(store, "c", *dialogue(1))
        assert (await head_of(store, "c")).next_seq == 2
        await store.aclose()
        await create_views(empty)
        found = await rows(empty, "select conversation_id, seq from other_systems.agent_messages order by seq")
        assert found == [{"conversation_id": "c", "seq": 0}, {"conversation_id": "c", "seq": 1}]


class TestRights:
    """What a role may not do is refused with the words that an administrator needs."""

    async def run(self, database: str, statement: LiteralString, stranger: str) -> None:
        await rows(database, sql.SQL(statement).format(sql.Identifier(stranger)))

    async def test_to_make_the_schema(self, empty: str, stranger: str) -> None:
        with pytest.raises(StoreError, match=r"GRANT CREATE ON DATABASE .*hitherto migrate --grant ROLE"):
            await opened(make_conninfo(empty, user=stranger))

    async def test_to_fill_a_schema_of_somebody_else(self, empty: str, stranger: str) -> None:
        await self.run(empty, "create schema hitherto; grant usage on schema hitherto to {}", stranger)
        with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
            await opened(make_conninfo(empty, user=stranger))

    async def test_to_use_a_schema_that_is_there(self, database: str, stranger: str) -> None:
        url = make_conninfo(database, user=stranger)
        with pytest.raises(StoreError, match="hitherto migrate --grant ROLE"):
            await opened(url)
        await self.run(database, "grant usage on schema hitherto to {}", stranger)
        with pytest.raises(StoreError, match="hitherto migrate --grant ROLE"):
            await opened(url)
        await self.run(database, "grant select on alembic_version to {}", stranger)
        with pytest.raises(StoreError, match="hitherto migrate --grant ROLE"):
            await opened(url)
        # What the messages ask for is enough.
        await row_security.grant(database, stranger)
        store = Store(url)
        await store.open()
        await write(store, "c", *dialogue(1), key="k")
        await fire(store, "c", 0, 1)
        async with store.write(SCOPE, "c") as unit:
            assert await unit.next_digest() > 1
        await store.aclose()

    async def test_a_schema_made_ready_for_the_role_is_enough(self, server: Server, empty: str, stranger: str) -> None:
        as_admin = make_conninfo(empty, user=conninfo_to_dict(server.admin_url)["user"])
        await self.run(as_admin, "create schema hitherto authorization {}", stranger)
        await opened(make_conninfo(empty, user=stranger))


class TestKeys:
    INDEXES = """
        select i.relname as name, t.relname as of, x.indisunique as only, pg_get_expr(x.indpred, x.indrelid) as where,
               array(select pg_get_indexdef(x.indexrelid, n, true)
                     from generate_series(1, x.indnkeyatts) n order by n) as columns
        from pg_index x
        join pg_class i on i.oid = x.indexrelid
        join pg_class t on t.oid = x.indrelid
        where t.relnamespace = 'hitherto'::regnamespace and t.relname <> 'alembic_version'
    """

    async def test_every_key_and_index_begins_with_the_tenant(self, database: str) -> None:
        """But for those by time, with which housekeeping finds what is due of any tenant, that of vectors that are to
        be made in one space, that of the conversations that a context took from (by numbers that no two tenants share),
        the keys of the service by their hash, and what is of no tenant: the names of spaces, and the workers."""
        found = await rows(database, self.INDEXES)
        assert {row["of"] for row in found} == {
            *(
                "agent",
                "user_zone",
                "erasure",
                "conversation",
                "message",
                "open_call",
                "branch",
                "absence",
                "fork",
                "digest",
                "receipt",
                "model_call",
                "document",
                "passage",
            ),
            *("search_scope", "search_space", "search_filling", "search_entry", "search_segment", "search_posting"),
            *("search_vector", "search_codes"),
            *("subject", "subject_member", "fact_subject", "fact", "fact_evidence", "fact_event", "forgetting"),
            *("context", "context_text", "run", "run_event", "api_key", "worker"),
        }
        others = {
            row["name"]
            for row in found
            if row["columns"][0] != "tenant" and row["of"] not in ("search_space", "worker")
        }
        assert others == {
            *("conversation_expiring", "conversation_resting", "conversation_unread", "receipt_by_age", "digest_due"),
            *("search_filling_behind", "context_expiring", "context_of_others", "api_key_by_hash"),
        }
        assert not any(row["only"] for row in found if row["name"] in others)

    async def test_what_there_may_be_one_of(self, database: str) -> None:
        found = {
            (row["of"], tuple(row["columns"]), row["where"])
            for row in await rows(database, self.INDEXES)
            if row["only"]
        }
        assert found == {
            ("agent", ("tenant", "agent"), None),
            ("user_zone", ("tenant", "user_id"), None),
            ("erasure", ("tenant", "user_id"), None),
            ("conversation", ("tenant", "ref"), None),
            ("conversation", ("tenant", "user_id", "agent", "id"), None),
            ("message", ("tenant", "conversation", "seq"), None),
            ("message", ("tenant", "conversation", "own_key"), "(own_key IS NOT NULL)"),
            ("open_call", ("tenant", "conversation", "call_hash"), None),
            ("branch", ("tenant", "conversation", "start_seq"), None),
            ("absence", ("tenant", "conversation", "until_rev", "start_seq"), None),
            ("fork", ("tenant", "conversation"), None),
            ("forgetting", ("tenant", "conversation", "turn", "at"), None),
            ("receipt", ("tenant", "key_hash"), None),
            ("model_call", ("tenant", "key"), None),
            ("run", ("tenant", "id"), None),
            ("run_event", ("tenant", "run", "no"), None),
            ("digest", ("tenant", "id"), None),
            ("digest", ("tenant", "conversation", "stage"), "(status = 'processing'::text)"),
            ("digest", ("tenant", "conversation", "stage", "start_seq", "end_seq"), "(status = 'completed'::text)"),
            ("document", ("tenant", "id"), None),
            ("document", ("tenant", "user_id", "agent", "namespace", "fingerprint"), None),
            ("document", ("tenant", "digest"), "(digest IS NOT NULL)"),
            ("passage", ("tenant", "document", "no"), None),
            ("search_scope", ("tenant", "ref"), None),
            ("search_scope", ("tenant", "user_id", "agent"), None),
            ("search_space", ("id",), None),
            ("search_space", ("name", "dimensions"), None),
            ("search_filling", ("tenant", "scope", "space"), None),
            ("search_entry", ("tenant", "scope", "no"), None),
            ("search_entry", ("tenant", "kind", "origin", "place", "start_char"), None),
            ("search_segment", ("tenant", "scope", "segment"), None),
            ("search_posting", ("tenant", "scope", "term", "segment"), None),
            ("search_vector", ("tenant", "scope", "space", "no"), None),
            ("search_codes", ("tenant", "scope", "space", "segment"), None),
            ("subject", ("tenant", "id"), None),
            ("subject_member", ("tenant", "subject", "no"), None),
            ("fact_subject", ("tenant", "user_id", "agent", "subject"), None),
            ("fact", ("tenant", "id"), None),
            ("fact", ("tenant", "user_id", "agent", "subject", "fingerprint"), "(state = 'current'::text)"),
            ("fact_evidence", ("tenant", "fact", "conversation", "seq"), None),
            ("fact_event", ("tenant", "fact", "no"), None),
            ("context", ("tenant", "id"), None),
            ("context_text", ("tenant", "hash"), None),
            ("api_key", ("tenant", "id"), None),
            ("worker", ("id",), None),
        }

    async def test_every_reference_has_an_index(self, database: str) -> None:
        """Else each row that is deleted costs a walk over the table that refers to it."""
        references = await rows(
            database,
            """
            select k.conrelid::regclass::text as of,
                   array(select a.attname::text from unnest(k.conkey) with ordinality c(n, at)
                         join pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.n order by c.at) as columns
            from pg_constraint k where k.contype = 'f' and k.connamespace = 'hitherto'::regnamespace
            """,
        )
        indexes = await rows(database, self.INDEXES)
        assert references
        for reference in references:
            assert any(
                index["of"] == reference["of"]
                and index["columns"][: len(reference["columns"])] == reference["columns"]
                and (index["where"] is None or index["where"] == f"({reference['columns'][-1]} IS NOT NULL)")
                for index in indexes
            ), reference

    async def test_the_columns_that_keep_text_as_it_is_are_json(self, database: str) -> None:
        found = await rows(
            database,
            "select data_type from information_schema.columns where table_schema = 'hitherto' and "
            "(table_name, column_name) in (('message', 'payload'), ('message', 'metadata'), ('digest', 'opaque'), "
            "('fact', 'metadata'))",
        )
        assert found == [{"data_type": "json"}] * 4

    async def test_which_events_of_runs_quote_messages(self, database: str) -> None:
        for kind in EventKind:
            query = sql.SQL("select quotes({})").format(sql.Literal(kind.value))
            assert await rows(database, query) == [{"quotes": kind.quotes}]


class TestSeedQueries:
    """The first seed's queries run as they are, with search_path = other_systems."""

    def test_they_are_the_seeds(self) -> None:
        if not SEED.exists():
            pytest.skip("needs ../shared/seeds beside the project")
        text = SEED.read_text(encoding="utf-8")
        assert all(query in text for query in (HISTORY, STUCK, PROGRESSION, AVERAGE))

    @pytest.fixture
    async def filled(self, database: str) -> tuple[str, dict[str, int]]:
        """The URL of a database with the chain of the seed's table, and what the digests in it are called."""
        store = Store(database)
        await store.open()
        await write(store, "conv_123", *dialogue(10))
        made: dict[str, int] = {}
        base = None
        for name, start, end, took in (("1", 0, 5, 100), ("2", 0, 9, 200), ("4", 2, 15, 600)):
            made[name] = base = await fire(store, "conv_123", start, end, base=base)
            done = DigestOutcome(digest=base, items=(Item(name, ((start, end),)),), text=name, generation_time_ms=took)
            await write(store, "conv_123", outcomes=[done])
        failed = await fire(store, "conv_123", 6, 17, base=base)
        await write(store, "conv_123", outcomes=[DigestOutcome(digest=failed, error="down")])
        made["failed"] = failed
        made["running"] = await fire(store, "conv_123", 6, 19, base=base)
        await write(store, "other", *dialogue(2))
        made["other"] = await digested(store, "other", 0, 3)
        await clear(store, "other")
        await store.aclose()
        await create_views(database)
        return database, made

    async def test_history_with_the_chain(self, filled: tuple[str, dict[str, int]]) -> None:
        url, made = filled
        found = await rows(url, HISTORY)
        shown = [(row["memory_id"], row["start_sequence"], row["end_sequence"], row["base_end_seq"]) for row in found]
        assert shown == [
            (made["running"], 6, 19, 15),
            (made["failed"], 6, 17, 15),
            (made["4"], 2, 15, 9),
            (made["2"], 0, 9, 5),
            (made["1"], 0, 5, None),
        ]
        assert [row["status"] for row in found] == ["processing", "failed", "completed", "completed", "completed"]
        assert [row["memory_text"] for row in found] == ["", "", "4", "2", "1"]
        assert {row["conversation_id"] for row in found} == {"conv_123"}

    async def test_stuck(self, filled: tuple[str, dict[str, int]]) -> None:
        url, made = filled
        assert await rows(url, STUCK) == []
        await rows(url, "update digest set created_at = created_at - interval '7 minutes'")
        (row,) = await rows(url, STUCK)
        assert (row["conversation_id"], row["memory_id"]) == ("conv_123", made["running"])
        assert timedelta(minutes=7) <= row["age"] < timedelta(minutes=8)

    async def test_progression(self, filled: tuple[str, dict[str, int]]) -> None:
        url, _ = filled
        assert [tuple(row.values()) for row in await rows(url, PROGRESSION)] == [
            ("other", 0, 3, 4, None),
            ("conv_123", 2, 15, 14, 600),
            ("conv_123", 0, 9, 10, 200),
            ("conv_123", 0, 5, 6, 100),
        ]

    async def test_average(self, filled: tuple[str, dict[str, int]]) -> None:
        url, _ = filled
        assert await rows(url, AVERAGE) == [{"avg_ms": 300, "max_ms": 600, "total_summaries": 3}]

    async def test_the_view_has_the_seeds_columns_and_whose_they_are(self, filled: tuple[str, dict[str, int]]) -> None:
        url, _ = filled
        (row, *_) = await rows(url, "select * from memory")
        assert list(row) == [
            *("memory_id", "conversation_id", "memory_text", "start_sequence", "end_sequence", "base_memory_id"),
            *("status", "created_at", "generation_time_ms", "tenant", "user_id", "agent"),
        ]
        assert (row["tenant"], row["user_id"], row["agent"]) == ("acme", "u-17", "planner")
