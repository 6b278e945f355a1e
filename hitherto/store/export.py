"""Exports: reading everything that is kept, as it is at one moment, and writing it back as it was."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from hitherto.blocks import block, series
from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.documents import ArchiveOrigin, Document, NewDocument, Passage
from hitherto.core.export import (
    AgentRecord,
    CallRecord,
    ConversationRecord,
    DocumentRecord,
    EventRecord,
    ExportScope,
    FactRecord,
    ForkRecord,
    KeptConversation,
    LatestRecord,
    ReceiptRecord,
    RunRecord,
    SourceRecord,
    UserRecord,
    renumbered,
    renumbered_conversation,
    renumbered_digest,
    renumbered_document,
)
from hitherto.core.facts.fact import Subject
from hitherto.core.ledger import FailureCause, Purpose
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.log.message import Logged, storable
from hitherto.core.run import RunEvent
from hitherto.core.scope import Scope
from hitherto.errors import Conflict
from hitherto.store import documents, rows
from hitherto.store.connections.part import Part
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.documents import document_values
from hitherto.store.errors import ours
from hitherto.store.facts.rows import event_from, fact_from, set_subject_from, term_values
from hitherto.store.log import heads, listing
from hitherto.store.log.log import lasting_values
from hitherto.store.runs import run_event_from, run_from
from hitherto.store.sql import SQL

_NEVER = 2**62

_PAGE = 500
"""Digests, documents or receipts that are read at once."""

_REPLANNED = 100
"""After so many conversations a connection plans anew. PostgreSQL checks the foreign key of a message by a plan that it
keeps; one made for an empty table would read all conversations of the tenant each time, until the table is analyzed."""

_Connection = AsyncConnection[Any]


class ExportReader:
    """What is kept, as it is at one moment: nothing that is written meanwhile is seen. All methods raise what `Store`
    says."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    async def conversations(self, whose: ExportScope, *, after: int, limit: int) -> list[ConversationInfo]:
        """At most `limit` conversations, ascending by `ref`; those after the ref `after`. They have no titles."""
        found = await self._all("export_conversations", _page(whose, after, limit))
        return [listing.info_from(whose.tenant, row) for row in found]

    async def conversation(
        self, scope: Scope, conversation: str
    ) -> tuple[ConversationRecord, LatestRecord | None] | None:
        """The conversation, and the digest of another one that was chosen for it; None where there is none. Here and
        below, the ids of its digests are 1, 2, 3 …."""
        names = rows.scope_values(scope, conversation)
        with ours():
            row = await rows.named(await self._connection.execute(SQL["head"], names)).fetchone()
        if row is None:
            return None
        ((title, metadata, ttl, created_at, updated_at, ref),) = await self._all("export_conversation", names)
        at = {"tenant": scope.tenant, "ref": ref}
        head = await heads.head_with_calls(row, await self._all("export_open_calls", at))
        record = ConversationRecord(
            user=scope.user,
            agent=scope.agent,
            conversation=conversation,
            title=title,
            metadata=json.loads(metadata),
            ttl=ttl,
            created_at=created_at,
            updated_at=updated_at,
            head=head,
            forgettings=tuple([(turn, seq, at) for turn, seq, at in await self._all("export_forgettings", at)]),
            branches=tuple([(start, behind) for start, behind in await self._all("export_branches", at)]),
            absences=tuple([(*one,) for one in await self._all("export_absences", at)]),
            fork=next(
                (
                    ForkRecord(source=of, messages=messages, rev=rev)
                    for of, messages, rev in await self._all("export_fork", at)
                ),
                None,
            ),
        )
        record = renumbered_conversation(
            record, await self._numbers(scope, [one.digest for one in head.frontiers.values()])
        )
        chosen, latest = head.latest, None
        if chosen.digest is not None and chosen.conversation is not None:
            latest = LatestRecord(
                user=scope.user,
                agent=scope.agent,
                conversation=conversation,
                of=chosen.conversation,
                digest=(await self._numbers(scope, [chosen.digest]))[chosen.digest],
            )
        return record, latest

    @series
    async def digests(self, scope: Scope, conversation: str) -> AsyncGenerator[Digest]:
        """Its digests, read in pages, as all that follows of it."""
        after, names = 0, rows.scope_values(scope, conversation)
        while found := await self._named("digests", {**names, "after": after, "limit": _PAGE, **rows.PAGE}):
            after = found[-1].id
            numbers = await self._numbers(scope, [number for one in found for number in (one.id, one.base_id)])
            for one in found:
                yield renumbered_digest(rows.digest_from(one), numbers)

    @series
    async def archived(self, scope: Scope, conversation: str) -> AsyncGenerator[DocumentRecord]:
        """The documents that were archived from it."""
        after, names = 0, rows.scope_values(scope, conversation)
        while found := await self._all("export_archived", {**names, "after": after, "limit": _PAGE, **rows.PAGE}):
            read = [_document_from(one, conversation) for one in found]
            after = read[-1].document.id
            numbers = await self._numbers(
                scope, [one.document.archived and one.document.archived.digest for one in read]
            )
            for one in read:
                yield renumbered_document(one, numbers)

    @series
    async def receipts(self, scope: Scope, conversation: str) -> AsyncGenerator[ReceiptRecord]:
        """Its receipts."""
        start, key_hash, names = -1, "", rows.scope_values(scope, conversation)
        while found := await self._named(
            "export_receipts", {**names, "start": start, "key_hash": key_hash, "limit": _PAGE}
        ):
            start, key_hash = found[-1].start, found[-1].key_hash
            for one in found:
                yield rows.value_from(ReceiptRecord, one)

    async def _numbers(self, scope: Scope, digests: Sequence[int | None]) -> dict[int, int]:
        """Which of its conversation's digests each of these is, counted from 1."""
        asked = rows.integers({one for one in digests if one is not None})
        return {one[0]: one[1] for one in await self._all("export_numbers", {"tenant": scope.tenant, "digests": asked})}

    async def messages(self, scope: Scope, conversation: str, *, start: int, limit: int) -> list[Logged]:
        """A page of at most `limit` of its messages from seq `start` on, ascending."""
        names = rows.scope_values(scope, conversation)
        ((*_, ref),) = await self._all("export_conversation", names)
        reading = {"start": start, "stop": start + limit, "limit": limit, "live": False, "live_at": _NEVER}
        ((reading["stop"],),) = await self._all("page_stop", {**names, "ref": ref, **reading, **rows.PAGE})
        with ours():
            cursor = await self._connection.execute(
                SQL["messages"],
                {**names, "ref": ref, **reading, "tokens": 0, "tools_from": _NEVER, **lasting_values(None)},
                binary=True,
            )
            return await rows.fetched(rows.as_messages(cursor))

    async def documents(self, whose: ExportScope, *, after: int, limit: int) -> list[DocumentRecord]:
        """A page of at most `limit` documents that users have added, ascending by id; those after the id `after`. None
        of an agent's: they belong to no agent."""
        if whose.agent is not None:
            return []
        found = await self._all("export_documents", _page(whose, after, limit))
        return [_document_from(one, None) for one in found]

    async def facts(self, whose: ExportScope, *, after: int, limit: int) -> list[FactRecord]:
        """A page of at most `limit` facts, in any state, ascending by id; those after the id `after`."""
        return [_fact_from(row) for row in await self._all("export_facts", _page(whose, after, limit))]

    async def calls(self, whose: ExportScope, *, after: UUID, limit: int) -> list[CallRecord]:
        """At most `limit` calls of the ledger, ascending by key; those after the key `after`."""
        values = {**_page(whose, 0, limit), "after": after}
        return [_call_from(row) for row in await self._named("export_calls", values)]

    async def runs(self, whose: ExportScope, *, after: UUID, limit: int) -> list[RunRecord]:
        """At most `limit` runs of conversations that are there, ascending by id; those after the id `after`."""
        found = await self._named("export_runs", {**_page(whose, 0, limit), "after": after})
        return [RunRecord(user=row.user, agent=row.agent, run=run_from(row)) for row in found]

    async def events(self, tenant: str, run: UUID, *, after: int, limit: int) -> list[EventRecord]:
        """A page of at most `limit` events of a run in their order, those after number `after`."""
        values = {"tenant": tenant, "run": run, "after": after, "limit": limit, **rows.PAGE}
        return [
            EventRecord(run=run, event=run_event_from(row)) for row in await self._named("export_run_events", values)
        ]

    async def subjects(self, tenant: str, *, after: str, limit: int) -> list[Subject]:
        """A page of at most `limit` of the subjects that were set, by id, those after the id `after`."""
        values = {"tenant": tenant, "after": after, "limit": limit, **rows.PAGE}
        return [set_subject_from(row) for row in await self._all("subjects", values)]

    async def agents(self, *, tenant: str) -> list[AgentRecord]:
        """What is set for agents of the tenant, and for all of them."""
        return [
            AgentRecord(
                agent=agent or None,
                policy=policy,
                cross_session=CrossSession.from_json(crosses),
                ttl=ttl,
                time_zone=zone,
            )
            for agent, policy, crosses, ttl, zone in await self._all("export_agents", {"tenant": tenant})
        ]

    async def users(self, whose: ExportScope, *, after: str, limit: int) -> list[UserRecord]:
        """At most `limit` of the users for whom something is set, by id, those after the id `after`."""
        found = await self._all("export_users", {**_page(whose, 0, limit), "after": after})
        return [UserRecord(user=user, time_zone=zone) for user, zone in found]

    async def _all(self, name: str, values: dict[str, Any]) -> list[rows.Row]:
        with ours():
            return await rows.fetched(await self._connection.execute(SQL[name], values))

    async def _named(self, name: str, values: dict[str, Any]) -> list[Any]:
        """The same, with the columns of the rows by name."""
        with ours():
            return await rows.fetched(rows.named(await self._connection.execute(SQL[name], values)))


