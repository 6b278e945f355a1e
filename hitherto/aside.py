"""Work that would hold up the event loop is done in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from hitherto.limiter import FairLimiter
from hitherto.uninterrupted import uninterrupted

Given = ParamSpec("Given")
Result = TypeVar("Result")

_LONG = 50_000
_EACH = 200
"""What each value counts for that is checked, or written as JSON."""

_TURNS = WeakKeyDictionary[asyncio.AbstractEventLoop, FairLimiter]()
"""Of the threads, for each event loop."""


async def aside(size: int, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """The result of `work`: at once, or from a thread where it goes through so many characters (`size`) that others
    would have to wait for milliseconds."""
    return work(*given, **named) if size < _LONG else await in_thread(work, *given, **named)


async def in_thread(work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """The result of `work`, from a thread. A thread cannot be stopped: a task that is cancelled waits for it. Four run
    at once, as each takes time from the event loop; of one tenant of a service, two."""
    turns = _TURNS.setdefault(asyncio.get_running_loop(), FairLimiter(4, most=2))
    async with turns.turn():
        return await uninterrupted(asyncio.to_thread(work, *given, **named))


def weight(given: object) -> int:
    """What it takes to check a JSON value, or to write it, in characters. `given` may have objects with such values
    too. Looks no further than tells that it is long."""
    left, found = [given], 0
    while left and found < _LONG:
        one = left.pop()
        found += _EACH
        if isinstance(one, str):
            found += len(one)
        elif isinstance(one, list | tuple):
            left += cast("list[object]", one)
        elif isinstance(one, Mapping):
            left += cast("Mapping[object, object]", one).values()
        else:
            left += getattr(one, "__dict__", {}).values()
    return found
