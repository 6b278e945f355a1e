"""The database schema: found, brought up to date, or refused."""

from __future__ import annotations

import asyncio
import threading
from importlib import resources
from typing import Any, LiteralString

import psycopg

from hitherto.errors import DatabaseReadOnly, SchemaMismatch, StoreError
from hitherto.stores.postgres import faults
from hitherto.uninterrupted import uninterrupted

OLDEST_SERVER = 140000
_UPGRADE_LOCK = 0x68697468  # "hith": one number for the advisory lock that upgrades of one database share

_upgrading = threading.Lock()


def revisions() -> list[str]:
    """The revisions this version knows, oldest first: the numbers that begin the migrations' file names."""
    files = resources.files(__package__ or "").joinpath("migrations")
    return sorted(file.name.split("_")[0] for file in files.iterdir() if file.name.endswith(".sql"))


async def ensure(url: str, *, patience: float) -> None:
    """Bring the schema `hitherto` in the database at `url` to the newest revision this version knows.

    Any number of processes may do it at once. Raises DatabaseUnreachable, DatabaseReadOnly, SchemaMismatch for a
    schema of a newer Hitherto or a server that is too old, StoreError where the role may not create what is needed.
    """
    faults.checked_address(url)
    try:
        async with await psycopg.AsyncConnection[Any].connect(
            url,
            autocommit=True,
            connect_timeout=max(2, int(patience)),
            application_name="hitherto",
            client_encoding="UTF8",
        ) as connection:
            await _ensure(connection, url)
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise DatabaseReadOnly(
            "the database has no current Hitherto schema and refuses to write one; connect once to the primary server, "
            "or end its read-only mode (default_transaction_read_only)"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not set up the schema ({error.diag.message_primary}); GRANT CREATE ON DATABASE … TO … for "
            "that; or, where another role has set it up, GRANT USAGE ON SCHEMA hitherto TO … and GRANT SELECT, INSERT, "
            "UPDATE, DELETE ON ALL TABLES IN SCHEMA hitherto TO …"
        ) from error
    except psycopg.OperationalError as error:
        raise faults.unreachable(url, error) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused to set up the schema: {str(error).strip()}") from error


async def _ensure(connection: psycopg.AsyncConnection[Any], url: str) -> None:
    known = revisions()
    if connection.info.server_version < OLDEST_SERVER:
        raise SchemaMismatch(
            f"the server is PostgreSQL {connection.info.server_version // 10000}; Hitherto needs 14 or later"
        )
    if await _current(connection) == known[-1]:
        return
    await connection.execute("select pg_advisory_lock(%s)", [_UPGRADE_LOCK])
    current = await _current(connection)
    if current is not None and current not in known:
        raise SchemaMismatch(
            f"the database's schema is at revision {current}, but this Hitherto knows only up to {known[-1]}; "
            "upgrade Hitherto, or use another database"
        )
    if current != known[-1]:
        # `if not exists` alone would demand the right to create schemas where the schema was made ready for the role.
        if await _value(connection, "select to_regnamespace('hitherto')::text") is None:
            await connection.execute("create schema if not exists hitherto")
        await uninterrupted(asyncio.to_thread(_upgrade, url))


async def _current(connection: psycopg.AsyncConnection[Any]) -> str | None:
    if await _value(connection, "select to_regclass('hitherto.alembic_version')::text") is None:
        return None
    return await _value(connection, "select version_num from hitherto.alembic_version")


async def _value(connection: psycopg.AsyncConnection[Any], query: LiteralString) -> str | None:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None else row[0]


def _upgrade(url: str) -> None:
    # Alembic keeps the upgrade it runs in module globals: one at a time in a process, whatever databases they are of.
    with _upgrading:
        _run_upgrade(url)


def _run_upgrade(url: str) -> None:
    # Alembic and SQLAlchemy are needed for this alone, and take longer to import than everything else together.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, pool
    from sqlalchemy.exc import DBAPIError

    config = Config()
    with resources.as_file(resources.files(__package__ or "").joinpath("migrations")) as folder:
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        engine = create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(url, client_encoding="UTF8"),
            poolclass=pool.NullPool,
        )
        try:
            with engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except DBAPIError as error:
            # SQLAlchemy wraps what psycopg raised; the caller knows psycopg's errors.
            if isinstance(error.orig, psycopg.Error):
                raise error.orig from error
            raise
