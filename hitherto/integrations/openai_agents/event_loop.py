"""Runs work on the event loop that a memory's connections belong to, because sessions are used from any loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput
from hitherto.sync.facade import SyncMemory

Result = TypeVar("Result")
Work = Callable[[Memory], Coroutine[Any, Any, Result]]


class MemoryLoop(Protocol):
    """Runs work with a memory on the event loop it belongs to, whichever loop calls."""

    async def arun(self, work: Work[Result]) -> Result:
        """The result of `work`. Cancelling the caller cancels the work. Raises InvalidInput when that loop is gone."""
        ...


def loop_of(memory: Memory | SyncMemory) -> MemoryLoop:
    """The loop of an open memory. Raises InvalidInput if a `Memory` is given where no loop runs."""
    if isinstance(memory, SyncMemory):
        return memory._background  # pyright: ignore[reportPrivateUsage] — sessions are part of Hitherto
    return CurrentLoop(memory)


class CurrentLoop:
    """An open memory on the running event loop. Its sessions can be used from that loop, and from others as long as it
    runs.

    Raises InvalidInput if no loop is running.
    """

    def __init__(self, memory: Memory) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise InvalidInput(
                "an open memory belongs to the event loop that it was opened on, and no loop runs here; make the "
                "session inside of async code, or give it hitherto.open(…) as it is, neither awaited nor entered"
            ) from None
        self._memory = memory

    async def arun(self, work: Work[Result]) -> Result:
        if asyncio.get_running_loop() is self._loop:
            return await work(self._memory)
        if not self._loop.is_running():
            raise InvalidInput(
                "the event loop that the memory was opened on does not run any more, and its connections cannot be "
                "used on another; give the session hitherto.open(…) as it is, neither awaited nor entered"
            )
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(self._memory), self._loop))
