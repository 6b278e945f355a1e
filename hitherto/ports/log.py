"""The port to the log: conversations, their messages, and the unit of work that writes them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import Digest
from hitherto.core.facts.fact import LearnedFacts
from hitherto.core.ledger import ModelCall
from hitherto.core.log.head import Head
from hitherto.core.log.message import Logged, Payload
from hitherto.core.log.probe import AnyProbe, Freeable, Mark
from hitherto.core.log.ranges import Ranges
from hitherto.core.scope import Scope
from hitherto.ports.digests import DigestOutcome, NewDigest, RewrittenDigest
from hitherto.ports.facts import CurrentFacts, KnownFacts, KnownFactsQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of an append: messages `start` to `end` (inclusive), at revision `rev`.

    `fingerprint` is that of the batch; None once what it wrote was erased: then only the receipt is left, so that a
    replay of the key still writes nothing.
    """

    start: int
    end: int
    rev: int
    fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that one unit of work writes. `head` is the conversation as it is afterwards; its `ref`, `digest`,
    `digest_sums`, `running`, `retracted`, `agent_policy`, `agent_cross_session`, `now` and `clock` are not read, and of
    its `latest` only `digest`; nor is its `ttl`. `key` and `receipt` go together.

    `title`, `metadata` (the JSON text of an object) and `ttl` are the conversation's new ones; None leaves them as they
    are, a title of "" unsets it. A change that nobody asked for is a `background` one: the conversation's `updated_at`
    stays. With `forget`, the facts that only the messages in `erase` say go even if a person confirmed them, unless
    somebody has added them by hand.

    `fire` are the new digest rows. `retract` are messages that are retracted at `head.rev`. `supersede` are completed
    rows, clears too, that views from `head.rev` on no longer use. `calls` go into the ledger. `learned` are facts about
    `learned.subject`. They rest on messages of this conversation, and the unit has asked for its `current_facts` first.
    """

    head: Head
    messages: tuple[Logged, ...] = ()
    key: str | None = None
    receipt: Receipt | None = None
    fire: tuple[NewDigest, ...] = ()
    outcomes: tuple[DigestOutcome, ...] = ()
    erase: Ranges = ()
    rewritten: tuple[RewrittenDigest, ...] = ()
    retract: tuple[int, ...] = ()
    supersede: tuple[int, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    learned: LearnedFacts | None = None
    title: str | None = None
    metadata: str | None = None
    ttl: timedelta | None = None
    background: bool = False
    forget: bool = False


class Unit(Protocol):
    """One unit of work on one conversation, which it locks from beginning to end.

    `head` is the newest head; where the conversation does not exist yet, one of revision 0 without messages. Its
    `clock` is read after the conversation is locked, and `now` never lies before it or the newest message's time.
    `receipt` is the earlier receipt of this unit's key, if there is one.
    """

    @property
    def head(self) -> Head: ...

    @property
    def receipt(self) -> Receipt | None: ...

    async def probe(self, probe: AnyProbe) -> Mark | Freeable | None:
        """The live message that answers `probe`, or None; the answer to `ToolTokens` is a `Freeable`. One index
        look-up, whatever the conversation's length; for `ToolTokens` one over the tool items of its range."""
        ...

    async def tail(self, n: int) -> list[Logged]:
        """The newest `n` live messages from `head.view_start` on, ascending by seq."""
        ...

    async def next_digest(self) -> int:
        """An id for a digest row, never given to another row."""
        ...

    async def expired(self) -> tuple[Ranges, datetime | None]:
        """The messages that have expired by `head.clock` and are not erased yet, and when the next message expires."""
        ...

    async def digests(self) -> list[Digest]:
        """All digests of the conversation, as `Store.digests`."""
        ...

    async def current_facts(self, subject: str) -> CurrentFacts:
        """The scope's current facts about a subject, locked until the unit ends: nobody else changes them meanwhile. A
        unit asks for one subject only."""
        ...

    async def commit(self, changes: Changes) -> tuple[int, ...]:
        """Write everything or nothing; returns the ids of the digests in `changes.fire`, in their order. Those in
        progress are due at once; a store with its own queue puts their jobs there in the same transaction.

        When it returns, the changes are as durable as the store is. At most once in a unit. Raises Conflict, and writes
        nothing, for a second digest of a stage in progress, a second completed one of a stage and range, or a second
        receipt of a key. When it raises DatabaseUnavailable, the connection was lost on the way, and whether the
        changes were written is not known.
        """
        ...

    async def delete(self, *, facts: bool = False) -> None:
        """Erase the conversation with everything derived from it. Receipts lose whatever could reveal its content, but
        still answer. Facts stay, without the evidence that was in it; with `facts`, those that have no other evidence
        are erased too, except those added by hand. Takes the place of `commit`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRange:
    """Which messages to read, ascending by seq: `start` <= seq < `stop`, and of these only those from the first one on
    at which the running sum of tokens is at least `tokens`. In addition, every tool call, tool result and reasoning
    item from `tools_from` on, below `stop` too. At most the first `limit` of them. Numbers below 0 count as 0.

    `live_at` leaves out what views at that revision cannot show: what came later, and what had been retracted. Without
    it, everything is there, and `tokens` must not be given.
    """

    start: int
    stop: int
    tokens: int = 0
    tools_from: int | None = None
    limit: int | None = None
    live_at: int | None = None


@dataclass(frozen=True, slots=True)
class ExpiredConversation:
    """A conversation with expired messages that are not erased yet."""

    scope: Scope
    conversation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation in a list. `title` is the one it was given; else it is made of its first user message that is
    shown; "" where there is none. `messages` and `tokens` are those of its whole log. `summary` is what stands for its
    older part now, "" where nothing does, and `summarized_count` how many user and final assistant messages that
    covers. It was written to last at `updated_at`: by an append, `pop`, `rewind`, `replace`, `clear`, `finish` or
    `configure`. `ref` is the store's number for it."""

    scope: Scope
    conversation: str
    title: str
    metadata: Mapping[str, Any]
    messages: int
    tokens: int
    rev: int
    created_at: datetime
    updated_at: datetime
    ref: int
    summary: str = ""
    summarized_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations to list: those of a tenant, of its user or agent if named, that were written to last from
    `after` to `before`, and whose metadata has every entry of `metadata` (an equal value, or a list that contains
    it). `beyond` goes on after an earlier list: the `updated_at` and `ref` of its last one."""

    tenant: str
    user: str | None = None
    agent: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    beyond: tuple[datetime, int] | None = None

    @classmethod
    def of(cls, scope: Scope) -> ConversationFilter:
        """Those of a scope."""
        return cls(tenant=scope.tenant, user=scope.user, agent=scope.agent)


ScopePart = Literal["tenant", "user", "agent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCounts:
    """A tenant, user or agent in a list, by `name`, and what is kept of it. `updated_at` is when a conversation of it
    was written to last; None if it has none."""

    name: str
    conversations: int
    messages: int
    tokens: int
    documents: int
    facts: int
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefaults:
    """The defaults of an agent of a tenant, for its conversations that have no value of their own. `policy` is JSON
    text; `ttl` is as in `Head`."""

    policy: str | None = None
    cross_session: CrossSession = field(default_factory=CrossSession)
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A tenant, or a `user` of it, of whom everything that was there at `requested_at` is to be erased."""

    tenant: str
    user: str | None
    requested_at: datetime


