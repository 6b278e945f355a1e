"""Row-level security: whatever a statement asks for, the service's role gets the rows of one tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import Call, Scope, assistant, tool_result, user
from hitherto.errors import InvalidInput, StoreError
from hitherto.other_systems.views import create_views
from hitherto.store.connections import row_security
from tests.databases import ROW_SECURITY_ROLE, Server

Connection = psycopg.AsyncConnection[Any]

WITH_TENANT = """
    select c.relname, c.relkind from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
    where c.relnamespace = 'hitherto'::regnamespace and c.relkind in ('r', 'v') order by 1
"""
"""Tables and views that have rows of tenants."""

EMPTY = {"erasure", "fact_evidence", "model_call", "search_segment", "search_posting", "search_codes"}
"""Tables that so little does not fill."""

HARMLESS = {"alembic_version", "search_space", "worker"}
"""Tables of ours that have nothing of any tenant."""


async def fill(url: str, tenant: str) -> None:
    """Something in every table."""
    scope = Scope(tenant=tenant, user="u", agent="a")
    async with hitherto.open(url, keep_contexts=5, policy="sliding_window:after_seq=1") as memory:
        await memory.configure_agent(tenant=tenant, agent="a", policy="sliding_window:after_seq=1")
        await memory.configure_user(tenant=tenant, user="u", time_zone="Asia/Tokyo")
        await memory.configure_subject(tenant=tenant, subject="mum", name=f"mum of {tenant}", members=["u", "v"])
        chat = memory.conversation("c", scope=scope)
        await chat.append(user(f"secret of {tenant}"), assistant(calls=[Call(id="x", name="look")]), key="k")
        await chat.append(tool_result("x", "found"), assistant("Yes."))
        for _ in range(3):
            await chat.append(user("Go on."), assistant("Yes."))
        await memory.wait_for_digests()
        await memory.documents(scope).add(f"# Title\n\nText of {tenant}.")
        facts = memory.facts(scope, subject="mum")
        await facts.share((await facts.add(f"Fact of {tenant}.")).id)
        await chat.forget((await facts.add(f"Nothing of {tenant}.")).id)
        run = await memory.runs(scope).begin("c")
        await memory.runs(scope).add(run.id, {"kind": "tool_call", "payload": {"of": tenant}})
        await chat.context("What?", budget=4_000, instructions=f"Instructions of {tenant}")
        await memory.wait_for_index()
        await chat.append(assistant(calls=[Call(id="y", name="look")]))
        await memory.keys(tenant).create("app")
        branched = memory.conversation("branched", scope=scope)
        await branched.append(user("Which day?"), assistant("Monday."))
        await branched.append(assistant("Tuesday."), at=0)
        await branched.switch(1)
        await branched.fork()


@pytest.fixture
async def filled(database: str) -> str:
    for tenant in ("acme", "another"):
        await fill(database, tenant)
    await row_security.grant(database, ROW_SECURITY_ROLE)
    await create_views(database, grant=ROW_SECURITY_ROLE)
    return database


@pytest.fixture
async def as_service(filled: str) -> AsyncIterator[Connection]:
    async with await Connection.connect(make_conninfo(filled, user=ROW_SECURITY_ROLE), autocommit=True) as connection:
        yield connection


async def tenants(connection: Connection, of: str) -> set[str]:
    found = await connection.execute(sql.SQL("select distinct tenant from hitherto.{}").format(sql.Identifier(of)))
    return {tenant for (tenant,) in await found.fetchall()}


async def rows(connection: Connection, query: str, *values: Any) -> list[Any]:
    return await (await connection.execute(query.encode(), values or None)).fetchall()


async def test_every_table_has_row_level_security(as_service: Connection) -> None:
    found = await rows(
        as_service,
        """
        select c.relname from pg_class c where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'r'
          and not (c.relrowsecurity and exists (
              select from pg_policy p where p.polrelid = c.oid))
        """,
    )
    assert {name for (name,) in found} == HARMLESS
    told = await rows(as_service, "select distinct qual from pg_policies where schemaname = 'hitherto'")
    assert told == [("(tenant = current_setting('hitherto.tenant'::text, true))",)], "without a select"


async def test_without_a_tenant_there_is_nothing(filled: str, as_service: Connection) -> None:
    async with await Connection.connect(filled) as owner:
        for name, kind in await rows(as_service, WITH_TENANT):
            if kind == "r" and name not in EMPTY:
                assert {"acme", "another"} <= await tenants(owner, name), f"{name} has something to hide"
            assert await tenants(as_service, name) == set()


async def test_a_tenant_is_all_that_any_statement_sees(as_service: Connection) -> None:
    """Without a condition, with another tenant's, through joins and views."""
    async with as_service.transaction():
        await as_service.execute("select set_config('hitherto.tenant', 'acme', true)")
        for name, _ in await rows(as_service, WITH_TENANT):
            assert await tenants(as_service, name) <= {"acme"}, name
        assert await rows(as_service, "select text from hitherto.message where tenant = 'another'") == []
        assert await rows(as_service, "select text from hitherto.message where tenant <> 'acme' or true limit 1") != []
        seen = "\n".join(
            map(str, await rows(as_service, "select m, c from hitherto.message m, hitherto.conversation c"))
        )
        assert "secret of acme" in seen
        assert "another" not in seen
        (views,) = zip(
            *await rows(as_service, "select viewname from pg_views where schemaname = 'other_systems'"), strict=True
        )
        for view in views:
            query = sql.SQL("select v::text from other_systems.{} v").format(sql.Identifier(view))
            text = "\n".join(text for (text,) in await (await as_service.execute(query)).fetchall())
            assert "another" not in text, view
            assert text or view not in ("chat_messages", "memory", "legacy_facts", "agent_run_events"), view
    assert await tenants(as_service, "message") == set(), "the tenant is the transaction's alone"


