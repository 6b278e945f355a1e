"""A conversation as a session of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypedDict, TypeVar, Unpack, cast

from agents import Agent, RunContextWrapper, SessionSettings, TResponseInputItem
from agents.memory import OpenAIResponsesCompactionArgs
from agents.memory.session_settings import coerce_session_settings

from hitherto.aside import aside, weight
from hitherto.core.context.budget import checked_budget
from hitherto.core.digests.digest import Digest
from hitherto.core.log.message import RESPONSES, Logged, Message, Payload, check_item
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import policy_of
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.conversation import Conversation, wait_for_digests
from hitherto.engine.log.append import AppendResult
from hitherto.engine.memory import Memory
from hitherto.errors import ConcurrentWrite, Forbidden, InvalidInput, InvalidScope, StoreError
from hitherto.integrations.openai_agents.arguments import checked_items, checked_limit, checked_seconds
from hitherto.integrations.openai_agents.compaction import Clears, Snapshot, replaced_suffix, sealed, unsealed
from hitherto.integrations.openai_agents.event_loop import MemoryLoop, loop_of
from hitherto.sync.base import BackgroundMemory
from hitherto.sync.facade import SyncMemory
from hitherto.uninterrupted import uninterrupted
from hitherto.wire import codec
from hitherto.wiring import Opening

Wrapper = RunContextWrapper[Any]
Route = Callable[[Wrapper | None], Scope]
"""Says whose memory it is, from the run's context; None where a session is called without a run."""

Result = TypeVar("Result")

_LONGEST_WAIT = 30.0

_MOST_LOOKED = 1_000
"""Scopes of which a session remembers that it has started what its policy finds due."""


class _ItemsOptions(TypedDict, total=False):
    """More parameters of `Conversation.items`."""

    at: int | None
    budget: int | None
    sent: bool


