"""Rounds in which writers, workers, the server or all of them are killed, every other one behind a network that falls
silent first. After each, the books are checked: what was acknowledged is there once, and no digest was made twice.

python -m tests.faults.rounds [ROUNDS]
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.faults.conftest import Crew
from tests.faults.processes import Acknowledged, Program
from tests.faults.promises import check
from tests.faults.proxy import Proxy
from tests.faults.server import KILL, Server
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel

WHO = ("a writer", "a worker", "the server", "all of them")
_APPENDS = 6
"""Appends of each writer before and after."""


class Rounds:
    """Two writers and two workers on one server, all through one network. `done` counts who was killed."""

    def __init__(self, server: Server, proxy: Proxy, model: ThinkingModel) -> None:
        self._server, self._proxy, self._model = server, proxy, model
        self._tables = Tables(server.url)
        self._crew = Crew(proxy.url, model)
        self._writers: list[Program] = []
        self._workers: list[Program] = []
        self._killed = set[str]()
        self._acknowledged: list[Acknowledged] = []
        self.done = Counter[str]()

    async def play(self, number: int) -> str:
        """One round; says what happened in it."""
        who, silent = WHO[number % len(WHO)], (number + number // len(WHO)) % 2 == 1
        names = [f"round-{number}-{name}" for name in "abc"]
        await self._end(self._writers)
        self._writers = [await self._crew.writer(*names) for _ in range(2)]
        while len(self._workers) < 2:
            self._workers.append(await self._crew.worker())
        await self._appended()
        if silent:
            self._proxy.swallow()
            await self._proxy.has_swallowed()
        await self._kill(who)
        self._proxy.forward()
        if who in ("the server", "all of them"):
            await self._server.start_again()
        while len(self._writers) < 2:
            self._writers.append(await self._crew.writer(*names))
        while len(self._workers) < 2:
            self._workers.append(await self._crew.worker())
        await self._appended()
        await self._end(self._writers)
        self._writers = []
        await self._tables.wait_for_digests()
        # Who could not reach the database in time dropped what it had, and what it paid for it.
        away = self.done["silent"] + self.done["the server"] + self.done["all of them"] + silent > 0
        await check(self._tables, self._acknowledged, self._model.calls, killed=self._killed, away=away)
        self.done.update([who, *(["silent"] if silent else [])])
        rows = await self._tables.digests()
        behind = ", behind a network that fell silent" if silent else ""
        return f"killed {who}{behind}: {len(self._acknowledged)} appends acknowledged, {len(rows)} digests"

    async def aclose(self) -> None:
        await self._crew.aclose()

    async def _appended(self) -> None:
        await asyncio.gather(*(writer.appended(_APPENDS) for writer in self._writers))

    async def _kill(self, who: str) -> None:
        if who in ("a writer", "all of them"):
            await self._end(self._writers if who == "all of them" else self._writers[:1])
            self._writers = [] if who == "all of them" else self._writers[1:]
        if who in ("a worker", "all of them"):
            ended = self._workers if who == "all of them" else self._workers[:1]
            self._workers = [] if who == "all of them" else self._workers[1:]
            self._killed |= {worker.name for worker in ended}
            await asyncio.gather(*(worker.kill() for worker in ended))
        if who in ("the server", "all of them"):
            await self._server.stop(KILL)

    async def _end(self, writers: list[Program]) -> None:
        """Kill writers, and note what they were told."""
        await asyncio.gather(*(writer.kill() for writer in writers))
        self._acknowledged += [one for writer in writers for one in writer.acknowledged]


async def play(rounds: int) -> Counter[str]:
    """So many rounds on a server of their own. Raises AssertionError where something was lost or made twice."""
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    try:
        server = await Server.start(folder / "pg")
        try:
            with ThinkingModel() as model:
                async with Proxy(server.url) as proxy:
                    game = Rounds(server, proxy, model)
                    try:
                        for number in range(rounds):
                            said = await game.play(number)
                            sys.stdout.write(f"round {number + 1}: {said}\n")
                            sys.stdout.flush()
                        return game.done
                    finally:
                        await game.aclose()
        finally:
            await server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdout.write(f"{dict(asyncio.run(play(int(sys.argv[1]) if len(sys.argv) > 1 else 60)))}\n")
