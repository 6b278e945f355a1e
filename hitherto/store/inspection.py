"""A report on a database before a store is opened on it: nothing is written, created or upgraded."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection

from hitherto.blocks import block
from hitherto.store import errors, schema
from hitherto.store.connections import silence
from hitherto.store.sql import SQL

_ROUND_TRIPS = 5

COUNTED = 100
"""The most conversations that `undigested` counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionReport:
    """What was found. `address` has no password; `version` is the server's own text for its version; `too_old` says
    that Hitherto needs a later one. `read_only`: the server takes no writes, or none from this role. `fsync` and
    `full_page_writes` are the server's settings of these names.

    `schema`: the schema exists. `usable`: this role may use it. `can_create`: this role may create or upgrade it; else
    its `owner` may. `revision` is the schema's; None where there is none, or where it may not be read. `revisions` are
    those that this version knows, oldest first. `row_security`: it holds for this role.
    `lacking` are rights that a store needs and the role lacks, as "table: SELECT, …".
    """

    address: str
    version: str
    too_old: bool
    role: str
    read_only: bool
    fsync: bool
    full_page_writes: bool
    round_trip_ms: float
    schema: bool
    usable: bool
    can_create: bool
    owner: str | None
    revision: str | None
    revisions: tuple[str, ...]
    row_security: bool
    lacking: tuple[str, ...]

    @property
    def development(self) -> bool:
        """Whether the schema is from before the first release."""
        return self.revision is not None and self.revision < self.revisions[0]

    @property
    def newer(self) -> bool:
        """Whether the schema is of a newer Hitherto than this one."""
        return self.revision is not None and self.revision not in self.revisions and not self.development

    @property
    def current(self) -> bool:
        """Whether the schema is the one that this version works with."""
        return self.revision == self.revisions[-1]


async def examine(url: str, *, patience: float) -> InspectionReport:
    """Inspect the database at `url` over a new connection, waiting `patience` seconds for it.

    Raises DatabaseUnavailable if it cannot be reached, and StoreError if PostgreSQL refuses a query.
    """
    async with _connected(url, patience) as connection:
        return await _examined(connection)


async def undigested(url: str, *, patience: float, tokens: int) -> int:
    """How many conversations have more than `tokens` in view, no policy of their own, and no digest of any kind, not
    even a failed one; at most `COUNTED`. Those that were written to within the last minute are left out.

    Raises the same as `examine`.
    """
    async with _connected(url, patience) as connection:
        asked = {"tokens": tokens, "limit": COUNTED}
        row = await (await connection.execute(SQL["examine_undigested"], asked)).fetchone()
        return 0 if row is None else int(row[0])


@block
async def _connected(url: str, patience: float) -> AsyncGenerator[AsyncConnection[Any]]:
    errors.checked_address(url)
    try:
        connection = await silence.connect(url, patience=patience, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise errors.unreachable(url, error) from error
    async with connection:
        with errors.ours():
            await connection.set_autocommit(False)
            await connection.set_read_only(True)
            yield connection


async def _examined(connection: AsyncConnection[Any]) -> InspectionReport:
    info = connection.info
    version, number, role, read_only, fsync, full_page_writes = await _row(connection, "examine_server")
    exists, usable, can_create, readable, owner, row_security = await _row(connection, "examine_schema")
    known = usable and readable
    revision = (await _row(connection, "examine_revision") or (None,))[0] if known else None
    return InspectionReport(
        address=f"{info.host}:{info.port}/{info.dbname}",
        version=version,
        too_old=number < schema.OLDEST_SERVER,
        role=role,
        read_only=read_only,
        fsync=fsync,
        full_page_writes=full_page_writes,
        round_trip_ms=await _round_trip(connection),
        schema=exists,
        usable=usable,
        can_create=can_create,
        owner=owner,
        revision=revision,
        revisions=tuple(schema.revisions()),
        row_security=row_security,
        lacking=tuple([row[0] for row in await _rows(connection, "examine_rights")]),
    )


async def _round_trip(connection: AsyncConnection[Any]) -> float:
    """Milliseconds from here to the database and back: the shortest of a few, as a busy machine is no distance."""
    taken: list[float] = []
    for _ in range(_ROUND_TRIPS):
        begun = time.perf_counter()
        await connection.execute(SQL["ping"])
        taken.append((time.perf_counter() - begun) * 1_000)
    return min(taken)


async def _row(connection: AsyncConnection[Any], name: LiteralString) -> Any:
    return await (await connection.execute(SQL[name], {})).fetchone()


async def _rows(connection: AsyncConnection[Any], name: LiteralString) -> list[Any]:
    return await (await connection.execute(SQL[name], {})).fetchall()
