"""What the parts of the store have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from hitherto.errors import StoreError
from hitherto.stores.postgres import errors, rows
from hitherto.stores.postgres.connections.pool import Connections

_T = TypeVar("_T")


class Part:
    """A part of the store: it runs statements on the connections of `connections`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def _check_tenant(self, tenant: str | None) -> None:
        """Raises StoreError where all tenants are asked for, and the role sees one at a time."""
        if tenant is None and self._connections.row_security:
            raise StoreError(
                "this role sees one tenant at a time: name the tenant, or connect as the owner of the tables"
            )

    async def _all(
        self, query: LiteralString, values: dict[str, Any], *, named: bool = False, binary: bool = False
    ) -> list[Any]:
        async def fetch(connection: AsyncConnection[Any]) -> list[Any]:
            cursor = await connection.execute(query, values, binary=binary)
            return await rows.fetched(rows.named(cursor) if named else cursor)

        async with self._with_connection(fetch) as found:
            return found

    @asynccontextmanager
    async def _with_connection(self, get: Callable[[AsyncConnection[Any]], Awaitable[_T]]) -> AsyncGenerator[_T]:
        """Yields what `get` returns for a connection, which stays borrowed until the block ends.

        `get` must be safe to run again: see `_with_living_connection`. Raises Hitherto's errors for psycopg's, and
        DatabaseUnavailable if no connection is there in time.
        """
        async with AsyncExitStack() as held:
            try:
                with errors.ours():
                    got = await self._with_living_connection(get, held)
            except PoolTimeout as error:
                raise errors.unreachable(self._connections.url, error) from error
            yield got

    async def _with_living_connection(
        self, get: Callable[[AsyncConnection[Any]], Awaitable[_T]], held: AsyncExitStack
    ) -> _T:
        """What `get` returns for a connection that `held` gives back. If the connection turns out to be dead, as all in
        the pool are after a restart of the server, `get` runs again with another one: at most three times."""
        for _ in range(2):
            connection = await held.enter_async_context(self._connections.borrowed())
            try:
                return await get(connection)
            except psycopg.Error:
                if not connection.closed:
                    raise
            await held.aclose()
            await self._connections.renew(connection)
        return await get(await held.enter_async_context(self._connections.borrowed()))
