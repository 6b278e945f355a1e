"""The port to where conversations are kept. Its docstrings are the contract; `hitherto.testing.conformance` checks it.

Every store is safe for use by many tasks at once, and a durable one by many processes. A store decides nothing: it
hands out a head, answers index probes, and takes a set of changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, Protocol

from hitherto.core.digest import Digest, Done, Item, Ranges
from hitherto.core.document import NewDocument
from hitherto.core.fact import Learnt
from hitherto.core.head import Head
from hitherto.core.ledger import Costs, ModelCall, Spent
from hitherto.core.message import Logged, Payload
from hitherto.core.policy import Policy
from hitherto.core.probe import AnyProbe, Freeable, Mark
from hitherto.core.scope import Scope
from hitherto.ports.facts import Book, FactStore, Known, KnownAsked
from hitherto.ports.index import SearchIndex
from hitherto.ports.library import Library
from hitherto.ports.queue import DigestJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an append answered: messages `start` to `end` (inclusive), at revision `rev`.

    `fingerprint` is that of the batch; None once what it wrote was erased: then only the receipt is left, so that a
    replay of the key still writes nothing.
    """

    start: int
    end: int
    rev: int
    fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDigest:
    """A digest row to be written: 'processing', or completed at once where there is nothing to be made (a drop, a
    redaction, a clear, or items that a caller brings along). `id` is one that `Unit.next_digest` gave; None: any.
    `tokens`, `freed`, `since`, `kept_from`, `opaque` and `family` as in `Digest`."""

    stage: str
    spec: str
    done: Done
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a digest in progress: its statements, or the error that ended it. `archive` is kept with it as a
    document of the conversation's."""

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
class Rewritten:
    """A completed digest as it reads after some of the messages it rested on were erased. `superseded`: it cannot do
    without them and stands for its range no more, in past views neither (its `hidden_rev` is 0), and its opaque items
    are gone."""

    digest: int
    items: tuple[Item, ...] = ()
    text: str = ""
    tokens: int = 0
    superseded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that one unit of work writes. `head` is the conversation as it is afterwards; its `ref`, `digest`,
    `digest_sums`, `running`, `retracted`, `agent_policy` and `now` are not read, and of its `injection` only `enabled`
    and `digest`. `key` and `receipt` go together.

    `fire` are the new digest rows. `retract` are messages that are taken back at `head.rev`. `supersede` are completed
    rows, clears too, that views from `head.rev` on use no more. `calls` go into the ledger. `learnt` are facts about
    `learnt.subject`; they rest on messages of this conversation, and the unit has asked for its `book` before.
    """

    head: Head
    messages: tuple[Logged, ...] = ()
    key: str | None = None
    receipt: Receipt | None = None
    fire: tuple[NewDigest, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    erase: Ranges = ()
    rewritten: tuple[Rewritten, ...] = ()
    retract: tuple[int, ...] = ()
    supersede: tuple[int, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    learnt: Learnt | None = None


class Unit(Protocol):
    """One unit of work on one conversation, alone on it from beginning to end.

    `head` is the newest head; where the conversation does not exist yet, one of revision 0 without messages. Its
    `now` is read after the conversation is held and never lies before the newest message's time. `receipt` is what
    the key of this unit answered before, if it did.
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
        """An id for a digest row that no other has or gets."""
        ...

    async def expired(self) -> tuple[Ranges, datetime | None]:
        """The messages whose time has come by `head.now` and that are not erased yet, and when the next one's does."""
        ...

    async def digests(self) -> list[Digest]:
        """All digests of the conversation, as `Store.digests`."""
        ...

    async def book(self, subject: str) -> Book:
        """The scope's current facts about a subject, held until the unit ends: nobody else changes them meanwhile. Of
        one subject in a unit."""
        ...

    async def commit(self, changes: Changes) -> tuple[int, ...]:
        """Write everything or nothing; returns the ids of the digests in `changes.fire`, in their order. Those in
        progress are due at once; a store with a queue of its own has their jobs in the same transaction.

        When it returns, the changes are as durable as the store is. At most once in a unit. Raises Conflict, and writes
        nothing, for a second digest of a stage in progress, a second completed one of a stage and range, or a second
        receipt of a key. When it raises DatabaseUnreachable, the connection was lost on the way, and whether the
        changes were written is not known.
        """
        ...

    async def delete(self, *, facts: bool = False) -> None:
        """Erase the conversation with everything derived from it. Receipts lose what could tell of its content, but
        still answer. Facts stay, without the evidence that was in it; with `facts`, those that have no other evidence
        are erased too, but for what was added by hand. Takes the place of `commit`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Which messages to read, ascending by seq: `start` <= seq < `stop`, and of these only those from the first one on
    at which the running sum of tokens is at least `tokens`. Besides, every tool call, tool result and reasoning item
    from `tools_from` on, below `stop` too. At most the first `limit` of them. Numbers below 0 count as 0.

    `live_at` leaves out what views at that revision cannot show: what came later, and what had been taken back. Without
    it, everything is there, and `tokens` is not to be given.
    """

    start: int
    stop: int
    tokens: int = 0
    tools_from: int | None = None
    limit: int | None = None
    live_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestWork:
    """All that is needed to make a digest: whose conversation it belongs to, its row, the statements of its base, the
    opaque items of its base, and the live messages that no digest has seen, ascending (erased ones left out).
    `expiring` says that messages among them have to be erased first: their time has come.

    Those messages begin after the base's end, or at the row's start, if that is later. Where a summary's base is a
    chunk, its statements are those of all chunks before it too, oldest first, down to the first base that is no chunk,
    whose own come before them.
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
    """One worker's hold on a digest in progress: `attempt` is the number that fences it."""

    tenant: str
    digest: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Due:
    """A conversation that has something to be tidied: messages whose time has come."""

    scope: Scope
    conversation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A conversation in a listing."""

    conversation: str
    messages: int
    tokens: int
    rev: int
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How the digests stand, over all tenants. `due` wait for a worker, `claimed` are in a worker's hands, `put_off`
    wait for a later try. Of all three together: `lag_seconds` is the age of the oldest, `lag_messages` the most
    messages that a conversation has got since the end of what its last digest covers. `resting` are conversations whose
    digests failed again and again and that begin none for now. `workers` have shown themselves lately; None where there
    is no telling."""

    due: int = 0
    claimed: int = 0
    put_off: int = 0
    lag_seconds: float = 0.0
    lag_messages: int = 0
    resting: int = 0
    workers: int | None = None