class HithertoSession:
    """A session of the SDK on a conversation: it shows what the policy leaves of the log, and the log keeps everything.

    `session_id` is the conversation's id. `memory` is an open memory, used from the running event loop; or
    `hitherto.open(…)`, not awaited, which the session opens in the background and closes with `close`; or one from
    `hitherto.open_sync()`, which several sessions may share. `scope` says whose conversation it is; a function is
    called at each call with the run's context, so that one session serves many tenants. `policy`, an object or its
    name, governs what is shown and the appends; by default the conversation's policy applies, then the agent's, the
    memory's, `balanced`. `model` is the agent's model, which decides which opaque compaction items it can be shown, and
    how tokens are counted. `wait` is how many seconds `get_items`, and so a run, waits at most for a digest in
    progress; by default it does not wait, and a later run sees the digest. `budget` is the most tokens that `get_items`
    gives; by default there is no limit.

    It implements the SDK's `Session`. All methods take the run's context as `wrapper`. The constructor raises
    InvalidScope, InvalidPolicy, InvalidBudget, InvalidInput.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | Opening | SyncMemory,
        *,
        scope: Scope | Route,
        policy: Policy | str | None = None,
        model: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        wait: float = 0.0,
        budget: int | None = None,
    ) -> None:
        self.session_id = checked_name(session_id, "session_id")
        self.session_settings: SessionSettings | None = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        checked_limit(self.session_settings.limit)
        self._route = scope if callable(scope) else Scope.checked(scope)
        self.policy = policy_of(policy)
        self._model = model
        self._wait = checked_seconds(wait)
        self._budget = None if budget is None else checked_budget(budget, 0)[0]
        self._own = BackgroundMemory(memory) if isinstance(memory, Opening) else None
        self._home = self._own or _home(memory)
        self._clears = Clears()
        self._looked = set[Scope]()
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.session_id!r}>"

    async def get_items(self, limit: int | None = None, *, wrapper: Wrapper | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items of what the policy leaves, oldest first; by default as many as the session settings
        say, or all.

        What the API would refuse is mended, but not the items' own ids and fields, which the SDK compares with what it
        wrote: the Runner sends them as they are, without `created_by`, `provider_data` and its own `__fake_id__`. Calls
        without a result stay too; the Runner leaves them out of its request, as it does results that the limit of
        `session_settings` has separated from their calls, if there is no `session_input_callback`. The session's budget
        holds too: the oldest groups give way, a tool result only together with its call.
        Raises InvalidInput for a negative limit.
        """
        settings = self.session_settings
        newest = checked_limit(settings.limit if limit is None and settings is not None else limit)

        async def shown(conversation: Conversation) -> list[Payload]:
            if newest == 0:
                return []
            if self.policy is not None and conversation.scope not in self._looked:
                # What was said before, under another policy, may be due under this one.
                with suppress(StoreError, Forbidden):  # who may only read goes on reading
                    await conversation.start_digests(policy=self.policy)
                    if len(self._looked) >= _MOST_LOOKED:
                        self._looked.clear()
                    self._looked.add(conversation.scope)
            if self._wait > 0:
                await wait_for_digests(conversation, self._wait)
            # Outside of a run, no model is sent them.
            return await self._shown(conversation, newest, budget=self._budget, sent=wrapper is not None)

        return cast("list[TResponseInputItem]", await self._do(shown, wrapper))

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Wrapper | None = None) -> None:
        """Append the items to the log, all or none; an empty list does nothing.

        Items that replace what was cleared just before, as the SDK's compaction does it, are shown in its place and not
        logged again: a list with a compaction item in it, or exactly what was shown before the clear,
        if that is more than one item. What the budget left of that brings back all of it.

        Raises InvalidMessage for an item that the API would not accept, InvalidBatch for a result without its call;
        nothing is written then. If the caller is cancelled, the write is finished first.
        """
        given = checked_items(items)

        async def added(conversation: Conversation) -> None:
            if not given:
                return
            if await self._clears.undone_by(given, conversation):
                view = self._clears.cut_from(given, conversation)
                whole = given if view is None else await self._shown(conversation, at=view)
                await self._replaced(conversation, whole)
                return
            messages = await aside(weight(given), _read, given)
            appended = await conversation.append(*messages, policy=self.policy)
            self._clears.over(conversation)
            await self._appended(conversation, appended)

        await uninterrupted(self._do(added, wrapper))

    async def pop_item(self, *, wrapper: Wrapper | None = None) -> TResponseInputItem | None:
        """Take back the newest item that is shown and return it, or None if there is none. The log keeps it, as
        retracted; digests that rest on it are superseded."""
        popped = await uninterrupted(self._do(lambda chat: chat.pop(policy=self.policy, model=self._model), wrapper))
        return None if popped is None else cast(TResponseInputItem, unsealed(popped))

    async def clear_session(self, *, wrapper: Wrapper | None = None) -> None:
        """Hide all items so far. The log keeps them."""

        async def cleared(conversation: Conversation) -> None:
            head = None if self._budget is None else await conversation.head()
            fitted = [] if head is None else await self._shown(conversation, budget=self._budget)
            shown = await self._shown(conversation)
            await conversation.clear()
            if head is not None:
                self._clears.remember(fitted, conversation, cut_from=head.rev)
            self._clears.remember(shown, conversation)

        await uninterrupted(self._do(cleared, wrapper))

    async def run_compaction(
        self, args: OpenAIResponsesCompactionArgs | None = None, *, wrapper: Wrapper | None = None
    ) -> None:
        """Let the digest in progress finish, for at most 30 seconds.

        It starts no digest: appends do that. When the Runner calls this at the end of a run, it returns at once; to
        make a run wait for a digest at its beginning, set the session's `wait`.
        """
        if args is None or args.get("force", False):
            await self._do(lambda conversation: wait_for_digests(conversation, _LONGEST_WAIT), wrapper)

    async def messages(self, *, wrapper: Wrapper | None = None) -> list[Logged]:
        """The whole log, whatever is shown of it."""
        return await self._do(lambda chat: chat.messages(), wrapper)

    async def digests(
        self, *, after: int | None = None, limit: int = 1_000, wrapper: Wrapper | None = None
    ) -> list[Digest]:
        """What was done to the log's view: digests, redactions, drops and clears, in the order in which they began; a
        page, as `Conversation.digests`."""
        return await self._do(lambda chat: chat.digests(after=after, limit=limit), wrapper)

    def instructions(self, base: str = "") -> Callable[[Wrapper, Agent[Any]], Awaitable[str]]:
        """A function for `Agent(instructions=…)`. It returns `base`, then the memory of earlier conversations of the
        scope, if memory injection is enabled, then the facts about the conversation's subject, if they are shown (the
        setting `facts`)."""

        async def instructed(wrapper: Wrapper, agent: Agent[Any]) -> str:
            injected = await self._do(lambda chat: chat.injected(), wrapper)
            known = await self._do(lambda chat: chat.known(), wrapper)
            return "\n\n".join(part for part in (base, injected, known) if part)

        return instructed

    def close(self) -> None:
        """End the session, and with it the memory that it opened itself. Returns when that is closed; safe to call
        twice."""
        self._closed = True
        if self._own is not None:
            self._own.close()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> Snapshot | None:
        """The newest `limit` items and a function that replaces the last of them; None if a subclass changes the items.
        Called by the SDK's compaction session, which replaces part of the history in one step if a store can."""
        if not self._is_unmodified():
            return None
        items = await self._do(lambda conversation: self._shown(conversation, limit + 1), None)

        async def replace(start: int, output: list[TResponseInputItem]) -> bool:
            async def replaced(conversation: Conversation) -> bool:
                head = await conversation.head()
                shown = await self._shown(conversation)
                after = replaced_suffix(shown, newest[start:], cast("list[Payload]", output), prune_prefix)
                if head is None or after is None:
                    return False
                try:
                    await self._replaced(conversation, after, expect=head.rev)
                except ConcurrentWrite:
                    return False  # they are not the newest any more
                return True

            return await uninterrupted(self._do(replaced, None))

        newest = items[-limit:]
        return Snapshot(cast("list[TResponseInputItem]", newest), len(items) <= limit, replace)

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Show `items` in the place of everything; False if that is not possible. Called by the SDK's compaction
        session, which otherwise clears and adds."""
        if not self._is_unmodified():
            return False
        given = checked_items(items)

        async def replaced(conversation: Conversation) -> bool:
            head = await conversation.head()
            if head is None or head.view_start == head.next_seq:
                return False  # there is nothing that they could replace: they are new
            await self._replaced(conversation, given)
            return True

        return await uninterrupted(self._do(replaced, None))

    def _is_unmodified(self) -> bool:
        """Whether no subclass changes how items go in and out: a replacement must not bypass that."""
        verbs = ("get_items", "add_items", "pop_item", "clear_session")
        return all(getattr(type(self), verb) is getattr(HithertoSession, verb) for verb in verbs)

    async def _appended(self, conversation: Conversation, appended: AppendResult) -> None:
        """For subclasses: called after each append."""

    async def _shown(
        self, conversation: Conversation, limit: int | None = None, **options: Unpack[_ItemsOptions]
    ) -> list[Payload]:
        """What the policy leaves."""
        items = await conversation.items(wire=RESPONSES, policy=self.policy, model=self._model, limit=limit, **options)
        return list(map(unsealed, items))

    async def _replaced(
        self, conversation: Conversation, items: Sequence[Payload], *, expect: int | None = None
    ) -> None:
        given = list(map(sealed, items))
        await conversation.replace(given, wire=RESPONSES, model=self._model, policy=self.policy, expect=expect)

    async def _do(self, verb: Callable[[Conversation], Awaitable[Result]], wrapper: Wrapper | None) -> Result:
        """The result of `verb` on the conversation in the run's scope."""
        if self._closed:
            raise InvalidInput(f"session {self.session_id!r} is closed; make a new one")
        scope = self._scope(wrapper)

        async def work(memory: Memory) -> Result:
            return await verb(memory.conversation(self.session_id, scope=scope))

        return await self._home.arun(work)

    def _scope(self, wrapper: Wrapper | None) -> Scope:
        if isinstance(self._route, Scope):
            return self._route
        found = cast(object, self._route(wrapper))
        if not isinstance(found, Scope):
            raise InvalidScope(
                f"session {self.session_id!r} found the scope {found!r} for this call; its scope function must return "
                "a Scope, or raise, for every run, and for calls without one"
            )
        return found


def _read(items: Sequence[Payload]) -> list[Message]:
    """The items as messages without ids of their own: models and the SDK give one id to several. Raises
    InvalidMessage."""
    for item in items:
        check_item(item)
    return [codec(RESPONSES).read(sealed(item)) for item in items]


def _home(memory: object) -> MemoryLoop:
    match memory:
        case Memory() | SyncMemory():
            return loop_of(memory)
        case _:
            raise InvalidInput(
                f"memory is {memory!r}; give an open memory, hitherto.open(…) as it is, or hitherto.open_sync(…)"
            )
