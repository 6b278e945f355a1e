"""A database for one command, which is dropped however the command ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.errors import StoreError
from hitherto.logs import logger
from hitherto.store import errors
from hitherto.store.connections.silence import connect
from hitherto.uninterrupted import uninterrupted
from hitherto.wiring import IN_MEMORY

log = logger("hitherto.bench")

_PATIENCE = 10.0
"""Seconds to wait for a connection."""

_CREATE = sql.SQL("create database {}")
_DROP = sql.SQL("drop database if exists {} with (force)")


@asynccontextmanager
async def temporary_database(server: str | None) -> AsyncGenerator[str]:
    """The address of an empty database, which is created on the server at the address `server`; the role must be
    allowed to create one. Without an address, and for "memory:", it is that of a throw-away one.

    Raises DatabaseUnavailable and StoreError.
    """
    if server is None or server == IN_MEMORY:
        yield IN_MEMORY
    else:
        async with _database_on(server) as url:
            yield url


@asynccontextmanager
async def _database_on(server: str) -> AsyncGenerator[str]:
    errors.checked_address(server)
    name = f"hitherto_bench_{os.getpid()}_{os.urandom(4).hex()}"
    creating = asyncio.create_task(_execute(server, _CREATE, name))
    try:
        await asyncio.shield(creating)
        yield make_conninfo(server, dbname=name)
    finally:
        await uninterrupted(_drop(server, name, creating))


async def _drop(server: str, name: str, creating: asyncio.Task[None]) -> None:
    await asyncio.wait([creating])
    if creating.exception() is not None:
        return
    try:
        await _execute(server, _DROP, name)
    except StoreError as error:
        log.warning("The database %s could not be dropped and is left behind: %s", name, error)


async def _execute(server: str, statement: sql.SQL, name: str) -> None:
    try:
        async with await connect(server, patience=_PATIENCE) as connection:
            await connection.execute(statement.format(sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not create a database to measure in ({error.diag.message_primary}); name one that may "
            "(ALTER ROLE … CREATEDB), or leave --database out for a server of its own"
        ) from error
    except psycopg.OperationalError as error:
        raise errors.unreachable(server, error) from error
    except psycopg.Error as error:
        raise StoreError(
            f"PostgreSQL refused a database to measure in: {error.diag.message_primary or error}"
        ) from error
