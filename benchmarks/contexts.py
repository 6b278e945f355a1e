"""What recall adds to the time of a context, in a long conversation and in a new one beside many others, what one takes
in which everything fits, and what the first search of a process costs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Figure, Findings, ratio
from hitherto import Memory, Message, Scope

_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_ALONE = replace(_SCOPE, user="who has one conversation")
_TEXT, _LARGE, _SMALL = 36, 8_000, 2_000
_BAR, _WHOLE_BAR = Bar(limit=2.5), Bar(limit=1.5)
_WHOLE = 1_000
"""Messages of the conversation that fits."""

_OF_EACH = 34
"""Messages of each of many conversations: 300 of them have 10,000."""

_FIRST = """
import asyncio, json, sys, time
import psutil
import hitherto
from hitherto import Scope

async def main():
    process = psutil.Process()
    async with hitherto.open(sys.argv[1], model="extractive", worker=False) as memory:
        chat = memory.conversation("long", scope=Scope(tenant="tenant", user="user", agent="bench"))
        await chat.context("Which ticket?", budget=1_000_000)
        before, begun = process.memory_info().rss, time.perf_counter()
        await chat.context("Which ticket?", budget=2_000)
        taken = time.perf_counter() - begun
        print(json.dumps([taken, process.memory_info().rss - before]))

asyncio.run(main())
"""


async def run(ground: Ground) -> Findings:
    """`context()` with recall ÷ without, of a long conversation that is indexed, under the default policy; and of one
    that fits ÷ reading its messages. Of a new conversation in a scope of 10,000 and of 100,000 messages, with recall ÷
    without."""
    count, short = ground.size(10_000, quick=200), ground.size(_WHOLE, quick=100)
    random = Random(5)
    async with ground.database() as url, memory_on(url) as memory:
        chat = memory.conversation("long", scope=_SCOPE)
        said = [one for _ in range(count // 2) for one in turn(random, _TEXT)]
        for start in range(0, count, 500):
            await chat.append(*said[start : start + 500])
        whole = memory.conversation("whole", scope=_ALONE)
        await whole.append(*(one for _ in range(short // 2) for one in turn(random, _TEXT)))
        await memory.wait_for_index()
        await ground.settle(url)
        questions = [" ".join(random.sample(one.text.split(), 6)) for one in random.sample(said, 50)]

        def side(label: str, budget: int, *, recall: bool) -> Side:
            async def ask(number: int) -> object:
                return await chat.context(questions[number % 50], budget=budget, recall=None if recall else False)

            return Side(label, ask)

        sides = [
            side(f"context of {budget:,} tokens, {'with' if recall else 'without'} recall", budget, recall=recall)
            for budget in (_LARGE, _SMALL)
            for recall in (True, False)
        ]
        sides += [
            Side(f"context of {short:,} messages that fit", lambda _: whole.context(budget=1_000_000)),
            Side("reading its messages", lambda _: whole.messages()),
        ]
        repetitions, warm_up = ground.size(200, quick=5), ground.size(20, quick=2)
        large, large_without, small, small_without, fits, read = await in_turns(
            sides, repetitions=repetitions, warm_up=warm_up
        )
        seconds, grown = await asyncio.to_thread(_first_of_a_process, url)
        beside: list[Figure] = []
        for number in (10_000, 100_000):
            beside += await _beside_others(ground, url, memory, ground.size(number, quick=200))
    return Findings(
        [
            *beside,
            ratio(large, large_without, bar=_BAR),
            ratio(small, small_without),
            ratio(fits, read, bar=_WHOLE_BAR),
            Figure(what="the first context of a process that recalls", value=1_000 * seconds, unit="ms"),
            Figure(what="the memory that it takes", value=grown / 2**20, unit="MiB"),
        ],
        [f"{count:,} messages of {_TEXT} tokens in one conversation; questions of six words from one of them."],
    )


async def _beside_others(ground: Ground, url: str, memory: Memory, count: int) -> list[Figure]:
    """A context of a new conversation in a scope of so many messages."""
    random, scope = Random(7), replace(_SCOPE, user=f"who has {count:,} messages")
    said: list[Message] = []
    for number in range(count // _OF_EACH):
        some = [one for _ in range(_OF_EACH // 2) for one in turn(random, _TEXT)]
        await memory.conversation(f"{number}", scope=scope).append(*some)
        said += some
    await memory.wait_for_index()
    await ground.settle(url)
    about: Sequence[str] = [" ".join(random.sample(one.text.split(), 6)) for one in random.sample(said, 50)]
    other = ["Write a limerick about a penguin in Patagonia.", "Convert 30 miles into kilometers, please."]
    chat = memory.conversation("new", scope=scope)

    def side(label: str, questions: Sequence[str], *, recall: bool) -> Side:
        async def ask(number: int) -> object:
            question = questions[number % len(questions)]
            return await chat.context(question, budget=_LARGE, recall=None if recall else False)

        return Side(f"new context beside {count:,} messages, {label}", ask)

    sides = [
        side("recalling", about, recall=True),
        side("asked about something else", other, recall=True),
        side("without recall", about, recall=False),
    ]
    repetitions, warm_up = ground.size(100, quick=5), ground.size(10, quick=2)
    recalling, elsewhere, without = await in_turns(sides, repetitions=repetitions, warm_up=warm_up)
    return [
        ratio(recalling, without, bar=_BAR if count <= 10_000 else None),
        ratio(elsewhere, without),
        *(
            Figure(what=f"{one.label}, p95", value=1_000 * one.times.p95, unit="ms")
            for one in (recalling, elsewhere, without)
        ),
    ]


def _first_of_a_process(url: str) -> tuple[float, int]:
    """Seconds and bytes that the first context with recall takes in a process that has made one without."""
    done = subprocess.run([sys.executable, "-c", _FIRST, url], capture_output=True, text=True, check=True)
    seconds, grown = json.loads(done.stdout.splitlines()[-1])
    return seconds, grown
