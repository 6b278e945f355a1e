"""Migrations: one line of revisions, and the same schema and the same answers whichever way a database came to it."""

from __future__ import annotations

import asyncio
from importlib import resources
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, pool
from sqlalchemy.exc import DBAPIError

from hitherto.core.digest import Done, Status
from hitherto.core.message import Sums
from hitherto.ports.store import Changes
from hitherto.stores.postgres import schema
from hitherto.stores.postgres.store import PostgresStore
from hitherto.testing.material import SCOPE, clear, digest_of, log_of, user, write
from hitherto.testing.material_facts import learnt
from hitherto.testing.material_search import SPACE, indexed
from hitherto.testing.material_stages import stage_row, take_back
from tests.postgres.asking import rows

MIGRATIONS = resources.files("hitherto.stores.postgres").joinpath("migrations")
CATALOGUE = {
    "columns": """
        select c.relname as of, a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull,
               a.attidentity, pg_get_expr(d.adbin, d.adrelid) as value
        from pg_attribute a join pg_class c on c.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = 'hitherto'::regnamespace and c.relkind in ('r', 'v', 'c') and a.attnum > 0
          and not a.attisdropped
        order by c.relname, a.attnum""",
    "constraints": """
        select conrelid::regclass::text as of, conname as name, pg_get_constraintdef(oid) as says from pg_constraint
        where connamespace = 'hitherto'::regnamespace order by 1, 2""",
    "indexes": "select indexname, indexdef from pg_indexes where schemaname = 'hitherto' order by 1",
    "the order of the indexes": """
        select i.indrelid::regclass::text as of, array_agg(i.indexrelid::regclass::text order by i.indexrelid) as order
        from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relnamespace = 'hitherto'::regnamespace group by 1 order by 1""",
    "enumerations": """
        select t.typname as name, array_agg(e.enumlabel order by e.enumsortorder) as values
        from pg_enum e join pg_type t on t.oid = e.enumtypid
        where t.typnamespace = 'hitherto'::regnamespace group by 1 order by 1""",
    "functions": """
        select oid::regprocedure::text as name, pg_get_functiondef(oid) as says, proacl::text as rights from pg_proc
        where pronamespace = 'hitherto'::regnamespace order by 1""",
    "triggers": """
        select t.tgrelid::regclass::text as of, t.tgname as name, pg_get_triggerdef(t.oid) as says, t.tgenabled
        from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = 'hitherto'::regnamespace and not t.tgisinternal order by 1, 2""",
    "sequences": """
        select s.sequencename, s.data_type::text, s.start_value, s.increment_by, s.max_value, s.cycle,
               pg_get_serial_sequence(c.relname, a.attname) as of
        from pg_sequences s
        left join pg_depend d on d.objid = format('hitherto.%I', s.sequencename)::regclass and d.deptype in ('a', 'i')
          and d.refobjsubid > 0
        left join pg_class c on c.oid = d.refobjid
        left join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where s.schemaname = 'hitherto' order by 1""",
    "views": "select viewname, definition from pg_views where schemaname = 'hitherto'",
    "comments and rights": """
        select relname, obj_description(oid, 'pg_class') as says,
               array(select x.grantee::regrole::text || ' ' || x.privilege_type from aclexplode(relacl) x
                     where x.grantee <> relowner order by 1) as rights
        from pg_class
        where relnamespace = 'hitherto'::regnamespace and relkind in ('r', 'v', 'S') order by 1""",
}

