"""Conversations in lists, what is read of them, and what is set for their agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from hitherto.core.cross_session import CrossSession
from hitherto.core.log.message import Logged
from hitherto.core.scope import Scope


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


SAID = 8
"""User messages in a row without an answer, of which the newest so many are the question."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What may be shown however far back it is: system messages among the first 50 from seq `start` on, and the user
    messages that open the turn `first` and the turns `last` - SAID + 1 to `last`."""

    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRange:
    """Which messages to read, ascending by seq: `start` <= seq < `stop`, and of these only those from the first one on
    at which the running sum of tokens is at least `tokens`. In addition, every tool call, tool result and reasoning
    item from `tools_from` on, below `stop` too, and what is `lasting`. At most the first `limit` of them. Numbers below
    0 count as 0.

    `live_at` leaves out what views at that revision cannot show: what came later, and what had been retracted. Without
    it, everything is there, and `tokens` must not be given.
    """

    start: int
    stop: int
    tokens: int = 0
    tools_from: int | None = None
    lasting: Lasting | None = None
    limit: int | None = None
    live_at: int | None = None


class RangesRead(NamedTuple):
    """The messages of some ranges of a conversation, ascending by seq, retracted and erased ones too; one whose time
    has come counts as erased. Its view begins at `view_start` (0 where there are no messages)."""

    view_start: int
    messages: list[Logged]


@dataclass(frozen=True, slots=True)
class ExpiredConversation:
    """A conversation with expired messages that are not erased yet."""

    scope: Scope
    conversation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation in a list. `title` is the one it was given; else it is made of its first user message that is
    shown; "" where there is none. `messages` are the user messages and final answers that are shown, `tokens` those of
    all messages that are shown. `summary` is what stands for its older part now, "" where nothing does, and
    `summarized_count` how many user and final assistant messages that covers. The newest message that is shown was said
    at `said_at`; without one, that is when the conversation was made. It was changed last at `updated_at`: by an
    append, `pop`, `rewind`, `switch`, `replace`, `clear`, `finish` or `configure`. `failures` are the digests that
    failed since the last one that did not. `ref` is the store's number for it."""

    scope: Scope
    conversation: str
    title: str
    metadata: dict[str, Any]
    messages: int
    tokens: int
    rev: int
    created_at: datetime
    updated_at: datetime
    said_at: datetime
    ref: int
    summary: str = ""
    summarized_count: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations to list: those of a tenant, of its user or agent if named, in which something was said last
    from `after` to `before`, and whose metadata has every entry of `metadata` (an equal value, or a list that contains
    it). `beyond` goes on after an earlier list: the `said_at` and `ref` of its last one."""

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
    text; `ttl` and `time_zone` are as in `Head`."""

    policy: str | None = None
    cross_session: CrossSession = field(default_factory=CrossSession)
    ttl: timedelta | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDefaults:
    """What is set for a user of a tenant. `time_zone` is as in `Head`."""

    time_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A tenant, or a `user` of it, of whom everything that was there at `requested_at` is to be erased."""

    tenant: str
    user: str | None
    requested_at: datetime
