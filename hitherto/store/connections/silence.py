"""Connections that end when the server falls silent, as behind a firewall that has forgotten them.

A silent connection is not closed: nothing comes, and what is sent is swallowed. Where the kernel can tell, keepalives
and `tcp_user_timeout` end it after five seconds. Where something in between takes the bytes, as a proxy does, the
client looks for itself. After `LOOK` seconds in which nothing came or went, it asks the server over a new connection
whether it is at work for this one. If so, it waits on: a statement may take long. If the server waits too, and nothing
comes for `_LOOK_AGAIN` seconds more, the connection is closed, without waiting for the server. A server that cannot be
reached may be busy: it is asked again and again, for as long as a connection is waited for. Where the server cannot be
asked, as behind a pooler, and in any case in the end, the connection's `limit` closes it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo, timeout_from_conninfo
from psycopg.errors import InsufficientPrivilege
from psycopg.pq import TransactionStatus
from psycopg.waiting import Wait

from hitherto.store.sql import SQL

LOOK = 1.5
"""Seconds of silence after which the server is asked, each time."""

_LOOK_AGAIN = 1.0
_REACH = 2
_REACH_AGAIN = 0.3
"""Seconds in which the server must let itself be asked, and before it is tried again."""

SHORT_LIMIT, LONG_LIMIT = 30.0, 600.0
"""Seconds of silence that end a connection whatever the server does: for statements of most verbs, and for those that
erase, import, export and index."""

_GREETING = 5.0
"""Seconds of silence that end a connection before it is greeted, and the fewest while the server cannot be reached."""

_KEEPALIVES = {"idle": 2, "interval": 1, "count": 3, "timeout": 5_000}
"""Seconds before the first keepalive and between two, and how many; milliseconds until what was sent must have
arrived."""

_POLL = 0.1
"""Seconds between two looks at the time while a connection waits; as psycopg has it."""

T = TypeVar("T")


def address(url: str, *, patience: float) -> str:
    """`url` with what every connection is made with. What it says itself goes before. An attempt to connect ends after
    `patience` seconds, but not before two. Raises psycopg.ProgrammingError if it is not an address."""
    ours = {
        # Without a timeout, a host that has lost its power holds an attempt up for two minutes.
        "connect_timeout": max(2, int(patience)),
        "keepalives_idle": _KEEPALIVES["idle"],
        "keepalives_interval": _KEEPALIVES["interval"],
        "keepalives_count": _KEEPALIVES["count"],
        "tcp_user_timeout": _KEEPALIVES["timeout"],
        "application_name": "hitherto",
    }
    given = conninfo_to_dict(url)
    return make_conninfo(url, client_encoding="UTF8", **{name: ours[name] for name in ours if name not in given})


class Backend(NamedTuple):
    """A server process: its number, and when it was started, in microseconds."""

    pid: int
    start: int


class Answer(Enum):
    """What the server does for a connection: it is at WORK, it WAITS for the client or has no such connection, it
    cannot be REACHED, or it cannot be asked."""

    WORK = auto()
    WAITS = auto()
    UNREACHED = auto()
    UNKNOWN = auto()


class Activity:
    """Asks the server at `url` what it does for connections that have fallen silent. Those that ask at about the same
    time share one new connection for that."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._asked_at = 0.0
        self._found: Mapping[Backend, bool] | Answer = Answer.UNKNOWN

    async def ask(self, backend: Backend | None, *, after: float) -> Answer:
        """What the server does for a backend, asked after this time (`time.monotonic`). It is not known where it is not
        known which backend it is, as behind a pooler, or where the server lets nobody in."""
        if backend is None:
            return Answer.UNKNOWN
        async with self._turn:
            if self._asked_at < after:
                self._asked_at = monotonic()
                self._found = await self._ask()
        if isinstance(self._found, Answer):
            return self._found
        return Answer.WORK if self._found.get(backend) else Answer.WAITS

    async def _ask(self) -> Mapping[Backend, bool] | Answer:
        asked = address(self._url, patience=_REACH)
        try:
            async with asyncio.timeout(
                timeout_from_conninfo(conninfo_to_dict(asked)) + 2 * LOOK
            ):  # with the host's name
                async with await WatchedConnection.connect(asked, autocommit=True) as connection:
                    connection.limit = LOOK
                    found = await (await connection.execute(SQL["backends"])).fetchall()
        except psycopg.Error as error:
            return Answer.UNREACHED if error.sqlstate is None else Answer.UNKNOWN
        except TimeoutError:
            return Answer.UNREACHED
        return {Backend(pid, start): works for pid, start, works in found}


class _Silence(Exception):
    """Nothing has come or gone for so long. The generator goes on when it is sent that what it `wants` is there;
    `moved` says whether anything came or went before."""

    def __init__(self, wants: Wait, moved: bool) -> None:
        self.wants, self.moved = wants, moved


def _watched(work: PQGen[T], wants: Wait | None, seconds: float) -> PQGen[T]:
    """psycopg's generator, or the rest of it. Raises _Silence when nothing has come or gone for so many seconds."""
    since, moved = 0.0, False
    try:
        if wants is None:
            wants = next(work)
        while True:
            ready = yield wants
            if ready:
                since, moved = 0.0, True
                wants = work.send(ready)
            elif not since:
                since = monotonic()
            elif monotonic() - since >= seconds:
                raise _Silence(wants, moved)
    except StopIteration as end:
        return end.value


