"""What each of the seven tools does, with the public verbs of a memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import time
from hashlib import sha256
from uuid import uuid4
from weakref import WeakValueDictionary

from hitherto.blocks import block
from hitherto.core.context.expansion import LEAD
from hitherto.core.facts.fact import FactState
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.log.time_zone import moment
from hitherto.core.plain_text import RECORD, has_visible_text, one_line
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, NotFound
from hitherto.integrations.memory_tools import MemoryTools
from hitherto.mcp.texts import conversation_list, fact_list, hit_list
from hitherto.wire.chat import assistant, user

_CONVERSATIONS = 20
"""Conversations of a page."""

_FACTS = 50
"""Facts of a page."""

_PAGE = 5_000
"""Tokens of messages that a page shows."""

_LAST = 2**62
"""A message's number that none reaches."""


class McpVerbs:
    """What the tools do, in the scope that each call names. Of all errors, they raise HithertoError alone.

    Facts to remember and to forget are asked for in a conversation of this object's own, so that each rests on a
    message that says it: one after the other, for the verbs take the newest message."""

    def __init__(self) -> None:
        self._own = f"remembered-{uuid4().hex[:8]}"
        self._turns = WeakValueDictionary[Scope, asyncio.Lock]()

    async def recall(
        self, memory: Memory, scope: Scope, question: str, after: str | None = None, before: str | None = None
    ) -> str:
        """What `MemoryTools.recall` finds."""
        found = await MemoryTools(memory, scope, self._own).recall(question, after, before)
        return hit_list(found)

    async def read(
        self,
        memory: Memory,
        scope: Scope,
        *,
        conversation: str,
        start: int = 0,
        end: int = _LAST,
        character: int = 0,
        budget: int = _PAGE,
    ) -> str:
        """Messages `start` to `end`, as `Conversation.expand` shows them; none of a private conversation."""
        if start > end:
            raise InvalidInput(f"start is {start} and end is {end}; give a start that is no larger than the end")
        chat = memory.conversation(conversation, scope=scope)
        head = await chat.head()
        if head is None or head.private:
            raise NotFound(f"there is no conversation {conversation!r}; conversations lists those that there are")
        text = (await chat.expand((start, end, character), budget=budget)).text
        if not text:
            return "Of these messages there is nothing to show."
        return text.replace(LEAD, f"From the log of conversation {one_line(conversation)}, by number. {RECORD}", 1)

    async def conversations(
        self,
        memory: Memory,
        scope: Scope,
        after: str | None = None,
        before: str | None = None,
        cursor: str | None = None,
    ) -> str:
        """A page of the scope's conversations, without private ones."""
        page = await memory.conversations(
            scope,
            after=moment("after", after or None, time.min),
            before=moment("before", before or None, time.max),
            limit=_CONVERSATIONS,
            cursor=cursor or None,
        )
        shown = list[tuple[ConversationInfo, int]]()
        for one in page.conversations:
            head = await memory.conversation(one.conversation, scope=scope).head()
            if head is not None and not head.private:
                shown.append((one, head.next_seq))
        return conversation_list(shown, page.next)

    async def facts(self, memory: Memory, scope: Scope, category: str | None = None, after: int = 0) -> str:
        """A page of the facts that hold, and those that others share with the user."""
        found = await memory.facts(scope).list(category=category or None, after=after, limit=_FACTS)
        return fact_list(found, found[-1].id if len(found) == _FACTS else None)

    async def remember(self, memory: Memory, scope: Scope, text: str, category: str | None = None) -> str:
        """Append the statement as the user's, and remember it, as `Conversation.remember` does."""
        if not has_visible_text(text):
            raise InvalidInput("text is blank; give the fact as a sentence")
        async with self._turn(memory, scope, text) as tools:
            added = await tools.remember(text, category)
        return f"Remembered as fact {added['fact']}." if added["new"] else f"Known already: fact {added['fact']}."

    async def forget(self, memory: Memory, scope: Scope, fact: int, mentions: bool = False) -> str:
        """Forget a fact, as `MemoryTools.forget` does."""
        known = await memory.facts(scope).get(fact)
        if known is None or (known.state is FactState.DELETED and not mentions):
            raise NotFound(f"there is no fact {fact}; facts and recall give the numbers")
        async with self._turn(memory, scope, f"Forget fact {fact}.") as tools:
            gone = await tools.forget(fact, mentions)
        lines = [f"Forgotten: {gone['forgotten']}."]
        for one in gone["mentions"]:
            place = f"messages {one['start']} to {one['end']} of conversation {one_line(one['conversation'])}"
            lines.append(f"- may mention it: {place}, {one['said_at']}")
        if gone["mentions"]:
            lines.append("Tell the user, and call again with mentions if they are to go too.")
        return "\n".join(lines)

    async def save(self, memory: Memory, scope: Scope, conversation: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Append the messages to a conversation, once: the same ones again change nothing."""
        batch = [{"role": one["role"], "content": one["content"]} for one in messages]
        key = f"mcp-{sha256(json.dumps(batch).encode()).hexdigest()}"
        done = await memory.conversation(conversation, scope=scope).append(*batch, key=key)
        told = "Saved already" if done.replayed else "Saved"
        return f"{told}: messages {done.start} to {done.end} of conversation {one_line(conversation)}."

    @block
    async def _turn(self, memory: Memory, scope: Scope, asked: str) -> AsyncGenerator[MemoryTools]:
        """The tools of an agent, in a turn that begins with what it is asked, and ends with an answer: an open one
        would be taken for a part of the next."""
        chat = memory.conversation(self._own, scope=scope)
        async with self._turns.setdefault(scope, asyncio.Lock()):
            await chat.append(user(asked))
            try:
                yield MemoryTools(memory, scope, self._own)
            finally:
                await chat.append(assistant("Done."))
