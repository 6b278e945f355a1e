"""Summaries of a sliding window, made in the background, of messages that an application keeps itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from hitherto import Conversation, Memory, Policy, Scope, policy_of, sliding_window, wire
from hitherto.errors import ConcurrentWrite, InvalidInput
from hitherto.logs import logger
from hitherto.other_systems.background import Background, fired

log = logger("hitherto")

ChatMessage = Mapping[str, Any]

_RETRY = "What was copied once stays: to edit and retry, go on under another conversation id"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowContext:
    """The newest summary (None before the first), and the messages since, without the newest one."""

    memory_text: str | None
    gap_messages: list[ChatMessage]


class MemoryService:
    """The functions of such a system on the conversations of a scope, under `policy` (by default `sliding_window`).

    They copy the application's messages into the log: message number n of a conversation has seq n, and what was
    copied once stays. Of earlier messages only the newest copied one is compared with what is given. A conversation's
    policy is that of the first function that writes to it.
    """

    def __init__(self, memory: Memory, scope: Scope, *, policy: Policy | str | None = None) -> None:
        self._memory, self._scope = memory, Scope.checked(scope)
        self._policy = policy_of(policy) or sliding_window()
        self._background = Background()
        self._copying = WeakValueDictionary[str, asyncio.Lock]()

    async def get_context_for_workflow(self, conversation_id: str, messages: Sequence[ChatMessage]) -> WorkflowContext:
        """The context at the start of a round. `messages` are all of the conversation, the user's newest included, as
        dicts in OpenAI chat shape. Raises InvalidInput where the log has more than these or another one, and what an
        append raises."""
        chat, messages = self._conversation(conversation_id), list(messages)
        await self._caught_up(chat, messages)
        head = await chat.head()
        if head is not None and head.next_seq > len(messages):
            raise InvalidInput(
                f"the log of {chat.id!r} has {head.next_seq} messages, and {len(messages)} are given; give all of the "
                f"conversation. {_RETRY}"
            )
        if head is None or head.digest is None:
            return WorkflowContext(memory_text=None, gap_messages=list(messages[:-1]))
        return WorkflowContext(memory_text=head.digest.text, gap_messages=list(messages[head.digest.end + 1 : -1]))

    def trigger_summarization_if_needed(
        self, conversation_id: str, last_saved_seq: int, *, messages: Sequence[ChatMessage] | None = None
    ) -> asyncio.Task[bool]:
        """Start a summary at the end of a round, if one is due and none is in progress. It does not wait: awaited, it
        gives whether it started one, or raises InvalidInput where the log does not have `last_saved_seq`. Give
        `messages`, all of the conversation, if the newest are not in the log yet: appending them starts it."""
        given = None if messages is None else list(messages)  # the caller goes on with it

        async def trigger() -> bool:
            chat = self._conversation(conversation_id)
            begun = given is not None and await self._caught_up(chat, given)
            return await fired(chat, last_saved_seq) or begun

        return self._background.start(trigger())

    def _conversation(self, name: str) -> Conversation:
        return self._memory.conversation(name, scope=self._scope, policy=self._policy)

    async def _caught_up(self, chat: Conversation, messages: Sequence[ChatMessage]) -> bool:
        """Append those of the application's messages that are not in the log; returns whether that started a digest."""
        lock = self._copying.setdefault(chat.id, asyncio.Lock())
        async with lock:
            while True:
                head = await chat.head()
                known = 0 if head is None else head.next_seq
                if known and known <= len(messages):
                    await self._check_newest(chat, messages[known - 1], known - 1)
                if known >= len(messages):
                    return False
                try:
                    # Without their ids: servers give one to several.
                    new = [wire.read(one, take_id=False) if "id" in one else one for one in messages[known:]]
                    return bool((await chat.append(*new, expect=known)).fired)
                except ConcurrentWrite:  # another process copies the same messages
                    log.debug("Others append to %s; looking again", chat.id)

    async def _check_newest(self, chat: Conversation, given: ChatMessage, seq: int) -> None:
        (copied,) = await chat.messages(start=seq, stop=seq + 1)
        if not copied.erased and copied.message.text != wire.read(given, take_id=False).text:
            raise InvalidInput(
                f"message {seq} of {chat.id!r} is another one in the log than the one that is given. {_RETRY}"
            )
