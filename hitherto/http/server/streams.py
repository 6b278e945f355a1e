"""The routes whose answers or bodies are streamed: the messages of a conversation, exports and imports."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Annotated, Any, BinaryIO, cast
from urllib.parse import unquote

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from hitherto.aside import in_thread
from hitherto.core.key import Right
from hitherto.core.log.message import Logged
from hitherto.core.log.transcript import LogPage
from hitherto.core.scope import checked_name
from hitherto.engine.conversation import Conversation
from hitherto.engine.export.imports import ImportReport
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidExport
from hitherto.http.operations import AGENT, LINES, PREFIX, USER
from hitherto.http.server.callers import Caller, KeyWatch, name_in, route_options
from hitherto.http.server.responses import answer, encoded
from hitherto.http.server.signatures import check_type
from hitherto.http.shapes import answer_to_json
from hitherto.limiter import FairLimiter

PATHS = frozenset({f"{PREFIX}/export", f"{PREFIX}/import"})
"""What the gate lets through as it comes, and for as long as it takes."""

_LONG = 1_000_000
"""Characters of messages that are written as JSON at once: letting go of hundreds of megabytes holds others up too."""

_PIECE = 65_536
"""Bytes of an export that are sent at once: the next ones wait until they are on their way."""


UserHeader = Annotated[str | None, Header(alias=USER, description="The user, percent-encoded.")]
AgentHeader = Annotated[str | None, Header(alias=AGENT, description="The agent, percent-encoded.")]


def add_streams(router: APIRouter) -> None:
    """Add the routes. A tenant exports or imports once at a time: it takes a connection, and a processor."""
    turns = FairLimiter(2, most=1)

    @router.get(
        f"{PREFIX}/conversations/{{conversation}}/messages",
        response_model=list[Logged],
        **route_options(
            "conversation_messages",
            "Conversation",
            Right.READ,
            f"{Conversation.messages.__doc__}\n\nThe list is streamed.",
        ),
    )
    async def messages(  # noqa: PLR0917 (FastAPI gives them by name)
        request: Request,
        conversation: Annotated[str, Path()],
        start: Annotated[int, Query(ge=0)] = 0,
        stop: Annotated[int | None, Query(ge=0)] = None,
        limit: Annotated[int | None, Query(ge=0)] = None,
        header_user: UserHeader = None,
        header_agent: AgentHeader = None,
    ) -> Response:
        caller: Caller = request.scope["caller"]
        name = checked_name(unquote(conversation), "conversation")
        memory: Memory = request.scope["memory"]
        chat = memory.conversation(name, scope=caller.scope(request.headers))
        first = await chat.log_page(start=start, stop=stop, limit=limit)
        remaining = None if limit is None else limit - len(first.messages)
        if first.next is None or remaining == 0:
            return await answer(first.messages, list[Logged])
        watch = KeyWatch(request.scope["authentication"], request.headers)
        pages = _pages(chat, first, stop, remaining, watch)
        return StreamingResponse(pages, media_type="application/json")

    @router.get(
        f"{PREFIX}/export",
        response_class=StreamingResponse,
        **route_options(
            "memory_export", "Memory", Right.ADMIN, f"{Memory.export_to.__doc__}\n\nThe lines are streamed."
        ),
    )
    async def export(
        request: Request,
        user: Annotated[str | None, Query()] = None,
        agent: Annotated[str | None, Query()] = None,
        header_user: UserHeader = None,
        header_agent: AgentHeader = None,
    ) -> Response:
        caller: Caller = request.scope["caller"]
        headers = request.headers
        user = caller.user(name_in(headers, USER) if user is None else user)
        agent = name_in(headers, AGENT) if agent is None else agent
        return await exported(request, turns, tenant=caller.tenant, user=user, agent=agent)

    @router.post(
        f"{PREFIX}/import",
        openapi_extra={"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}},
        **route_options(
            "memory_import", "Memory", Right.ADMIN, f"{Memory.import_from.__doc__}\n\nThe body is the file."
        ),
    )
    async def import_(request: Request) -> ImportReport:
        caller: Caller = request.scope["caller"]
        check_type(request.headers, LINES)
        watch = KeyWatch(request.scope["authentication"], request.headers)
        with tempfile.TemporaryFile() as file:
            try:
                async for part in request.stream():
                    await asyncio.to_thread(file.write, part)
                    await watch.look()
            except ClientDisconnect:
                raise InvalidExport("the file was cut off: the client has left") from None
            await watch.look(now=True)
            file.seek(0)
            memory: Memory = request.scope["memory"]
            async with turns.turn():
                return await memory.import_from(cast(Any, file), tenant=caller.tenant)


async def _pages(
    chat: Conversation, page: LogPage, stop: int | None, remaining: int | None, watch: KeyWatch
) -> AsyncIterator[bytes]:
    """The JSON of a list of messages, page by page: this one, and `remaining` of those that follow."""
    before = b"["
    while page.messages:
        for part in _parts(page.messages):
            yield before
            yield await in_thread(_joined, part)
            before = b","
        page.messages.clear()  # the next one is read without it
        await watch.look()
        if page.next is None or remaining == 0:
            break
        page = await chat.log_page(start=page.next, stop=stop, limit=remaining)
        remaining = None if remaining is None else remaining - len(page.messages)
    yield b"]"


def _parts(page: list[Logged]) -> Iterator[list[Logged]]:
    """The page in parts of about `_LONG` characters, or of one message."""
    part, size = list[Logged](), 0
    for message in page:
        part.append(message)
        size += len(message.message.raw)
        if size >= _LONG:
            yield part
            part, size = [], 0
    if part:
        yield part


def _joined(messages: list[Logged]) -> bytes:
    return b",".join([encoded(answer_to_json(message, Logged)) for message in messages])


class _Pipe:
    """A file that is written in a thread, and read part by part meanwhile. The writer does not wait for the reader:
    what is not read yet stands in a temporary file, so that a slow reader holds nothing of the database."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._loop = asyncio.get_running_loop()
        self._more = asyncio.Event()
        self._written = self._read = 0
        self._ended = self._abandoned = False

    def write(self, part: bytes) -> int:
        if self._abandoned:
            raise BrokenPipeError("nobody reads this export any more")
        self._file.write(part)
        self._file.flush()
        self._written += len(part)
        self._loop.call_soon_threadsafe(self._more.set)
        return len(part)

    def end(self) -> None:
        """Nothing more is written."""
        self._ended = True
        self._more.set()

    async def get(self) -> bytes | None:
        """The next part; None at the end."""
        while True:
            self._more.clear()
            if self._read < self._written:
                break
            if self._ended:
                return None
            await self._more.wait()
        part = await asyncio.to_thread(os.pread, self._file.fileno(), _PIECE, self._read)
        self._read += len(part)
        return part

    def abandon(self) -> None:
        """Nobody reads any more."""
        self._abandoned = True

    def close(self) -> None:
        """Nobody writes or reads any more."""
        self._file.close()


