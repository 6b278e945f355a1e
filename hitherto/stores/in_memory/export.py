"""`ExportStore` in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from hitherto.core.digests.digest import Status
from hitherto.core.export.records import (
    AgentRecord,
    CallRecord,
    ConversationRecord,
    DocumentRecord,
    EventRecord,
    ExportScope,
    FactRecord,
    KeptConversation,
    LatestRecord,
    ReceiptRecord,
    RunRecord,
    SourceRecord,
)
from hitherto.core.export.renumbering import canonical, renumbered
from hitherto.core.facts.fact import Evidence, FactState, Subject
from hitherto.core.ledger import ModelCall
from hitherto.core.log.message import Logged
from hitherto.core.log.ranges import ranges
from hitherto.core.recall.terms import analyzed
from hitherto.core.run import Run, RunEvent
from hitherto.core.scope import Scope
from hitherto.errors import Conflict
from hitherto.ports.log import AgentDefaults, ConversationInfo, Receipt
from hitherto.stores.in_memory import listing
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation
from hitherto.stores.in_memory.documents import StoredDocument
from hitherto.stores.in_memory.fact_rows import FactRow, FactSource
from hitherto.stores.in_memory.ledger import LedgerEntry

if TYPE_CHECKING:
    from hitherto.stores.in_memory.store import InMemoryStore


class InMemoryReader:
    """`ExportReader` on copies. `latest` are the digests that were chosen for conversations."""

    def __init__(  # noqa: PLR0917 (copies of what the store has)
        self,
        kept: dict[Name, StoredConversation],
        receipts: dict[Name, list[ReceiptRecord]],
        documents: dict[int, StoredDocument],
        facts: dict[int, FactRow],
        subjects: dict[tuple[str, str], Subject],
        defaults: dict[tuple[str, str | None], AgentDefaults],
        latest: dict[Name, LatestRecord],
        calls: list[LedgerEntry],
        runs: list[tuple[Scope, Run, list[RunEvent]]],
    ) -> None:
        self._calls, self._runs = calls, sorted(runs, key=lambda one: one[1].id)
        self._kept, self._receipts, self._latest = kept, receipts, latest
        self._documents, self._facts, self._subjects, self._defaults = documents, facts, subjects, defaults

    async def conversations(self, whose: ExportScope, *, after: int, limit: int) -> list[ConversationInfo]:
        found = [
            listing.info(name, kept, title="")
            for name, kept in self._kept.items()
            if _within(name[0], whose) and kept.head.ref > after
        ]
        return sorted(found, key=lambda one: one.ref)[:limit]

    async def conversation(self, scope: Scope, conversation: str) -> KeptConversation | None:
        name = (scope, conversation)
        kept = self._kept.get(name)
        if kept is None:
            return None
        record = ConversationRecord(
            user=scope.user,
            agent=scope.agent,
            conversation=conversation,
            title=kept.title or None,
            metadata=kept.metadata,
            ttl=kept.ttl,
            created_at=kept.created_at,
            updated_at=kept.updated_at,
            head=kept.head_now(kept.updated_at),
        )
        archived = (one for one in self._documents.values() if one.origin == name)
        found = KeptConversation(
            record=record,
            digests=tuple(kept.digests),
            archived=tuple(_document_record(one) for one in archived),
            receipts=tuple(self._receipts.get(name, ())),
            latest=self._latest.get(name),
        )
        return renumbered(found)

    async def messages(self, scope: Scope, conversation: str, *, start: int, limit: int) -> list[Logged]:
        return self._kept[scope, conversation].log[start : start + limit]

    async def documents(self, whose: ExportScope, *, after: int, limit: int) -> list[DocumentRecord]:
        found = [
            _document_record(one)
            for number, one in sorted(self._documents.items())
            if one.tenant == whose.tenant and whose.user in (None, one.user) and one.origin is None and number > after
        ]
        return found[:limit] if whose.agent is None else []

    async def facts(self, whose: ExportScope, *, after: int, limit: int) -> list[FactRecord]:
        found = [
            FactRecord(
                fact=row.fact,
                fingerprint=row.fingerprint,
                tokens=row.tokens,
                sources=tuple(
                    SourceRecord(
                        conversation=one.evidence.conversation,
                        seq=one.evidence.seq,
                        said_at=one.evidence.said_at,
                        retracted=not one.live,
                    )
                    for one in sorted(row.said, key=lambda one: (one.evidence.said_at, one.ref, one.evidence.seq))
                ),
                events=row.events,
            )
            for number, row in sorted(self._facts.items())
            if _within(row.owner, whose) and number > after
        ]
        return found[:limit]

    async def calls(self, whose: ExportScope, *, after: UUID, limit: int) -> list[CallRecord]:
        found = [
            one
            for one in self._calls
            if one.key > after
            and one.whose[0] == whose.tenant
            and whose.user in (None, one.whose[1])
            and whose.agent in (None, one.whose[2])
        ]
        return [self._call(one) for one in found[:limit]]

    def _call(self, entry: LedgerEntry) -> CallRecord:
        call, digest = entry.call, None
        name, kept = next(
            ((name[1], kept) for name, kept in self._kept.items() if kept.head.ref == entry.ref), (None, None)
        )
        if kept is not None and call.digest is not None:
            digest = sum(one.id <= call.digest for one in kept.digests) or None
        return CallRecord(
            key=entry.key,
            user=entry.whose[1],
            agent=entry.whose[2],
            conversation=name,
            digest=digest,
            purpose=call.purpose,
            model=call.model,
            tokens_in=call.tokens_in,
            tokens_cached=call.tokens_cached,
            tokens_out=call.tokens_out,
            latency_ms=call.latency_ms,
            cost=call.cost,
            cause=call.cause,
            created_at=entry.at,
        )

    async def runs(self, whose: ExportScope, *, after: UUID, limit: int) -> list[RunRecord]:
        found = [
            RunRecord(user=scope.user, agent=scope.agent, run=run)
            for scope, run, _ in self._runs
            if _within(scope, whose) and run.id > after and (scope, run.conversation) in self._kept
        ]
        return found[:limit]

    async def events(self, tenant: str, run: UUID, *, after: int, limit: int) -> list[EventRecord]:
        found = next(events for scope, one, events in self._runs if (scope.tenant, one.id) == (tenant, run))
        return [EventRecord(run=run, event=one) for one in found[after + 1 :][:limit]]

    async def subjects(self, *, tenant: str) -> list[Subject]:
        return sorted((one for (owner, _), one in self._subjects.items() if owner == tenant), key=lambda one: one.id)

    async def agents(self, *, tenant: str) -> list[AgentRecord]:
        return [
            AgentRecord(agent=agent, policy=one.policy, cross_session=one.cross_session, ttl=one.ttl)
            for (owner, agent), one in sorted(self._defaults.items(), key=lambda item: item[0][1] or "")
            if owner == tenant
        ]


class InMemoryExport:
    """`ExportStore` on a store in memory."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[InMemoryReader]:
        yield self._store.reader()

    async def restore(self, tenant: str, kept: KeptConversation, messages: AsyncIterable[Sequence[Logged]]) -> int:
        record = kept.record
        name = (Scope(tenant=tenant, user=record.user, agent=record.agent), record.conversation)
        async with self._store.write(*name):
            if self._store.kept(name) is not None:
                raise Conflict(f"there is a conversation {name[1]!r} in scope {name[0]}; nothing was written")
            log = [one async for batch in messages for one in batch]
            written = renumbered(kept, [self._store.next_digest() for _ in kept.digests])
            return self._store.put(name, written, log)

    async def restore_latest(self, tenant: str, latest: LatestRecord) -> None:
        scope = Scope(tenant=tenant, user=latest.user, agent=latest.agent)
        kept, other = self._store.kept((scope, latest.conversation)), self._store.kept((scope, latest.of))
        if kept is not None and other is not None and 0 < latest.digest <= len(other.digests):
            chosen = replace(kept.head.latest, digest=other.digests[latest.digest - 1].id)
            if kept.head.latest.digest is None:
                kept.head = replace(kept.head, latest=chosen)

    async def restore_document(self, tenant: str, record: DocumentRecord) -> bool:
        return self._store.documents.restore(tenant, record)

    async def restore_facts(self, tenant: str, records: Sequence[FactRecord]) -> list[tuple[int, bool]]:
        found: list[tuple[int, bool]] = []
        for record in records:
            scope = Scope(tenant=tenant, user=record.fact.user, agent=record.fact.agent)
            async with self._store.facts_lock(scope):
                found.append(self._restore_fact(scope, record))
        return found

    async def restore_calls(self, tenant: str, records: Sequence[CallRecord]) -> None:
        for one in records:
            kept, digest = None, None
            if one.user and one.agent and one.conversation:
                kept = self._store.kept((Scope(tenant=tenant, user=one.user, agent=one.agent), one.conversation))
            if kept is not None and one.digest is not None and 0 < one.digest <= len(kept.digests):
                digest = kept.digests[one.digest - 1].id
            call = ModelCall(
                purpose=one.purpose,
                model=one.model,
                latency_ms=one.latency_ms,
                tokens_in=one.tokens_in,
                tokens_cached=one.tokens_cached,
                tokens_out=one.tokens_out,
                cost=one.cost,
                cause=one.cause,
                digest=digest,
            )
            ref = None if kept is None else kept.head.ref
            self._store.ledger.add(LedgerEntry((tenant, one.user, one.agent), ref, call, one.created_at, one.key))

    async def restore_run(self, tenant: str, record: RunRecord, events: AsyncIterable[Sequence[RunEvent]]) -> bool:
        found = [one async for batch in events for one in batch]
        scope = Scope(tenant=tenant, user=record.user, agent=record.agent)
        return self._store.runs.restore(scope, record.run, found)

    async def restore_replaced(self, tenant: str, replaced: Sequence[tuple[int, int]]) -> None:
        rows = self._store.fact_rows
        for one, by in replaced:
            row = rows.by_id.get(one)
            if row is None or row.owner.tenant != tenant or row.fact.superseded_by is not None:
                continue
            if row.fact.state is FactState.SUPERSEDED:
                rows.put(replace(row, fact=replace(row.fact, superseded_by=by)))

    def _restore_fact(self, scope: Scope, record: FactRecord) -> tuple[int, bool]:
        fact, rows = record.fact, self._store.fact_rows
        about = [row for row in rows.by_id.values() if (row.owner, row.fact.subject) == (scope, fact.subject)]
        for row in about:
            first = [each.content for each in (*row.events[:1], *record.events[:1])]
            known = row.fingerprint == record.fingerprint or row.fact.state is FactState.DELETED
            if row.fact.extracted_at == fact.extracted_at and (known or len(set(first)) == 1):
                return row.fact.id, False
        for row in about:
            if row.fingerprint == record.fingerprint and row.current and fact.state is FactState.CURRENT:
                return row.fact.id, False
        sources = [(one, self._store.kept((scope, one.conversation))) for one in record.sources]
        number = rows.next_id()
        rows.put(
            FactRow(
                owner=scope,
                fact=replace(fact, id=number, superseded_by=None, evidence=()),
                fingerprint=record.fingerprint,
                tokens=record.tokens,
                terms=analyzed(fact.content),
                said=tuple(
                    FactSource(kept.head.ref, Evidence(one.conversation, one.seq, one.said_at), live=not one.retracted)
                    for one, kept in sources
                    if kept is not None and one.seq < kept.head.next_seq
                ),
                events=record.events,
            )
        )
        return number, True


