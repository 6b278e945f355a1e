"""The port to digests: their rows, the claims of workers on them, and the backlog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from hitherto.core.digests.digest import Digest, Item, Needs
from hitherto.core.documents.document import NewDocument
from hitherto.core.ledger import ModelCall
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Logged, Payload
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
    digests for now, as theirs failed again and again. `workers`, which are every tenant's, showed themselves lately;
    None where that is not known."""

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


class DigestStore(Protocol):
    """Digests, which units of work begin and end. All methods raise what `Store` says."""

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        """All digests in order of their ids, failed and superseded ones and clears too."""
        ...

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        """The opaque items of that row of the conversation, whatever its status; None when it has none."""
        ...

    async def earlier(self, scope: Scope, conversation: str, *, within: timedelta) -> EarlierDigest | None:
        """The newest completed summary, made no longer than `within` ago by the store's clock, of the scope's other
        conversations; of each only the one that stands for it now."""
        ...

    async def claim(
        self, tenant: str, digest: int, *, lease: timedelta, able: Collection[Needs] = tuple(Needs)
    ) -> DigestWork | None:
        """Claim a digest in progress that is due and needs nothing, or one of what the caller is `able` to do, and read
        what is needed to make it; None for any other.

        The row's `attempt` and `tries` go up by one, so that an earlier claim on it is lost. For `lease`, by the
        store's clock, nobody else can claim it. None too while a unit of work holds the row. (A due time further away
        than anything here sets counts as due: it was left by a clock that was put back.)
        """
        ...

    async def prolong(self, claims: Sequence[Claim], *, lease: timedelta) -> frozenset[Claim]:
        """Renew claims for `lease` from now; returns those that still hold. A claim whose row a unit of work holds is
        not renewed, but still holds."""
        ...

    async def put_off(
        self,
        work: DigestWork,
        *,
        wait: timedelta,
        error: str | None = None,
        counted: bool = True,
        calls: Sequence[ModelCall] = (),
    ) -> bool:
        """Give a claim back: the digest is due again in `wait` (at most an hour), and `error` says why; the `calls` go
        into the ledger. Not `counted`, the attempt does not count as a try. Returns whether the claim still held; if
        not, only the ledger is written. It waits for a unit of work that holds the row, but not without limit."""
        ...

    async def due_digests(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[DigestJob]:
        """Digests of any tenant that can be claimed and that the caller is `able` to make, the longest due first. Read
        without a lock: another may claim them first."""
        ...

    def wake_workers(self) -> None:
        """Tell the workers of other processes that digests are due. Returns at once and never raises: calls within 20
        milliseconds become one, and one that is lost is made up for, as workers look by themselves."""
        ...

    async def listen(self, woken: Callable[[], None]) -> None:
        """Call `woken` whenever another process called `wake_workers`, and after each time that this may have been
        missed; until cancelled."""
        ...

    async def show_worker(self, worker: UUID) -> None:
        """Record that a worker is there; `Backlog.workers` counts those of the last 30 seconds."""
        ...

    async def forget_worker(self, worker: UUID) -> None:
        """Record that a worker has stopped."""
        ...

    async def rested(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[FailedDigest]:
        """Of each conversation whose `Head.resume_at` has come, its newest failed digest, the longest waiting first;
        only those that the caller is `able` to make."""
        ...

    async def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        """Those of `jobs` that are due or claimed."""
        ...

    async def backlog(self, *, tenant: str | None = None) -> Backlog:
        """The current backlog, of all tenants or of one."""
        ...
