"""What each of the seven tools does, with the public verbs of a memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import time
from uuid import uuid4
from weakref import WeakValueDictionary

from hitherto.blocks import block
from hitherto.core.facts.fact import FactState, fingerprint_of_fact
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.log.head import Head
from hitherto.core.log.message import storable
from hitherto.core.log.time_zone import moment
from hitherto.core.plain_text import has_visible_text, one_line
from hitherto.core.scope import THE_USER, Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import ConcurrentWrite, InvalidInput, NotFound
from hitherto.integrations.memory_tools import MemoryTools
from hitherto.mcp.texts import conversation_list, counted, fact_list, forgotten, hit_list, message_page, places
from hitherto.wire.chat import assistant, user

_CONVERSATIONS = 20
"""Conversations of a page."""

_TRIES = 50
"""How often conversations are read for a page, most of which may not be shown."""

_FACTS = 50
"""Facts of a page."""

_MANY_FACTS = 1_000
"""Facts that are read at a time to find one."""

_MORE = 50
"""Messages that are read at the end of a log beside those that are asked for: some may have been taken back."""

_OWN = re.compile("remembered-[0-9a-f]{8}")
"""The names of conversations in which facts were remembered and forgotten."""

_PAGE = 5_000
"""Tokens of messages that a page shows."""


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
        end: int | None = None,
        character: int = 0,
        budget: int = _PAGE,
    ) -> str:
        """Messages `start` to `end`, as `Conversation.expand` shows them; none of a private conversation."""
        if end is not None and start > end:
            raise InvalidInput(f"start is {start} and end is {end}; give a start that is no larger than the end")
        chat = memory.conversation(conversation, scope=scope)
        head = await chat.head()
        if head is None or head.private:
            raise NotFound(f"there is no conversation {conversation!r}; conversations lists those that there are")
        last = max(start, head.last_seq) if end is None else end
        return message_page(conversation, await chat.expand((start, last, character), budget=budget))

    async def conversations(
        self,
        memory: Memory,
        scope: Scope,
        after: str | None = None,
        before: str | None = None,
        cursor: str | None = None,
    ) -> str:
        """A page of the scope's conversations, without private ones and those in which facts were remembered."""
        since, until = moment("after", after or None, time.min), moment("before", before or None, time.max)
        shown, go_on = list[tuple[ConversationInfo, int]](), cursor or None
        for _ in range(_TRIES):
            more = _CONVERSATIONS - len(shown)
            page = await memory.conversations(scope, after=since, before=until, limit=more, cursor=go_on)
            for one in page.conversations:
                if _OWN.fullmatch(one.conversation):
                    continue
                head = await memory.conversation(one.conversation, scope=scope).head()
                if head is not None and not head.private:
                    shown.append((one, head.next_seq))
            go_on = page.next
            if go_on is None or len(shown) == _CONVERSATIONS:
                break
        return conversation_list(shown, go_on)

    async def facts(self, memory: Memory, scope: Scope, category: str | None = None, after: int = 0) -> str:
        """A page of the facts that hold, and those that others share with the user."""
        found = await memory.facts(scope).list(category=category or None, after=after, limit=_FACTS)
        return fact_list(found, found[-1].id if len(found) == _FACTS else None)

    async def remember(self, memory: Memory, scope: Scope, text: str, category: str | None = None) -> str:
        """Append the statement as the user's, and remember it, as `Conversation.remember` does; not where the same is
        known."""
        if not has_visible_text(text):
            raise InvalidInput("text is blank; give the fact as a sentence")
        async with self._turn(scope):
            known = await _known(memory, scope, text)
            if known is not None:
                return f"Known already: fact {known}."
            async with _asked(memory.conversation(self._own, scope=scope), text) as chat:
                added = await chat.remember(text, category=category or None)
        return f"Remembered as fact {added.id}."

    async def forget(self, memory: Memory, scope: Scope, fact: int, mentions: bool = False) -> str:
        """Forget a fact, as `Conversation.forget` does."""
        missing = NotFound(f"there is no fact {fact} that can be forgotten; facts and recall give the numbers")
        known = await memory.facts(scope).get(fact)
        if known is None or (known.state is FactState.DELETED and not mentions):
            raise missing
        chat = memory.conversation(self._own, scope=scope)
        try:
            async with self._turn(scope), _asked(chat, f"Forget fact {fact}."):
                return forgotten(await chat.forget(fact, mentions=mentions))
        except NotFound:  # forgotten by another call meanwhile, or another user's, who shares it
            raise missing from None

    async def save(self, memory: Memory, scope: Scope, conversation: str, messages: Sequence[Mapping[str, str]]) -> str:
        """Append the messages to a conversation, but for those with which it ends already. What others append at the
        same time is looked at."""
        for number, one in enumerate(messages):
            if not has_visible_text(one["content"]):
                raise InvalidInput(f"messages.{number}.content is blank; give what was said, or leave the message out")
        chat = memory.conversation(conversation, scope=scope)
        given = [(one["role"], storable(one["content"])) for one in messages]
        while True:
            head = await chat.head()
            known = [] if head is None else await _end_of(chat, head, len(given))
            new = messages[overlap(known, given) :]
            if not new:
                return f"Saved already: {counted(len(given), 'message')} of conversation {one_line(conversation)}."
            try:
                done = await chat.append(*new, unchanged_since=0 if head is None else head.rev)
            except ConcurrentWrite:
                continue
            return f"Saved: {places(done.start, done.end)} of conversation {one_line(conversation)}."

    def _turn(self, scope: Scope) -> asyncio.Lock:
        """Held by the one whose turn it is in this object's own conversation."""
        return self._turns.setdefault(scope, asyncio.Lock())


@block
async def _asked(chat: Conversation, text: str) -> AsyncGenerator[Conversation]:
    """A turn that begins with what an agent is asked, and ends with an answer: an open one would be taken for a part of
    the next. One that fails is taken back."""
    begun = await chat.append(user(text))
    try:
        yield chat
    except (Exception, asyncio.CancelledError):
        await chat.rewind(to=begun.start - 1)
        raise
    await chat.append(assistant("Done."))


async def _known(memory: Memory, scope: Scope, text: str) -> int | None:
    """The number of the user's own fact that says the same."""
    said, after = fingerprint_of_fact(text), 0
    while page := await memory.facts(scope, subject=THE_USER).list(shared=False, after=after, limit=_MANY_FACTS):
        for one in page:
            if fingerprint_of_fact(one.content) == said:
                return one.id
        after = page[-1].id
    return None


async def _end_of(chat: Conversation, head: Head, count: int) -> list[tuple[str, str]]:
    """Who said what in at least the last `count` messages that are shown, as far as there are so many."""
    found, stop = list[tuple[str, str]](), head.next_seq
    while len(found) < count and stop > head.view_start:
        start = max(stop - count - _MORE, head.view_start)
        page = await chat.messages(start=start, stop=stop)
        shown = [one.message for one in page if one.live(head.rev) and not one.erased]
        found[:0] = [(one.role.value, one.text) for one in shown]
        stop = start
    return found


def overlap(log: Sequence[object], given: Sequence[object]) -> int:
    """How many of the last of `log` are the first of `given`, at most. Takes time linear in their lengths."""
    both = [*given, None, *log]
    borders = [0]  # of each beginning of `both`, how many of its last are its first (Knuth, Morris, Pratt)
    for one in both[1:]:
        length = borders[-1]
        while length and both[length] != one:
            length = borders[length - 1]
        borders.append(length + (both[length] == one))
    return borders[-1]
