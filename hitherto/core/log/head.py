"""Heads: the state of a conversation that is known without reading its messages. Plans and views start from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from hitherto.core.cross_session import CrossSession
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.message import Sums
from hitherto.core.scope import THE_USER
from hitherto.errors import InvalidInput

PATIENCE = 3
"""The number of turns for which a tool call without a result holds back digests, the turn of the call included."""

MOST_RETRACTIONS = 2_000
"""The most ranges of messages that can be retracted in a conversation. Those of one revision that touch are one."""

_RANGE = 50
"""What each of many ranges counts for."""

REPLACED = "replaced"
"""The stage name of a digest that a caller put in the place of messages; it applies under every policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that has no result yet: its own seq, where its group begins, the turn it was made in, its tool."""

    seq: int
    group: int
    turn: int
    tool: str = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningDigest:
    """A digest in progress. `kept_from` as in `Frontier`. `error` says why its last attempt failed, if one did.
    `claimed`: a worker is making it."""

    id: int
    stage: str
    attempt: int
    start: int
    end: int
    created_at: datetime
    action: DigestAction = DigestAction.SUMMARIZE
    kept_from: int | None = None
    error: str | None = None
    claimed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingSummary:
    """The summary that stands for the older part of a conversation: the completed one that reaches furthest.

    `spec` is the JSON of the stage that made it.
    """

    id: int
    start: int
    end: int
    text: str
    spec: str = "{}"
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestDigest:
    """The digest of another conversation that was chosen for this one's instructions (`CrossSession.latest`): its id,
    its conversation and its text. All are None if there was none to choose, or if it no longer exists."""

    digest: int | None = None
    conversation: str | None = None
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class Head:
    """The state of one conversation at one revision. Its size does not grow with the conversation's length.

    A conversation that does not exist yet has revision 0. `messages_rev` is the revision at which messages last came,
    went, were hidden or erased. `sums` run through the last live message, `view_sums` up to
    the one before `view_start`, `digest_sums` through `digest.end`. `digest` rests on no cleared message. `closed`: the
    last live message can end a round (it is a final assistant message). `run_start` is the first of the tool calls and
    reasoning items with which the log ends, or `next_seq`. `frontiers` are by the stage's fingerprint. `awaited` are
    the turns, of the newest `PATIENCE`, with calls whose result is still waited for, and their numbers: (turn, number
    of calls). `late` are results that came in a later turn than their calls: (turn of the call, seq of the result).
    `erased` and `retracted` are inclusive ranges of messages that have expired and of messages that were retracted, of
    those of one revision `retractions`.

    `policy` is the JSON text of the conversation's own policy, `agent_policy` that of its agent's; `cross_session` and
    `agent_cross_session` likewise. `failures` counts the digests that failed since the last that succeeded, readings
    for facts aside. At `resume_at`, if set, a worker looks for what is due; until then, after more than one failure, no
    digest begins. `subject` is what the conversation's facts are about (`core.scope.THE_USER`: the user), and
    `extracted` are the ranges of messages from which facts have been extracted. At `facts_due_at`, if set, the
    conversation rests, and a worker has what is left of it read for facts. Until `facts_resume_at`, if set, no such
    reading begins: the last one failed. `private`: it reads nothing of other conversations, and they find nothing of
    it. Messages below `finish_seq` are to be digested and read, whatever the triggers say. `ttl` is how long new
    messages are kept that say nothing of it: what is set for the conversation, else for its agent, else for its tenant;
    zero means for ever, None that nothing is set. `time_zone` is its user's, else its agent's.
    `clock` is the store's clock: it decides what is due. `now` is the timestamp of what is written: the same time, but
    never before the newest message's, in case a clock that was ahead has been set back.

    A past head may end before the last message that there was then. It is without `awaited`, `late`, `failures`,
    `resume_at`, `facts_due_at`, `facts_resume_at`, `running`, `finish_seq`, `retractions` and the frontiers of stages
    that find facts. Its `messages_rev`, `run_start`, `policy`, `agent_policy`, `cross_session`, `agent_cross_session`,
    `latest`, `next_expiry`, `subject`, `private`, `extracted`, `ttl` and `time_zone` are the present ones.
    """

    ref: int
    rev: int
    next_seq: int
    sums: Sums
    view_start: int
    view_sums: Sums
    closed: bool
    now: datetime
    clock: datetime
    run_start: int = 0
    digest: StandingSummary | None = None
    digest_sums: Sums = field(default_factory=Sums)
    frontiers: Mapping[str, Frontier] = field(default_factory=dict[str, Frontier])
    policy: str | None = None
    agent_policy: str | None = None
    cross_session: CrossSession = field(default_factory=CrossSession)
    agent_cross_session: CrossSession = field(default_factory=CrossSession)
    latest: LatestDigest = field(default_factory=LatestDigest)
    awaited: tuple[tuple[int, int], ...] = ()
    late: tuple[tuple[int, int], ...] = ()
    running: tuple[RunningDigest, ...] = ()
    erased: tuple[tuple[int, int], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()
    next_expiry: datetime | None = None
    failures: int = 0
    resume_at: datetime | None = None
    subject: str = THE_USER
    private: bool = False
    extracted: tuple[tuple[int, int], ...] = ()
    facts_due_at: datetime | None = None
    facts_resume_at: datetime | None = None
    finish_seq: int = 0
    ttl: timedelta | None = None
    time_zone: str | None = None
    messages_rev: int = 0
    retractions: int = 0

    @property
    def resting(self) -> bool:
        """Whether digests have failed so often that none begins for now."""
        return self.failures > 1 and self.resume_at is not None and self.clock < self.resume_at

    @property
    def size(self) -> int:
        """What it takes to go through its ranges, in characters."""
        return _RANGE * (len(self.erased) + len(self.retracted))

    @property
    def last_seq(self) -> int:
        return self.next_seq - 1

    @property
    def round_ended(self) -> bool:
        """Whether the last message ends a round: a final assistant message with no call left that is still awaited."""
        return self.closed and not self.awaited

    def reaches(self, action: DigestAction) -> Frontier | None:
        """The frontier that reaches furthest among the stages with this action."""
        found = [one for one in self.frontiers.values() if one.action is action]
        return max(found, key=lambda one: one.end) if found else None


def check_retractable(head: Head) -> None:
    """Raises InvalidInput where messages were taken back too often to be again."""
    if head.retractions >= MOST_RETRACTIONS:
        raise InvalidInput(
            f"messages of this conversation were taken back or replaced {MOST_RETRACTIONS:,} times, and cannot be "
            "again; nothing was taken back. Go on in a new conversation, or in a fork that ends before most of these, "
            "or `clear` this one to hide what it shows"
        )


H = TypeVar("H", bound=Head)
"""A head, with its calls or without."""


@dataclass(frozen=True, kw_only=True)
class HeadWithCalls(Head):
    """A head with tool calls that have no result, by id: not all, only those that the reader asked for."""

    open_calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])


def empty(now: datetime) -> HeadWithCalls:
    """The head of a conversation that does not exist yet."""
    none = Sums()
    return HeadWithCalls(
        ref=0, rev=0, next_seq=0, sums=none, view_start=0, view_sums=none, closed=False, now=now, clock=now
    )
