"""What the synchronous classes are made of: a memory in the background, its parts, and a turn."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.engine.turn import Turn
from hitherto.errors import InvalidInput
from hitherto.sync.background import BackgroundMemory

Result = TypeVar("Result")
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
    """A part of a memory, which `make` makes of the memory: anew in a process that was forked."""

    def __init__(self, background: BackgroundMemory, make: Callable[[Memory], Part]) -> None:
        self._background, self._make = background, make
        memory = background.memory()
        self._made = memory, make(memory)

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
