"""What it adds to an append that the digest it sets off gets a job in the queue."""

from __future__ import annotations

from contextlib import AsyncExitStack
from random import Random

from benchmarks.fleet import value
from benchmarks.ground import Ground, turn
from benchmarks.hands import TEXT, AtOnce, place
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import open as opened
from hitherto.tokens import CANONICAL

_BAR = Bar(limit=0.3)
_BEFORE = 2
"""Rounds after which `sliding_window` digests at the next."""

_NO_JOBS = """
create or replace function hitherto.procrastinate_defer_jobs_v1(jobs hitherto.procrastinate_job_to_defer_v1[])
returns bigint[] language sql immutable as 'select null::bigint[]'
"""
_JOBS = "select count(*) from hitherto.procrastinate_jobs"


async def run(ground: Ground) -> Findings:
    """The append that sets off a digest, with its job ÷ the same where the queue's function does nothing."""
    repetitions, warm_up = ground.size(1_000, quick=10), ground.size(100, quick=3)
    total = warm_up + repetitions
    random = Random(22)
    turns = [turn(random, TEXT) for _ in range(total)]
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(ground.database()) for _ in range(2)]
        admins = [await stack.enter_async_context(ground.admin(url)) for url in urls]
        await admins[1].execute(_NO_JOBS)
        for admin in admins:
            await admin.execute('listen "procrastinate_queue_v1#hitherto"')  # as a worker does
        memories = [
            await stack.enter_async_context(opened(url, model=AtOnce(), encoding=CANONICAL, worker=False))
            for url in urls
        ]
        for memory in memories:
            for number in range(total):
                chat = place(memory, number)
                for _ in range(_BEFORE):
                    await chat.append(*turn(random, TEXT))
        for url in urls:
            await ground.settle(url)
        labels = ("append that sets off a digest, with its job", "the same without the job")
        with_job, without = await in_turns(
            [
                Side(label, lambda n, to=memory: place(to, n).append(*turns[n], key=f"turn {n}"))
                for label, memory in zip(labels, memories, strict=True)
            ],
            repetitions=repetitions,
            warm_up=warm_up,
        )
        jobs = [await value(admin, _JOBS) for admin in admins]
    if jobs != [total, 0]:
        raise RuntimeError(f"{jobs} jobs, where there should be [{total}, 0]: the two sides are not what they say")
    added = (with_job.times.median - without.times.median) * 1_000
    return Findings(
        [
            ratio(with_job, without),
            Figure(what="added to the median by enqueueing", value=added, unit="ms", bar=_BAR),
        ],
        [
            f"{repetitions} appends a side, of two messages with a key, each to a conversation of its own of "
            f"{2 * _BEFORE} messages; a connection listens as a worker's does, and nobody works. The side without has "
            "a database of its own, in which the queue's function gives null and the planner leaves it out.",
        ],
    )
