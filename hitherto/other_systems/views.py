"""SQL views with the names and columns of other systems' tables, in a schema of their own: see docs/views.md."""

from __future__ import annotations

import re
from importlib.resources import files

import psycopg
from psycopg import sql

from hitherto.errors import StoreError
from hitherto.store.sql import PARTS

SCHEMA = "other_systems"

_ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('hitherto.other_systems'))"

_GRANTS = ("grant usage on schema other_systems to {}", "grant select on all tables in schema other_systems to {}")


async def renew_views(database: str) -> None:
    """Create the views again where they are: they may be an older version's. Raises StoreError."""
    try:
        async with await psycopg.AsyncConnection[tuple[object, ...]].connect(database) as connection:
            found = await connection.execute("select to_regclass('other_systems.memory_entries')")
            there = await found.fetchone() != (None,)
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused to look for the views: {error.diag.message_primary or error}") from error
    if there:
        await create_views(database)


async def create_views(database: str, *, grant: str | None = None) -> None:
    """Create the views, or replace them, in a database that has Hitherto's schema, as a role that may; the role `grant`
    may read them afterwards, as far as row-level security and its rights to Hitherto's tables let it. Raises
    StoreError."""
    text = files(__package__ or "").joinpath("views.sql").read_text(encoding="utf-8")
    text = re.sub(r"\{(\w+) of (\w)\}", lambda part: PARTS[part[1]].replace("%(tenant)s", f"{part[2]}.tenant"), text)
    try:
        async with await psycopg.AsyncConnection[tuple[object, ...]].connect(database) as connection:
            await connection.execute(_ONE_AT_A_TIME)
            await connection.execute(text.encode())
            for statement in _GRANTS if grant is not None else ():
                await connection.execute(sql.SQL(statement).format(sql.Identifier(grant or "")))
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused to create the views: {error.diag.message_primary or error}") from error
