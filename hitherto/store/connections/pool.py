"""A pool of connections that loses none when a task that borrows one is cancelled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, cast

from psycopg import AsyncConnection, Error
from psycopg.errors import InsufficientPrivilege, LockNotAvailable
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from hitherto.blocks import block
from hitherto.errors import DatabaseReadOnly, DatabaseUnavailable, InvalidInput
from hitherto.limiter import FairLimiter
from hitherto.logs import logger
from hitherto.store.connections.row_security import RowSecurityConnection
from hitherto.store.connections.silence import SHORT_LIMIT, Activity, Backend, WatchedConnection, address
from hitherto.store.sql import SQL

log = logger("hitherto.database")

_NAME = "hitherto"

_SETTINGS = """
select current_setting('transaction_read_only')::boolean,
       set_config('lock_timeout', %s, false),
       set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false),
       (select row_security_active(c.oid) from pg_class c where c.oid = to_regclass('hitherto.message'))
       and not exists (select from pg_class v
                       where v.relnamespace in (to_regnamespace('hitherto'), to_regnamespace('other_systems'))
                         and v.relkind = 'v'
                         and not coalesce(v.reloptions @> '{security_invoker=true}', false)
                         and has_table_privilege(v.oid, 'select'))
"""
"""What was acknowledged must be there after a crash of the server, so a commit waits until it is on the server's disk.
Only `off` does not wait for that. `local` and those above it differ in what else they wait for, on standby servers:
that is the operator's choice."""

_ABANDONED = 5.0
"""Fewest seconds after which a transaction that waits for its client is ended, if another one waits for its locks."""

_CONNECT_TIMEOUT = 3.0
"""Seconds after which the next attempt to make a connection begins: what was sent to a host that is silent is lost."""

_RECONNECT_TIMEOUT = 1.0
"""Seconds for which psycopg's pool tries to replace a connection. It waits twice as long after each attempt that fails:
after a minute without the database, another minute. So it is made to give up soon, and then asked to begin again."""


