"""What erasing takes: a message of a long conversation, and a user with many messages while others append."""

from __future__ import annotations

import asyncio
import sys
import time
from random import Random
from typing import Any

from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, Times, in_turns
from benchmarks.report import Bar, Figure, Findings
from hitherto import Conversation, Memory, Message, Scope

_MINE = Scope(tenant="tenant", user="me", agent="bench")
_OTHER = Scope(tenant="tenant", user="other", agent="bench")
_TEXT = 36
_MESSAGE, _USER, _OTHERS = Bar(limit=50), Bar(limit=60), Bar(limit=2)


async def run(ground: Ground) -> Findings:
    """Erase messages one by one; then erase a user from another process, while another user appends here."""
    random = Random(41)
    long, all_of, batch = ground.size(10_000, quick=200), ground.size(100_000, quick=400), ground.size(1_000, quick=100)
    said = [one for _ in range(batch // 2) for one in turn(random, _TEXT)]
    repetitions = ground.size(50, quick=5)
    async with ground.database() as url, memory_on(url, worker=False) as memory:
        await _fill(memory, ["long"], said * (long // batch))
        await _fill(memory, [f"c-{number}" for number in range((all_of - long) // batch)], said)
        await memory.wait_for_index()
        await ground.settle(url)
        chat = memory.conversation("long", scope=_MINE)
        seqs = random.sample(range(long), repetitions + 5)
        side = Side("one message", lambda number: chat.erase(seqs[number]))
        (one,) = await in_turns([side], repetitions=repetitions, warm_up=5)
        others = memory.conversation("other", scope=_OTHER)
        quiet = await _appends(others, said, asyncio.create_task(asyncio.sleep(ground.size(10, quick=1))))
        begun = time.perf_counter()
        erasing = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hitherto", "erase", "user", _MINE.user, "--tenant", _MINE.tenant, "--yes"),
            *("--database", url),
            stdout=asyncio.subprocess.DEVNULL,
        )
        meanwhile = await _appends(others, said, asyncio.create_task(erasing.wait()))
        took = time.perf_counter() - begun
        if erasing.returncode != 0:
            raise RuntimeError(f"hitherto erase has ended with {erasing.returncode}")
    return Findings(
        [
            Figure(what=f"one message of {long:,}, median", value=one.times.median * 1e3, unit="ms", bar=_MESSAGE),
            Figure(what=f"one message of {long:,}, p95", value=one.times.p95 * 1e3, unit="ms"),
            Figure(what=f"a user with {all_of:,} messages, whole command", value=took, unit="s", bar=_USER),
            Figure(what="p95 of others' appends before", value=quiet.p95 * 1e3, unit="ms"),
            Figure(what="p95 of others' appends meanwhile", value=meanwhile.p95 * 1e3, unit="ms"),
            Figure(what="meanwhile ÷ before", value=meanwhile.p95 / quiet.p95, unit="times", bar=_OTHERS),
        ],
        [
            f"Messages of {_TEXT} tokens, indexed, in conversations of {batch:,} and one of {long:,}; no digests. The "
            f"user is erased by `hitherto erase`, a process of its own on the same cores. {len(quiet.seconds)} appends "
            f"of two messages, one at a time, before, {len(meanwhile.seconds)} meanwhile."
        ],
    )


async def _fill(memory: Memory, names: list[str], said: list[Message]) -> None:
    for name in names:
        chat = memory.conversation(name, scope=_MINE)
        for start in range(0, len(said), 500):
            await chat.append(*said[start : start + 500])


async def _appends(chat: Conversation, said: list[Message], until: asyncio.Future[Any]) -> Times:
    """The times of appends one after the other, until a task has ended."""
    found: list[float] = []
    while not until.done():
        begun = time.perf_counter()
        await chat.append(*said[:2])
        found.append(time.perf_counter() - begun)
    return Times(tuple(found))
