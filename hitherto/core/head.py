"""What is known of a conversation without reading its messages: all that a plan or a view starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hitherto.core.digest import Done
from hitherto.core.fact import HIMSELF
from hitherto.core.message import Sums
from hitherto.core.policy import Policy

PATIENCE = 3
"""A tool call without its result holds back digests for so many turns: the one it was made in, and those after it."""

REPLACED = "replaced"
"""What stands as the stage of a digest that a caller put in the place of messages; it counts under every policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A tool call that has no result yet: its own seq, where its group begins, the turn it was made in, its tool."""

    seq: int
    group: int
    turn: int
    tool: str = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A digest in progress. `kept_from` as in `Frontier`; `error` says why its last try came to nothing, if it did;
    `claimed`, whether a worker has it in hand."""

    id: int
    stage: str
    attempt: int
    start: int
    end: int
    created_at: datetime
    done: Done = Done.SUMMARISE
    kept_from: int | None = None
    error: str | None = None
    claimed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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
class Frontier:
    """How far one stage has come with drops, redactions, chunks or opaque items: its visible row that reaches
    furthest, from `start` to `end` (inclusive).

    `sums` run through `end`. `kept_from` is the first message that stayed verbatim though the row covers it, `end` + 1
    if none did, and `kept_sums` run up to the one before. `family` tells which models understand an opaque item;
    None: all. `digest` is the row's id where something else rests on it, `tokens` what its opaque items take. A
    redaction has taken `freed` tokens out of the view so far, from where the running sum of tokens was `since`.
    """

    done: Done
    start: int
    end: int
    sums: Sums
    kept_from: int
    kept_sums: Sums
    digest: int | None = None
    family: str | None = None
    tokens: int = 0
    freed: int = 0
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Whether memory of earlier conversations goes into the instructions, as far as it was decided, and from where.

    `digest` is the digest that was chosen for this conversation, `conversation` the one it belongs to, `text` its
    text; all None if none was there to be chosen, and once it is no more.
    """

    enabled: bool | None = None
    agent_enabled: bool | None = None
    digest: int | None = None
    conversation: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The state of one conversation at one revision, of a size that does not grow with its length.

    `sums` run through the last live message, `view_sums` up to the one before `view_start`, `digest_sums` through
    `digest.end`. `digest` rests on nothing that was cleared. A conversation that does not exist yet has revision 0.
    `closed` says that the last live message can end a round: a final assistant message. `run_start` is where the tool
    calls and reasoning items begin with which the log ends, or `next_seq`. `frontiers` are by the stage's fingerprint.
    `late` are results that came in a later turn than their calls: (turn of the call, seq of the result). `erased` are
    inclusive ranges of messages whose time had come, `retracted` of those that were taken back. `policy` is the
    conversation's own, `agent_policy` its agent's. `failures` counts the digests that came to an end without a
    result since the last that had one; until `resume_at`, if set, no other begins. `subject` is what its facts are
    about (`core.fact.HIMSELF`: the user), and `extracted` the ranges of messages from which facts have been extracted.
    `now` is the store's clock.

    `open_calls`, `late`, `failures`, `running`, `run_start`, `policy`, `agent_policy`, `injection`, `next_expiry`,
    `subject` and `extracted` are not kept for past revisions: a past head has none of the first four, and the others as
    they are now.
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
    frontiers: Mapping[str, Frontier] = field(default_factory=dict[str, Frontier])
    policy: Policy | None = None
    agent_policy: Policy | None = None
    injection: Injection = field(default_factory=Injection)
    open_calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    late: tuple[tuple[int, int], ...] = ()
    running: tuple[Running, ...] = ()
    erased: tuple[tuple[int, int], ...] = ()
    retracted: tuple[tuple[int, int], ...] = ()
    next_expiry: datetime | None = None
    failures: int = 0
    resume_at: datetime | None = None
    subject: str = HIMSELF
    extracted: tuple[tuple[int, int], ...] = ()

    @property
    def resting(self) -> bool:
        """Whether its digests failed so often that none begins for now."""
        return self.resume_at is not None and self.now < self.resume_at

    @property
    def last_seq(self) -> int:
        return self.next_seq - 1

    @property
    def awaited(self) -> tuple[OpenCall, ...]:
        """The calls whose result is still waited for."""
        return tuple(call for call in self.open_calls.values() if self.sums.turns - call.turn < PATIENCE)

    @property
    def round_ended(self) -> bool:
        """Whether the last message ends a round: a final assistant message with no call left that is still awaited."""
        return self.closed and not self.awaited

    def reaches(self, *done: Done) -> Frontier | None:
        """The frontier that reaches furthest among the stages that do one of `done`."""
        found = [one for one in self.frontiers.values() if one.done in done]
        return max(found, key=lambda one: one.end, default=None)


def empty(now: datetime) -> Head:
    """The head of a conversation that does not exist yet."""
    return Head(ref=0, rev=0, next_seq=0, sums=Sums(), view_start=0, view_sums=Sums(), closed=False, now=now)
