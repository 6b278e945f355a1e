"""Processes that write and work on one database, as a fleet does, and what they take of the processors."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, LiteralString

import psutil
import psycopg

_LONGEST_LINE = 2**24


class Hand:
    """A process of `benchmarks.hands`. Nothing is asked of it before it is ready."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @asynccontextmanager
    async def at(cls, *arguments: object) -> AsyncGenerator[Hand]:
        """One in the role that `arguments` begin with; it ends with the block."""
        command = [sys.executable, "-m", "benchmarks.hands", *map(str, arguments)]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE
        )
        try:
            yield cls(process)
        finally:
            assert process.stdin is not None, "asked for above"
            process.stdin.close()
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def said(self) -> dict[str, Any]:
        """The next line. Raises RuntimeError when the process has ended without one."""
        assert self._process.stdout is not None, "asked for above"
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the fleet has ended; what it said stands above")
        return json.loads(line)

    def go(self) -> None:
        assert self._process.stdin is not None, "asked for above"
        self._process.stdin.write(b"\n")


@asynccontextmanager
async def hands(*roles: tuple[object, ...]) -> AsyncGenerator[list[Hand]]:
    """One process for each of the roles, all of them ready."""
    async with AsyncExitStack() as stack:
        found = await asyncio.gather(*(stack.enter_async_context(Hand.at(*role)) for role in roles))
        for hand in found:
            await hand.said()
        yield found


async def value(
    admin: psycopg.AsyncConnection[Any], query: LiteralString, values: Mapping[str, object] | None = None
) -> int:
    """The one number that a query gives."""
    row = await (await admin.execute(query, values)).fetchone()
    assert row is not None, "an aggregate always gives a row"
    return int(row[0])


class Processors:
    """Seconds of processor that processes have used, user and system, from the first `look` on."""

    def __init__(self) -> None:
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}

    def look(self, pids: Iterable[int], *, anew: bool = False) -> None:
        """Read the clocks of these processes. One that is seen later than at first, or `anew`, counts whole."""
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                times = psutil.Process(pid).cpu_times()
                self._last[pid] = times.user + times.system
                self._first.setdefault(pid, 0.0 if anew else self._last[pid])

    @property
    def seconds(self) -> float:
        return sum(self._last.values()) - sum(self._first.values())


async def backends(admin: psycopg.AsyncConnection[Any]) -> list[int]:
    """The server's processes for the other connections to this database."""
    found = await admin.execute(
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
        "and backend_type = 'client backend'"
    )
    return [row[0] for row in await found.fetchall()]


def load_average() -> str:
    """How busy the machine is: a note to figures that others on it spoil."""
    return f"Load average of the last minute at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
