"""The server on standard input and output, a JSON object a line, for the client that has started this process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from hitherto.blocks import series
from hitherto.errors import HithertoError, InvalidInput
from hitherto.mcp.unreadable import unreadable_answer

if TYPE_CHECKING:
    from hitherto.engine.memory import Memory


class ClaimedStreams:
    """Standard input and output for this alone: from now on, what others read there is empty, and what they write there
    goes to standard error. Raises InvalidInput where there are none."""

    def __init__(self) -> None:
        try:
            self.input, self.output = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
            os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        except (AttributeError, OSError, ValueError):
            raise InvalidInput("there is no standard input and output over which a client could speak") from None


async def serve_stdio(server: Server[Any], streams: ClaimedStreams) -> None:
    """Serve until the client closes its end."""
    send = asyncio.Future[_Send]()
    lines = cast("anyio.AsyncFile[str]", _readable(_lines(streams.input), send))  # of which it reads the lines alone
    output: TextIO = os.fdopen(streams.output, "w", encoding="utf-8")
    try:
        async with stdio_server(lines, anyio.wrap_file(output)) as (received, sent):
            send.set_result(sent.send)
            await server.run(received, sent, server.create_initialization_options())
    except* (BrokenPipeError, anyio.BrokenResourceError):  # nobody reads the answers any more, or it is told to stop
        os.dup2(os.open(os.devnull, os.O_WRONLY), streams.output)


class LateMemory:
    """A memory that is opened when it is first needed, and closed at the end of the block: clients wait two seconds for
    the list of tools, not longer. Where it cannot be opened, the next one who needs it tries again."""

    def __init__(self, open_memory: Callable[[], Coroutine[Any, Any, Memory]]) -> None:
        self._open = open_memory
        self._task: asyncio.Task[Memory] | None = None

    async def __call__(self) -> Memory:
        """The memory, open. Raises HithertoError."""
        if self._task is None or (self._task.done() and self._task.exception() is not None):
            self._task = asyncio.create_task(self._open())
        return await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            with suppress(HithertoError):
                await (await self._task).aclose()


_Send = Callable[[SessionMessage], Awaitable[None]]


@series
async def _readable(lines: AsyncIterator[str], send: asyncio.Future[_Send]) -> AsyncGenerator[str]:
    """The lines that can be read. The others are answered."""
    async for line in lines:
        if (error := unreadable_answer(line)) is None:
            yield line
        elif line.strip():
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads the answers any more
                await (await send)(SessionMessage(error))


@series
async def _lines(descriptor: int) -> AsyncGenerator[str]:
    """The lines of an open file. A thread of its own waits for them, which does not hold up the end of the process."""
    loop, found = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as opened, suppress(RuntimeError):
            for line in opened:
                loop.call_soon_threadsafe(found.put_nowait, line)
            loop.call_soon_threadsafe(found.put_nowait, "")  # RuntimeError: the loop has ended

    threading.Thread(target=read, name="mcp", daemon=True).start()
    while line := await found.get():
        yield line
