"""Whether a stage is due, and over which range: pure, with index probes as its only questions.

`plan` is a generator: it yields a probe, is sent the mark the store found for it, and returns the firing. Most
appends are decided from the head alone and yield nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from hitherto.core.head import Head
from hitherto.core.message import Sums
from hitherto.core.policy import Nothing, Policy, Seq, Stage, Window


@dataclass(frozen=True, slots=True)
class TalkAt:
    """Asks for the first message at which the running sum `talk` reaches `n`."""

    n: int


@dataclass(frozen=True, slots=True)
class TurnAt:
    """Asks for the message that opens turn `n` (the running sum `turns` reaches `n`)."""

    n: int


Probe = TalkAt | TurnAt


@dataclass(frozen=True, slots=True)
class Mark:
    """A message found by a probe: its place, its running sums, and whether it opens a turn."""

    seq: int
    sums: Sums
    opens_turn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A stage that is due: it digests `start` to `end`, both inclusive; `new_start` is its first message that no
    digest has seen, `base` the digest it builds on."""

    stage: Stage
    start: int
    end: int
    new_start: int
    base: int | None


Planning = Generator[Probe, Mark | None, Firing | None]


def due(policy: Policy, head: Head) -> Stage | None:
    """The first stage of `policy` whose trigger is due at `head`, whether or not a digest is in progress."""
    for stage in policy.stages:
        match stage.trigger:
            case Seq(n):
                if head.round_ended and head.last_seq >= n and head.next_seq > head.view_start:
                    return stage
    return None


def plan(policy: Policy, head: Head) -> Planning:
    """The firing of the stage that is due at `head`; None while a digest is in progress or nothing is due or new."""
    stage = due(policy, head)
    if stage is None or head.running:
        return None
    end = head.last_seq
    base = head.digest
    match stage.keep:
        case Window(n):
            start = yield from _window_start(n, head)
        case Nothing():
            start = head.view_start if base is None else base.start
    new_start = start if base is None else max(base.end + 1, start)
    if new_start > end:
        return None
    return Firing(stage=stage, start=start, end=end, new_start=new_start, base=None if base is None else base.id)


def _window_start(n: int, head: Head) -> Generator[Probe, Mark | None, int]:
    if head.sums.talk - head.view_sums.talk <= n:
        return head.view_start
    mark = yield TalkAt(head.sums.talk - n + 1)
    assert mark is not None, "the running sums promise a message at every count below the last"
    if mark.opens_turn:
        return mark.seq
    turn = yield TurnAt(mark.sums.turns + 1)
    return mark.seq if turn is None else turn.seq