class ExportStore(Part):
    """Exports. All methods raise what `Store` says."""

    @block
    async def snapshot(self) -> AsyncGenerator[ExportReader]:
        """Everything that is kept, as it is now. Nobody waits for whoever reads it."""

        async def begin(connection: _Connection) -> ExportReader:
            allow_long_work(connection)
            await connection.execute("begin isolation level repeatable read read only")
            return ExportReader(connection)

        async with self._with_connection(begin) as reader:
            yield reader

    async def restore(self, tenant: str, kept: KeptConversation, messages: AsyncIterable[Sequence[Logged]]) -> int:
        """Write a conversation as it was, with its messages (ascending, all of them). Its digests get ids of this
        store's, and its search index is made in the background. It is there whole, or not at all; of its archived
        documents those whose content is not there yet, of which it returns the number. A fork is one of that among its
        sources which has most of its first messages. Raises Conflict if there is a conversation of that name."""
        record = kept.record
        scope = Scope(tenant=tenant, user=record.user, agent=record.agent)
        names = rows.scope_values(scope, record.conversation)

        async def begin(connection: _Connection) -> tuple[_Connection, int | None, list[int]]:
            allow_long_work(connection)
            await connection.execute("begin isolation level read committed")
            made = (await connection.execute(SQL["create"], names)).rowcount
            ref = await (await connection.execute(SQL["lock"], names)).fetchone()
            ids = await (await connection.execute(SQL["import_ids"], {"count": len(kept.digests)})).fetchall()
            if ref and ref[0] % _REPLANNED == 0:
                await connection.execute("discard plans")
            return connection, ref[0] if made and ref else None, [one[0] for one in ids]

        async with self._with_connection(begin) as (connection, ref, ids):
            if ref is None:
                raise Conflict(f"there is a conversation {record.conversation!r} in scope {scope}; nothing was written")
            with ours():
                archived = await _restore(connection, scope, ref, renumbered(kept, ids), messages)
                await connection.execute("commit")
        return archived

    async def restore_user(self, tenant: str, record: UserRecord) -> None:
        """Set what is set for a user, unless something is set already."""
        await self._write("import_user", {"tenant": tenant, **asdict(record)})

    async def restore_latest(self, tenant: str, latest: LatestRecord) -> None:
        """Set the digest that was chosen for a conversation's instructions; nothing where that is not there."""
        names = rows.scope_values(Scope(tenant=tenant, user=latest.user, agent=latest.agent), latest.conversation)
        await self._write("import_latest", {**names, "of": latest.of, "digest": latest.digest})

    async def restore_document(self, tenant: str, record: DocumentRecord) -> bool:
        """Write a document that a user added. Returns whether it is new; if not, the same content was there."""

        async def put(connection: _Connection) -> bool:
            async with connection.pipeline():  # one transaction
                kept = await documents.keep(connection, _document_values(tenant, None, record))
            return kept.rowcount > 0

        async with self._with_connection(put) as new:
            return new

    async def restore_facts(self, tenant: str, records: Sequence[FactRecord]) -> list[tuple[int, bool]]:
        """Write facts, but for what has replaced them; returns the id of each in this store, and whether it is new. One
        that is there is not written again: of the same owner and subject, and extracted at the same time, perhaps
        edited or deleted since, or with the same content and current, as it is."""

        facts = [_fact_values(tenant, one) for one in records]
        subjects = {(one["user"], one["agent"], one["subject"]): one for one in facts}

        async def put(connection: _Connection) -> list[tuple[int, bool]]:
            allow_long_work(connection)
            async with connection.transaction():
                for one in sorted(subjects):  # as everybody does who holds several
                    await connection.execute(SQL["make_fact_subject"], subjects[one])
                    await connection.execute(SQL["hold_fact_subject"], subjects[one])
                return [await _restored_fact(connection, one) for one in facts]

        async with self._with_connection(put) as found:
            return found

    async def restore_calls(self, tenant: str, records: Sequence[CallRecord]) -> None:
        """Write calls into the ledger, those whose keys are not there. What they were made for is named as far as it is
        there."""

        async def put(connection: _Connection) -> None:
            async with connection.pipeline():
                for one in records:
                    await connection.execute(SQL["import_call"], {**asdict(one), "tenant": tenant})

        async with self._with_connection(put):
            pass

    async def restore_run(self, tenant: str, record: RunRecord, events: AsyncIterable[Sequence[RunEvent]]) -> bool:
        """Write a run as it was, with its events (ascending, all of them): whole, or not at all. Returns whether it is
        new; if not, a run of that id was there, and stays as it is. Reads all of `events` in either case. To one that
        goes on, nothing that quotes is added later: whether a message of it was erased is not known any more."""
        values = {"tenant": tenant, "user": record.user, "agent": record.agent, **asdict(record.run)}

        async def begin(connection: _Connection) -> tuple[_Connection, bool]:
            allow_long_work(connection)
            await connection.execute("begin isolation level read committed")
            return connection, bool((await connection.execute(SQL["import_run"], values)).rowcount)

        async with self._with_connection(begin) as (connection, new):
            with ours():
                of = {"tenant": tenant, "run": record.run.id}
                async for batch in events:
                    if new:
                        await connection.execute(SQL["import_run_events"], {**of, **_run_event_values(batch)})
                await connection.execute("commit")
        return new

    async def restore_replaced(self, tenant: str, replaced: Sequence[tuple[int, int]]) -> None:
        """Set which fact has replaced which, by their ids in this store."""
        facts, by = [one for one, _ in replaced], [other for _, other in replaced]
        await self._write("import_replaced", {"tenant": tenant, "facts": facts, "by": by})

    async def _write(self, name: str, values: dict[str, Any]) -> list[rows.Row]:
        async def run(connection: _Connection) -> list[rows.Row]:
            allow_long_work(connection)
            cursor = await connection.execute(SQL[name], values)
            return [] if cursor.description is None else await cursor.fetchall()

        async with self._with_connection(run) as found:
            return found


