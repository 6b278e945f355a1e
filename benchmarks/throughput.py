"""How many digests two workers make in a second, and that they make none twice."""

from __future__ import annotations

import asyncio
import time
from itertools import chain
from random import Random
from typing import Any

import psycopg

import hitherto
from benchmarks.fleet import Processors, backends, hands, load_average, value
from benchmarks.ground import Ground, turn
from benchmarks.hands import TEXT, AtOnce, place
from benchmarks.report import Bar, Figure, Findings
from hitherto.tokens import CANONICAL

_BAR = Bar(limit=400, at_least=True)
_NONE = Bar(limit=0)
_ROUNDS = 3
"""What `sliding_window` wants to see before its first digest."""

_LEFT = "select count(*) from hitherto.digest where status = 'processing'"
_TWICE = """
select count(*) from hitherto.digest d
where d.status <> 'completed' or d.attempt <> 1 or d.tries <> 1 or 1 <> (
    select count(*) from hitherto.model_call c where c.tenant = d.tenant and c.digest = d.id)
"""
_SAME = "select count(*) - count(distinct (tenant, conversation, stage, start_seq, end_seq)) from hitherto.digest"


async def run(ground: Ground) -> Findings:
    """Two worker processes with a model that answers at once, on digests that are all due when they begin."""
    digests, busy = ground.size(5_000, quick=200), load_average()
    async with ground.database() as url, ground.admin(url) as admin:
        begun = time.perf_counter()
        await _set_off(url, digests)
        prepared = time.perf_counter() - begun
        await ground.settle(url)
        due = await value(admin, _LEFT)
        async with hands(("held", url), ("held", url)) as workers:
            processors, servers = Processors(), Processors()
            processors.look(hand.pid for hand in workers)
            servers.look(await backends(admin))
            begun = time.perf_counter()
            for hand in workers:
                hand.go()
            while await value(admin, _LEFT):  # noqa: ASYNC110 (it is others who make them)
                await asyncio.sleep(0.03)
            took = time.perf_counter() - begun
            processors.look(hand.pid for hand in workers)
            servers.look(await backends(admin), anew=True)
        wrong = await _wrong(admin, digests)
    each = [f"{one.seconds / digests * 1_000:.2f} ms" for one in (processors, servers)]
    return Findings(
        [
            Figure(what="digests by two workers", value=digests / took, unit="/s", bar=_BAR),
            Figure(what="digests made twice, tried twice or not in the ledger once", value=wrong, bar=_NONE),
        ],
        [
            f"{due:,} digests of {2 * _ROUNDS} messages, one in each conversation, set off by appends beforehand "
            f"({digests / prepared:.0f} appends/s); timed from when both workers had one in hand until none was left. "
            f"Of the processors each took {each[0]} in the workers and {each[1]} in PostgreSQL's processes for them. "
            f"{busy}.",
        ],
    )


async def _set_off(url: str, conversations: int) -> None:
    random = Random(21)
    async with hitherto.open(url, model=AtOnce(), encoding=CANONICAL, worker=False) as memory:

        async def each(numbers: range) -> None:
            for number in numbers:
                rounds = [turn(random, TEXT) for _ in range(_ROUNDS)]
                await place(memory, number).append(*chain(*rounds))

        await asyncio.gather(*(each(range(first, conversations, 8)) for first in range(8)))


async def _wrong(admin: psycopg.AsyncConnection[Any], digests: int) -> int:
    missing = abs(digests - await value(admin, "select count(*) from hitherto.digest"))
    calls = abs(digests - await value(admin, "select count(*) from hitherto.model_call"))
    return missing + calls + await value(admin, _TWICE) + await value(admin, _SAME)
