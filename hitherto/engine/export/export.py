"""Exporting: everything that is kept of a scope, a user or a tenant, record by record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import BinaryIO

from hitherto.core.export.records import (
    VERSION,
    ConversationRecord,
    DocumentRecord,
    ExportEnd,
    ExportHeader,
    ExportScope,
    FactRecord,
    LatestRecord,
    Record,
    line_of,
)
from hitherto.core.log.message import Logged
from hitherto.core.scope import Scope
from hitherto.engine.purge import purge
from hitherto.engine.services import Services
from hitherto.ports.export import ExportReader

_PAGE = 500
"""Records that are read at once: what an export takes of the memory."""


_COUNTED: dict[type, str] = {
    ConversationRecord: "conversations",
    Logged: "messages",
    DocumentRecord: "documents",
    FactRecord: "facts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """How much was exported."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    facts: int = 0


async def export(
    services: Services, file: BinaryIO, whose: ExportScope, progress: Callable[[ExportReport], None] | None
) -> ExportReport:
    """See `Memory.export_to`."""
    await purge(services, whose.tenant)
    done, lines = Counter[str](), list[bytes]()
    async with services.store.export.snapshot() as reader:
        async for record in _records(services, reader, whose):
            done[_COUNTED.get(type(record), "")] += 1
            lines.append(line_of(record))
            if len(lines) >= _PAGE:
                await asyncio.to_thread(file.write, b"".join(lines))
                lines.clear()
                if progress is not None:
                    progress(_report(done))
    lines.append(line_of(ExportEnd(records=done.total())))
    await asyncio.to_thread(file.write, b"".join(lines))
    return _report(done)


def _report(done: Counter[str]) -> ExportReport:
    return ExportReport(**{name: done[name] for name in _COUNTED.values()})


async def _records(services: Services, reader: ExportReader, whose: ExportScope) -> AsyncGenerator[Record]:
    """Every record but the last."""
    yield ExportHeader(
        version=VERSION, tenant=whose.tenant, user=whose.user, agent=whose.agent, exported_at=services.now()
    )
    if whose.user is None:
        for agent in await reader.agents(tenant=whose.tenant):
            yield agent
        for subject in await reader.subjects(tenant=whose.tenant):
            yield subject
    after, latest = 0, list[LatestRecord]()
    while found := await reader.conversations(whose, after=after, limit=_PAGE):
        after = found[-1].ref
        for one in found:
            kept = await reader.conversation(one.scope, one.conversation)
            assert kept is not None, "it is of the same moment"
            latest += [] if kept.latest is None else [kept.latest]
            for record in (kept.record, *kept.digests, *kept.archived, *kept.receipts):
                yield record
            async for message in _messages(reader, one.scope, one.conversation):
                yield message
    after = 0
    while documents := await reader.documents(whose, after=after, limit=_PAGE):
        after = documents[-1].document.id
        for document in documents:
            yield document
    after = 0
    while facts := await reader.facts(whose, after=after, limit=_PAGE):
        after = facts[-1].fact.id
        for fact in facts:
            yield fact
    for chosen in latest:
        yield chosen


async def _messages(reader: ExportReader, scope: Scope, conversation: str) -> AsyncGenerator[Record]:
    start = 0
    while found := await reader.messages(scope, conversation, start=start, limit=_PAGE):
        start = found[-1].seq + 1
        for one in found:
            yield one
