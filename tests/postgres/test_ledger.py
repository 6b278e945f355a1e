"""The ledger's rows: what is in them, on which day they count, and how they are found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import psycopg
import pytest

from hitherto.core.changes import Changes
from hitherto.core.ledger import Spending
from hitherto.store.ledger import costs_values, noted_values
from hitherto.store.rows import named, value_from
from hitherto.store.sql import SQL
from hitherto.store.store import Store
from tests.patience import PATIENCE
from tests.postgres.plans import PLANNED, TOUCHED, Case, examined, nodes, plan_of
from tests.store.ledger.test_ledger import FAILED, FIRST
from tests.store.samples import SCOPE, dialogue, fire, head_of, write

Connection = psycopg.AsyncConnection[Any]

CALL = """
    insert into hitherto.model_call
        (tenant, key, user_id, agent, purpose, model, latency_ms, tokens_in, cost, created_at)
    values ('acme', gen_random_uuid(), 'u', 'a', 'digest', 'm', 1, 10, 0.5, %s)
"""
ZONES = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata"]


@pytest.fixture
async def connection(database: str) -> AsyncIterator[Connection]:
    async with await Connection.connect(database, autocommit=True) as made:
        yield made


async def rows(connection: Connection) -> list[Any]:
    found = await connection.execute("select * from hitherto.model_call order by created_at, key")
    names = [column.name for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in await found.fetchall()]


async def test_what_is_in_a_row(database: str, connection: Connection) -> None:
    store = Store(database)
    await store.open()
    await write(store, "c", *dialogue(3))
    made = await fire(store, "c", 0, 5)
    call, again, elsewhere = (replace(FIRST, digest=made) for _ in range(3))
    async with store.write(SCOPE, "c") as unit:
        await unit.commit(Changes(head=unit.head, calls=(call,)))
    await store.note_calls(SCOPE, "c", [again, replace(FAILED, digest=made)])
    await store.note_calls(SCOPE, None, [elsewhere])
    ref = (await head_of(store, "c")).ref
    found = await rows(connection)
    assert [(row["conversation"], row["digest"]) for row in found] == [(ref, made)] * 3 + [(None, None)]
    for row in found:
        assert (row["tenant"], row["user_id"], row["agent"]) == (SCOPE.tenant, SCOPE.user, SCOPE.agent)
    assert {name: found[0][name] for name in ("purpose", "model", "latency_ms", "cost", "cause")} == {
        "purpose": "digest",
        "model": "m",
        "latency_ms": 900,
        "cost": 0.25,
        "cause": None,
    }
    assert [found[0][f"tokens_{name}"] for name in ("in", "cached", "out")] == [1_000, 600, 50]
    assert [found[2][name] for name in ("tokens_in", "tokens_cached", "tokens_out", "cost")] == [None] * 4
    assert found[2]["cause"] == "unreachable"

    async with store.write(SCOPE, "c") as unit:
        await unit.delete()
    after = await rows(connection)
    assert after == [{**row, "conversation": None, "digest": None} for row in found]
    await store.aclose()


async def test_a_call_and_a_deletion_at_the_same_time(database: str, connection: Connection) -> None:
    """Whichever comes first, nothing is left that names the conversation; and the call waits for nothing."""
    store = Store(database)
    await store.open()
    await write(store, "c", *dialogue(1))
    async with connection.transaction(force_rollback=True):
        await connection.execute("delete from hitherto.conversation")
        await asyncio.wait_for(store.note_calls(SCOPE, "c", [FIRST]), PATIENCE)
    assert [row["conversation"] for row in await rows(connection)] == [None]

    async def delete() -> None:
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()

    async with connection.transaction():
        await connection.execute(SQL["note_call"], noted_values(SCOPE, "c", replace(FIRST)))
        deleting = asyncio.create_task(delete())
        done, _ = await asyncio.wait([deleting], timeout=0.1)
        assert not done
    await deleting
    assert [row["conversation"] for row in await rows(connection)] == [None, None]
    await store.aclose()


@pytest.mark.parametrize("zone", ZONES)
async def test_days_are_utc_in_any_session(connection: Connection, zone: str) -> None:
    await connection.execute("select set_config('timezone', %s, false)", [zone])
    edges = ["2026-02-28 23:59:59.999999+00", "2026-03-01 00:00+00", "2026-03-01 23:59:59+00", "2026-03-02 00:00+00"]
    for at in edges:
        await connection.execute(CALL, [at])
    day = date(2026, 3, 1)

    async def spent(values: dict[str, Any]) -> float:
        (row,) = await named(await connection.execute(SQL["spent"], values)).fetchall()
        return value_from(Spending, row).cost

    async def days(since: date | None, until: date | None) -> list[tuple[str, int]]:
        found = await connection.execute(SQL["costs"], costs_values("day", "acme", since, until))
        return [(one.group, one.calls) for one in await named(found).fetchall()]

    assert [await spent({"tenant": "acme", "user": None, "day": day + timedelta(n)}) for n in (-2, -1, 0, 1, 2)] == [
        0,
        0.5,
        1,
        0.5,
        0,
    ]
    assert await days(None, None) == [("2026-03-02", 1), ("2026-03-01", 2), ("2026-02-28", 1)]
    assert await days(day, day) == [("2026-03-01", 2)]
    assert await days(day, None) == [("2026-03-02", 1), ("2026-03-01", 2)]
    assert await days(None, day) == [("2026-03-01", 2), ("2026-02-28", 1)]
    assert await spent({"tenant": "acme", "user": None, "day": None}) == 0
    await connection.execute(CALL, [await utc_now(connection)])
    assert await spent({"tenant": "acme", "user": None, "day": None}) == 0.5


async def utc_now(connection: Connection) -> Any:
    row = await (await connection.execute("select clock_timestamp()")).fetchone()
    assert row is not None
    return row[0]


DAYS, A_DAY, OTHERS = 100, 40, 200
FILL = f"""
    insert into hitherto.model_call
        (tenant, key, user_id, agent, conversation, purpose, model, latency_ms, tokens_in, cost, created_at)
    select tenant, gen_random_uuid(), 'u' || n % 4, 'a', n, 'digest', 'm', 1, 10, 0.5,
           '2026-01-01 00:30+00'::timestamptz + n * interval '36 minutes'
    from (select 'acme' as tenant, n from generate_series(0, {DAYS * A_DAY - 1}) n
          union all
          select 'other-' || tenant, n * {A_DAY}
          from generate_series(1, {OTHERS}) tenant, generate_series(0, {DAYS - 1}) n) one
    order by n
