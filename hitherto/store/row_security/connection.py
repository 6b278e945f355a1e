"""Connections of a role for which row-level security holds: each transaction says whose rows it is about."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, Self, cast

from psycopg import AsyncCursor, AsyncPipeline, AsyncTransaction
from psycopg.abc import PQGen
from psycopg.rows import namedtuple_row, tuple_row

from hitherto.store.connections.silence import WatchedConnection

_SET = "select set_config('hitherto.tenant', %s, true)"

_TOGETHER = 50
"""How many statements of a pipeline are sent together. Those that follow are sent one by one, so that others of the
event loop have their turn."""


class RowSecurityConnection(WatchedConnection):
    """Once row-level security is known to hold for the role (`hold_row_security`), the transaction's tenant is set
    before a statement that binds a `tenant`, to that one and for this transaction alone. A statement that binds none
    sees no rows of any. (`executemany` sets nothing.)

    A statement outside of a transaction block is sent together with the setting, as one transaction and in one round
    trip; so are all of a pipeline. What is fetched within a pipeline would end that transaction early.
    """

    _block = False
    """Whether a transaction block is open."""
    _set: tuple[object, object] | None = None
    """What is set in the transaction that is under way: the tenant, and the pipeline that is the transaction, None in a
    transaction block."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._kept = dict[str, AsyncCursor[Any]]()

    async def execute_often(self, query: LiteralString, params: Any = None, *, named: bool = False) -> AsyncCursor[Any]:
        """As `execute`, for a statement that comes with every append: on the cursor that is kept for it, which has its
        result until it comes again or the connection is given back. If `named`, its rows have their columns by name
        too."""
        cursor = self._kept.get(query) or self.kept_cursor(query, named=named)
        return await cursor.execute(query, params)

    def kept_cursor(self, query: LiteralString, *, named: bool = False) -> AsyncCursor[Any]:
        """The cursor that is kept for a statement. A new one would find out anew how its values are written and its
        rows are read, which takes a third of the time of a short statement."""
        found = self._kept.get(query)
        if found is None:
            found = self._kept[query] = self.cursor(row_factory=_named_rows() if named else tuple_row)
        return found

    def forget_results(self) -> None:
        """Nothing of what was read or written is to be held: it may be large, and the connection lasts."""
        for cursor in cast("Mapping[str, Any]", self._kept).values():
            cursor._reset()
            if hasattr(cursor, "_tx"):
                cursor._tx.set_pgresult(None, set_loaders=False)

    def hold_row_security(self) -> None:
        """Row-level security holds for the role."""
        self.cursor_factory = _Cursor

    def forget_tenant(self) -> None:
        """The connection is in no transaction."""
        self._block, self._set = False, None

    async def let_in(self, query: object, params: object) -> bool:
        """Set the tenant of a statement, where that is not set yet. Returns whether it is: outside of a transaction and
        of a pipeline, it has to be set together with the statement."""
        word = str(query)[:9].split(" ")[0]
        if word in ("begin", "commit", "rollback"):
            self._block, self._set = word == "begin", None
            return True
        tenant = cast("Mapping[str, object]", params).get("tenant") if isinstance(params, Mapping) else None
        where = None if self._block else self._pipeline
        if tenant is None or self._set == (tenant, where):
            return True
        if not self._block and self._pipeline is None:
            return False
        await AsyncCursor(self).execute(_SET, [tenant])
        self._set = (tenant, where)
        return True

    def pipeline(self):  # psycopg names its type privately
        if self._pipeline is None:
            self._pipeline = _Pipeline(self)
        return super().pipeline()

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


def _named_rows() -> Callable[[AsyncCursor[Any]], Callable[[Sequence[Any]], Any]]:
    """For the cursor of one statement: its rows have their columns by name, which are looked up once."""
    make: Callable[[Sequence[Any]], Any] | None = None

    def rows_of(cursor: AsyncCursor[Any]) -> Callable[[Sequence[Any]], Any]:
        nonlocal make
        if make is None and cursor.pgresult is not None and cursor.pgresult.nfields:
            make = namedtuple_row(cursor)
        return make or namedtuple_row(cursor)

    return rows_of


class _Pipeline(AsyncPipeline):
    """Sends its statements together, when their results are asked for. psycopg sends each by itself, and each wakes the
    server."""

    def _communicate_gen(self) -> PQGen[None]:
        while self.command_queue:
            self.command_queue.popleft()()
        if len(self.result_queue) > _TOGETHER:
            yield from super()._communicate_gen()


class _Cursor(AsyncCursor[Any]):
    """Sets the tenant of a statement first."""

    _conn: RowSecurityConnection

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        if await self._conn.let_in(query, params):
            return await super().execute(query, params, **options)
        async with self._conn.pipeline():
            await self._conn.let_in(query, params)
            return await super().execute(query, params, **options)
