"""The database schema: created, brought up to date, or refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from importlib import resources
from typing import Any, LiteralString

import psycopg
from psycopg.pq import PGconn, Ping

from hitherto.errors import DatabaseReadOnly, SchemaMismatch, StoreError
from hitherto.store import errors
from hitherto.store.connections import silence

OLDEST_SERVER = 150000
_UPGRADE_LOCK = 0x68697468  # "hith": one number for the advisory lock that upgrades of one database share

LOCK_TIMEOUT = 3.0
"""Seconds that an upgrade waits for the lock on a table. Every later statement on the table waits behind it: so it does
not wait for the end of a long transaction, but gives up, lets the others through and tries again."""
_TRIES = 5
_PAUSE = 0.2
"""Seconds between two attempts to connect to a server that is starting up."""

_PING_PATIENCE = 10.0
"""Seconds."""

_BASELINE = (
    "log",
    "digests",
    "ledger",
    "documents",
    "search",
    "facts",
    "contexts",
    "runs",
    "keys",
    "functions",
    "across",
    "row_security",
    "server",
)
"""The files of the schema of 0.1, in this order: each uses only what those before it make."""

# Named as Alembic names it, which set up the databases of development versions.
_VERSION_TABLE = """
create table if not exists hitherto.alembic_version (
    version_num character varying(32) not null, constraint alembic_version_pkc primary key (version_num)
)
"""

_FIRST = "0116"
"""The revision of the schema of 0.1."""

_FIND_VERSIONS = "select to_regclass('hitherto.alembic_version')::text"


def revisions() -> list[str]:
    """The revisions this version knows, oldest first: that of 0.1, and the numbers of the upgrades since.

    A database at an older revision was made by a development version, before the first release.
    """
    return [_FIRST, *upgrades()]


def upgrades() -> dict[str, str]:
    """The statements that bring the schema of the revision before to each revision after the first, oldest first: the
    files `migrations/0117_what_it_does.sql` and so on."""
    files = resources.files(__package__ or "").joinpath("migrations").iterdir()
    found = sorted((file for file in files if file.name.endswith(".sql")), key=lambda file: file.name)
    return {file.name.split("_")[0]: file.read_text(encoding="utf-8") for file in found}


async def ensure(
    url: str, *, patience: float, upgrade: bool = True, lock_timeout: float = LOCK_TIMEOUT
) -> tuple[str | None, str]:
    """Bring the schema `hitherto` in the database at `url` to the newest revision this version knows; without
    `upgrade`, see that it is. Returns the revision before, None where there was none, and the newest.

    Any number of processes may do it at once, while others use the schema. A server that is starting up is waited for,
    at most `patience` seconds. Raises DatabaseUnavailable, DatabaseReadOnly, SchemaMismatch for a schema of a newer
    Hitherto, one from before the first release, or a server that is too old, StoreError where the role may not create
    what is needed, or where each try waits longer than `lock_timeout` seconds for a table.
    """
    errors.checked_address(url)
    try:
        async with await _connect(url, patience) as connection:
            return await _ensure(connection, lock_timeout if upgrade else None)
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise DatabaseReadOnly(
            "the database has no current Hitherto schema and refuses to write one; connect once to the primary server, "
            "or end its read-only mode (default_transaction_read_only), and run: hitherto migrate"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not set up the schema ({error.diag.message_primary}); as the tables' owner, or as a role "
            "that may make them (GRANT CREATE ON DATABASE … TO …), run: hitherto migrate --grant ROLE, where ROLE is "
            "this one"
        ) from error
    except psycopg.Error as error:
        if errors.is_gone(error):
            raise errors.unreachable(url, error) from error
        raise StoreError(f"PostgreSQL refused to set up the schema: {str(error).strip()}") from error


async def ping(url: str) -> Ping:
    """What the server says to a connection: REJECT if it takes none yet, as it is starting up, or recovers after a
    crash. Raises DatabaseUnavailable for what is no address."""
    errors.checked_address(url)
    return Ping(await asyncio.to_thread(PGconn.ping, silence.address(url, patience=_PING_PATIENCE).encode()))


async def _connect(url: str, patience: float) -> psycopg.AsyncConnection[Any]:
    until = time.monotonic() + patience
    tried = False
    while True:
        try:
            return await silence.connect(url, patience=patience)
        except psycopg.OperationalError:
            match await ping(url):
                case Ping.REJECT if time.monotonic() <= until:
                    tried = False
                    await asyncio.sleep(_PAUSE)
                case Ping.OK if not tried:  # it may have started up since it refused
                    tried = True
                case _:
                    raise


async def _ensure(connection: psycopg.AsyncConnection[Any], lock_timeout: float | None) -> tuple[str | None, str]:
    known = revisions()
    if connection.info.server_version < OLDEST_SERVER:
        raise SchemaMismatch(
            f"the server is PostgreSQL {connection.info.server_version // 10000}; Hitherto needs 15 or later"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise SchemaMismatch(
            f"the database's encoding is {encoding}; Hitherto needs one of encoding UTF8 (CREATE DATABASE … ENCODING "
            "'UTF8' TEMPLATE template0)"
        )
    before = current = await _current(connection)
    if current == known[-1]:
        return before, known[-1]
    if lock_timeout is not None:
        silence.allow_long_work(connection)  # another's upgrade may take long
        await connection.execute("select pg_advisory_lock(%s)", [_UPGRADE_LOCK])
        current = await _current(connection)
    if current is not None and current < known[0]:
        raise SchemaMismatch(
            f"the database's schema is at revision {current}: it was made by a development version, before the schema "
            "of 0.1 was final, and cannot be upgraded; use a new database (for Hitherto's own server, a new directory: "
            "HITHERTO_DATA_DIR), or, if nothing in it is needed, DROP SCHEMA hitherto CASCADE"
        )
    if current is not None and current not in known:
        raise SchemaMismatch(
            f"the database's schema is at revision {current}, but this Hitherto knows only up to {known[-1]}; "
            "upgrade Hitherto, or use another database"
        )
    if current != known[-1] and lock_timeout is None:
        there = "no Hitherto schema" if current is None else f"a schema at revision {current}, not {known[-1]}"
        raise SchemaMismatch(f"the database has {there}, and is only read here; to set it up, run: hitherto migrate")
    if current != known[-1] and lock_timeout is not None:
        # Asked first, because `if not exists` needs the right to create schemas even where the schema is there.
        if await _value(connection, "select to_regnamespace('hitherto')::text") is None:
            await connection.execute("create schema if not exists hitherto")
        await _upgraded(connection, current, lock_timeout)
    return before, known[-1]


async def _current(connection: psycopg.AsyncConnection[Any]) -> str | None:
    if await _value(connection, _FIND_VERSIONS) is None:
        return None
    return await _value(connection, "select version_num from hitherto.alembic_version")


async def _value(connection: psycopg.AsyncConnection[Any], query: LiteralString) -> str | None:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]


async def _upgraded(connection: psycopg.AsyncConnection[Any], current: str | None, lock_timeout: float) -> None:
    for left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                await connection.execute("select set_config('lock_timeout', %s, true)", [f"{lock_timeout * 1_000:.0f}"])
                for statements in from_nothing() if current is None else since(current):
                    await connection.execute(statements.encode())
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if not left:
                raise StoreError(
                    f"the schema cannot be upgraded: other transactions held its tables {_TRIES} times for longer than "
                    f"{lock_timeout:g} seconds, and nothing was changed; end them (pg_stat_activity shows the long "
                    "ones, xact_start says since when) and start again"
                ) from error
            await asyncio.sleep(lock_timeout)
        else:
            return


def baseline() -> Iterator[str]:
    """Yields what makes the tables of 0.1 and all else in the schema `hitherto`, which must be there."""
    folder = resources.files(__package__ or "").joinpath("migrations", "baseline")
    for name in _BASELINE:
        yield folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")


def from_nothing() -> Iterator[str]:
    """Yields what makes the newest revision in a schema `hitherto` that has nothing in it, in one transaction."""
    yield _VERSION_TABLE
    yield from baseline()
    yield f"insert into hitherto.alembic_version values ('{_FIRST}')"  # noqa: S608 (a constant)
    yield from since(_FIRST)


def since(revision: str) -> Iterator[str]:
    """Yields what makes the newest revision of this one, in one transaction."""
    for number, statements in upgrades().items():
        if number > revision:
            yield statements
            yield f"update hitherto.alembic_version set version_num = '{number}'"  # noqa: S608 (the number of a file)
