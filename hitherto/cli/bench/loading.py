"""Appending a transcript to a memory that is measured."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.cli.transcripts.transcript import Transcript
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory

_BATCH = 500


async def append(
    memory: Memory,
    transcript: Transcript,
    *,
    scope: Scope,
    policy: str | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Conversation:
    """The conversation with all messages of the transcript. `advance` gets the number of messages appended."""
    conversation = memory.conversation(transcript.id, scope=scope, policy=policy)
    for start in range(0, len(transcript.messages), _BATCH):
        batch = transcript.messages[start : start + _BATCH]
        await conversation.append(*batch, expect=start)
        advance(len(batch))
    return conversation