def stored(kept: KeptConversation, log: Sequence[Logged], ref: int, due_at: datetime) -> StoredConversation:
    """The conversation as the store keeps it; a digest in progress is due at `due_at`."""
    record = kept.record
    gone = ranges(one.seq for one in log if one.retracted_rev is not None)
    made = StoredConversation(
        replace(record.head, ref=ref, retracted=gone),
        record.created_at,
        log=list(log),
        live=[one.seq for one in log if one.retracted_rev is None],
        digests=[replace(one, due_at=due_at) if one.status is Status.PROCESSING else one for one in kept.digests],
        title=record.title or "",
        metadata=record.metadata,
        ttl=record.ttl,
    )
    made.updated_at = record.updated_at
    return made


def receipt_record(hashed: bytes, receipt: Receipt, created_at: datetime) -> ReceiptRecord:
    return ReceiptRecord(
        key_hash=hashed.hex(),
        start=receipt.start,
        end=receipt.end,
        rev=receipt.rev,
        fingerprint=receipt.fingerprint,
        created_at=created_at,
    )


def _within(owner: Scope, whose: ExportScope) -> bool:
    mine = owner.tenant == whose.tenant
    return mine and whose.user in (None, owner.user) and whose.agent in (None, owner.agent)


def _document_record(one: StoredDocument) -> DocumentRecord:
    document = replace(one.document, metadata=canonical(one.document.metadata))
    return DocumentRecord(user=one.user, document=document, fingerprint=one.fingerprint, passages=one.passages)
