"""What waking workers costs those who append, and how soon an idle worker in another process is awake."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random

from benchmarks.fleet import hands, load_average, value
from benchmarks.ground import Ground, memory_on, turn
from benchmarks.hands import TEXT, place
from benchmarks.measure import Side, Times, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Memory
from hitherto.store.wake import Notifier

_RATE = Bar(limit=0.9, at_least=True)
_AWAKE = Bar(limit=100)
_WRITERS = 8
_EACH = 25
"""Appends of a writer in one repetition."""

_MADE = "select extract(epoch from completed_at - created_at) from hitherto.digest where status = 'completed'"


def _do_nothing(self: Notifier) -> None:
    """In place of a notification."""


async def run(ground: Ground) -> Findings:
    """Eight writers whose appends set off digests, with and without notifications; then appends to an idle worker."""
    return Findings([await _rate(ground), *await _awake(ground)], [f"{load_average()}."])


async def _rate(ground: Ground) -> Figure:
    """Commits a second with notifications ÷ without, while a connection listens and nobody makes digests."""
    random, repetitions, numbers = Random(31), ground.size(30, quick=2), count()
    pair = turn(random, TEXT)
    notify = Notifier.notify

    async def append(memory: Memory) -> None:
        async def each() -> None:
            for _ in range(_EACH):
                # The third round of a conversation of its own: it sets off a digest.
                await place(memory, next(numbers)).append(*pair, *pair, *pair)

        await asyncio.gather(*(each() for _ in range(_WRITERS)))

    async def quiet(memory: Memory) -> None:
        Notifier.notify = _do_nothing
        try:
            await append(memory)
        finally:
            Notifier.notify = notify

    async with ground.database() as url, ground.admin(url) as admin, memory_on(url, worker=False) as memory:
        await admin.execute("listen hitherto_digests")
        without, woken = await in_turns(
            [
                Side(f"{_WRITERS * _EACH} appends of {_WRITERS} writers, without waking", lambda _: quiet(memory)),
                Side("the same with waking", lambda _: append(memory)),
            ],
            repetitions=repetitions,
            warm_up=2,
        )
        fired = await value(admin, "select count(*) from hitherto.digest where status = 'processing'")
    if fired != next(numbers):
        raise RuntimeError(f"{fired} digests were set off: the appends are not what they say")
    return ratio(without, woken, bar=_RATE)


async def _awake(ground: Ground) -> list[Figure]:
    """From a commit to the end of its digest by an idle worker in another process."""
    random, repetitions = Random(32), ground.size(60, quick=3)
    async with (
        ground.database() as url,
        ground.admin(url) as admin,
        hands(("work", url)),
        memory_on(url, worker=False) as memory,
    ):
        for number in range(repetitions):
            await place(memory, number).append(*(one for _ in range(3) for one in turn(random, TEXT)))
            # Longer than the longest pause between two looks by itself, now and then: it is idle.
            await asyncio.sleep(random.uniform(0.3, 2.5))
        found = await (await admin.execute(_MADE)).fetchall()
    if len(found) != repetitions:
        raise RuntimeError(f"{len(found)} digests are made, of {repetitions}")
    times = Times(tuple(float(seconds) for (seconds,) in found))
    what = "idle worker in another process, from the commit to the end of its digest"
    return [
        Figure(what=f"{what}, median", value=times.median * 1_000, unit="ms"),
        Figure(what=f"{what}, p95", value=times.p95 * 1_000, unit="ms", bar=_AWAKE),
    ]
