"""Summaries that are started in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from hitherto import Conversation
from hitherto.errors import InvalidInput
from hitherto.logs import logger

log = logger("hitherto")


class Background:
    """Tasks that are waited for by whoever wants to. One that fails is logged."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[bool]]()

    def start(self, work: Coroutine[None, None, bool]) -> asyncio.Task[bool]:
        """Start it."""
        task = asyncio.get_running_loop().create_task(work, name="a summary is looked for")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("No summary was started: %s", error)


async def fired(chat: Conversation, last_saved_seq: int | None) -> bool:
    """Start what is due, and say whether there was anything. Raises InvalidInput where `last_saved_seq` is not in the
    log."""
    head = await chat.head()
    if last_saved_seq is not None and (head is None or last_saved_seq >= head.next_seq):
        there = 0 if head is None else head.next_seq
        raise InvalidInput(
            f"message {last_saved_seq} of {chat.id!r} is not in the log, which has {there}; append it, or give messages"
        )
    return head is not None and bool(await chat.start_digests())
