"""Waking the workers of other processes: notifications beside the commits that make digests due, never within them.

A notification holds a lock of the whole database until its commit is on the disk, so that one in each append would make
all appends wait for each other. None is relied on: workers look by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from psycopg import Error

from hitherto.logs import logger
from hitherto.store.connections.silence import WatchedConnection, connect
from hitherto.store.sql import SQL

_APART = 0.02
"""Seconds between two notifications."""

_LONGEST = 5.0
"""Seconds that connecting may take."""

_MOMENT = 1.0
"""Seconds that closing waits for the last notification."""

_QUIET = 10.0
"""Seconds without a notification after which the server is asked whether it is there."""

_FIRST_REST, _LONGEST_REST = 0.2, 10.0
"""Seconds after which a connection that was lost is made anew."""

log = logger("hitherto.digest")


class Notifier:
    """Notifies the workers of all processes on the database at `url`, on a connection of its own, which is made when it
    is first needed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asked = False
        self._task: asyncio.Task[None] | None = None
        self._connection: WatchedConnection | None = None

    def notify(self) -> None:
        """Notify soon. Returns at once."""
        self._asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="waking workers")

    async def aclose(self) -> None:
        """Send what was asked for, unless that takes longer than a moment, and close the connection."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_MOMENT)
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._disconnect()

    async def _run(self) -> None:
        while self._asked:
            self._asked = False
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = await connect(self._url, patience=_LONGEST, prepare_threshold=None)
                await self._connection.execute(SQL["wake_workers"])
            except Error as error:
                log.debug(
                    "Workers of other processes could not be told of a digest; they look by themselves: %s", error
                )
                await self._disconnect()
            await asyncio.sleep(_APART)

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def listen(url: str, woken: Callable[[], None]) -> None:
    """Call `woken` after every notification, and whenever one may have been missed, until cancelled."""
    rest = _FIRST_REST
    while True:
        try:
            async with await connect(url, patience=_LONGEST, prepare_threshold=None) as connection:
                await connection.execute(SQL["listen"])
                rest = _FIRST_REST
                woken()
                while True:
                    async for _ in connection.notifies(timeout=_QUIET):
                        woken()
                    await connection.execute(SQL["listen"])  # as one that has fallen silent would never be noticed
        except Error as error:
            log.debug("No notifications of digests for now, which are looked for all the same: %s", error)
        await asyncio.sleep(rest)
        rest = min(2 * rest, _LONGEST_REST)