async def _restore(
    connection: _Connection,
    scope: Scope,
    ref: int,
    kept: KeptConversation,
    messages: AsyncIterable[Sequence[Logged]],
) -> int:
    record, at = kept.record, {"tenant": scope.tenant, "ref": ref}
    cursor = connection.cursor()
    values = {**at, **heads.head_values(record.head), "updated_at": record.updated_at, "said_at": None}
    await connection.execute(SQL["update_conversation"], values)
    if record.head.open_calls:
        await connection.execute(SQL["insert_open_calls"], {**at, **heads.open_call_values(record.head.open_calls)})
        await connection.execute(SQL["count_awaited"], {**at, **heads.awaited_values(record.head)})
    forgettings = dict(zip(("turns", "seqs", "times"), map(list, zip(*record.forgettings, strict=True)), strict=False))
    if forgettings:
        whose = {"user": scope.user, "agent": scope.agent}
        await connection.execute(SQL["import_forgettings"], {**at, **whose, **forgettings})
    branches = {"starts": [one for one, _ in record.branches], "behinds": [one for _, one in record.branches]}
    await connection.execute(SQL["import_branches"], {**at, **branches})
    absences = dict(
        zip(("starts", "ends", "froms", "untils"), map(list, zip(*record.absences, strict=True)), strict=False)
    )
    if absences:
        await connection.execute(SQL["import_absences"], {**at, **absences})
    described = {"title": record.title, "metadata": json.dumps(record.metadata), "ttl": record.ttl}
    await connection.execute(SQL["describe_conversation"], {**at, **described})
    await cursor.executemany(SQL["import_digest"], [{**at, **_digest_values(one)} for one in kept.digests])
    receipts = {
        "key_hashes": [one.key_hash for one in kept.receipts],
        "starts": rows.integers([one.start for one in kept.receipts]),
        "ends": rows.integers([one.end for one in kept.receipts]),
        "revs": rows.integers([one.rev for one in kept.receipts]),
        "fingerprints": [one.fingerprint for one in kept.receipts],
        "times": [one.created_at for one in kept.receipts],
    }
    await connection.execute(SQL["import_receipts"], {**at, **receipts})
    async with connection.pipeline():
        archived = [await documents.keep(connection, _document_values(scope.tenant, ref, one)) for one in kept.archived]
    retracted: list[tuple[int, int, int]] = []
    async for batch in messages:
        await connection.execute(SQL["insert_messages"], {**at, **rows.message_arrays(batch)})
        for one in batch:
            if one.retracted_rev is not None:
                if retracted and retracted[-1][1:] == (one.seq - 1, one.retracted_rev):
                    retracted[-1] = (retracted[-1][0], one.seq, one.retracted_rev)
                else:
                    retracted.append((one.seq, one.seq, one.retracted_rev))
    if record.fork is not None:
        names = rows.scope_values(scope, "")
        sources, shares = [name for name, _ in kept.sources], rows.integers([shared for _, shared in kept.sources])
        values = {**at, **names, **asdict(record.fork), "sources": sources, "shares": shares}
        await connection.execute(SQL["import_fork"], values)
        await connection.execute(SQL["index_scope"], names)
    dates = {"created_at": record.created_at, "retracted": json.dumps(retracted)}
    await connection.execute(SQL["import_dates"], {**at, **dates})
    await connection.execute(SQL["note_said"], at)
    await connection.execute(SQL["note_digested"], at)
    return sum(one.rowcount for one in archived)


