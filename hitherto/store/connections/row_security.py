"""Row-level security: the connections of a role for which it holds, and what such a role is given."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, LiteralString, Self, cast

import psycopg
from psycopg import AsyncCursor, AsyncPipeline, AsyncTransaction, sql
from psycopg.abc import PQGen
from psycopg.generators import send
from psycopg.rows import namedtuple_row, tuple_row

from hitherto.blocks import block, unlisted
from hitherto.errors import InvalidInput, StoreError
from hitherto.store import errors
from hitherto.store.connections.silence import WatchedConnection, connect

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
        return unlisted(super().pipeline())

    @block
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncGenerator[AsyncTransaction]:
        outermost = not self._block
        async with unlisted(super().transaction(savepoint_name, force_rollback)) as made:
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
    server.

    Nothing is sent after the Sync that ends it. psycopg sends a Flush where results are still to come. PgBouncer may
    have taken the server's connection back by then, and gives the client another one for the Flush, which no answer
    ends: the client keeps it, idle as it is, and with all of them kept so, everybody waits.
    """

    def _communicate_gen(self) -> PQGen[None]:
        while self.command_queue:
            self.command_queue.popleft()()
        waiting = self.result_queue
        if waiting and waiting[-1] is None:  # a Sync
            yield from send(self.pgconn)
        elif len(waiting) > _TOGETHER:
            yield from super()._communicate_gen()

    def _fetch_gen(self, *, flush: bool) -> PQGen[None]:
        ended = self.result_queue and self.result_queue[-1] is None
        return super()._fetch_gen(flush=flush and not ended)


class _Cursor(AsyncCursor[Any]):
    """Sets the tenant of a statement first."""

    _conn: RowSecurityConnection

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        if await self._conn.let_in(query, params):
            return await super().execute(query, params, **options)
        async with self._conn.pipeline():
            await self._conn.let_in(query, params)
            return await super().execute(query, params, **options)


_PATIENCE = 10.0
"""Seconds to wait for a connection."""

_ASKED = """
select r.rolsuper or r.rolbypassrls,
       exists (select from pg_class c where c.relnamespace = 'hitherto'::regnamespace
               and pg_has_role(r.oid, c.relowner, 'usage'))
from pg_roles r where r.rolname = %s
"""

_VIEWS = """
select c.relname from pg_class c
where c.relnamespace = 'hitherto'::regnamespace and c.relkind = 'v'
  and not coalesce(c.reloptions @> '{security_invoker=true}', false)
"""
"""Views that read with their owner's rights, and so past row-level security: those that a migration left so."""

_UNPROTECTED = """
select string_agg(c.relname, ', ' order by c.relname) from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant' and not a.attisdropped
where c.relnamespace = 'hitherto'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity
"""
"""Tables with rows of tenants and without row-level security, such as one of which a migration forgot that."""

_LACKS = """
select count(*) from pg_class c
where c.relnamespace = 'hitherto'::regnamespace
  and case c.relkind
      when 'S' then not has_sequence_privilege(%(role)s, c.oid, 'usage')
      when 'r' then not has_table_privilege(%(role)s, c.oid, 'select') or c.relname <> 'alembic_version' and not (
          has_table_privilege(%(role)s, c.oid, 'insert') and has_table_privilege(%(role)s, c.oid, 'update')
          and has_table_privilege(%(role)s, c.oid, 'delete'))
      when 'v' then not has_table_privilege(%(role)s, c.oid, 'select')
      else false end
"""
"""How many tables, sequences and views a role lacks rights to."""

_GRANTS = (
    "grant usage on schema hitherto to {}",
    "grant select, insert, update, delete on all tables in schema hitherto to {}",
    "revoke insert, update, delete on hitherto.alembic_version from {}",
    "grant usage on all sequences in schema hitherto to {}",
)


async def grant(url: str, role: str) -> bool:
    """Give a role what a service or a worker needs. The connection at `url` must be the schema's owner's. Returns
    whether it lacked any of it.

    Raises InvalidInput for a role that does not exist, and for one for which row-level security does not hold: a
    superuser, the owner, or one that may pass it. Raises StoreError, and gives nothing, where a table has rows of
    tenants and no row-level security.
    """
    errors.checked_address(url)
    name = sql.Identifier(role)
    try:
        async with await connect(url, patience=_PATIENCE) as connection, connection.transaction():
            found = await (await connection.execute(_ASKED, [role])).fetchone()
            if found is None:
                raise InvalidInput(f"there is no role {role!r}; make it first: CREATE ROLE … LOGIN PASSWORD …")
            if any(found):
                raise InvalidInput(
                    f"the role {role!r} is a superuser, owns Hitherto's tables or may pass row-level security, so that "
                    "nothing would keep tenants apart; take one that may not"
                )
            unprotected = await (await connection.execute(_UNPROTECTED)).fetchone()
            if unprotected is not None and unprotected[0] is not None:
                raise StoreError(
                    f"nothing would keep tenants apart in {unprotected[0]}: enable row-level security there, with a "
                    "policy on the tenant as the other tables have"
                )
            for (view,) in await (await connection.execute(_VIEWS)).fetchall():
                closed = sql.SQL("alter view hitherto.{} set (security_invoker = true)")
                await connection.execute(closed.format(sql.Identifier(view)))
            lacks = await (await connection.execute(_LACKS, {"role": role})).fetchone()
            if lacks == (0,):
                return False
            for statement in _GRANTS:
                await connection.execute(sql.SQL(statement).format(name))
            return True
    except psycopg.OperationalError as error:
        raise errors.unreachable(url, error) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refused to give rights to {role!r}: {str(error).strip()}") from error
