"""The store in memory, written to be read: it keeps all promises of a store but durability.

It is the reference of how a store behaves. Nothing is lost while the process lives; nothing is kept when it ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from typing import NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

from hitherto.core.context.kept import content_hashes
from hitherto.core.digests.digest import Digest, Needs, Status
from hitherto.core.export.records import KeptConversation, LatestRecord, ReceiptRecord
from hitherto.core.ledger import Costs, ModelCall, Spending
from hitherto.core.log.append import key_hash
from hitherto.core.log.head import Head, LatestDigest, empty
from hitherto.core.log.message import Logged, Payload
from hitherto.core.scope import Scope
from hitherto.errors import Conflict, StoreError
from hitherto.ports.digests import Backlog, Claim, DigestJob, DigestWork, EarlierDigest, FailedDigest
from hitherto.ports.facts import KnownFacts, KnownFactsQuery
from hitherto.ports.ledger import By
from hitherto.ports.log import (
    AgentDefaults,
    Changes,
    ConversationFilter,
    ConversationInfo,
    Erasure,
    ExpiredConversation,
    MessageRange,
    Receipt,
    ScopeCounts,
    ScopePart,
    Unit,
)
from hitherto.stores.in_memory import listing
from hitherto.stores.in_memory.claims import Claims, Name
from hitherto.stores.in_memory.contexts import InMemoryContexts
from hitherto.stores.in_memory.conversation import StoredConversation
from hitherto.stores.in_memory.documents import InMemoryDocuments
from hitherto.stores.in_memory.export import InMemoryExport, InMemoryReader, receipt_record, stored
from hitherto.stores.in_memory.fact_rows import FactRows
from hitherto.stores.in_memory.facts import InMemoryFacts
from hitherto.stores.in_memory.keys import InMemoryKeys
from hitherto.stores.in_memory.ledger import InMemoryLedger
from hitherto.stores.in_memory.recall.index import InMemoryIndex
from hitherto.stores.in_memory.runs import InMemoryRuns
from hitherto.stores.in_memory.unexpired import Unexpired
from hitherto.stores.in_memory.unit import InMemoryUnit


class KeptReceipt(NamedTuple):
    """A receipt, when it was written, and the number of its conversation; None once that was deleted."""

    receipt: Receipt
    created_at: datetime
    ref: int | None


class InMemoryStore:
    """`Store` in this process's memory. `clock` gives the time, with a zone."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._kept: dict[Name, StoredConversation] = {}
        self._receipts: dict[tuple[Name, bytes], KeptReceipt] = {}
        self._defaults: dict[tuple[str, str | None], AgentDefaults] = {}
        self._locks = WeakValueDictionary[Name, asyncio.Lock]()
        self._held: dict[int | None, Name] = {}
        self._claims = Claims(self._kept, clock)
        self.ledger = InMemoryLedger()
        self._unexpired = Unexpired(self._kept, clock)
        self.documents = InMemoryDocuments(self._unexpired, clock)
        self.fact_rows = FactRows(clock)
        self.index = InMemoryIndex(self._kept, self.documents, self.fact_rows.by_id, self._unexpired, clock)
        self.contexts = InMemoryContexts(self._kept, clock)
        self.runs = InMemoryRuns(self._kept, clock)
        self.keys = InMemoryKeys(clock)
        self.facts = InMemoryFacts(self.fact_rows, self.index, self._unexpired, clock)
        self.export = InMemoryExport(self)
        self._erasures: dict[tuple[str, str | None], Erasure] = {}
        self._refs = count(1)
        self._digest_ids = count(1)
        self._workers: set[UUID] = set()
        self._closed = False

    async def open(self) -> None:
        """Open the store, or open it again: its data stay until the object goes."""
        self._closed = False

    async def aclose(self) -> None:
        """From now on `write` and `head` raise StoreError."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the store was closed; what is kept in memory only is not to be had any more")

    @asynccontextmanager
    async def write(
        self, scope: Scope, conversation: str, *, key: str | None = None, digest: int | None = None
    ) -> AsyncGenerator[Unit]:
        self._check_open()
        name = (scope, conversation)
        async with self._lock(name), AsyncExitStack() as held:
            if digest is not None:
                self._held[digest] = name
            try:
                yield InMemoryUnit(self, name, key, held)
            finally:
                self._held.pop(digest, None)

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        self._check_open()
        kept = self._kept.get((scope, conversation))
        if kept is None:
            return None
        head = kept.head_now(self._clock()) if at is None else kept.head_at(at, self._clock())
        return None if head is None else self._completed(scope, head)

    async def head_and_known(
        self, scope: Scope, conversation: str, asked: KnownFactsQuery, *, at: int | None = None
    ) -> tuple[Head | None, KnownFacts]:
        kept = self._kept.get((scope, conversation))
        subject = asked.subject if kept is None else kept.head.subject
        head = await self.head(scope, conversation, at=at)
        known = await self.facts.known(scope, subject, space=asked.space, facts=asked.facts)
        return head, replace(known, due=self._unexpired.due(scope.tenant))

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: MessageRange) -> list[Logged]:
        kept = self._kept.get((scope, conversation))
        return [] if kept is None or kept.head.ref != ref else kept.read(reading)

    async def payloads(
        self, scope: Scope, conversation: str, ref: int, reading: MessageRange, *, wire: str
    ) -> list[Payload] | None:
        found = await self.messages(scope, conversation, ref, reading)
        if any(one.erased or one.message.wire != wire for one in found):
            return None
        return [one.message.payload for one in found]

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        kept = self._kept.get((scope, conversation))
        return [] if kept is None else list(kept.digests)

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        row = next((row for row in await self.digests(scope, conversation) if row.id == digest), None)
        return None if row is None or row.opaque is None else tuple(json.loads(row.opaque))

    async def earlier(self, scope: Scope, conversation: str, *, within: timedelta) -> EarlierDigest | None:
        now = self._clock()
        standing = [
            (made, name)
            for (owner, name), kept in self._kept.items()
            if owner == scope and name != conversation and self._unexpired.shows((owner, name))
            if (made := kept.standing()) is not None
        ]
        dated = [(made.completed_at, made, name) for made, name in standing if made.completed_at is not None]
        at, made, name = max(dated, key=lambda one: one[0], default=(None, None, ""))
        if at is None or made is None or now - at > within:
            return None
        return EarlierDigest(conversation=name, digest=made.id, text=made.text)

    async def receipt(self, scope: Scope, conversation: str, key: str) -> Receipt | None:
        found = self._receipts.get(((scope, conversation), key_hash(scope, conversation, key)))
        return None if found is None else found.receipt

    async def defaults(self, *, tenant: str, agent: str | None) -> AgentDefaults:
        return self._defaults.get((tenant, agent), AgentDefaults())

    async def set_defaults(self, *, tenant: str, agent: str | None, defaults: AgentDefaults) -> None:
        self._defaults[(tenant, agent)] = defaults

    async def claim(
        self, tenant: str, digest: int, *, lease: timedelta, able: Collection[Needs] = tuple(Needs)
    ) -> DigestWork | None:
        return None if self._is_held(tenant, digest) else self._claims.take(tenant, digest, lease, able)

    async def prolong(self, claims: Sequence[Claim], *, lease: timedelta) -> frozenset[Claim]:
        return self._claims.prolong(claims, lease, but=lambda claim: self._is_held(claim.tenant, claim.digest))

    async def put_off(
        self,
        work: DigestWork,
        *,
        wait: timedelta,
        error: str | None = None,
        counted: bool = True,
        calls: Sequence[ModelCall] = (),
    ) -> bool:
        while self._is_held(work.scope.tenant, work.digest.id):
            async with self._lock(self._held[work.digest.id]):
                pass
        await self.note_calls(work.scope, work.conversation, calls)
        return self._claims.put_off(work.claim, wait, error, counted=counted)

    async def due_digests(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[DigestJob]:
        return self._claims.due_digests(limit, able)

    def wake_workers(self) -> None:
        """No other process has this store."""

    async def listen(self, woken: Callable[[], None]) -> None:
        await asyncio.Event().wait()

    async def show_worker(self, worker: UUID) -> None:
        self._workers.add(worker)

    async def forget_worker(self, worker: UUID) -> None:
        self._workers.discard(worker)

    async def rested(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[FailedDigest]:
        return self._claims.rested(limit, able)

    async def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        return self._claims.unsettled(jobs)

    async def note_calls(self, scope: Scope, conversation: str | None, calls: Sequence[ModelCall]) -> None:
        kept = None if conversation is None else self._kept.get((scope, conversation))
        named = self._named(scope)
        for call in calls:
            its = kept is not None and (call.digest is None or any(one.id == call.digest for one in kept.digests))
            self.ledger.note(named, kept.head.ref if kept is not None and its else None, [call], self._clock())

    def _named(self, scope: Scope) -> tuple[str, str, str]:
        """The names under which a call is noted: only those of whom something is kept."""
        owners = [(one.tenant, one.user) for one, _ in self._kept]
        owners += [owner[:2] for owner in (*self.documents.owners(), *self.fact_rows.owners())]
        if (scope.tenant, scope.user) in owners:
            return (scope.tenant, scope.user, scope.agent)
        return (scope.tenant, "", scope.agent) if any(tenant == scope.tenant for tenant, _ in owners) else ("", "", "")

    async def spent(self, tenant: str, *, day: date | None = None) -> Spending:
        return self.ledger.spent(tenant, day or self._clock().astimezone(UTC).date())

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        return self.ledger.costs(by, tenant=tenant, since=since, until=until)

    async def backlog(self, *, tenant: str | None = None) -> Backlog:
        return replace(self._claims.backlog(tenant), workers=len(self._workers))

    async def listed(self, asked: ConversationFilter, *, limit: int) -> list[ConversationInfo]:
        return listing.listed(self._kept.items(), asked, self._clock())[: max(limit, 0)]

    async def info(self, scope: Scope, conversation: str) -> ConversationInfo | None:
        name = scope, conversation
        return listing.described(name, self._kept[name], self._clock()) if name in self._kept else None

    async def scopes(
        self, by: ScopePart, *, tenant: str | None = None, user: str | None = None, beyond: str = "", limit: int
    ) -> list[ScopeCounts]:
        documents, facts = self.documents.owners(), self.fact_rows.owners()
        found = listing.scopes(self._kept.items(), documents=documents, facts=facts, by=by, tenant=tenant, user=user)
        return [one for one in found if one.name > beyond][: max(limit, 0)]

    async def due(self, *, tenant: str | None = None, limit: int = 1_000) -> list[ExpiredConversation]:
        now = self._clock()
        return [
            ExpiredConversation(scope, conversation)
            for (scope, conversation), kept in self._kept.items()
            if kept.expiring(now) and tenant in (None, scope.tenant)
        ][: max(limit, 0)]

    async def begin_erasure(self, *, tenant: str, user: str | None) -> Erasure:
        self._erasures[tenant, user] = begun = Erasure(tenant=tenant, user=user, requested_at=self._clock())
        return begun

    async def erasures(self) -> list[Erasure]:
        return sorted(self._erasures.values(), key=lambda one: one.requested_at)

    async def conversations_of(self, erasing: Erasure, *, limit: int) -> list[ConversationInfo]:
        asked = ConversationFilter(tenant=erasing.tenant, user=erasing.user)
        found = listing.listed(self._kept.items(), asked, self._clock())
        return [replace(one, title="") for one in found if one.created_at <= erasing.requested_at][:limit]

    async def end_erasure(self, erasing: Erasure) -> None:
        tenant, user, before = erasing.tenant, erasing.user, erasing.requested_at
        self.documents.forget(tenant, user, before)
        self.fact_rows.forget(tenant, user, before)
        self.ledger.forget_names(tenant, user)
        self.contexts.forget_owner(tenant, user, before)
        self.runs.forget_owner(tenant, user, before)
        self.keys.forget(tenant, user, before)
        if user is None:
            self._defaults = {of: one for of, one in self._defaults.items() if of[0] != tenant}
        self.index.forget_all()
        if self._erasures.get((tenant, user)) == erasing:
            del self._erasures[tenant, user]

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        limit = self._clock() - older_than
        old = [key for key, one in self._receipts.items() if one.created_at < limit]
        for key in old:
            del self._receipts[key]
        return len(old)

    def _is_held(self, tenant: str, digest: int) -> bool:
        """Whether a unit of work of the tenant holds the digest."""
        name = self._held.get(digest)
        return name is not None and name[0].tenant == tenant

    def _lock(self, name: Name) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    # What a unit of work calls.

    def begin(self, name: Name, key: str | None) -> tuple[Head, Receipt | None]:
        kept = self._kept.get(name)
        now = self._clock()
        earlier = None if key is None else self._receipts.get((name, key_hash(*name, key)))
        head = empty(now) if kept is None else kept.head_now(now)
        return self._completed(name[0], head), None if earlier is None else earlier.receipt

    def kept(self, name: Name) -> StoredConversation | None:
        return self._kept.get(name)

    def facts_lock(self, scope: Scope) -> asyncio.Lock:
        return self.fact_rows.lock(scope)

    def next_digest(self) -> int:
        return next(self._digest_ids)

    def apply(self, name: Name, changes: Changes, now: datetime) -> tuple[int, ...]:
        kept = self._kept.get(name) or StoredConversation(
            replace(changes.head, ref=next(self._refs), retracted=()), now
        )
        if changes.key is not None and (name, key_hash(*name, changes.key)) in self._receipts:
            raise Conflict("nothing was written: this idempotency key has a receipt already; begin with the key")
        fired = tuple(self.next_digest() if fire.id is None else fire.id for fire in changes.fire)
        before, view_start = kept.digests, kept.head.view_start
        if changes.erase:
            gone = [one.message for first, last in changes.erase for one in kept.log[first : last + 1]]
            hashes = {hashed for one in gone for hashed in content_hashes(one.raw, one.text)}
            self.contexts.forget_within(name, changes.erase, hashes)
            self.runs.forget_within(name, changes.erase)
        kept.apply(changes, fired, now, due_at=self._clock())
        self.index.changed(name)
        self.documents.follow(name, before, changes, view_start)
        self._kept[name] = kept
        self._claims.note(name, fired)
        self.ledger.note((name[0].tenant, name[0].user, name[0].agent), kept.head.ref, changes.calls, self._clock())
        if changes.learned is not None:
            self.fact_rows.learn(name, kept.head.ref, changes.learned, kept.log)
        if changes.retract:
            self.fact_rows.retract(kept.head.ref, changes.retract)
        if changes.erase:
            self.fact_rows.erase(kept.head.ref, changes.erase, forget=changes.forget)
        for first, last in changes.erase:
            self._forget_content(name, first, last)
        if changes.receipt is not None and changes.key is not None:
            self._receipts[name, key_hash(*name, changes.key)] = KeptReceipt(changes.receipt, now, kept.head.ref)
        return fired

    def drop(self, name: Name, *, facts: bool) -> None:
        self.index.changed(name)
        self.contexts.forget_all(name)
        self.runs.forget_all(name)
        kept = self._kept.pop(name, None)
        if kept is not None:
            self.ledger.forget(kept.head.ref)
            self.fact_rows.leave(kept.head.ref, facts=facts)
            self.documents.remove(name, ((0, kept.head.last_seq),))
            self._forget_content(name, 0, kept.head.last_seq)
            for key, one in self._receipts.items():
                if key[0] == name:
                    self._receipts[key] = one._replace(ref=None)

    # What an export calls.

    def reader(self) -> InMemoryReader:
        """All that is kept, as it is now."""
        receipts: dict[Name, list[ReceiptRecord]] = {}
        for (name, hashed), one in sorted(self._receipts.items(), key=lambda item: (item[1].receipt.start, item[0][1])):
            if one.ref is not None:
                receipts.setdefault(name, []).append(receipt_record(hashed, one.receipt, one.created_at))
        return InMemoryReader(
            {name: kept.copy() for name, kept in self._kept.items()},
            receipts,
            self.documents.all(),
            dict(self.fact_rows.by_id),
            dict(self.fact_rows.subjects),
            dict(self._defaults),
            {name: one for name, kept in self._kept.items() if (one := self._latest(name, kept)) is not None},
            self.ledger.entries(),
            self.runs.all(),
        )

    def put(self, name: Name, kept: KeptConversation, log: Sequence[Logged]) -> int:
        """Write a conversation of an export, which is not there; returns how many archived documents came with it."""
        made = self._kept[name] = stored(kept, log, next(self._refs), self._clock())
        self.index.changed(name)
        self._claims.note(name, [one.id for one in made.digests])
        documents = sum(self.documents.restore(name[0].tenant, one) for one in kept.archived)
        for one in kept.receipts:
            receipt = Receipt(start=one.start, end=one.end, rev=one.rev, fingerprint=one.fingerprint)
            hashed = bytes.fromhex(one.key_hash)
            self._receipts[name, hashed] = KeptReceipt(receipt, one.created_at, made.head.ref)
        return documents

    def _latest(self, name: Name, kept: StoredConversation) -> LatestRecord | None:
        """The digest that was chosen for a conversation, by its number among the other conversation's."""
        chosen = self._completed(name[0], kept.head).latest
        if chosen.digest is None or chosen.conversation is None:
            return None
        digests = self._kept[name[0], chosen.conversation].digests
        number = next(at for at, one in enumerate(digests, 1) if one.id == chosen.digest)
        scope = name[0]
        return LatestRecord(
            user=scope.user, agent=scope.agent, conversation=name[1], of=chosen.conversation, digest=number
        )

    def _completed(self, scope: Scope, head: Head) -> Head:
        """`head` with its agent's defaults and the digest that was chosen for its instructions. That digest is left out
        unless it is a completed one of this scope, may be shown, and rests on nothing that was cleared."""
        agent = self._defaults.get((scope.tenant, scope.agent), AgentDefaults())
        latest = LatestDigest()
        chosen = [
            (row, name)
            for (owner, name), kept in (self._kept.items() if head.latest.digest is not None else ())
            for row in (kept.digests if owner == scope and self._unexpired.shows((owner, name)) else ())
            if row.id == head.latest.digest and row.status is Status.COMPLETED and row.end >= kept.head.view_start
        ]
        for row, name in chosen:
            latest = LatestDigest(digest=row.id, conversation=name, text=row.text)
        tenant = self._defaults.get((scope.tenant, None), AgentDefaults())
        return replace(
            head,
            agent_policy=agent.policy,
            agent_cross_session=agent.cross_session,
            latest=latest,
            ttl=next((ttl for ttl in (head.ttl, agent.ttl, tenant.ttl) if ttl is not None), None),
        )

    def _forget_content(self, name: Name, first: int, last: int) -> None:
        """Remove the content of these messages from the index, and their fingerprints from the receipts, which still
        answer."""
        self.index.forget(name[0])
        for key, one in self._receipts.items():
            if key[0] == name and one.receipt.start <= last and one.receipt.end >= first:
                self._receipts[key] = one._replace(receipt=replace(one.receipt, fingerprint=None))