async def _restored_fact(connection: _Connection, values: Mapping[str, Any]) -> tuple[int, bool]:
    there = await (await connection.execute(SQL["imported_fact"], values)).fetchone()
    if there is not None:
        return there[0], False
    made = await (await connection.execute(SQL["import_fact"], values)).fetchone()
    assert made is not None, "an insertion that returns its row"
    return made[0], True


def _page(whose: ExportScope, after: int, limit: int) -> dict[str, Any]:
    return {
        "tenant": whose.tenant,
        "user": whose.user,
        "agent": whose.agent,
        "after": after,
        "limit": limit,
    } | rows.PAGE


def _call_from(row: Any) -> CallRecord:
    cause = None if row.cause is None else FailureCause(row.cause)
    return rows.value_from(CallRecord, row, digest=row.digest or None, purpose=Purpose(row.purpose), cause=cause)


def _document_from(row: rows.Row, conversation: str | None) -> DocumentRecord:
    user, fingerprint, number, namespace, doc_type, title, text, metadata, created_at, said_at = row[:10]
    agent, digest, start, end, passages = row[10:]
    found = tuple(Passage(*one) for one in passages or ())
    archived = None
    if conversation is not None:
        archived = ArchiveOrigin(conversation=conversation, digest=digest, start=start, end=end)
    document = Document(
        id=number,
        namespace=namespace,
        doc_type=doc_type,
        title=title,
        text=text,
        metadata=json.loads(metadata),
        passages=len(found),
        created_at=created_at,
        said_at=said_at,
        agent=agent or None,
        archived=archived,
    )
    return DocumentRecord(user=user, document=document, fingerprint=fingerprint, passages=found)