# Two rounds with a tool in each, of which the first was cleared; three summaries, one of which rested on what was
# erased.
WRITTEN = """
    insert into conversation (tenant, user_id, agent, id, rev, next_seq, tokens, turns, talk, view_start, view_tokens,
        view_turns, view_talk, closed, open_calls)
    values ('acme', 'u-17', 'planner', 'c', 9, 8, 36, 2, 4, 4, 10, 1, 2, true,
            '{"x": {"seq": 1, "group": 1, "turn": 1}}'),
           ('acme', 'u-17', 'planner', 'plain', 1, 1, 5, 1, 1, 0, 0, 0, 0, false, '{}'),
           ('acme', 'u-17', 'planner', 'gone', 4, 1, 5, 1, 1, 1, 5, 1, 1, false, '{}');
    insert into message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
        metadata, tokens, sum_tokens, sum_turns, sum_talk, rev, created_at)
    select 'acme', 1, n, 'openai.chat', (array['user', 'assistant', 'tool', 'assistant'])[n % 4 + 1],
           (array['text', 'tool_call', 'tool_result', 'text'])[n % 4 + 1], 't', '{}', '{}', '{}', '{}', '{}', n + 1,
           (n + 1) * (n + 2) / 2, n / 4 + 1, n / 4 * 2 + 1 + (n % 4) / 3, n + 1, now()
    from generate_series(0, 7) n;
    insert into message (tenant, conversation, seq, wire, role, kind, text, payload, call_ids, result_ids, tool_names,
        metadata, tokens, sum_tokens, sum_turns, sum_talk, rev, created_at)
    select 'acme', c, 0, 'openai.chat', 'user', 'text', 't', '{}', '{}', '{}', '{}', '{}', 5, 5, 1, 1, 1, now()
    from generate_series(2, 3) c;
    insert into digest (tenant, conversation, stage, spec, done, start_seq, end_seq, status, attempt, text, fired_rev,
        visible_rev, created_at, completed_at)
    values ('acme', 1, 's', '{}', 'summarise', 4, 5, 'completed', 1, 'short', 6, 6, now(), '2001-01-01Z'),
           ('acme', 1, 's', '{}', 'summarise', 4, 7, 'superseded', 1, 'erased', 8, 8, now(), '2002-01-01Z'),
           ('acme', 1, 's', '{}', 'summarise', 4, 6, 'completed', 1, 'standing', 7, 7, now(), '2003-01-01Z'),
           ('acme', 1, 's', '{}', 'summarise', 4, 6, 'superseded', 1, '', 7, null, now(), '2004-01-01Z'),
           ('acme', 3, 's', '{}', 'summarise', 0, 0, 'completed', 1, 'cleared', 2, 2, now(), now());
"""

CHAIN = (stage_row(Done.CHUNK, 4, 5, given=1_001), digest_of(4, 7, stage="t", base=1_001))


def migrated(url: str, revision: str) -> None:
    """Bring the database to that revision, up or down."""
    config = Config()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=pool.NullPool)
    with resources.as_file(MIGRATIONS) as folder, engine.begin() as connection:
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = connection
        (command.upgrade if revision > _current(url) else command.downgrade)(config, revision)


def _current(url: str) -> str:
    with psycopg.connect(url) as connection:
        if connection.execute("select to_regclass('hitherto.alembic_version')").fetchone() == (None,):
            return ""
        ((found,),) = connection.execute("select version_num from hitherto.alembic_version").fetchall()
        return found


async def catalogue(url: str) -> dict[str, list[dict[str, Any]]]:
    return {what: await rows(url, query) for what, query in CATALOGUE.items()}


@pytest.fixture
async def first(empty: str) -> str:
    """The URL of a database as the first release left it, with something in it."""
    await rows(empty, "create schema hitherto")
    await asyncio.to_thread(migrated, empty, "0001")
    await rows(empty, WRITTEN)
    return empty


class TestRevisions:
    def test_revisions_are_those_of_alembic(self) -> None:
        config = Config()
        with resources.as_file(MIGRATIONS) as folder:
            config.set_main_option("script_location", str(folder).replace("%", "%%"))
            scripts = ScriptDirectory.from_config(config)
            assert scripts.get_heads() == [schema.revisions()[-1]], "one head, the newest"
            assert sorted(script.revision for script in scripts.walk_revisions()) == schema.revisions()

    def test_every_statement_file_has_its_version(self) -> None:
        statements = {Path(file.name).stem for file in MIGRATIONS.iterdir() if file.name.endswith(".sql")}
        versions = {
            Path(file.name).stem for file in MIGRATIONS.joinpath("versions").iterdir() if file.name.endswith(".py")
        }
        assert statements == versions
        assert len({stem.split("_")[0] for stem in statements}) == len(statements), "a number each"