async def exported(
    request: Request, turns: FairLimiter, *, tenant: str, user: str | None, agent: str | None
) -> StreamingResponse:
    """The export of a tenant, of its `user`, or of that user with one `agent`, as it is written, once it has its turn.
    Raises as `Memory.export_to`."""
    pipe, memory = _Pipe(), cast(Memory, request.scope["memory"])

    async def write() -> None:
        async with turns.turn():
            await memory.export_to(cast(BinaryIO, pipe), tenant=tenant, user=user, agent=agent)

    writing = asyncio.create_task(write())
    writing.add_done_callback(lambda _: pipe.end())
    try:
        first = await pipe.get()
    except BaseException:  # the service stops, or the client has left
        writing.cancel()
        pipe.abandon()
        raise
    if first is None:
        pipe.close()
        await writing  # which raises
    return StreamingResponse(_parts_of(writing, pipe, first or b"", request), media_type=LINES)


async def _parts_of(writing: asyncio.Task[Any], pipe: _Pipe, part: bytes, request: Request) -> AsyncIterator[bytes]:
    watch = KeyWatch(request.scope["authentication"], request.headers)
    next_part: bytes | None = part
    try:
        while next_part is not None:
            yield next_part
            await watch.look()
            next_part = await pipe.get()
        await writing
    finally:
        pipe.abandon()
        writing.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await writing
        pipe.close()