def _document_values(tenant: str, ref: int | None, record: DocumentRecord) -> dict[str, Any]:
    document = record.document
    new = NewDocument(
        namespace=document.namespace,
        doc_type=document.doc_type,
        title=document.title,
        text=document.text,
        metadata=json.dumps(document.metadata),
        fingerprint=record.fingerprint,
        passages=record.passages,
        said_at=document.said_at,
    )
    origin = None if ref is None else document.archived
    return {
        **document_values(new),
        "tenant": tenant,
        "user": record.user,
        "agent": document.agent or "",
        "ref": None if origin is None else ref,
        "digest": None if origin is None else origin.digest,
        "start": None if origin is None else origin.start,
        "end": None if origin is None else origin.end,
        "created_at": document.created_at,
    }


def _digest_values(digest: Digest) -> dict[str, Any]:
    return {
        **rows.values_of(digest),
        "items": rows.items_json(digest.items),
        "text": storable(digest.text),
        "error": None if digest.error is None else storable(digest.error),
        "due_at": digest.created_at if digest.status is Status.PROCESSING else None,
    }


def _fact_from(row: rows.Row) -> FactRecord:
    fingerprint, tokens, sources, events = row[17:]
    return FactRecord(
        fact=fact_from(row, ()),
        fingerprint=fingerprint,
        tokens=tokens,
        sources=tuple(
            SourceRecord(
                conversation=name,
                seq=seq,
                said_at=datetime.fromisoformat(said_at),
                retracted=retracted,
                mention=mention,
            )
            for name, seq, said_at, retracted, mention in sources or ()
        ),
        events=tuple(event_from([action, datetime.fromisoformat(at), *rest]) for action, at, *rest in events or ()),
    )


