"""Importing what was exported: conversation by conversation, each whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NoReturn, Protocol

from hitherto.blocks import series
from hitherto.core.digests.digest import Digest
from hitherto.core.export import (
    AgentRecord,
    CallRecord,
    ConversationRecord,
    DocumentRecord,
    EventRecord,
    ExportEnd,
    ExportHeader,
    FactRecord,
    KeptConversation,
    LatestRecord,
    ReceiptRecord,
    Record,
    RunRecord,
    SourceRecord,
    UserRecord,
    record_of,
    renumbered,
)
from hitherto.core.facts.fact import Fact, Subject
from hitherto.core.log.conversations import AgentDefaults
from hitherto.core.log.message import Logged, Message, Sums
from hitherto.core.log.ranges import Ranges, any_in, without
from hitherto.core.run import Run, RunEvent
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.export.checks import checked
from hitherto.engine.export.export import checked_file
from hitherto.engine.log.erase import erase_as_relatives
from hitherto.engine.services import Services
from hitherto.errors import Conflict, InvalidExport, InvalidInput, InvalidMessage, InvalidScope

LONGEST_LINE = 2**28
"""The most bytes of a line: a longer one is refused, as it would take too much memory."""

_PAGE = 500
"""Records that are read and written at once."""

_LARGE = 2**24
"""Bytes that are read at once, but for one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """How much was imported. `skipped` counts conversations, documents, facts and runs that were there already, and
    facts of which no message is there that says them; `refused` says of which conversations there are others of that
    name."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    facts: int = 0
    runs: int = 0
    skipped: int = 0
    refused: tuple[str, ...] = ()


class Lines(Protocol):
    """A file that is open for bytes; only its lines are read."""

    def readline(self, size: int, /) -> bytes: ...


async def import_export(
    services: Services, file: Lines, tenant: str | None, progress: Callable[[ImportReport], None] | None
) -> ImportReport:
    """See `Memory.import_from`."""
    checked_file(file, "rb")
    return await _Import(services, _records(file), progress, only=tenant).run()


@series
async def _records(file: Lines) -> AsyncGenerator[Record | InvalidExport]:
    """The records of a file; an error in the place of one that is none, which is the last."""
    while found := await asyncio.to_thread(_page, file):
        for one in found:
            yield one


def _page(file: Lines) -> list[Record | InvalidExport]:
    found: list[Record | InvalidExport] = []
    size = 0
    while len(found) < _PAGE and size < _LARGE:
        line = file.readline(LONGEST_LINE + 1)
        size += len(line)
        if len(line) > LONGEST_LINE:
            return [*found, InvalidExport(f"it is longer than {LONGEST_LINE:,} bytes")]
        if not line.endswith(b"\n"):
            break  # the end, or a line that was cut off
        try:
            found.append(record_of(line))
        except InvalidExport as error:
            return [*found, error]
    return found


_Sources = tuple[tuple[str, int], ...]
"""The conversation that one was forked from, and, where that was refused, those that it was forked from: each with how
many messages both have."""


@dataclass(eq=False)
class _Import:
    """One import. `record` is the next record, the one at `line`; None at the end of the file."""

    services: Services
    records: AsyncIterator[Record | InvalidExport]
    progress: Callable[[ImportReport], None] | None
    only: str | None = None
    """The tenant whose export it must be."""
    tenant: str = ""
    report: ImportReport = field(default_factory=ImportReport)
    record: Record | None = None
    line: int = 0
    latest: list[LatestRecord] = field(default_factory=list[LatestRecord])
    facts: dict[int, int] = field(default_factory=dict[int, int])
    replaced: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    there: dict[tuple[str, str, str], Ranges] = field(default_factory=dict[tuple[str, str, str], Ranges])
    """By user, agent and name, the conversations that are those of the export, with the messages that are erased. What
    refers to any other is left out."""
    refused: dict[tuple[str, str, str], _Sources] = field(default_factory=dict[tuple[str, str, str], _Sources])
    """Those that are others than the export's, with what those of the export were forked from."""
    forks: dict[tuple[str, str, str], tuple[str, int]] = field(
        default_factory=dict[tuple[str, str, str], tuple[str, int]]
    )
    """Of those that were refused, the fork that has most of its messages, and how many."""
    since: dict[tuple[str, str, str], Ranges] = field(default_factory=dict[tuple[str, str, str], Ranges])
    """Those of the erased messages that the export has."""

    async def run(self) -> ImportReport:
        try:
            await self._advance()
            if not isinstance(self.record, ExportHeader):
                raise InvalidExport("it does not begin like an export of Hitherto's", line=1)
            self.tenant = self._named(self.record.tenant, "tenant")
            if self.only not in (None, self.tenant):
                self._fail(f"it is an export of another tenant than {self.only!r}")
            await self._advance()
            while not isinstance(self.record, ExportEnd):
                try:
                    await self._next()
                except InvalidExport:
                    raise
                except InvalidInput as error:
                    self._fail(f"what comes before this cannot be kept: {error}")
                if self.progress is not None:
                    self.progress(self.report)
            if self.record.records != self.line - 1:
                self._fail(f"{self.line - 1:,} records come before its end, and it should be {self.record.records:,}")
            if await self._goes_on():
                self._fail("something comes after the end of the export; import each export by itself")
            await self._link()
        finally:
            self.services.appended.set()
        return self.report

    async def _next(self) -> None:
        """Import the next record, with those that belong to it."""
        match self.record:
            case ConversationRecord():
                await self._conversation(self.record)
            case DocumentRecord() if self.record.document.archived is None:
                new = await self.services.store.export.restore_document(self.tenant, self.record)
                self._count(documents=new, skipped=not new)
                await self._advance()
            case FactRecord():
                await self._facts()
            case CallRecord():
                await self._calls()
            case RunRecord():
                await self._run(self.record)
            case AgentRecord() | UserRecord() | Subject():
                await self._setting(self.record)
                await self._advance()
            case LatestRecord():
                self.latest.append(self.record)
                await self._advance()
            case _:
                self._check_end()
                self._fail("this record belongs to a conversation, which does not come before it")

    async def _advance(self) -> None:
        found = await anext(self.records, None)
        self.line += 1
        if isinstance(found, InvalidExport):
            self._fail(str(found))
        try:
            self.record = found and checked(found, datetime.now(UTC))
            if isinstance(self.record, Logged) and not self.record.erased:
                self._check_role(self.record.message)
        except (InvalidExport, InvalidMessage) as error:
            self._fail(str(error))

    def _check_role(self, message: Message) -> None:
        """Raises InvalidExport for a message whose item has another role, InvalidMessage for an item of no API."""
        role = self.services.codec(message.wire).read(message.payload).role
        if role is not message.role:
            raise InvalidExport(f"its role is {message.role.value!r}, and that of its item is {role.value!r}")

    async def _goes_on(self) -> bool:
        await self._advance()
        return self.record is not None

    async def _conversation(self, record: ConversationRecord) -> None:
        scope = self._scope(record.user, record.agent)
        name = self._named(record.conversation, "conversation")
        digests, archived, receipts = list[Digest](), list[DocumentRecord](), list[ReceiptRecord]()
        await self._advance()
        while True:
            match self.record:
                case Digest():
                    digests.append(self.record)
                case DocumentRecord() if self.record.document.archived is not None:
                    archived.append(self.record)
                case ReceiptRecord():
                    receipts.append(self.record)
                case _:
                    break
            await self._advance()
        self._check_end()
        found = KeptConversation(
            record=record, digests=tuple(digests), archived=tuple(archived), receipts=tuple(receipts)
        )
        try:
            kept = renumbered(found)
        except KeyError:
            self._fail(f"the digests of {name!r} name others that are not there")
        sources = self._sources(record)
        if await self.services.store.head(scope, name) is None:
            begun = self.line
            try:
                kept = replace(kept, sources=self._in_their_place(record, sources))
                documents = await self.services.store.export.restore(self.tenant, kept, self._messages(kept))
            except Conflict as error:
                if self.line != begun:
                    self._fail(f"{name!r} cannot be imported: {error}")
            else:
                self._count(conversations=True, messages=kept.record.head.next_seq, documents=documents)
                await self._note(scope, kept, sources)
                return
        if await self._is_there(scope, kept):
            self._count(skipped=True)
            await self._note(scope, kept, sources)
        else:
            refused = f"{name!r} of {scope.user} with {scope.agent}"
            self.report = replace(self.report, refused=(*self.report.refused, refused))
            self.refused[scope.user, scope.agent, name] = sources

    def _sources(self, record: ConversationRecord) -> _Sources:
        fork = record.fork
        if fork is None or fork.source is None:
            return ()
        further = self.refused.get((record.user, record.agent, fork.source), ())
        return ((fork.source, fork.messages), *((name, min(shared, fork.messages)) for name, shared in further))

    def _in_their_place(self, record: ConversationRecord, sources: _Sources) -> _Sources:
        """The sources, each with the fork that has its place if it was refused."""
        found = list(sources)
        for name, shared in sources:
            if (fork := self.forks.get((record.user, record.agent, name))) is not None:
                found.append((fork[0], min(shared, fork[1])))
        return tuple(found)

    async def _note(self, scope: Scope, kept: KeptConversation, sources: _Sources) -> None:
        """The conversation is there. What is erased where its messages are too is erased in it."""
        store, name = self.services.store, kept.record.conversation
        if kept.record.fork is not None:
            await erase_as_relatives(store, scope, name, self.services.canonical)
        head = await store.head(scope, name)
        erased = () if head is None else head.erased
        self.there[scope.user, scope.agent, name] = erased
        self.since[scope.user, scope.agent, name] = without(erased, kept.record.head.erased)
        for source, shared in sources:
            one = (scope.user, scope.agent, source)
            if one in self.refused and shared > self.forks.get(one, ("", 0))[1]:
                self.forks[one] = (name, shared)

    async def _is_there(self, scope: Scope, kept: KeptConversation) -> bool:
        """Whether the conversation of that name is the one of the export, perhaps further on: it began at the same
        time, and has the same messages, but for those that were erased since. Reads the messages of the export."""
        name = kept.record.conversation
        async with self.services.store.export.snapshot() as reader:
            there = await reader.conversation(scope, name)
            same = there is not None and there[0].created_at == kept.record.created_at
            async for batch in self._messages(kept):
                found = await reader.messages(scope, name, start=batch[0].seq, limit=len(batch)) if same else []
                same = same and len(found) == len(batch) and all(map(_same, found, batch))
        return same

    @series
    async def _messages(self, kept: KeptConversation) -> AsyncGenerator[Sequence[Logged]]:
        """The messages of the conversation, which come next. Raises InvalidExport where they do not fit it."""
        head, name = kept.record.head, kept.record.conversation
        batch, seq, sums = list[Logged](), 0, Sums()
        while isinstance(self.record, Logged):
            one = self.record
            if one.seq != seq or one.rev > head.rev:
                self._fail(f"this is message {one.seq} at revision {one.rev}; message {seq} of {name!r} comes next")
            seq, sums = seq + 1, one.sums if one.retracted_rev is None else sums
            batch.append(one)
            await self._advance()
            if len(batch) == _PAGE:
                if self.progress is not None:
                    self.progress(replace(self.report, messages=self.report.messages + seq))
                yield batch
                batch = []
        if batch:
            yield batch
        self._check_end()
        if seq != head.next_seq or sums != head.sums:
            self._fail(f"{name!r} should have {head.next_seq:,} messages of {head.sums.tokens:,} tokens before this")

    def _check_end(self) -> None:
        """Raises InvalidExport at the end of the file."""
        if self.record is None:
            self._fail("the file ends here, and was cut off; import the whole one: it goes on where this one ended")

    async def _facts(self) -> None:
        batch: list[FactRecord] = []
        while isinstance(self.record, FactRecord) and len(batch) < _PAGE:
            left = tuple(one for one in self.record.sources if self._says(self.record.fact, one))
            if left or not self.record.sources or self.record.fact.confirmed:
                batch.append(replace(self.record, sources=left))
            else:
                self._count(skipped=True)
            await self._advance()
        found = await self.services.store.export.restore_facts(self.tenant, batch)
        for record, (number, new) in zip(batch, found, strict=True):
            self._count(facts=new, skipped=not new)
            self.facts[record.fact.id] = number
            if record.fact.superseded_by is not None:
                self.replaced.append((number, record.fact.superseded_by))

    def _says(self, fact: Fact, source: SourceRecord) -> bool:
        """Whether the message that says a fact is there."""
        erased = self.there.get((fact.user, fact.agent, source.conversation))
        return erased is not None and not any_in(erased, source.seq, source.seq)

    async def _calls(self) -> None:
        batch: list[CallRecord] = []
        while isinstance(self.record, CallRecord) and len(batch) < _PAGE:
            call = self.record
            known = (call.user, call.agent, call.conversation or "") in self.there
            batch.append(call if known else replace(call, conversation=None, digest=None))
            await self._advance()
        await self.services.store.export.restore_calls(self.tenant, batch)

    async def _run(self, record: RunRecord) -> None:
        """A run, unless its conversation is another one now."""
        self._scope(record.user, record.agent)
        conversation = (record.user, record.agent, record.run.conversation)
        await self._advance()
        events = self._events(record.run, self.since.get(conversation, ()))
        if conversation not in self.there:
            async for _ in events:
                pass
        else:
            new = await self.services.store.export.restore_run(self.tenant, record, events)
            self._count(runs=new, skipped=not new)

    @series
    async def _events(self, run: Run, erased: Ranges) -> AsyncGenerator[Sequence[RunEvent]]:
        """The events of a run, which come next; without what they quote if one of its messages is erased."""
        gone = run.has(erased)
        batch, count = list[RunEvent](), 0
        while isinstance(self.record, EventRecord) and self.record.run == run.id:
            event = self.record.event
            if event.no != count:
                self._fail(f"this is event {event.no}; event {count} of the run {run.id} comes next")
            batch.append(replace(event, raw=None) if gone and event.kind.quotes else event)
            count += 1
            await self._advance()
            if len(batch) == _PAGE:
                yield batch
                batch = []
        if batch:
            yield batch
        self._check_end()
        if count != run.events:
            self._fail(f"the run {run.id} should have {run.events:,} events before this")

    async def _setting(self, record: AgentRecord | UserRecord | Subject) -> None:
        """What is set for an agent, a user or a subject, unless something is set for it already."""
        store = self.services.store
        if isinstance(record, Subject):
            if await store.facts.subject(self.tenant, record.id) is None:
                await store.facts.set_subject(self.tenant, record.id, name=record.name, members=record.members)
        elif isinstance(record, UserRecord):
            await store.export.restore_user(self.tenant, record)
        elif await store.defaults(tenant=self.tenant, agent=record.agent) == AgentDefaults():
            defaults = AgentDefaults(
                policy=record.policy,
                cross_session=record.cross_session,
                ttl=record.ttl,
                time_zone=record.time_zone,
            )
            await store.set_defaults(tenant=self.tenant, agent=record.agent, defaults=defaults)

    async def _link(self) -> None:
        """Write what refers to records that may come later."""
        store = self.services.store.export
        for one in self.latest:
            if {(one.user, one.agent, one.conversation), (one.user, one.agent, one.of)} <= self.there.keys():
                await store.restore_latest(self.tenant, one)
        replaced = [(fact, self.facts[by]) for fact, by in self.replaced if by in self.facts]
        await store.restore_replaced(self.tenant, replaced)

    def _scope(self, user: str, agent: str) -> Scope:
        try:
            return Scope(tenant=self.tenant, user=user, agent=agent)
        except InvalidScope as error:
            self._fail(str(error))

    def _named(self, value: str, what: str) -> str:
        try:
            return checked_name(value, what)
        except InvalidScope as error:
            self._fail(str(error))

    def _count(self, **more: int) -> None:
        before = self.report
        self.report = replace(before, **{name: getattr(before, name) + count for name, count in more.items()})

    def _fail(self, why: str) -> NoReturn:
        raise InvalidExport(f"line {self.line}: {why}", line=self.line)


def _same(there: Logged, exported: Logged) -> bool:
    """Whether a message of the store is the exported one, which may have been erased since."""
    same = (there.seq, there.created_at, there.rev) == (exported.seq, exported.created_at, exported.rev)
    return same and (there.erased or exported.erased or there.message == exported.message)