async def test_nothing_of_another_tenant_is_written(as_service: Connection) -> None:
    async with as_service.transaction():
        await as_service.execute("select set_config('hitherto.tenant', 'acme', true)")
        for name, kind in await rows(as_service, WITH_TENANT):
            if kind == "r":
                table = sql.Identifier(name)
                done = await as_service.execute(
                    sql.SQL("delete from hitherto.{} where tenant = 'another'").format(table)
                )
                assert done.rowcount == 0
                done = await as_service.execute(
                    sql.SQL("update hitherto.{} set tenant = 'acme' where tenant = 'another'").format(table)
                )
                assert done.rowcount == 0
    for statement in (
        "insert into hitherto.subject (tenant, id, name) values ('another', 's', 's')",
        "update hitherto.subject set tenant = 'another'",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):  # noqa: PT012 (as one transaction)
            async with as_service.transaction():
                await as_service.execute("select set_config('hitherto.tenant', 'acme', true)")
                await as_service.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "alter table hitherto.message disable row level security",
        "alter table hitherto.message owner to current_user",
        "drop policy of_tenant on hitherto.message",
        "create policy all_of_them on hitherto.message using (true)",
        "truncate hitherto.message",
        "create table hitherto.mine (a int)",
        "create function hitherto.mine() returns int language sql as 'select 1'",
        "alter function hitherto.key_of(bytea) security invoker",
        "create trigger mine before update on hitherto.message for each row "
        "execute function pg_catalog.suppress_redundant_updates_trigger()",
        "set role hitherto",
        "set session authorization hitherto",
        "alter role current_user bypassrls",
        "update hitherto.alembic_version set version_num = '1'",
        "copy hitherto.message to program 'cat'",
    ],
)
async def test_row_level_security_is_not_turned_off(as_service: Connection, statement: str) -> None:
    with pytest.raises(psycopg.Error):
        await as_service.execute(statement.encode())