def _fact_values(tenant: str, record: FactRecord) -> dict[str, Any]:
    fact, sources, events = record.fact, record.sources, record.events
    return {
        "tenant": tenant,
        "user": fact.user,
        "agent": fact.agent,
        "subject": fact.subject,
        "category": storable(fact.category),
        "fingerprint": record.fingerprint,
        "visibility": fact.visibility.value,
        "state": fact.state.value,
        "confidence": fact.confidence or 0.0,
        "confirmed": bool(fact.confirmed),
        "repeated": fact.repeated or 0,
        "version": fact.version,
        "metadata": json.dumps(fact.metadata),
        "tokens": record.tokens,
        **term_values(storable(fact.content)),
        "extracted_at": fact.extracted_at,
        "updated_at": fact.updated_at,
        "ended_at": fact.ended_at,
        "conversations": [one.conversation for one in sources],
        "seqs": [one.seq for one in sources],
        "times": [one.said_at for one in sources],
        "retracted": [one.retracted for one in sources],
        "mentions": [one.mention for one in sources],
        **_event_values(events),
    }


def _run_event_values(events: Sequence[RunEvent]) -> dict[str, Any]:
    return {
        "nos": rows.integers([one.no for one in events]),
        "kinds": [one.kind.value for one in events],
        "names": [one.name for one in events],
        "call_ids": [one.call_id for one in events],
        "payloads": [one.raw for one in events],
        "times": [one.created_at for one in events],
    }


def _event_values(events: Iterable[Any]) -> dict[str, Any]:
    listed = list(events)
    return {
        "actions": [one.action.value for one in listed],
        "ats": [one.at for one in listed],
        "bys": [one.by for one in listed],
        "versions": [one.version for one in listed],
        "categories": [storable(one.category) for one in listed],
        "contents": [storable(one.content) for one in listed],
        "visibilities": [one.visibility.value for one in listed],
    }
