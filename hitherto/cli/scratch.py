"""A database of one command's own, which is gone afterwards however the command ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.errors import StoreError
from hitherto.logs import logger
from hitherto.stores.postgres import faults
from hitherto.stores.postgres.embedded import EmbeddedServer
from hitherto.uninterrupted import uninterrupted
from hitherto.wiring import IN_MEMORY

log = logger("hitherto.bench")

_PATIENCE = 10
"""Seconds for a connection."""

_CREATE = sql.SQL("create database {}")
_DROP = sql.SQL("drop database if exists {} with (force)")


@asynccontextmanager
async def scratch(server: str | None) -> AsyncGenerator[str]:
    """The address of an empty database: on the server at the address `server`, where the role must be allowed to create
    one, or, without one, on a server of its own in a temporary directory. "memory:" is itself.

    Raises DatabaseUnreachable, StoreError and EmbeddedServerError.
    """
    if server is None:
        async with _own_server() as url:
            yield url
    elif server == IN_MEMORY:
        yield server
    else:
        async with _database_on(server) as url:
            yield url


@asynccontextmanager
async def _own_server() -> AsyncGenerator[str]:
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    # Its start goes on in a thread whoever is cancelled, and the folder cannot go before the server has.
    starting = asyncio.create_task(EmbeddedServer.start(folder / "pg"))
    try:
        yield (await asyncio.shield(starting)).url
    finally:
        await uninterrupted(_removed(folder, starting))


async def _removed(folder: Path, starting: asyncio.Task[EmbeddedServer]) -> None:
    with contextlib.suppress(StoreError):
        await (await starting).stop()
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


@asynccontextmanager
async def _database_on(server: str) -> AsyncGenerator[str]:
    faults.checked_address(server)
    name = f"hitherto_bench_{os.getpid()}_{os.urandom(4).hex()}"
    creating = asyncio.create_task(_told(server, _CREATE, name))
    try:
        await asyncio.shield(creating)
        yield make_conninfo(server, dbname=name)
    finally:
        await uninterrupted(_dropped(server, name, creating))


async def _dropped(server: str, name: str, creating: asyncio.Task[None]) -> None:
    await asyncio.wait([creating])
    if creating.exception() is not None:
        return
    try:
        await _told(server, _DROP, name)
    except StoreError as error:
        log.warning("The database %s could not be dropped, and is left behind: %s", name, error)


async def _told(server: str, statement: sql.SQL, name: str) -> None:
    try:
        async with await psycopg.AsyncConnection[Any].connect(
            server, autocommit=True, connect_timeout=_PATIENCE, application_name="hitherto"
        ) as connection:
            await connection.execute(statement.format(sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not create a database to measure in ({error.diag.message_primary}); name one that may "
            "(ALTER ROLE … CREATEDB), or leave --database out for a server of its own"
        ) from error
    except psycopg.OperationalError as error:
        raise faults.unreachable(server, error) from error
    except psycopg.Error as error:
        raise StoreError(
            f"PostgreSQL refused a database to measure in: {error.diag.message_primary or error}"
        ) from error
