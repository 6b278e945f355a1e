"""Exporting: everything that is kept of a scope, a user or a tenant, record by record."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, TypeVar
from uuid import UUID

from hitherto.blocks import series
from hitherto.core.digests.digest import Digest
from hitherto.core.export import (
    VERSION,
    ConversationRecord,
    DocumentRecord,
    EventRecord,
    ExportEnd,
    ExportHeader,
    ExportScope,
    FactRecord,
    LatestRecord,
    Record,
    RunRecord,
    line_of,
)
from hitherto.core.log.message import Logged
from hitherto.core.page import PAGE_ENTRY, PAGE_SIZE
from hitherto.core.scope import Scope
from hitherto.engine.pages import in_pages
from hitherto.engine.purge import purge
from hitherto.engine.services import Services
from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from hitherto.store.export import ExportReader

T = TypeVar("T")
K = TypeVar("K")

_PAGE = 500
"""Records that are read at once: what an export takes of the memory."""


_COUNTED: dict[type, str] = {
    ConversationRecord: "conversations",
    Logged: "messages",
    DocumentRecord: "documents",
    FactRecord: "facts",
    RunRecord: "runs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """How much was exported."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    facts: int = 0
    runs: int = 0


async def export(
    services: Services, file: BinaryIO, whose: ExportScope, progress: Callable[[ExportReport], None] | None
) -> ExportReport:
    """See `Memory.export_to`."""
    checked_file(file, "wb")
    await purge(services, whose.tenant)
    done, records, size = Counter[str](), list[Record](), 0
    async with services.store.export.snapshot() as reader:
        async for record in _records(services, reader, whose):
            done[_COUNTED.get(type(record), "")] += 1
            records.append(record)
            size += _size(record)
            if len(records) >= _PAGE or size >= PAGE_SIZE:
                await asyncio.to_thread(_write, file, records)
                records.clear()
                size = 0
                if progress is not None:
                    progress(_report(done))
    records.append(ExportEnd(records=done.total()))
    await asyncio.to_thread(_write, file, records)
    return _report(done)


def _size(record: Record) -> int:
    """What a record takes, in characters, where that may be much."""
    match record:
        case Logged():
            return len(record.message.raw)
        case DocumentRecord():
            return len(record.document.text)
        case EventRecord():
            return len(record.event.raw or "")
        case Digest():
            return 2 * len(record.text) + len(record.opaque or "")
        case FactRecord():
            return PAGE_ENTRY * (len(record.sources) + len(record.events))
        case _:
            return 0


def _write(file: BinaryIO, records: list[Record]) -> None:
    file.write(b"".join([line_of(one) for one in records]))


def checked_file(file: object, mode: str) -> None:
    """Raises InvalidInput for a file that is open for text."""
    if isinstance(file, io.TextIOBase):
        raise InvalidInput(f"the file is open for text; open it with the mode {mode!r}")


def _report(done: Counter[str]) -> ExportReport:
    return ExportReport(**{name: done[name] for name in _COUNTED.values()})


@series
async def _records(services: Services, reader: ExportReader, whose: ExportScope) -> AsyncGenerator[Record]:
    """Every record but the last."""
    yield ExportHeader(
        version=VERSION, tenant=whose.tenant, user=whose.user, agent=whose.agent, exported_at=datetime.now(UTC)
    )
    async for setting in _settings(reader, whose):
        yield setting
    latest = list[LatestRecord]()
    async for one in _pages(partial(reader.conversations, whose), lambda last: last.ref, 0):
        found = await reader.conversation(one.scope, one.conversation)
        assert found is not None, "it is of the same moment"
        record, chosen = found
        latest += [] if chosen is None else [chosen]
        yield record
        async for part in _parts(reader, one.scope, one.conversation):
            yield part
    async for document in _pages(partial(reader.documents, whose), lambda last: last.document.id, 0):
        yield document
    async for fact in _pages(partial(reader.facts, whose), lambda last: last.fact.id, 0):
        yield fact
    async for call in _pages(partial(reader.calls, whose), lambda last: last.key, UUID(int=0)):
        yield call
    async for run in _pages(partial(reader.runs, whose), lambda last: last.run.id, UUID(int=0)):
        yield run
        events = partial(reader.events, whose.tenant, run.run.id)
        async for event in _pages(events, lambda last: last.event.no, -1):
            yield event
    for chosen in latest:
        yield chosen


def _pages(read: Callable[..., Awaitable[list[T]]], place: Callable[[T], K], after: K) -> AsyncIterator[T]:
    return in_pages(partial(read, limit=_PAGE), place, after)


@series
async def _settings(reader: ExportReader, whose: ExportScope) -> AsyncGenerator[Record]:
    """What is set for agents, subjects and users."""
    if whose.user is None:
        for agent in await reader.agents(tenant=whose.tenant):
            yield agent
        async for subject in _pages(partial(reader.subjects, whose.tenant), lambda last: last.id, ""):
            yield subject
    if whose.agent is None:
        async for user in _pages(partial(reader.users, whose), lambda last: last.user, ""):
            yield user


@series
async def _parts(reader: ExportReader, scope: Scope, conversation: str) -> AsyncGenerator[Record]:
    for read in (reader.digests, reader.archived, reader.receipts):
        async for part in read(scope, conversation):
            yield part
    start = 0
    while found := await reader.messages(scope, conversation, start=start, limit=_PAGE):
        start = found[-1].seq + 1
        for one in found:
            yield one
