"""The functions that other memory systems have, on a memory: for programs that call them already."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakValueDictionary

from hitherto.core.context.facts_block import HEADING
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.facts.fact import Fact, Visibility
from hitherto.core.log.frontier import DigestAction
from hitherto.core.plain_text import plain
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import chunks, policy_of, sliding_window
from hitherto.core.scope import Scope
from hitherto.engine.conversation import Conversation
from hitherto.engine.digests.fire import refire
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput
from hitherto.logs import logger

log = logger("hitherto")

ChatMessage = Mapping[str, Any]

_RETRY = "What was copied once stays: to edit and retry, go on under another conversation id"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowContext:
    """The newest summary (None before the first), and the messages since, without the newest one."""

    memory_text: str | None
    gap_messages: list[ChatMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """What goes to the model: a system prompt, and the messages, oldest first, with what is recalled."""

    system_prompt: str
    messages: list[dict[str, Any]]


class MemoryService:
    """Two memory systems' functions on the conversations of a scope.

    `get_context_for_workflow` and `trigger_summarization_if_needed` keep a summary of the newest messages, under
    `policy` (by default `sliding_window`). They copy the application's messages into the log: message number n of a
    conversation has seq n, and what was copied once stays. Of earlier messages only the newest copied one is compared
    with what is given. `prepare_turn` and `maybe_summarize` keep chunks and facts, under `chunks`; they are for
    conversations that the application appends to. A conversation's policy is that of the first function that writes to
    it.
    """

    def __init__(self, memory: Memory, scope: Scope, *, policy: Policy | str | None = None) -> None:
        self._memory, self._scope = memory, Scope.checked(scope)
        self._policy = policy_of(policy) or sliding_window()
        self._tasks = set[asyncio.Task[bool]]()
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
        newest = await _newest(chat)
        if newest is None:
            return WorkflowContext(memory_text=None, gap_messages=list(messages[:-1]))
        return WorkflowContext(memory_text=newest.text, gap_messages=list(messages[newest.end + 1 : -1]))

    def trigger_summarization_if_needed(
        self, conversation_id: str, last_saved_seq: int, *, messages: Sequence[ChatMessage] | None = None
    ) -> asyncio.Task[bool]:
        """Start a summary at the end of a round, if one is due and none is in progress. It does not wait: awaited, it
        gives whether it started one, or raises InvalidInput where the log does not have `last_saved_seq`. Give
        `messages`, all of the conversation, if the newest are not in the log yet: appending them starts it."""
        given = None if messages is None else list(messages)  # the caller goes on with it

        async def trigger() -> bool:
            chat = self._conversation(conversation_id)
            fired = given is not None and await self._caught_up(chat, given)
            return await _fired(chat, last_saved_seq) or fired

        return self._started(trigger())

    def maybe_summarize(self, conversation_id: str, *, legacy_id: str = "") -> asyncio.Task[bool]:
        """Make a chunk of the oldest messages, with facts about `legacy_id`, if enough have none. It does not wait, as
        `trigger_summarization_if_needed`."""

        async def trigger() -> bool:
            return await _fired(self._chunked(conversation_id, legacy_id), None)

        return self._started(trigger())

    async def prepare_turn(
        self,
        conversation_id: str,
        query: str,
        *,
        legacy_id: str = "",
        base_prompt: str = "",
        budget: int | None = None,
    ) -> PreparedTurn:
        """What the model is sent for `query`: the newest messages, chunks of older ones that bear on it, and in the
        system prompt the facts about `legacy_id` ("": the user), as many as fit. Nothing is appended. Raises what a
        context raises."""
        made = await self._chunked(conversation_id, legacy_id).context(
            query, budget=budget, instructions=base_prompt or None, policy=chunks(), facts=True
        )
        sent = [dict(one) for one in made.request["messages"]]
        prompt = "\n\n".join(str(one["content"]) for one in sent if one["role"] == "system")
        return PreparedTurn(system_prompt=prompt, messages=[one for one in sent if one["role"] != "system"])

    @staticmethod
    def build_system_prompt(base_prompt: str, legacy_name: str, facts: Sequence[Fact] = ()) -> str:
        """The prompt with a line for each fact. Facts come from what people said: each is always one line."""
        if not facts:
            return base_prompt
        told = [
            f"- [{plain(one.category)}] {plain(one.content)} ({'shared' if one.visibility == 'shared' else 'personal'})"
            for one in facts
        ]
        return "\n".join(
            [*([f"{base_prompt}\n"] if base_prompt else []), HEADING.format(name=plain(legacy_name)), *told]
        )

    async def get_facts_for_context(self, legacy_id: str) -> list[Fact]:
        """The user's facts about a subject, and those that others share with the user, oldest first."""
        facts, found = self._memory.facts(self._scope, subject=legacy_id), list[Fact]()
        while page := await facts.list(after=found[-1].id if found else 0, limit=1_000):
            found += page
        return found

    async def list_user_facts(self, legacy_id: str) -> list[Fact]:
        """The user's own facts about a subject, oldest first."""
        return [one for one in await self.get_facts_for_context(legacy_id) if one.user == self._scope.user]

    async def delete_fact(self, fact_id: int) -> None:
        """Delete a fact of the user. Raises NotFound for another's."""
        await self._memory.facts(self._scope).delete(fact_id)

    async def update_fact_visibility(self, fact_id: int, visibility: Visibility | Literal["private", "shared"]) -> Fact:
        """Share a fact of the user ("shared"), or take that back ("private"). Raises NotFound for another's,
        InvalidFact for another value."""
        return await self._memory.facts(self._scope).set_visibility(fact_id, visibility)

    def _conversation(self, name: str) -> Conversation:
        return self._memory.conversation(name, scope=self._scope, policy=self._policy)

    def _chunked(self, name: str, legacy_id: str) -> Conversation:
        return self._memory.conversation(name, scope=self._scope, policy=chunks(), subject=legacy_id or None)

    async def _caught_up(self, chat: Conversation, messages: Sequence[ChatMessage]) -> bool:
        """Append those of the application's messages that are not in the log; returns whether that started a digest."""
        lock = self._copying.setdefault(chat.id, asyncio.Lock())
        async with lock:
            head = await chat.head()
            known = 0 if head is None else head.next_seq
            if known and known <= len(messages):
                await self._check_newest(chat, messages[known - 1], known - 1)
            if known >= len(messages):
                return False
            return bool((await chat.append(*messages[known:], expect=known)).fired)

    async def _check_newest(self, chat: Conversation, given: ChatMessage, seq: int) -> None:
        (copied,) = await chat.messages(start=seq, stop=seq + 1)
        read = self._memory._services.read(given)  # pyright: ignore[reportPrivateUsage] — it is part of Hitherto
        if not copied.erased and copied.message.text != read.text:
            raise InvalidInput(
                f"message {seq} of {chat.id!r} is another one in the log than the one that is given. {_RETRY}"
            )

    def _started(self, work: Any) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(work, name="a summary is looked for")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("No summary was started: %s", error)


async def _newest(chat: Conversation) -> Digest | None:
    made = [
        one
        for one in await chat.digests()
        if one.action is DigestAction.SUMMARIZE and one.status is Status.COMPLETED and one.hidden_rev is None
    ]
    return max(made, key=lambda one: (one.end, one.id), default=None)


async def _fired(chat: Conversation, last_saved_seq: int | None) -> bool:
    head = await chat.head()
    if last_saved_seq is not None and (head is None or last_saved_seq >= head.next_seq):
        there = 0 if head is None else head.next_seq
        raise InvalidInput(
            f"message {last_saved_seq} of {chat.id!r} is not in the log, which has {there}; append it, or give messages"
        )
    return head is not None and await refire(chat._handle)  # pyright: ignore[reportPrivateUsage] — it is part of Hitherto
