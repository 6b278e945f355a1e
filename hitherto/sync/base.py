"""What the synchronous classes are made of: a memory in the background, its parts, and a turn."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.engine.turn import Turn
from hitherto.errors import InvalidInput
from hitherto.uninterrupted import uninterrupted
from hitherto.wiring import Opening

Result = TypeVar("Result")
Work = Callable[[Memory], Coroutine[Any, Any, Result]]


def _say_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    pass


class _Thread:
    """The one event loop of this process that runs in the background, in a thread that ends with the process."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop; it is started when it is first asked for. The caller has the guard."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="hitherto", daemon=True)
            self._thread.start()
            # A program that ends without closing its memories leaves tasks; they end with it, and nobody needs to hear.
            atexit.register(self._loop.set_exception_handler, _say_nothing)
        return self._loop

    def is_current(self) -> bool:
        return threading.current_thread() is self._thread


_background = _Thread()


def _start_afresh() -> None:
    # A fork has a copy of the loop but not its thread, and of a lock that another thread may hold.
    global _background  # noqa: PLW0603 (there is one of it in a process)
    _background = _Thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


def _check_thread() -> None:
    if _background.is_current():
        raise InvalidInput(
            "this is the thread in which the verbs themselves run, so that it would wait for itself for ever; in a "
            "model or embedder of your own, use the asynchronous memory, or another thread"
        )


class BackgroundMemory:
    """A memory that is opened when it is first used. Any number of threads may share it. If it could not be opened, the
    next use tries again; after a fork, the child opens one of its own.

    Whoever has used it should `close` it: else the digests in progress wait until other workers may take them over.
    """

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._closed = False
        self._home: _Thread | None = None
        self._first = asyncio.Lock()
        self._memory: Memory | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing: Future[None] | None = None

    def run(self, work: Work[Result]) -> Result:
        """The result of `work`; the calling thread waits for it. An interrupt (Ctrl-C) cancels the work.

        Raises InvalidInput if the memory is closed, before or meanwhile, and on the background loop itself, which would
        wait for ever; and what opening the memory raises.
        """
        _check_thread()
        future = self._submitted(work)
        try:
            return future.result()
        except CancelledError:
            raise self._cut_off() from None
        except BaseException:
            future.cancel()  # nothing happens if it is the work's own error
            raise

    async def arun(self, work: Work[Result]) -> Result:
        """As `run`, without blocking the caller's event loop. Cancelling the caller cancels the work."""
        try:
            return await asyncio.wrap_future(self._submitted(work))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise self._cut_off() from None
            raise

    def memory(self) -> Memory:
        """The memory, open. Raises what opening it raises, and InvalidInput if it is closed."""

        async def opened(memory: Memory) -> Memory:
            return memory

        there = self._memory
        return there if there is not None and self._home is _background and not self._closed else self.run(opened)

    def close(self) -> None:
        """Close the memory as `Memory.aclose` does. Returns when that is done, however often it is called. Work that is
        still running then is cancelled. Raises InvalidInput on the background loop itself."""
        _check_thread()
        with _background.guard:
            self._closed = True
            if self._home is not _background:
                return
            if self._closing is None:
                self._closing = asyncio.run_coroutine_threadsafe(self._leave(), _background.loop())
            closing = self._closing
        closing.result()

    def _submitted(self, work: Work[Result]) -> Future[Result]:
        # Under the lock, so that `close` sees all work that was submitted, and ends it.
        with _background.guard:
            if self._closed:
                raise InvalidInput("this memory is closed; open another one with hitherto.open_sync(…)")
            if self._home is not _background:
                self._home, self._memory, self._first, self._tasks = _background, None, asyncio.Lock(), set()
            return asyncio.run_coroutine_threadsafe(self._with_memory(work), _background.loop())

    async def _with_memory(self, work: Work[Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        async with self._first:
            if self._closed:
                raise self._cut_off()
            memory = self._memory
            if memory is None:
                memory = self._memory = await self._opening
        return await work(memory)

    async def _leave(self) -> None:
        if self._memory is not None:
            await self._memory.aclose()
        rest = tuple(self._tasks)
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        if self._memory is not None:  # the opening finished before it could be cancelled
            await uninterrupted(self._memory.aclose())

    @staticmethod
    def _cut_off() -> InvalidInput:
        return InvalidInput("this memory was closed before the work was done; open another one")


Part = TypeVar("Part")
Event = TypeVar("Event")


class SyncMemoryBase:
    """A memory in the background: `with` it, or call `close` when it is not needed any more."""

    def __init__(self, background: BackgroundMemory) -> None:
        self._background = background

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close, as `Memory.aclose`: digests in progress have the setting `grace` to finish, the others are given back
        for other workers. Safe to call twice."""
        self._background.close()

    def _run(self, verb: Callable[[Memory], Coroutine[Any, Any, Result]]) -> Result:
        return self._background.run(verb)


class SyncPart(Generic[Part]):
    """A part of a memory, which `make` makes of the memory: anew in a process that was forked. `made` is one that is
    made already."""

    def __init__(self, background: BackgroundMemory, make: Callable[[Memory], Part], made: Part | None = None) -> None:
        self._background, self._make = background, make
        memory = background.memory()
        self._made = memory, make(memory) if made is None else made

    @property
    def _part(self) -> Part:
        return self._of(self._background.memory())

    def _of(self, memory: Memory) -> Part:
        if self._made[0] is not memory:
            before, part = self._made[1], self._make(memory)
            if isinstance(before, Conversation) and isinstance(part, Conversation):
                part._follow(before)  # pyright: ignore[reportPrivateUsage] — its double in this process
            self._made = memory, part
        return self._made[1]

    def _run(self, verb: Callable[[Part], Coroutine[Any, Any, Result]]) -> Result:
        return self._background.run(lambda memory: verb(self._of(memory)))


class SyncTurnBase:
    """A `Turn` for code without an event loop: used once, with `with`."""

    def __init__(self, background: BackgroundMemory, turn: Turn) -> None:
        self._background, self._part = background, turn
        self._memory = background.memory()

    def __enter__(self) -> Self:
        self._run(lambda turn: turn.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(lambda turn: turn.__aexit__(kind, error, trace))

    def stream(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events of a streamed answer as they come; at their end the answer is added, as by `add`. Raises what the
        events raise."""
        take = self._part._begin_stream()  # pyright: ignore[reportPrivateUsage] — the same, without its loop
        try:
            for event in events:
                take(event)
                yield event
        except BaseException:
            self._part._break_stream()  # pyright: ignore[reportPrivateUsage]
            raise
        self._run(lambda turn: turn._end_stream())  # pyright: ignore[reportPrivateUsage]

    def _run(self, verb: Callable[[Turn], Coroutine[Any, Any, Result]]) -> Result:
        async def done(memory: Memory) -> Result:
            if memory is not self._memory:
                raise InvalidInput("this turn was made before the process forked; make another one with chat.turn(…)")
            return await verb(self._part)

        return self._background.run(done)
