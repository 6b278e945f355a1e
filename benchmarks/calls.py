"""How many of Hitherto's own functions an append and a context call: the same on every machine, whatever its load."""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType

import hitherto
from benchmarks.ground import Ground, memory_on, text, turn
from benchmarks.report import Bar, Figure, Findings
from hitherto import Scope

_OWN = str(Path(hitherto.__file__).parent)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_MESSAGES, _TEXT = 300, 36
_REPETITIONS = 9


async def run(ground: Ground) -> Findings:
    """An append of two items with a key, a context in which all messages fit, and one that the budget cuts."""
    random, numbers = Random(13), count()
    question = text(random, _TEXT)
    items = [{"role": role, "content": text(random, _TEXT)} for role in ("user", "assistant")]
    async with ground.database() as url, memory_on(url, worker=False) as memory:
        short, long = [memory.conversation(name, scope=_SCOPE) for name in ("short", "long")]
        await short.append(*items)
        for _ in range(_MESSAGES // 20):
            await long.append(*(message for _ in range(10) for message in turn(random, _TEXT)))
        await memory.wait_for_index()
        append = await _calls(lambda: short.append(*items, key=f"append {next(numbers)}"))
        fits = await _calls(lambda: long.context(question, budget=1_000_000))
        cuts = await _calls(lambda: long.context(question, budget=8_000))
    return Findings(
        [
            Figure(what="calls in an append", value=append, bar=Bar(limit=220)),
            Figure(what=f"calls in a context of {_MESSAGES} messages", value=fits, bar=Bar(limit=4_000)),
            Figure(what="calls in a context that the budget cuts", value=cuts, bar=Bar(limit=6_985)),
        ],
        ["Medians. A comprehension is a call, and a generator is one each time it goes on."],
    )


async def _calls(action: Callable[[], Awaitable[object]]) -> float:
    """The calls of functions of the package in an action, in threads too, once it has run twice."""
    called = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal called
        called += event == "call" and frame.f_code.co_filename.startswith(_OWN)

    found = list[int]()
    for _ in range(2):
        await action()
    threading.setprofile(note)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())  # whose threads begin with it
    try:
        await asyncio.to_thread(int)
        for _ in range(_REPETITIONS):
            called = 0
            sys.setprofile(note)
            await action()
            sys.setprofile(None)
            found.append(called)
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed leaves out None
    return statistics.median(found)
