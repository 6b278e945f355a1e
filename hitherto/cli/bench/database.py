"""A database for one command, which is dropped however the command ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.errors import StoreError
from hitherto.logs import logger
from hitherto.stores.postgres import errors
from hitherto.stores.postgres.connections.silence import connect
from hitherto.stores.postgres.embedded.server import EmbeddedServer
from hitherto.uninterrupted import uninterrupted
from hitherto.wiring import IN_MEMORY

log = logger("hitherto.bench")

_PATIENCE = 10.0
"""Seconds to wait for a connection."""

_CREATE = sql.SQL("create database {}")
_DROP = sql.SQL("drop database if exists {} with (force)")


@asynccontextmanager
async def temporary_database(server: str | None) -> AsyncGenerator[str]:
    """The address of an empty database. It is created on the server at the address `server`, where the role must be
    allowed to create one; without an address, on a new server in a temporary directory. "memory:" stays as it is.

    Raises DatabaseUnavailable, StoreError and EmbeddedServerError.
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
    # The start goes on in a thread even if this task is cancelled, and the folder can be removed only after the server.
    starting = asyncio.create_task(EmbeddedServer.start(folder / "pg"))
    try:
        yield (await asyncio.shield(starting)).url
    finally:
        await uninterrupted(_remove(folder, starting))


async def _remove(folder: Path, starting: asyncio.Task[EmbeddedServer]) -> None:
    with contextlib.suppress(StoreError):
        await (await starting).stop()
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


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