async def test_what_looks_across_tenants_returns_no_text(as_service: Connection) -> None:
    """Only these functions pass row-level security; none writes, and none returns what anybody has said."""
    found = await rows(
        as_service,
        """
        select p.proname, p.provolatile::text || l.lanname, pg_get_function_result(p.oid), p.proconfig
        from pg_proc p join pg_language l on l.oid = p.prolang
        where p.pronamespace = 'hitherto'::regnamespace and p.prosecdef order by 1
        """,
    )
    assert len(found) > 8
    names = {"tenant", "user_id", "agent", "conversation", "digest", "requested_at", "setof text"}
    keys = {"id", "rights", "requests", "size", "seconds"}
    figures = {"due", "claimed", "put_off", "lag_seconds", "lag_messages", "resting", "workers"}
    for name, kind, result, settings in found:
        assert kind == "splpgsql", name
        assert "search_path=pg_catalog, pg_temp" in settings, name
        table = result.lower().startswith("table(")
        columns = {part.split()[0] for part in result[6:-1].split(", ")} if table else {result.lower()}
        allowed = names | figures | {"waiting", "unembedded", "untidy"} | (keys if name == "key_of" else set())
        assert columns <= allowed, f"{name}: {result}"
    for query in (
        "select * from hitherto.scopes_to_index('', '', '', 1, 100)",
        "select * from hitherto.digest_backlog(null)",
    ):
        assert "secret" not in str(await rows(as_service, query))


async def test_a_role_that_passes_row_level_security_is_refused(server: Server, database: str) -> None:
    for role in ("hitherto", "postgres"):
        with pytest.raises(InvalidInput, match="nothing would keep tenants apart"):
            await row_security.grant(database, role)
    with pytest.raises(InvalidInput, match="there is no role"):
        await row_security.grant(database, "nobody at all")
    with pytest.raises(StoreError, match=r"passes row-level security.*a service that asks for keys"):
        async with hitherto.open(database, row_security=True, worker=False):
            pass


async def test_a_view_with_its_owners_rights_is_no_way_past(filled: str) -> None:
    address = make_conninfo(filled, user=ROW_SECURITY_ROLE)
    async with await Connection.connect(filled, autocommit=True) as owner:
        await owner.execute("alter view other_systems.chat_messages reset (security_invoker)")
    with pytest.raises(StoreError, match="row-level security"):
        async with hitherto.open(address, row_security=True, worker=False):
            pass
    await create_views(filled, grant=ROW_SECURITY_ROLE)
    async with hitherto.open(address, row_security=True, worker=False):
        pass
    async with await Connection.connect(address, autocommit=True) as connection:
        assert await rows(connection, "select * from other_systems.chat_messages") == []


async def test_rights_are_given_once(database: str) -> None:
    assert await row_security.grant(database, ROW_SECURITY_ROLE)
    assert not await row_security.grant(database, ROW_SECURITY_ROLE)


async def test_what_a_later_migration_makes(database: str) -> None:
    """A view is given as those of the baseline are; a table with a tenant needs row-level security first."""
    assert await row_security.grant(database, ROW_SECURITY_ROLE)
    address = make_conninfo(database, user=ROW_SECURITY_ROLE)
    async with (
        await Connection.connect(database, autocommit=True) as owner,
        await Connection.connect(address, autocommit=True) as as_service,
    ):
        await owner.execute(
            "insert into hitherto.subject (tenant, id, name) values ('acme', 's', 's'), ('another', 's', 's')"
        )
        await owner.execute("create view hitherto.later_subjects as select tenant, id from hitherto.subject")
        assert await row_security.grant(database, ROW_SECURITY_ROLE)
        assert not await row_security.grant(database, ROW_SECURITY_ROLE)
        assert await tenants(as_service, "later_subjects") == set()
        async with as_service.transaction():
            await as_service.execute("select set_config('hitherto.tenant', 'acme', true)")
            assert await tenants(as_service, "later_subjects") == {"acme"}

        await owner.execute("create table hitherto.later_table (tenant text not null)")
        await owner.execute("insert into hitherto.later_table values ('acme'), ('another')")
        with pytest.raises(StoreError, match=r"keep tenants apart in later_table: enable row-level security"):
            await row_security.grant(database, ROW_SECURITY_ROLE)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await tenants(as_service, "later_table")
        await owner.execute("alter table hitherto.later_table enable row level security")
        await owner.execute(
            "create policy of_tenant on hitherto.later_table using (tenant = current_setting('hitherto.tenant', true))"
        )
        assert await row_security.grant(database, ROW_SECURITY_ROLE)
        assert await tenants(as_service, "later_table") == set()
        async with as_service.transaction():
            await as_service.execute("select set_config('hitherto.tenant', 'acme', true)")
            assert await tenants(as_service, "later_table") == {"acme"}
