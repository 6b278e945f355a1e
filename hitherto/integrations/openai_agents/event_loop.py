"""Runs work on the event loop that a memory's connections belong to, because sessions are used from any loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Protocol, Self, TypeVar

from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput
from hitherto.wiring import Opening

Result = TypeVar("Result")
Work = Callable[[Memory], Coroutine[Any, Any, Result]]


class MemoryLoop(Protocol):
    """Runs work with a memory on the event loop it belongs to, whichever loop calls."""

    async def run(self, work: Work[Result]) -> Result:
        """The result of `work`. Cancelling the caller cancels the work. Raises InvalidInput when that loop is gone."""
        ...


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

    async def run(self, work: Work[Result]) -> Result:
        if asyncio.get_running_loop() is self._loop:
            return await work(self._memory)
        if not self._loop.is_running():
            raise InvalidInput(
                "the event loop that the memory was opened on does not run any more, and its connections cannot be "
                "used on another; give the session hitherto.open(…) as it is, neither awaited nor entered"
            )
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(self._memory), self._loop))


class Portal:
    """A memory in its own thread, for code without an event loop, or with a new one for each call.

    It is opened when it is first used, and closed by `close` or at the end of a `with`. Any number of sessions and
    threads may share it. If the memory could not be opened, the next use tries again.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._first = asyncio.Lock()
        self._memory: Memory | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def run(self, work: Work[Result]) -> Result:
        """The result of `work`, run in the portal's thread. Raises InvalidInput if the portal is closed, or is closed
        while the work runs, and what opening the memory raises."""
        try:
            return await asyncio.wrap_future(self._submitted(work))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise InvalidInput("the portal of this memory was closed before the work was done") from None
            raise

    def close(self) -> None:
        """Close the memory as `Memory.aclose` does, and end the thread. Returns when that is done; safe to call
        twice. Work that is still running then is cancelled."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._leave(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _submitted(self, work: Work[Result]) -> Future[Result]:
        # Under the lock, so that `close` sees all work that was submitted, and ends it.
        with self._guard:
            if self._closed:
                raise InvalidInput("the portal of this memory is closed; make a new one")
            # After a fork the child has the object, but neither the thread nor a right to the parent's connections.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop, self._first, self._memory = asyncio.new_event_loop(), asyncio.Lock(), None
                self._thread = threading.Thread(target=self._loop.run_forever, name="hitherto portal", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(self._with_memory(work), self._loop)

    async def _with_memory(self, work: Work[Result]) -> Result:
        async with self._first:
            memory = self._memory
            if memory is None:
                memory = self._memory = await self._opening
        return await work(memory)

    async def _leave(self) -> None:
        me = asyncio.current_task()
        if self._memory is not None:
            await self._memory.aclose()
        rest = [task for task in asyncio.all_tasks() if task is not me]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        if self._memory is not None:  # the opening finished before it could be cancelled
            await self._memory.aclose()
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()
