"""How often a verb waits for the database, found by making every wait longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from benchmarks.ground import BUDGET, Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Figure, Findings
from hitherto import Scope, none, sliding_window

_DELAY = 0.05
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")


class Relay:
    """Passes on what client and server say; while `delay` is not 0, the client hears everything so much later."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """The port at which it listens on the loopback."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, there = await asyncio.open_unix_connection(self._socket)
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        for passing in (self._forward(client, there), self._hold(server, held), self._answer(held, back)):
            task = asyncio.create_task(passing)
            self._tasks.add(task)

    async def _forward(self, client: asyncio.StreamReader, there: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            there.write(data)
        there.close()

    async def _hold(self, server: asyncio.StreamReader, held: asyncio.Queue[tuple[float, bytes]]) -> None:
        clock = asyncio.get_running_loop().time
        while data := await server.read(65_536):
            held.put_nowait((clock() + self.delay, data))
        held.put_nowait((clock(), b""))

    async def _answer(self, held: asyncio.Queue[tuple[float, bytes]], back: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        while (one := await held.get())[1]:
            if (wait := one[0] - clock()) > 0:
                await asyncio.sleep(wait)
            back.write(one[1])
        back.close()


async def run(ground: Ground) -> Findings:
    """The round trips of an append and of a context: what they take longer when each answer comes later."""
    repetitions, warm_up = ground.size(5, quick=2), 8  # psycopg prepares a statement the sixth time
    random = Random(9)
    turns = iter([turn(random, 36) for _ in range(500)])
    async with ground.database() as url:
        where = conninfo_to_dict(url)
        relay = Relay(f"{where['host']}/.s.PGSQL.{where['port']}")
        async with relay.listening() as port:
            through = make_conninfo(url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
            async with memory_on(through) as memory:
                plain = memory.conversation("plain", scope=_SCOPE, policy=none())
                sliding = memory.conversation("sliding", scope=_SCOPE, policy=sliding_window())
                await plain.append(*next(turns))
                sides = [
                    Side("append, policy none", lambda n: plain.append(*next(turns), key=f"{relay.delay} {n}")),
                    Side(
                        "append, sliding_window",
                        lambda n: sliding.append(*next(turns), key=f"{relay.delay} {n}"),
                        memory.wait_for_digests,
                    ),
                    Side("context, policy none", lambda _: plain.context(budget=BUDGET)),
                    Side("context, sliding_window", lambda _: sliding.context(budget=BUDGET)),
                ]
                at_once = await in_turns(sides, repetitions=repetitions, warm_up=warm_up)
                relay.delay = _DELAY
                late = await in_turns(sides, repetitions=repetitions, warm_up=1)
    figures = [
        Figure(what=slow.label, value=(slow.times.least - fast.times.least) / _DELAY, unit="trips")
        for fast, slow in zip(at_once, late, strict=True)
    ]
    late_by = f"{_DELAY * 1_000:.0f} ms"
    return Findings(figures, [f"how many times {late_by} a verb takes longer when every answer comes {late_by} later."])
