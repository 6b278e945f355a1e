"""What the parts of the store have in common."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, LiteralString, TypeVar

from psycopg import AsyncConnection, AsyncCursor
from psycopg_pool import PoolClosed, PoolTimeout

from hitherto.blocks import block
from hitherto.errors import StoreError
from hitherto.store import errors, rows
from hitherto.store.connections.pool import Connections
from hitherto.store.connections.row_security import RowSecurityConnection

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
        self,
        query: LiteralString,
        values: dict[str, Any],
        *,
        of: Callable[[AsyncCursor[Any]], AsyncCursor[Any]] = lambda cursor: cursor,
        binary: bool = False,
    ) -> list[Any]:
        """All rows of a statement, made as `of` has the cursor make them."""

        async def fetch(connection: AsyncConnection[Any]) -> list[Any]:
            return await rows.fetched(of(await connection.execute(query, values, binary=binary)))

        async with self._with_connection(fetch) as found:
            return found

    @block
    async def _with_connection(
        self, get: Callable[[RowSecurityConnection], Awaitable[_T]], *, once: bool = False
    ) -> AsyncGenerator[_T]:
        """Yields what `get` returns for a connection, which stays borrowed until the block ends. If the connection
        turns out to be dead, as all in the pool are after a restart of the server, `get` runs again with another one:
        at most three times. So it must be safe to run again. It does not run again where the server was at work for
        too long. With `once` it runs once: whether a connection is dead is asked before, and what had happened to one
        that is lost later is not known.

        Raises Hitherto's errors for psycopg's, and DatabaseUnavailable if no connection is there in time.
        """
        try:
            for last in (False, False, True):
                async with self._connections.borrowed() as connection:
                    begun = False
                    try:
                        with errors.ours():
                            if once:
                                await connection.execute("select 1")
                                begun = True
                            got = await get(connection)
                    except StoreError:
                        if last or begun or not connection.closed or connection.overran:
                            raise
                    else:
                        yield got
                        return
                await self._connections.renew(connection)
        except PoolClosed as error:
            raise StoreError(
                f"the store is not open ({error}); call open() first, and nothing after aclose()"
            ) from error
        except PoolTimeout as error:
            of = self._connections
            raise errors.unreachable(of.url, error, throwaway=of.throwaway) from error