class Connections:
    """At most `size` connections to the server at `url`; a task waits at most `patience` seconds for one. If
    `prepared`, statements that come often are prepared, for as long as a connection lasts. If `read_only`, the server
    refuses to write on them. If `throwaway`, what is in the database ends with its server.

    While no connection can be made, another attempt follows every second or so. `start_again`, if given, is called
    after each that fails, for a server that this process may start.

    psycopg's pool makes, checks and replaces the connections. It can lose one when a task is cancelled while it waits
    inside the pool (psycopg/psycopg#1208, #1345), until none is left. So no task that can be cancelled waits there:
    tasks take turns outside of it, and what may take long runs in separate tasks.

    psycopg also counts a statement as prepared from when a pipeline sends it for the first time, whether or not the
    server comes to it. So after a block that fails, the connection forgets what is prepared.

    Whether a connection may write is asked once, when it is made. So one that was refused a write is replaced; and all
    are replaced once a new connection may write where the one before could not. All are replaced, too, when one is
    lost: what happened to it has happened to others, which nobody has used since. What the server may still hold for a
    lost one, its transaction and its locks, is ended over the next new connection; and what it holds for a process that
    died behind a silent network is ended by whoever has waited for it in vain.

    The connections belong to the event loop in which they are opened: in any other, all verbs raise InvalidInput.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        patience: float,
        prepared: bool = True,
        read_only: bool = False,
        start_again: Callable[[], Awaitable[None]] | None = None,
        throwaway: bool = False,
    ) -> None:
        self.throwaway = throwaway
        self.url = url
        self._patience = patience
        self._limit = max(SHORT_LIMIT, 3 * patience)
        self._start_again = start_again
        self._asks_to_read_only = read_only
        self._turns = FairLimiter(size, most=size - size // 4)
        self._returning: set[asyncio.Task[None]] = set()
        self._home: asyncio.AbstractEventLoop | None = None
        self._read_only = False
        """Whether the connection that was made last may not write."""
        self._activity = Activity(url)
        self._left = set[Backend]()
        """Backends whose connections were lost: the server may not know."""
        self._renewed_at = 0.0
        self._renewing: asyncio.Task[None] | None = None
        self.row_security = False
        """Whether row-level security holds for the role of the connections."""
        self._pool = _Pool(
            lambda: address(url, patience=min(patience, _CONNECT_TIMEOUT)),
            connection_class=RowSecurityConnection,
            min_size=1,
            max_size=size,
            timeout=patience,
            open=False,
            reconnect_timeout=_RECONNECT_TIMEOUT,
            reconnect_failed=self._given_up,
            kwargs={"autocommit": True, "prepare_threshold": 5 if prepared else None},
            configure=self._configured,
            name=_NAME,
        )

    async def open(self) -> None:
        """Returns once a connection is there. Raises PoolTimeout."""
        self._home = asyncio.get_running_loop()
        # Once, however often they are added. With a handler, Python prints nothing where logging is not set up.
        logging.getLogger("psycopg").addHandler(_UNPRINTED)
        logging.getLogger("psycopg.pool").addFilter(_is_news)
        await self._pool.open(wait=True, timeout=self._patience)

    async def aclose(self) -> None:
        """Close all connections, after those that are being returned."""
        self._check_loop()
        while self._returning:
            await asyncio.wait(tuple(self._returning))
        await self._pool.close()

    async def renew(self, lost: RowSecurityConnection) -> None:
        """Replace all connections that were there when one was lost: idle ones now, others when they are given back."""
        self._lose(lost)
        if self._renewing is not None:
            await asyncio.shield(self._renewing)

    def _lose(self, connection: RowSecurityConnection, *, by: BaseException | None = None) -> None:
        if self._pool.closed:
            return
        if connection.backend is not None:
            self._left.add(connection.backend)
        if connection.overran or isinstance(by, asyncio.CancelledError):
            return  # we have closed it
        if connection.greeted_at > self._renewed_at:
            log.warning("A connection to the database was lost or fell silent; all are replaced")
            self._renewed_at = time.monotonic()
            self._renewing = self._background(self._pool.drain())

    @block
    async def borrowed(self) -> AsyncGenerator[RowSecurityConnection]:
        """A connection until the end of the block. Raises DatabaseUnavailable if none is free in time, PoolTimeout if
        none can be made."""
        self._check_loop()
        tenant = await self._turn()
        connection = await self._taken(tenant)
        connection.forget_tenant()
        connection.limit = self._limit
        try:
            yield connection
        except BaseException as error:
            self._background(self._return(connection, tenant, error))
            raise
        else:
            self._background(self._return(connection, tenant))

    def _check_loop(self) -> None:
        if self._home is not None and self._home is not asyncio.get_running_loop():
            raise InvalidInput(
                "the connections to the database were opened in another event loop, and belong to it; use what you "
                "opened there, or open it once more here"
            )

    async def _configured(self, connection: RowSecurityConnection) -> None:
        await connection.greet(self._activity, reach=self._patience)
        await self._end_what_is_left(connection)
        # In a time zone east of UTC, times near datetime.max would overflow Python's datetime.
        await connection.execute("set time zone 'UTC'")
        await connection.execute("set datestyle = 'ISO'")  # the only one psycopg reads
        # Whatever the database's default: a claim that waited for another must see what that did, and not fail because
        # of it.
        await connection.execute("set default_transaction_isolation = 'read committed'")
        if self._asks_to_read_only:
            await connection.execute("set default_transaction_read_only = on")
        # Whoever holds a conversation's row need not ever let go.
        patience = f"{max(self._patience, 0.001) * 1_000:.0f}ms"
        told = await connection.execute(_SETTINGS, [patience])
        ((read_only, _, _, row_security),) = await told.fetchall()
        self.row_security = bool(row_security)
        if row_security:
            connection.hold_row_security()
        _told.clear()
        if self._read_only and not read_only:
            self._background(self._pool.drain())
        self._read_only = bool(read_only)

    async def _end_what_is_left(self, connection: RowSecurityConnection) -> None:
        if not self._left:
            return
        left = tuple(self._left)
        with suppress(InsufficientPrivilege):  # then the server ends them when it notices
            ending = {"pids": [one.pid for one in left], "starts": [one.start for one in left]}
            await connection.execute(SQL["end_backends"], ending)
        self._left.difference_update(left)

    def _given_up(self, _: object) -> None:
        # In a separate task: the pool has few tasks for its work, and to start a server takes long.
        self._background(self._try_again())

    async def _try_again(self) -> None:
        if self._start_again is not None:
            await self._start_again()
        found = self._pool.get_stats()
        if not self._pool.closed and (found["requests_waiting"] or not found["pool_size"]):
            await self._pool.check()  # it makes a connection if there is none

    async def _turn(self) -> str:
        try:
            async with asyncio.timeout(self._patience):
                return await self._turns.acquire()
        except TimeoutError:
            size = self._pool.max_size
            raise DatabaseUnavailable(
                f"no connection to the database was free within {self._patience:g} seconds; a process has {size}, and "
                f"a tenant of a service {size - size // 4} of them: try again, or raise pool_size (HITHERTO_POOL_SIZE)"
            ) from None

    async def _taken(self, tenant: str) -> RowSecurityConnection:
        """A connection for a task that has its turn. If there is none to be had, the turn is given back."""
        try:
            if self._pool.get_stats().get("pool_available"):
                return await self._pool.getconn()  # an idle one is returned without a wait
        except BaseException:
            self._turns.release(tenant)
            raise
        taking = asyncio.create_task(self._pool.getconn())
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            self._background(self._return_late(taking, tenant))
            raise
        except Exception:
            self._turns.release(tenant)
            raise

    async def _return(self, connection: RowSecurityConnection, tenant: str, error: BaseException | None = None) -> None:
        """Give a connection and its turn back; a transaction that was not committed is rolled back."""
        try:
            await self._cleared(connection, error)
        finally:
            if connection.closed and not isinstance(error, DatabaseReadOnly):
                self._lose(connection, by=error)
            try:
                connection.forget_results()
                await self._pool.putconn(connection)
            finally:
                self._turns.release(tenant)

    async def _cleared(self, connection: AsyncConnection[Any], error: BaseException | None) -> None:
        # If the connection is lost, so are its transaction and its prepared statements, and the pool notices.
        with suppress(Error):
            if isinstance(error, DatabaseReadOnly):
                await connection.close()
            elif error is not None and connection.info.transaction_status is TransactionStatus.IDLE:
                await connection.execute("begin")  # with the rollback below, psycopg forgets what is prepared
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                await connection.rollback()
            if isinstance(error.__cause__ if error else None, LockNotAvailable):
                await connection.execute(SQL["end_abandoned"], {"silent": f"{max(self._patience, _ABANDONED):f}s"})

    async def _return_late(self, taking: asyncio.Task[RowSecurityConnection], tenant: str) -> None:
        try:
            connection = await taking
        except Exception:  # noqa: BLE001 (the task that asked has gone: there is nobody to tell)
            self._turns.release(tenant)
        else:
            await self._return(connection, tenant)

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        return task


class _Pool(AsyncConnectionPool[RowSecurityConnection]):
    """psycopg's pool, whose workers end when they are cancelled in the middle of a task. Psycopg's go on: where a store
    was left open, `asyncio.run` would wait for them for ever."""

    @classmethod
    async def worker(cls, q: Any) -> None:
        await super().worker(cast(Any, _UntilCancelled(q)))


class _UntilCancelled:
    """The tasks in a queue, until whoever takes them is cancelled."""

    def __init__(self, tasks: asyncio.Queue[Any]) -> None:
        self._tasks = tasks

    async def get(self) -> Any:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._tasks.get()


_UNPRINTED = logging.NullHandler()
_told = set[str]()
"""What psycopg's pool has logged since a connection was last made."""


def _is_news(record: logging.LogRecord) -> bool:
    """Whether to log a record. The pool repeats its warnings two or three times a second; each passes once in an
    outage. That a connection is lost was said already, of all."""
    if record.levelno < logging.WARNING or not isinstance(record.args, tuple) or not record.args:
        return True
    if isinstance(record.args[0], WatchedConnection) and str(record.msg).startswith("discarding closed"):
        return False
    if record.args[0] != _NAME:
        return True
    line = record.getMessage()
    news = line not in _told
    _told.add(line)
    return news