"""
SPENT = Case("spent", {"tenant": "acme", "user": None, "day": "2026-02-10"}, 1)
SPENT_TODAY = Case("spent", {"tenant": "acme", "user": None, "day": None}, 1)
OF_USER = Case("spent", {"tenant": "acme", "user": "u3", "day": "2026-02-10"}, 1)
COSTS = Case("costs", {"by": "day", "tenant": "acme", "since": "2026-02-10", "until": "2026-02-11"}, 2)


async def test_sums_of_a_tenant_look_up_their_days(connection: Connection) -> None:
    """What is asked before each digest of a tenant with a ceiling reads an index alone, of that day alone; a listing of
    some days reads no others either."""
    await connection.execute("alter table hitherto.model_call set (autovacuum_enabled = false)")
    await connection.execute("set synchronous_commit = on")  # what is not on disk yet, vacuum leaves to another time
    await connection.execute(FILL.encode())
    await connection.execute("vacuum analyze hitherto.model_call")
    for case, calls in ((SPENT, A_DAY), (SPENT_TODAY, 0), (OF_USER, A_DAY), (COSTS, 2 * A_DAY)):
        plan = await plan_of(connection, case, PLANNED[1])
        assert plan["Actual Rows"] == case.rows
        assert {node["Index Name"] for node in nodes(plan) if "Index Name" in node} == {"model_call_by_time"}, case
        (scan,) = [node["Node Type"] for node in nodes(plan) if "Relation Name" in node]
        assert scan == "Index Only Scan" if case is not COSTS else scan != "Seq Scan"
        assert examined(plan) <= calls + TOUCHED


async def test_a_deleted_conversation_finds_its_calls_by_an_index(connection: Connection) -> None:
    await connection.execute(FILL.encode())
    plan = await plan_of(connection, Case("forget_calls_of", {"tenant": "acme", "ref": 77}, 0))
    (scan,) = [node for node in nodes(plan) if node["Node Type"].endswith("Scan")]
    assert scan["Index Name"] == "model_call_of_conversation"
    assert scan["Actual Rows"] == 1


async def test_values_take_their_columns_by_name_in_any_order(connection: Connection) -> None:
    found = await connection.execute("select 7 as tokens, 'more' as other, 0.5::float8 as cost")
    assert [value_from(Spending, row) for row in await named(found).fetchall()] == [Spending(cost=0.5, tokens=7)]
