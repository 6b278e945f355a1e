"""Reads commands line by line and answers with events, one after the other."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from hitherto import Logged, Memory, Scope
from hitherto.errors import HithertoError, InvalidInput, NotFound
from hitherto.logs import logger
from hitherto.other_systems.agent_service import APIAgent
from hitherto.other_systems.agent_service.setup import current
from hitherto.other_systems.session_strategies.commands import (
    ClearCommand,
    Command,
    HelpCommand,
    HistoryCommand,
    RunCommand,
    SessionsCommand,
    StrategyCommand,
    asked_id,
    command_of,
)
from hitherto.other_systems.session_strategies.events import schemas
from hitherto.other_systems.session_strategies.memory_strategy import strategy
from hitherto.other_systems.session_strategies.run_events import (
    Write,
    failed,
    run_completed,
    run_detail,
    run_json,
    run_started,
)

log = logger("hitherto.agents")

LONGEST = 2**20
"""The most bytes of a line."""

_PIECE = 2**16
"""Bytes that are read at once."""


class AgentLoop:
    """Answers commands for one user and one agent. `write` takes an event; each has `event` and the command's `id`.
    What it raises, but for errors, ends the loop."""

    def __init__(self, memory: Memory, scope: Scope, write: Write) -> None:
        self._memory, self._scope, self._write = memory, scope, write

    async def run(self, descriptor: int) -> None:
        """Answer every line of an open file until there is none. What fails is an event, and the loop goes on. Raises
        InvalidInput before the first for an agent that could not answer."""
        current().check_runs()
        async for line in _lines(descriptor):
            if line is None:
                message = f"the line is longer than {LONGEST:,} bytes"
                self._write({"event": "command_failed", "id": None, "message": message, "type": "InvalidInput"})
            elif line.strip():
                await self._answered(line)

    async def _answered(self, line: bytes) -> None:
        asked = asked_id(line)
        failure = "command_failed"
        try:
            command = command_of(line)
            failure = "run_failed" if isinstance(command, RunCommand) else failure
            await self._do(command, lambda event: self._write({**event, "id": asked}))
        except (Exception, SystemExit) as error:  # a tool may raise either
            if not isinstance(error, HithertoError):
                log.info("A command failed", exc_info=True)
            self._write({**failed(error, failure), "id": asked})

    async def _do(self, command: Command, write: Write) -> None:
        match command:
            case RunCommand():
                await self._run(command, write)
            case StrategyCommand():
                await self._strategy(command, write)
            case SessionsCommand():
                page = await self._memory.conversations(self._scope, limit=command.limit, cursor=command.cursor)
                listed = [
                    {
                        "session_id": one.conversation,
                        "title": one.title,
                        "messages": one.messages,
                        "summary": one.summary,
                        "updated_at": one.said_at,
                    }
                    for one in page.conversations
                ]
                write({"event": "sessions", "sessions": listed, "next": page.next})
            case HistoryCommand():
                await self._history(command, write)
            case ClearCommand():
                chat = self._memory.conversation(command.session_id, scope=self._scope)
                write({"event": "cleared", "session_id": command.session_id, "messages": await chat.clear()})
            case HelpCommand():
                write({"event": "help", **schemas()})

    async def _run(self, command: RunCommand, write: Write) -> None:
        agent = APIAgent(self._scope.agent, self._scope.user, command.session_id)
        await agent.initialize()
        write(run_started(command.session_id))
        try:
            done = await agent.run(
                command.message,
                **strategy(command.memory_strategy, command.memory_injection),
                on_event=lambda one: write(run_detail(one)),
            )
        finally:
            await agent.cleanup()
        write(run_completed(done.output, done.run))

    async def _strategy(self, command: StrategyCommand, write: Write) -> None:
        chat = self._memory.conversation(command.session_id, scope=self._scope)
        if command.memory_strategy == "":
            crossing = strategy(None, command.memory_injection)["cross_session"]
            await chat.configure(policy="", cross_session=crossing, create=True)
        elif (command.memory_strategy, command.memory_injection) != (None, None):
            await chat.configure(**strategy(command.memory_strategy, command.memory_injection), create=True)
        agent = APIAgent(self._scope.agent, self._scope.user, command.session_id)
        try:
            await agent.initialize()
            holds = await agent.governing() or await chat.policy()
        finally:
            await agent.cleanup()
        head = await chat.head()
        latest = None if head is None else head.cross_session.latest
        told = {"strategy": holds.name, "policy": holds.to_json(), "memory_injection": latest}
        write({"event": "strategy", "session_id": command.session_id, **told})

    async def _history(self, command: HistoryCommand, write: Write) -> None:
        runs, limit = self._memory.runs(self._scope), command.limit
        if command.run is None:
            chat = self._memory.conversation(command.session_id, scope=self._scope)
            head = await chat.head()
            start = 0 if head is None else max(head.next_seq - limit, 0)
            messages = [] if head is None else await chat.messages(start=start)
            found = await runs.list(command.session_id, limit=limit)
            write(
                {
                    "event": "history",
                    "session_id": command.session_id,
                    "messages": [_message(one) for one in messages],
                    "runs": [run_json(one) for one in found],
                }
            )
            return
        one = await runs.get(command.run)
        if one is None or one.conversation != command.session_id:
            raise NotFound(f"there is no run {command.run} of the session {command.session_id!r}")
        write(run_started(command.session_id))
        after = -1
        while found := await runs.events(one.id, after=after):
            for event in found:
                told = {"kind": event.kind.value, "name": event.name, "call_id": event.call_id}
                write(run_detail({**told, "payload": event.payload}))
            after = found[-1].no
        write({"event": "run_replayed", "run": run_json(one)})


def _message(one: Logged) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "role": one.message.role.value,
        "kind": one.message.kind.value,
        "content": one.message.text,
        "created_at": one.said_at,
    }


async def _lines(descriptor: int) -> AsyncGenerator[bytes | None]:
    """The lines of an open file, which is read in a thread of its own; None for one that is too long."""
    loop, found = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    wanted = threading.Semaphore(0)

    def read() -> None:
        # Not through sys.stdin, whose lock an interpreter that ends would wait for.
        more = b"-"
        while more:
            wanted.acquire()
            more = os.read(descriptor, _PIECE)
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(found.put_nowait, more)

    # A daemon: whoever ends the command need not end the line first.
    threading.Thread(target=read, name="commands", daemon=True).start()
    line, skipping = bytearray(), False
    while True:
        wanted.release()
        piece = await found.get()
        if not piece:
            if line:
                yield bytes(line)
            return
        *whole, rest = piece.split(b"\n")
        for part in whole:
            line += part
            if not skipping:
                yield bytes(line) if len(line) <= LONGEST else None
            line, skipping = bytearray(), False
        line += b"" if skipping else rest
        if len(line) > LONGEST:
            yield None
            line, skipping = bytearray(), True


def standard_input() -> int:
    """The descriptor of standard input. Raises InvalidInput where there is none."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        raise InvalidInput("there is no standard input to read commands from") from None