class LogStore(Protocol):
    """Conversations and their messages. All methods raise what `Store` says."""

    def write(
        self, scope: Scope, conversation: str, *, key: str | None = None, digest: int | None = None
    ) -> AbstractAsyncContextManager[Unit]:
        """Begin a unit of work on a conversation; others on the same one wait. Leaving it without a commit, by an error
        or not, changes nothing. The first commit creates a conversation that does not exist.

        With `digest`, its row is locked too: it stays as `head.running` shows it until the unit ends. Raises StoreError
        where the conversation or the row is not free in time.
        """
        ...

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        """The newest head, or the one at revision `at`; None when there is no such conversation or revision."""
        ...

    async def head_and_known(
        self, scope: Scope, conversation: str, asked: KnownFactsQuery, *, at: int | None = None
    ) -> tuple[Head | None, KnownFacts]:
        """The head, as `head` gives it, and the facts that a context of the conversation may show (as they are now), in
        one round trip."""
        ...

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: MessageRange) -> list[Logged]:
        """The messages of `reading`, ascending by seq; none when `ref` is not that conversation's."""
        ...

    async def payloads(
        self, scope: Scope, conversation: str, ref: int, reading: MessageRange, *, wire: str
    ) -> list[Payload] | None:
        """The items of the messages of `reading` (which may have no more than `start`, `stop` and `live_at`), parsed,
        ascending by seq: a whole history in a fraction of the time that its messages take. None where one of them was
        erased, or is not of the format `wire`; empty when `ref` is not that conversation's."""
        ...

    async def receipt(self, scope: Scope, conversation: str, key: str) -> Receipt | None:
        """What an idempotency key of the conversation answered; None if it was not used, or its retention has ended."""
        ...

    async def defaults(self, *, tenant: str, agent: str | None) -> AgentDefaults:
        """The defaults that are set for an agent, or (None) for all agents of the tenant, of which only `ttl` counts.
        `Head` has what applies, once a conversation exists."""
        ...

    async def set_defaults(self, *, tenant: str, agent: str | None, defaults: AgentDefaults) -> None:
        """Set the defaults of the agent, or of all, in place of those set before."""
        ...

    async def listed(self, asked: ConversationFilter, *, limit: int) -> list[ConversationInfo]:
        """At most `limit` conversations, most recently written first. No title is made of a message that has expired or
        is not shown any more."""
        ...

    async def info(self, scope: Scope, conversation: str) -> ConversationInfo | None:
        """One conversation as `listed` shows it; None if it does not exist."""
        ...

    async def scopes(
        self, by: ScopePart, *, tenant: str | None = None, user: str | None = None, beyond: str = "", limit: int
    ) -> list[ScopeCounts]:
        """At most `limit` tenants, or users or agents of a `tenant` (agents of one `user`, if named), by name in the
        store's own order; those after the name `beyond`. `tenant` or `user` narrows the list to that one.
        There are those that have a conversation, a document or a current fact."""
        ...

    async def due(self, *, tenant: str | None = None, limit: int = 1_000) -> list[ExpiredConversation]:
        """Conversations of any tenant, or of one `tenant`, with messages to be erased; for the engine's own purge."""
        ...

    async def begin_erasure(self, *, tenant: str, user: str | None) -> Erasure:
        """Record that a tenant, or a user of it, is to be erased, and remove all that the search index has of them. It
        is recorded until `end_erasure`."""
        ...

    async def erasures(self) -> list[Erasure]:
        """Those that are recorded and have not ended, the oldest first; for the engine's own purge."""
        ...

    async def conversations_of(self, erasing: Erasure, *, limit: int) -> list[ConversationInfo]:
        """At most `limit` conversations that are to be erased, in any order: those that were there when it began. They
        have no titles."""
        ...

    async def end_erasure(self, erasing: Erasure) -> None:
        """Erase what is left once the conversations are gone, and the record itself: documents, facts with their
        evidence and history, membership of subjects, kept contexts, runs, names in the ledger (the costs stay), and
        what is left of scopes in the search index; of a whole tenant also its subjects, the defaults of its agents and
        its jobs. Conversations, documents, facts and runs that were added since it began stay, and contexts but for
        those that showed facts."""
        ...

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        """Delete idempotency receipts of any tenant beyond their stated retention; returns how many."""
        ...
