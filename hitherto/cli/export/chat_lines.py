"""Importing a conversation as JSON lines in OpenAI chat shape, in constant memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hitherto.cli.transcripts.transcript import message_of
from hitherto.core.log.message import Message
from hitherto.engine.export.imports import LONGEST_LINE, Lines
from hitherto.errors import ConcurrentWrite, InvalidBatch, InvalidMessage, InvalidTranscript

if TYPE_CHECKING:
    from hitherto.engine.conversation import Conversation

_PAGE = 200
"""Messages that are appended together."""


async def import_chat(chat: Conversation, file: Lines, source: str, *, digest: bool) -> int | None:
    """Append the messages of a file, those that are not there yet; returns how many that were, None if there is another
    conversation of that name. Without `digest`, no stage of its policy fires. Raises InvalidTranscript, with the line;
    what was appended before stays, and a repeated import goes on there."""
    line = start = new = 0
    head = await chat.head()
    there = 0 if head is None else head.next_seq
    ended = False
    while not ended:
        batch, line, ended = await asyncio.to_thread(_page, file, source, line)
        known = batch[: max(there - start, 0)]
        for logged, message in zip(await chat.messages(start=start, stop=start + len(known)), known, strict=True):
            if logged.message.raw != message.raw and not logged.erased:
                return None
        start, batch = start + len(known), batch[len(known) :]
        if batch:
            try:
                await chat.append(*batch, expect=start, policy=None if digest else "none")
            except ConcurrentWrite:
                return None
            except InvalidBatch as error:
                raise InvalidTranscript(f"{source}, up to line {line}: {error}", line=line) from error
            start, new = start + len(batch), new + len(batch)
    if not start:
        raise InvalidTranscript(f"{source} holds no messages; give one JSON object with role and content a line")
    return new


def _page(file: Lines, source: str, line: int) -> tuple[list[Message], int, bool]:
    """The next messages, the number of the last line that was read, and whether the file has ended."""
    found: list[Message] = []
    while len(found) < _PAGE:
        text = file.readline(LONGEST_LINE + 1)
        if not text:
            return found, line, True
        line += 1
        try:
            if len(text) > LONGEST_LINE:
                raise InvalidMessage(f"it is longer than {LONGEST_LINE:,} bytes")
            if text.strip():
                found.append(message_of(text))
        except InvalidMessage as error:
            raise InvalidTranscript(
                f"{source}, line {line}: {error}; a repeated import goes on after what it has appended",
                line=line,
            ) from error
    return found, line, False