By = Literal["tenant", "user", "model", "day", "purpose"]
"""What calls of the ledger are grouped by; days are UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What is set for an agent of a tenant: counts for its conversations that say nothing of their own."""

    policy: Policy | None = None
    injection: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The newest summary of a scope's other conversations."""

    conversation: str
    digest: int
    text: str


class Store(Protocol):
    """Where conversations are kept.

    All verbs raise DatabaseUnreachable when the store cannot be reached, DatabaseReadOnly when it refuses to write,
    and change nothing then (but see `Unit.commit`). What belongs to another scope is never found, counted or named.
    `index`, `library` and `facts` are its search index, its documents and its facts, on the same data.
    """

    @property
    def index(self) -> SearchIndex: ...

    @property
    def library(self) -> Library: ...

    @property
    def facts(self) -> FactStore: ...

    async def open(self) -> None:
        """Make ready for use, schema included. Raises SchemaMismatch for a database of a newer Hitherto."""
        ...

    async def aclose(self) -> None:
        """Give back what is held. Calling it twice is allowed."""
        ...

    def write(
        self, scope: Scope, conversation: str, *, key: str | None = None, digest: int | None = None
    ) -> AbstractAsyncContextManager[Unit]:
        """Begin a unit of work on a conversation; others that want the same one wait. Leaving it without a commit, by
        an error or not, changes nothing. A conversation that does not exist comes to be with the first commit.

        With `digest`, its row is held too: as `head.running` shows it, so it stays until the unit ends. For either, it
        is not waited for ever: StoreError then."""
        ...

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        """The newest head, or the one at revision `at`; None when there is no such conversation or revision."""
        ...

    async def head_and_known(
        self, scope: Scope, conversation: str, asked: KnownAsked, *, at: int | None = None
    ) -> tuple[Head | None, Known]:
        """The head, as `head` gives it, and the facts that a context of the conversation may show (as they are now), in
        one round trip."""
        ...

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: Reading) -> list[Logged]:
        """The messages of `reading`, ascending by seq; none when `ref` is not that conversation's."""
        ...

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        """All digests in order of their ids, failed and superseded ones and clears too."""
        ...

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        """The opaque items of that row of the conversation, whatever its status; None when it has none."""
        ...

    async def earlier(self, scope: Scope, conversation: str, *, within: timedelta) -> Earlier | None:
        """The newest completed summary, made no longer than `within` ago by the store's clock, of the scope's other
        conversations; of each only the one that stands for it now."""
        ...

    async def defaults(self, scope: Scope) -> Defaults:
        """What is set for the scope's agent; `Head` has it too, once a conversation is there."""
        ...

    async def set_defaults(self, *, tenant: str, agent: str, defaults: Defaults) -> None:
        """Set it, in the place of what was set before."""
        ...

    async def claim(self, tenant: str, digest: int, *, lease: timedelta) -> DigestWork | None:
        """Take a digest in progress whose time has come, and read what is needed to make it; None for any other.

        The row's `attempt` and `tries` are one higher than before, and whoever held it lost it. For `lease`, by the
        store's clock, nobody else gets it. A row that a unit of work holds is passed over: None too. (A time further
        away than anything here sets, which a clock that was put back leaves behind, has come.)"""
        ...

    async def prolong(self, claims: Sequence[Claim], *, lease: timedelta) -> frozenset[Claim]:
        """Hold on to digests for `lease` from now; returns which of them are still held. One whose row a unit of work
        holds is not prolonged, but still held."""
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
        into the ledger. Not `counted`, the attempt does not count as a try. Returns whether it was still held; if
        not, only the ledger is written. A unit of work that holds the row is waited for, though not for ever."""
        ...

    async def overdue(self, *, since: timedelta, limit: int = 100) -> list[DigestJob]:
        """Digests of any tenant that have been due for `since` and that nobody took, longest first: what a worker that
        died or a hint that was lost left behind."""
        ...

    async def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        """Those of `jobs` that are due or claimed."""
        ...

    async def note_calls(self, scope: Scope, conversation: str | None, calls: Sequence[ModelCall]) -> None:
        """Put model calls into the ledger that no digest came of."""
        ...

    async def spent(self, tenant: str, *, day: date | None = None) -> Spent:
        """What the tenant's model calls took on that day (UTC); without one, on the store's today."""
        ...

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """The ledger in sums, dearest first (by day: latest first), of one tenant or of all; `since` and `until` are
        days in UTC, both inclusive."""
        ...

    async def load(self) -> Load:
        """How the digests stand."""
        ...

    async def listed(self, scope: Scope, *, limit: int = 100) -> list[Listed]:
        """The scope's conversations, most recently written first."""
        ...

    async def due(self, *, tenant: str | None = None, limit: int = 1_000) -> list[Due]:
        """Conversations of any tenant that need tidying, or (`tenant`) of one; for the engine's own housekeeping."""
        ...

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        """Delete idempotency receipts of any tenant beyond their stated retention; returns how many."""
        ...
