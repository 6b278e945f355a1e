"""What the synchronous API adds to a call."""

from __future__ import annotations

from random import Random
from typing import Any

import hitherto
from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Scope, none

_BAR = Bar(limit=0.15)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36


async def run(ground: Ground) -> Findings:
    """The same verbs without `await`, and with it: the difference of the medians."""
    repetitions, warm_up = ground.size(1_000, quick=10), ground.size(100, quick=3)
    random = Random(31)
    turns = [turn(random, _TEXT) for _ in range(repetitions + warm_up)]
    async with ground.database() as url, memory_on(url, worker=False) as memory:
        with hitherto.open_sync(url, worker=False) as waiting:
            awaited = memory.conversation("awaited", scope=_SCOPE, policy=none())
            called = waiting.conversation("called", scope=_SCOPE, policy=none())

            async def append_called(n: int) -> Any:
                return called.append(*turns[n], key=f"turn {n}")

            async def head_called(n: int) -> Any:
                return called.head()

            appends = await in_turns(
                [
                    Side("append, without await", append_called),
                    Side("append, awaited", lambda n: awaited.append(*turns[n], key=f"turn {n}")),
                ],
                repetitions=repetitions,
                warm_up=warm_up,
            )
            heads = await in_turns(
                [Side("head, without await", head_called), Side("head, awaited", lambda n: awaited.head())],
                repetitions=repetitions,
                warm_up=warm_up,
            )
    figures: list[Figure] = []
    for name, (called_side, awaited_side) in (("append", appends), ("head", heads)):
        added = (called_side.times.median - awaited_side.times.median) * 1_000
        figures += [
            ratio(called_side, awaited_side),
            Figure(what=f"added to the median of {name}", value=added, unit="ms", bar=_BAR),
        ]
    return Findings(
        figures, [f"{repetitions} calls a side, on one server; the caller waits in a thread of its own loop."]
    )