class TestBothWays:
    async def test_from_scratch_and_from_the_first_release_there_is_no_difference(
        self, first: str, database: str
    ) -> None:
        await schema.ensure(first, patience=5)
        assert await catalogue(first) == await catalogue(database)

    async def test_down_and_up_again_there_is_no_difference(self, first: str, database: str) -> None:
        before = await catalogue(first)
        await asyncio.to_thread(migrated, first, schema.revisions()[-1])
        await asyncio.to_thread(migrated, first, "0001")
        there = await catalogue(first)
        assert {**there, "the order of the indexes": None} == {**before, "the order of the indexes": None}
        await schema.ensure(first, patience=5)
        assert await catalogue(first) == await catalogue(database)

    async def test_what_was_written_before_is_told_as_if_it_were_written_now(self, first: str) -> None:
        await schema.ensure(first, patience=5)
        store = PostgresStore(first)
        await store.open()
        head = await store.head(SCOPE, "c")
        assert head is not None
        assert (head.sums, head.view_sums) == (
            Sums(tokens=36, turns=2, talk=4, results=10),
            Sums(tokens=10, turns=1, talk=2, results=3),
        )
        sums = Sums()
        for logged in await log_of(store, "c"):
            sums = sums.after(logged.message, logged.tokens)
            assert (logged.sums, logged.retracted_rev) == (sums, None)
        assert head.digest is not None
        assert (head.digest.text, head.digest_sums.results) == ("standing", 10)
        assert (dict(head.frontiers), head.late, head.retracted, head.injection.enabled) == ({}, (), (), None)
        assert [call.tool for call in head.open_calls.values()] == ["tool"]
        past = await store.head(SCOPE, "c", at=8)
        assert past is not None
        assert past.digest is not None
        assert past.digest.text == "standing", "what was superseded until now stands at no revision"
        hidden = [(row.status, row.hidden_rev) for row in await store.digests(SCOPE, "c")]
        assert hidden == [
            (Status.COMPLETED, None),
            (Status.SUPERSEDED, 0),
            (Status.COMPLETED, None),
            (Status.SUPERSEDED, None),
        ]
        await write(store, "c", user("goes on"))
        await store.aclose()
        made = await rows(first, "select id, digested_at::date::text as at from conversation order by ref")
        assert made == [{"id": "c", "at": "2003-01-01"}, {"id": "plain", "at": None}, {"id": "gone", "at": None}]

    async def test_down_again_what_is_derived_goes_and_the_log_stays(self, first: str) -> None:
        await schema.ensure(first, patience=5)
        store = PostgresStore(first)
        await store.open()
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=unit.head, fire=CHAIN))
        await clear(store, "plain")
        await store.aclose()
        log = await rows(first, "select conversation, seq, tokens, sum_tokens from message order by 1, 2")
        await asyncio.to_thread(migrated, first, "0001")
        assert await rows(first, "select conversation, seq, tokens, sum_tokens from message order by 1, 2") == log
        left = await rows(first, "select distinct done from digest order by 1")
        assert left == [{"done": "clear"}, {"done": "summarise"}]
        assert await rows(first, "select 1 from digest where base_id is not null") == []

    async def test_down_again_facts_leave_the_index(self, first: str) -> None:
        await schema.ensure(first, patience=5)
        store = PostgresStore(first)
        await store.open()
        await learnt(store, "Swims.", "Sings.", name="new")
        await indexed(store, space=SPACE)
        await store.aclose()
        await rows(first, "update search_scope set packed = next_no, stale = false")
        before = await rows(first, "select no, kind from search_entry where kind <> 4 order by no")
        assert len(before) == len(await rows(first, "select no from search_entry")) - 2
        await asyncio.to_thread(migrated, first, "0004")
        assert await rows(first, "select no, kind from search_entry order by no") == before
        assert await rows(first, "select no from search_vector order by no") == [{"no": one["no"]} for one in before]
        assert await rows(first, "select stale from search_scope") == [{"stale": True}]
        await asyncio.to_thread(migrated, first, schema.revisions()[-1])
        store = PostgresStore(first)
        await store.open()
        assert await learnt(store, "Swims.", name="new") != []
        await indexed(store, space=SPACE)
        await store.aclose()
        assert len(await rows(first, "select no from search_entry where kind = 4")) == 1

    async def test_what_was_taken_back_stops_the_way_down(self, first: str) -> None:
        await schema.ensure(first, patience=5)
        store = PostgresStore(first)
        await store.open()
        await take_back(store, "c")
        await store.aclose()
        before = await catalogue(first)
        with pytest.raises(DBAPIError, match="taken back"):
            await asyncio.to_thread(migrated, first, "0001")
        assert await catalogue(first) == before
