"""Rows of digests to be written, the claims of workers on them, and the backlog."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.digests.digest import Digest, Item, Needs
from hitherto.core.documents.document import NewDocument
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Logged
from hitherto.core.scope import Scope


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
