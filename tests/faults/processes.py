"""Programs of Hitherto's as processes of their own, which a test stops, goes on with, kills and reaps."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.waiting import until
from tests.forked import Process
from tests.patience import PATIENCE

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def surroundings(**settings: object) -> dict[str, str]:
    """This process's environment with these settings of Hitherto's and no others."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HITHERTO_", "OPENAI_")) and name.upper() not in _PROXIES
    }
    return {**kept, "COLUMNS": "80", **{f"HITHERTO_{name.upper()}": str(value) for name, value in settings.items()}}


@dataclass(frozen=True, slots=True, order=True)
class Acknowledged:
    """An append that was acknowledged: what its answer said."""

    conversation: str
    key: str
    start: int
    end: int
    rev: int
    digest: int | None
    replayed: bool


class Program:
    """A running `python -m MODULE …`. `out` and `err` are the lines it has written so far."""

    def __init__(self, process: Process, name: str) -> None:
        self.name = name
        self.out: list[str] = []
        self.err: list[str] = []
        self._process = process
        self._reading = [
            asyncio.create_task(_read(stream, lines))
            for stream, lines in ((process.stdout, self.out), (process.stderr, self.err))
        ]

    @classmethod
    async def start(cls, name: str, module: str, *words: str, **settings: object) -> Program:
        return cls(await Process.start(module, *words, environment=surroundings(**settings)), name)

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def acknowledged(self) -> list[Acknowledged]:
        """What a writer reported."""
        return [Acknowledged(**json.loads(line)) for line in self.out if line.startswith("{")]

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def said(self, words: str) -> None:
        """Returns once a line with `words` was written to standard error."""

        def look() -> bool:
            assert self.running or any(words in line for line in self.err), f"{self.name} has ended: {self.err}"
            return any(words in line for line in self.err)

        await until(look, f"{self.name} says {words!r}")

    async def appended(self, more: int) -> None:
        """Returns once a writer has had so many more appends acknowledged."""
        before = len(self.acknowledged)
        await self._alive_until(lambda: len(self.acknowledged) >= before + more, f"appends {more} times")

    async def _alive_until(self, look: Callable[[], bool], what: str) -> None:
        def alive() -> bool:
            assert self.running, f"{self.name} has ended: {self.err}"
            return look()

        await until(alive, f"{self.name} {what}; it said {self.err[-3:]}")

    async def ended(self) -> int:
        """The exit code."""
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*self._reading)
                return await self._process.wait()
        except TimeoutError:
            raise AssertionError(f"{self.name} has not ended within {PATIENCE:g} s: {self.err[-5:]}") from None

    async def kill(self) -> None:
        """kill -9, and reap."""
        self.send(signal.SIGKILL)
        await self.ended()


async def _read(stream: asyncio.StreamReader, lines: list[str]) -> None:
    while line := await stream.readline():
        lines.append(line.decode(errors="replace").rstrip())
