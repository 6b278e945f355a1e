"""Connections of a role for which row-level security holds: each transaction says whose rows it is about."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from psycopg import AsyncCursor, AsyncPipeline, AsyncTransaction

from hitherto.stores.postgres.connections.silence import WatchedConnection

_SET = "select set_config('hitherto.tenant', %s, true)"


class RowSecurityConnection(WatchedConnection):
    """Before a statement that binds a `tenant`, and where row-level security holds for the role (`row_security`), the
    transaction's tenant is set to that one, for this transaction alone. A statement that binds none sees no rows of
    any.

    A statement outside of a transaction block is sent together with the setting, as one transaction and in one round
    trip; so are all of a pipeline. What is fetched within a pipeline would end that transaction early.
    """

    row_security = False
    _block = False
    """Whether a transaction block is open."""
    _tenant: object = None
    """What is set in the transaction that is under way."""

    def forget_tenant(self) -> None:
        """The connection is in no transaction."""
        self._block, self._tenant = False, None

    async def execute(self, query: Any, params: Any = None, **options: Any) -> AsyncCursor[Any]:
        if not self.row_security:
            return await super().execute(query, params, **options)
        word = str(query)[:9].split(" ")[0]
        if word in ("begin", "commit", "rollback"):
            self._block, self._tenant = word == "begin", None
            return await super().execute(query, params, **options)
        tenant = (
            cast("Mapping[str, object]", params).get("tenant") if isinstance(cast(object, params), Mapping) else None
        )
        if tenant is None or tenant == self._tenant:
            return await super().execute(query, params, **options)
        if self._block or self._pipeline is not None:
            await super().execute(_SET, [tenant])
            self._tenant = tenant
            return await super().execute(query, params, **options)
        async with super().pipeline():
            await super().execute(_SET, [tenant])
            return await super().execute(query, params, **options)

    @asynccontextmanager
    async def pipeline(self) -> AsyncGenerator[AsyncPipeline]:
        outermost = self._pipeline is None
        async with super().pipeline() as made:
            yield made
        if outermost and not self._block:
            self._tenant = None

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncGenerator[AsyncTransaction]:
        outermost = not self._block
        async with super().transaction(savepoint_name, force_rollback) as made:
            self._block = True
            try:
                yield made
            finally:
                if outermost:
                    self.forget_tenant()
