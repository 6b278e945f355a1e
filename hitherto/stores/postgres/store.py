"""The store on PostgreSQL: a pool, units of work, and single-statement reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, LiteralString, TypeVar
from weakref import WeakValueDictionary

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from hitherto.core.digest import Digest
from hitherto.core.head import Head
from hitherto.core.message import Logged, Payload
from hitherto.core.scope import Scope
from hitherto.ports.store import Defaults, DigestWork, Due, Earlier, Listed, Reading, Unit
from hitherto.stores.postgres import faults, heads, rows, schema
from hitherto.stores.postgres.connections import Connections
from hitherto.stores.postgres.sql import SQL
from hitherto.stores.postgres.unit import PostgresUnit

_NEVER = 2**62
"""A seq, and a revision, that no conversation reaches."""

_T = TypeVar("_T")


class PostgresStore:
    """`Store` on the PostgreSQL at `url` (a libpq URL or key=value string), version 14 or later.

    Holds at most `pool_size` connections; a verb waits at most `patience` seconds for one.
    """

    def __init__(self, url: str, *, pool_size: int = 10, patience: float = 10.0) -> None:
        self._url = url
        self._patience = patience
        self._gates = WeakValueDictionary[tuple[Scope, str], asyncio.Lock]()
        self._connections = Connections(url, size=pool_size, patience=patience)

    async def open(self) -> None:
        await schema.ensure(self._url, patience=self._patience)
        try:
            await self._connections.open()
        except PoolTimeout as error:
            raise faults.unreachable(self._url, error) from error

    async def aclose(self) -> None:
        await self._connections.aclose()

    @asynccontextmanager
    async def write(self, scope: Scope, conversation: str, *, key: str | None = None) -> AsyncGenerator[Unit]:
        async def begin(connection: AsyncConnection[Any]) -> PostgresUnit:
            unit = PostgresUnit(connection, scope, conversation)
            await unit.begin(key)
            return unit

        # Who waits for a conversation waits here, without a connection: else a busy one would take the whole pool from
        # the others. The row's lock does the same between processes.
        gate = self._gates.setdefault((scope, conversation), asyncio.Lock())
        async with gate, self._got(begin) as unit:
            yield unit

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        names = rows.scope_values(scope, conversation)
        if at is None:
            found = await self._all(SQL["head"], names)
        else:
            found = await self._all(SQL["head_at"], {**names, "at": at}) if 0 <= at <= _NEVER else []
        return heads.head_from(found[0]) if found else None

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: Reading) -> list[Logged]:
        values = {
            **rows.scope_values(scope, conversation),
            "ref": ref,
            "start": reading.start,
            "stop": reading.stop,
            "tokens": reading.tokens,
            "live": reading.live_at is not None,
            "live_at": _NEVER if reading.live_at is None else reading.live_at,
            "tools_from": _NEVER if reading.tools_from is None else reading.tools_from,
            "limit": None if reading.limit is None else max(reading.limit, 0),
        }
        return [rows.logged_from(row) for row in await self._all(SQL["messages"], values)]

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        found = await self._all(SQL["digests"], rows.scope_values(scope, conversation))
        return [rows.digest_from(row) for row in found]

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["opaque"], {**names, "digest": digest})
        return tuple(json.loads(found[0][0])) if found and found[0][0] is not None else None

    async def earlier(self, scope: Scope, conversation: str, *, within: timedelta) -> Earlier | None:
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["earlier"], {**names, "within": within})
        return Earlier(conversation=found[0][0], digest=found[0][1], text=found[0][2]) if found else None

    async def defaults(self, scope: Scope) -> Defaults:
        found = await self._all(SQL["defaults"], {"tenant": scope.tenant, "agent": scope.agent})
        return heads.defaults_from(found[0]) if found else Defaults()

    async def set_defaults(self, *, tenant: str, agent: str, defaults: Defaults) -> None:
        policy = heads.policy_json(defaults.policy)
        values = {"tenant": tenant, "agent": agent, "policy": policy, "injection": defaults.injection}

        async def put(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["set_defaults"], values)

        async with self._got(put):
            pass

    async def work(self, scope: Scope, conversation: str, digest: int, attempt: int) -> DigestWork | None:
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["work_digest"], {**names, "digest": digest, "attempt": attempt})
        if not found:
            return None
        row = found[0]
        made = rows.digest_from(row)
        statements, base_end, opaque = row[26:29]
        first = made.start if base_end is None else max(made.start, base_end + 1)
        messages = await self._all(SQL["work_messages"], {**names, "first": first, "last": made.end})
        return DigestWork(
            digest=made,
            base=() if statements is None else rows.chained_items(statements),
            opaque=opaque,
            messages=tuple(rows.logged_from(row) for row in messages),
        )

    async def listed(self, scope: Scope, *, limit: int = 100) -> list[Listed]:
        names = rows.scope_values(scope, "")
        found = await self._all(SQL["listed"], {**names, "limit": max(limit, 0)})
        return [
            Listed(conversation=name, messages=messages, tokens=tokens, rev=rev, updated_at=updated_at)
            for name, messages, tokens, rev, updated_at in found
        ]

    async def due(self, *, stuck_for: timedelta, limit: int = 1_000) -> list[Due]:
        found = await self._all(SQL["due"], {"stuck_for": stuck_for, "limit": max(limit, 0)})
        return [Due(Scope(tenant=tenant, user=user, agent=agent), name) for tenant, user, agent, name in found]

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        async def forget(connection: AsyncConnection[Any]) -> int:
            return (await connection.execute(SQL["forget_receipts"], {"older_than": older_than})).rowcount

        async with self._got(forget) as forgotten:
            return forgotten

    async def _all(self, query: LiteralString, values: dict[str, Any]) -> list[Any]:
        async def fetch(connection: AsyncConnection[Any]) -> list[Any]:
            return await (await connection.execute(query, values)).fetchall()

        async with self._got(fetch) as found:
            return found

    @asynccontextmanager
    async def _got(self, get: Callable[[AsyncConnection[Any]], Awaitable[_T]]) -> AsyncGenerator[_T]:
        """What `get` gets with a connection, which stays held until the end.

        It must do no harm twice: where the connection turns out to be dead, as all in the pool are after a restart of
        the server, it is tried once more with a living one.
        """
        async with AsyncExitStack() as held:
            try:
                with faults.ours():
                    connection = await held.enter_async_context(self._connections.borrowed())
                    try:
                        got = await get(connection)
                    except psycopg.Error:
                        if not connection.closed:
                            raise
                        await held.aclose()
                        await self._connections.check()
                        got = await get(await held.enter_async_context(self._connections.borrowed()))
            except PoolTimeout as error:
                raise faults.unreachable(self._url, error) from error
            yield got
