"""Times of several sides, taken in turns, so that a machine that gets slower or faster does so for all of them."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that the repetitions of one side took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.seconds, n=20, method="inclusive")[18]


@dataclass(frozen=True, slots=True)
class Side:
    """What is timed: `action` gets the number of its repetition. `after` is not timed: it lets background work end."""

    label: str
    action: Callable[[int], Awaitable[object]]
    after: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A side with its times: until the action returned, and of this process's processor until what the action left to
    the event loop was done too."""

    label: str
    times: Times
    processor: Times


_ROUNDS = 3
"""Rounds of the event loop in which a connection is given back."""


async def in_turns(sides: Sequence[Side], *, repetitions: int, warm_up: int) -> list[Measured]:
    """The times of every side: A B C, B C A, C A B …, so that each follows each equally often.

    The warm-up is not counted; it covers prepared statements and the caches of both ends.
    """
    times: list[list[float]] = [[] for _ in sides]
    processor: list[list[float]] = [[] for _ in sides]
    gc.collect()
    for number in range(warm_up + repetitions):
        for offset in range(len(sides)):
            at = (number + offset) % len(sides)
            side = sides[at]
            begun, used = time.perf_counter(), time.process_time()
            await side.action(number)
            took = time.perf_counter() - begun
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
            if number >= warm_up:
                times[at].append(took)
                processor[at].append(time.process_time() - used)
            if side.after is not None:
                await side.after()
    return [
        Measured(side.label, Times(tuple(taken)), Times(tuple(used)))
        for side, taken, used in zip(sides, times, processor, strict=True)
    ]
