"""What is known of a conversation without reading its messages: all that a plan or a view starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hitherto.core.message import Sums
from hitherto.core.policy import Policy

PATIENCE = 3
"""A tool call without its result holds back digests for so many turns: the one it was made in, and those after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that has no result yet: its own seq, where its group begins, and the turn it was made in."""

    seq: int
    group: int
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A digest in progress."""

    id: int
    stage: str
    attempt: int
    end: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The digest that stands for the older part of a conversation: the completed one that reaches furthest."""

    id: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The state of one conversation at one revision, of a size that does not grow with its length.

    `sums` run through the last message, `view_sums` up to the one before `view_start`, `digest_sums` through
    `digest.end`. `digest` rests on nothing that was cleared. A conversation that does not exist yet has revision 0.
    `closed` says that the last message can end a round: a final assistant message. `run_start` is where the tool
    calls and reasoning items begin with which the log ends, or `next_seq`. `erased` are inclusive ranges of messages
    whose time had come. `now` is the store's clock. `open_calls`, `running`, `run_start`, `policy` and `next_expiry`
    are not kept for past revisions: a past head has none of the first two, and the others as they are now.
    """

    ref: int
    rev: int
    next_seq: int
    sums: Sums
    view_start: int
    view_sums: Sums
    closed: bool
    now: datetime
    run_start: int = 0
    digest: Standing | None = None
    digest_sums: Sums = field(default_factory=Sums)
    policy: Policy | None = None
    open_calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    running: tuple[Running, ...] = ()
    erased: tuple[tuple[int, int], ...] = ()
    next_expiry: datetime | None = None

    @property
    def last_seq(self) -> int:
        return self.next_seq - 1

    @property
    def round_ended(self) -> bool:
        """Whether the last message ends a round: a final assistant message with no call left that is still awaited."""
        awaited = any(self.sums.turns - call.turn < PATIENCE for call in self.open_calls.values())
        return self.closed and not awaited


def empty(now: datetime) -> Head:
    """The head of a conversation that does not exist yet."""
    return Head(ref=0, rev=0, next_seq=0, sums=Sums(), view_start=0, view_sums=Sums(), closed=False, now=now)