class _Doubt:
    """Whether a connection that has fallen silent is to be ended: it was silent for `seconds` already, and its
    generator `wants` what does not come. `asked` is when the server was asked last, `answer` what it said, `rest` the
    seconds until it is asked again."""

    def __init__(self, silence: _Silence, *, seconds: float, limit: float, reach: float) -> None:
        self._limit, self._reach = limit, reach
        self._since = self.asked = monotonic() - seconds
        self.answer = Answer.UNKNOWN
        self.wants = silence.wants

    def hear(self, answer: Answer) -> None:
        self.asked, self.answer = monotonic(), answer

    def go_on(self, silence: _Silence) -> None:
        """It has been silent for the `rest` too."""
        self.wants = silence.wants
        if silence.moved:
            self._since, self.answer = monotonic() - self.rest, Answer.UNKNOWN

    @property
    def rest(self) -> float:
        match self.answer:
            case Answer.WAITS:
                return _LOOK_AGAIN
            case Answer.UNREACHED:
                return _REACH_AGAIN
            case _:
                return 2 * LOOK

    @property
    def is_over(self) -> bool:
        limit = self._reach if self.answer is Answer.UNREACHED else self._limit
        return self.answer is Answer.WAITS or monotonic() - self._since >= limit

    @property
    def error(self) -> psycopg.OperationalError:
        return psycopg.OperationalError(f"it has been silent for {monotonic() - self._since:.0f} seconds")


class WatchedConnection(AsyncConnection[Any]):
    """A connection that is closed when it has been silent for too long; what waited for it raises OperationalError. One
    that has asked for nothing, as when it listens for notifications, may be silent.

    `activity` is who asks the server about it, `backend` who it is there, `limit` the seconds of silence that end it in
    any case, `reach` those that end it where the server cannot be reached. `overran`: it was ended by the limit, and
    the server was still at work.
    """

    activity: Activity | None = None
    backend: Backend | None = None
    limit: float = _GREETING
    reach: float = _GREETING
    greeted_at: float = 0.0
    overran: bool = False

    async def greet(self, activity: Activity, *, reach: float) -> None:
        """Have the server notice a client that is gone, and be watched from now on."""
        with suppress(InsufficientPrivilege):  # to see what the server does, which some take away
            row = await (await self.execute(SQL["greet"], _KEEPALIVES)).fetchone()
            self.backend = _backend(row, self.info.backend_pid)
        self.activity, self.limit, self.reach = activity, SHORT_LIMIT, max(reach, _GREETING)
        self.greeted_at = monotonic()

    async def wait(self, gen: PQGen[T], interval: float = _POLL, timeout: float | None = None) -> T:
        if timeout is not None:  # it is limited already
            return await super().wait(gen, interval, timeout)
        look = min(LOOK, self.limit)
        try:
            wants = next(gen)
        except StopIteration as end:
            return end.value  # as in a pipeline, where most statements wait for nothing
        try:
            return await super().wait(_watched(gen, wants, look), interval)
        except _Silence as silence:
            doubt = _Doubt(silence, seconds=look, limit=self.limit, reach=self.reach)
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            return await super().wait(_watched(gen, doubt.wants, math.inf), interval)
        while not doubt.is_over:
            if self.activity is not None:
                try:
                    doubt.hear(await self.activity.ask(self.backend, after=doubt.asked))
                except asyncio.CancelledError:
                    self.pgconn.finish()
                    raise
            try:
                return await super().wait(_watched(gen, doubt.wants, doubt.rest), interval)
            except _Silence as silence:
                doubt.go_on(silence)
        self.overran = doubt.answer is Answer.WORK
        self.pgconn.finish()  # which waits for nothing
        raise doubt.error

    async def cancel_safe(self, *, timeout: float = _REACH) -> None:
        """As psycopg's, for a cancelled task. Where the server cannot be reached, the connection is closed at once."""
        try:
            await super().cancel_safe(timeout=min(timeout, _REACH))
        except psycopg.OperationalError:
            self.pgconn.finish()
            raise


def allow_long_work(connection: AsyncConnection[Any]) -> None:
    """What is done with a connection that was borrowed may take long: it erases, exports, imports or indexes."""
    if isinstance(connection, WatchedConnection):
        connection.limit = max(connection.limit, LONG_LIMIT)


def _backend(row: Sequence[Any] | None, pid: int) -> Backend | None:
    """The backend that answered `greet`. None if it is not the one that took the connection: then there is a pooler in
    between, which may take another one next time."""
    return None if row is None or row[-1] is None or row[-2] != pid else Backend(*row[-2:])


async def connect(url: str, *, patience: float, prepare_threshold: int | None = 5) -> WatchedConnection:
    """A new connection, in autocommit, that is in no pool. Raises psycopg's errors."""
    connection = await WatchedConnection.connect(
        address(url, patience=patience), autocommit=True, prepare_threshold=prepare_threshold
    )
    try:
        await connection.greet(Activity(url), reach=patience)
    except BaseException:
        await connection.close()
        raise
    return connection
