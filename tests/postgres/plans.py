"""Plans: a database that is filled, the statements to explain there, and what a plan says of the rows that it reads."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from hitherto.store.connections import row_security
from hitherto.store.sql import SQL
from tests.databases import ROW_SECURITY_ROLE, Databases

Connection = psycopg.AsyncConnection[Any]

TOUCHED = 64
"""The most rows that a statement may examine beside those it is for."""


@dataclass(frozen=True)
class Case:
    """A statement, what is bound to it, how many rows it gives, and how many it may examine for each of them."""

    query: str
    values: dict[str, Any]
    rows: int
    each: int = 1


@dataclass(frozen=True)
class Bound:
    """A case, and how many rows it may examine: of a scope by design, or for what it gives."""

    case: Case
    examined: int


ACROSS = {
    name: (re.findall(r"(\w+)_ ([^,]+)", arguments), body)
    for name, arguments, body in re.findall(
        r"create function hitherto\.(\w+)\((.*?)\)\nreturns .*?\$\$\n(?:[^$]*? return query\n)?(.*?);?\n(?:end )?\$\$;",
        "".join(
            resources.files("hitherto.store").joinpath(f"migrations/baseline/{name}.sql").read_text("utf-8")
            for name in ("keys", "across")
        ),
        flags=re.DOTALL,
    )
}
"""The functions that look across tenants: the names of their arguments, and what they do."""


def called(query: str) -> str | None:
    """The function that looks across tenants, if the statement calls one."""
    found = re.search(r"from hitherto\.(\w+)\(", SQL[query])
    return found[1] if found and found[1] in ACROSS else None


def statement(query: str) -> str:
    """The text of a statement. Of one that calls a function that looks across tenants, what that does."""
    text = SQL[query]
    if (name := called(query)) is not None:
        (given,) = re.findall(rf"from hitherto\.{name}\((.*)\)", text)
        arguments, text = ACROSS[name]
        for (argument, kind), value in zip(arguments, re.findall(r"%\(\w+\)s", given), strict=True):
            text = re.sub(rf"\b{argument}_\b", f"{value}::{kind}", text)
    return text


def bound(query: str, values: dict[str, Any], rows: int, examined: int) -> Bound:
    """Of the values, those that the statement asks for."""
    asked = re.findall(r"%\((\w+)\)[sb]", statement(query))
    return Bound(Case(query, {name: value for name, value in values.items() if name in asked}, rows), examined)


PLANNED = ("force_generic_plan", "force_custom_plan")
"""A statement that comes often is planned once for all values, others for theirs."""


@asynccontextmanager
async def filled_database(databases: Databases, *fill: str) -> AsyncGenerator[Connection]:
    """A connection to a database that was filled and analyzed, as a role for which row-level security holds."""
    name = await databases.take_new()  # plans go by what tables were, too
    async with await Connection.connect(databases.url(name), autocommit=True) as connection:
        tables = await connection.execute(
            "select relname from pg_class where relnamespace = 'hitherto'::regnamespace and relkind = 'r'"
        )
        for (table,) in await tables.fetchall():
            await connection.execute(
                sql.SQL("alter table hitherto.{} set (autovacuum_enabled = false)").format(sql.Identifier(table))
            )
        for statements in fill:
            # On a connection of its own: one that has checked a foreign key goes on as it did when the table was empty.
            async with await Connection.connect(databases.url(name), autocommit=True) as filling:
                await filling.execute(statements.encode())
        await connection.execute("analyze")
        await row_security.grant(databases.url(name), ROW_SECURITY_ROLE)
        await connection.execute(sql.SQL("set role {}").format(sql.Identifier(ROW_SECURITY_ROLE)))
        yield connection
    await databases.give_back(name)


async def plan_of(connection: Connection, case: Case, mode: str = PLANNED[0]) -> dict[str, Any]:
    """The plan that the statement is run by as a prepared one, with what it came across."""
    await connection.execute(sql.SQL("set plan_cache_mode = {}").format(sql.Identifier(mode)))
    query = re.sub(r"%\((\w+)\)[sb]", lambda found: f"${list(case.values).index(found[1]) + 1}", statement(case.query))
    values = sql.SQL(", ").join(sql.Literal(value) for value in case.values.values())
    given = sql.SQL("({})").format(values) if case.values else sql.SQL("")
    await connection.execute(f"prepare planned as {query}".encode())  # as bytes: it is not made of input
    # What is explained is done; and undone again, for the next plan to find the same.
    async with connection.transaction(force_rollback=True):
        await connection.execute("select set_config('hitherto.tenant', %s, true)", [case.values.get("tenant", "")])
        if (across := called(case.query)) is not None:  # as the function that looks across tenants does
            await connection.execute("set local role none")
            await connection.execute(
                "select set_config(split_part(setting, '=', 1), split_part(setting, '=', 2), true)"
                " from (select unnest(proconfig) as setting from pg_proc where oid = %s::regproc) settings",
                [f"hitherto.{across}"],
            )
        explained = sql.SQL("explain (analyze, buffers, format json) execute planned{}").format(given)
        row = await (await connection.execute(explained)).fetchone()
    await connection.execute("deallocate planned")
    assert row is not None
    return row[0][0]["Plan"]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def scanned(plan: dict[str, Any]) -> set[str]:
    """The tables that are read from end to end."""
    return {node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"}


def examined(plan: dict[str, Any]) -> float:
    """Rows that came from tables, thrown away or not."""
    counts = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return sum(
        node["Actual Loops"] * sum(node.get(count, 0) for count in counts)
        for node in nodes(plan)
        if "Relation Name" in node
    )
