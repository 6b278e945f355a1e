"""Digests: the record of one firing of a stage over a range of messages. Their jobs, claims and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hitherto.core.documents import NewDocument
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Logged
from hitherto.core.log.ranges import Ranges, any_in, joined
from hitherto.core.scope import Scope


class Status(StrEnum):
    """The state of a digest. `superseded`: what it rests on was hidden, retracted or erased."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class Needs(StrEnum):
    """What a process must have to make a digest: a language model, or an endpoint that compacts."""

    MODEL = "model"
    COMPACTOR = "compactor"


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a digest and the messages it rests on: its `sources` (at least one), and `earlier` ones that
    have left the digest's window but whose content it may still carry. `earlier` counts for erasure alone."""

    text: str
    sources: Ranges
    earlier: Ranges = ()

    @property
    def first(self) -> int:
        return self.sources[0][0]

    @property
    def rests(self) -> Ranges:
        """Every message that its text may come from."""
        return joined((*self.sources, *self.earlier)) if self.earlier else self.sources

    def rests_on(self, ranges: Ranges) -> bool:
        """Whether its text may come from any message in `ranges`."""
        return any(any_in(ranges, first, last) for first, last in self.rests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One digest row. `start` and `end` are seqs, both inclusive.

    `base` is the digest it was built on. `stage` is the fingerprint of the stage that fired, `spec` its JSON; `policy`
    is the JSON of the policy it fired under (None where nothing is made in the background). Only a process that has
    what it `needs` makes it; None: any can. `fired_rev` is the conversation's revision at which it began. Views use it
    from revision `visible_rev` on, and no more from `hidden_rev` on; a `hidden_rev` of 0 means that what it rested on
    was erased, so that no past view uses it either.

    `attempt` fences its writer: a result is taken only from the attempt that the row names; 0 before the first. `tries`
    counts the failed attempts and the present one. A digest in progress can be claimed from `due_at` on, which is the
    end of the present claim if it is `claimed`; `error` says why it was postponed, if it was.

    `tokens` are those of its text; of a drop or a redaction, those that it took out of the view. `freed` are those that
    were taken out in the same way so far, by this row included; `since` is the running sum of tokens where that began.
    `kept_from` is the first message that the row covers but that stayed verbatim, if any. `opaque` is the JSON text of
    the list of items that a model's endpoint made, `family` names the models that understand them; None: all.
    """

    id: int
    stage: str
    spec: str
    action: DigestAction
    start: int
    end: int
    base: int | None
    status: Status
    attempt: int
    items: tuple[Item, ...]
    text: str
    tokens: int
    model: str | None
    prompt_version: int | None
    generation_time_ms: int | None
    error: str | None
    fired_rev: int
    visible_rev: int | None
    created_at: datetime
    completed_at: datetime | None
    hidden_rev: int | None = None
    freed: int = 0
    since: int = 0
    kept_from: int | None = None
    opaque: str | None = None
    family: str | None = None
    tries: int = 0
    due_at: datetime | None = None
    claimed: bool = False
    policy: str | None = None
    needs: Needs | None = None

    def visible(self, at: int) -> bool:
        """Whether views at revision `at` use it."""
        return (
            self.visible_rev is not None
            and self.visible_rev <= at
            and (self.hidden_rev is None or self.hidden_rev > at)
        )


def render_items(items: Sequence[Item]) -> str:
    """The text of a digest: its statements in order, one a line. Deterministic, so that caches keep hitting."""
    return "\n".join(item.text for item in items)


@dataclass(frozen=True, slots=True)
class DigestJob:
    """A digest that is due, or was: its row tells."""

    tenant: str
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDigest:
    """A digest row to be written: 'processing', or completed at once where there is nothing to be made (a drop, a
    redaction, a clear, or items that a caller passes in). `id` is one that `Unit.next_digest` gave; None: any.
    The other fields as in `Digest`."""

    stage: str
    spec: str
    action: DigestAction
    start: int
    end: int
    base: int | None
    completed: bool = False
    id: int | None = None
    tokens: int = 0
    freed: int = 0
    since: int = 0
    kept_from: int | None = None
    opaque: str | None = None
    family: str | None = None
    policy: str | None = None
    needs: Needs | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestOutcome:
    """How a digest in progress ended: with its statements, or with an error. `archive` is a document of the
    conversation that is written with it."""

    digest: int
    items: tuple[Item, ...] = ()
    text: str = ""
    tokens: int = 0
    model: str | None = None
    prompt_version: int | None = None
    generation_time_ms: int | None = None
    error: str | None = None
    superseded: bool = False
    opaque: str | None = None
    family: str | None = None
    archive: NewDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenDigest:
    """A completed or superseded digest as it reads after some of the messages it rested on were erased. `superseded`:
    it cannot do without them. It then no longer stands for its range, in past views neither (its `hidden_rev` is 0),
    and its opaque items are gone."""

    digest: int
    items: tuple[Item, ...] = ()
    text: str = ""
    tokens: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestWork:
    """All that is needed to make a digest: its conversation, its row, the statements (`base`) and the opaque items
    (`opaque`) of its base, and the live messages that no digest has seen, ascending (erased ones left out). `expiring`:
    some of these messages have expired and must be erased first.

    The messages begin after the base's end, or at the row's start, if that is later. Where a summary's base is a chunk,
    `base` has the statements of a chain of digests, oldest first: the newest base that is not a chunk, then every chunk
    after it.
    """

    scope: Scope
    conversation: str
    digest: Digest
    base: tuple[Item, ...] = ()
    opaque: str | None = None
    messages: tuple[Logged, ...] = ()
    expiring: bool = False

    @property
    def claim(self) -> Claim:
        return Claim(self.scope.tenant, self.digest.id, self.digest.attempt)


@dataclass(frozen=True, slots=True)
class Claim:
    """One worker's claim on a digest in progress: `attempt` is the fencing token."""

    tenant: str
    digest: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The digests in progress, of all tenants or one. `due` wait for a worker, a worker is making the `claimed` ones,
    `put_off` wait for a later try. Over all three together: `lag_seconds` is the age of the oldest, `lag_messages` the
    most messages that a conversation has after the end of its last digest. `resting` are conversations that begin no
    digests for now, as theirs failed again and again. `workers`, which are every tenant's, showed themselves lately."""

    due: int = 0
    claimed: int = 0
    put_off: int = 0
    lag_seconds: float = 0.0
    lag_messages: int = 0
    resting: int = 0
    workers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDigest:
    """The newest digest that failed, of a conversation that has waited since."""

    scope: Scope
    conversation: str
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDigest:
    """The newest summary of a scope's other conversations."""

    conversation: str
    digest: int
    text: str
