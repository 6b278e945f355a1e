"""Writes entries and vectors of the search index under a claim, after locking what they stand for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from psycopg import AsyncConnection

from hitherto.core.log.time_zone import in_utc, offset_of
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.filter import CODES, EntryKind
from hitherto.core.recall.index import IndexEntry, IndexWork, Source
from hitherto.core.recall.vectors import Vectors
from hitherto.store.rows import integers
from hitherto.store.sql import SQL

VIEW = "view"
"""The kind under which `IndexWork.seen` has where a conversation's view began when its messages were read."""

_AT_ONCE = 50
"""Entries, or vectors, that are written before others go on."""

_SourceRef = tuple[EntryKind, int]
"""What was read for sources (a conversation's messages, a digest, a document or a fact): its kind and its id."""


def at_claim(work: IndexWork) -> dict[str, Any]:
    """What statements under a claim bind."""
    return {"tenant": work.tenant, "ref": work.ref, "attempt": work.attempt}


async def write_entries(
    connection: AsyncConnection[Any], work: IndexWork, made: Sequence[Sequence[IndexEntry]]
) -> bool:
    """Write the entries of each source that is still as it was read. Returns whether the claim was still held; if not,
    nothing is written."""
    await connection.execute("begin")
    held = await _seen(connection, work)
    row = await (await connection.execute(SQL["index_hold"], at_claim(work))).fetchone()
    if row is None:
        await connection.execute("rollback")
        return False
    written = [
        (source, one)
        for source, entries in zip(work.sources, made, strict=True)
        if (source.kind, source.place if source.kind is EntryKind.DIGEST else source.origin) in held
        for one in entries
    ]
    async with connection.pipeline():
        for start in range(0, len(written), _AT_ONCE):
            some = written[start : start + _AT_ONCE]
            nos = integers(range(row[0] + start, row[0] + start + len(some)))
            await connection.execute(SQL["index_entries"], {**at_claim(work), "nos": nos, **_entry_arrays(some)})
            await asyncio.sleep(0)
        # Also for a summary without text: it gets no entry, but replaces the one before as the standing summary.
        summarized = {ref for kind, _, ref, _ in work.seen if kind == EntryKind.DIGEST.value}
        for origin in sorted(summarized):
            await connection.execute(SQL["move_digests"], {"tenant": work.tenant, "ref": origin, "all": False})
            await connection.execute(SQL["index_older_summaries"], {**at_claim(work), "origin": origin})
        if written:
            await connection.execute(SQL["index_grown"], {**at_claim(work), "next_no": row[0] + len(written)})
        await connection.execute("commit")
    return True


async def _seen(connection: AsyncConnection[Any], work: IndexWork) -> set[_SourceRef]:
    """Record that what was read is indexed. This locks its rows, so that nobody removes any of it meanwhile. Returns
    what is still as it was read."""
    seen = sorted((CODES[EntryKind(kind)], EntryKind(kind), *span) for kind, *span in work.seen if kind != VIEW)
    views = {origin: view_start for kind, origin, view_start, _ in work.seen if kind == VIEW}
    conversations = {
        start if kind is EntryKind.DIGEST else origin
        for _, kind, origin, start, _ in seen
        if kind in (EntryKind.MESSAGE, EntryKind.DIGEST)
    }
    facts = {origin: version for _, kind, origin, version, _ in seen if kind is EntryKind.FACT}
    asked: list[tuple[_SourceRef, Any]] = []
    kept = None
    async with connection.pipeline():
        # The order in which units of work lock too: conversations, digests, documents, facts.
        await connection.execute(
            SQL["index_hold_conversations"], {"tenant": work.tenant, "refs": sorted(conversations)}
        )
        for _, kind, origin, start, stop in seen:
            at = {"tenant": work.tenant, "origin": origin, "start": start, "stop": stop}
            match kind:
                case EntryKind.MESSAGE:
                    cursor = await connection.execute(SQL["index_seen_messages"], {**at, "view_start": views[origin]})
                case EntryKind.DIGEST:
                    cursor = await connection.execute(SQL["index_seen_digest"], {**at, "digest": origin})
                case EntryKind.PASSAGE:
                    cursor = await connection.execute(SQL["index_seen_document"], {**at, "document": origin})
                case EntryKind.FACT:
                    continue
            asked.append(((kind, origin), cursor))
        if facts:
            values = {"tenant": work.tenant, "facts": list(facts), "versions": list(facts.values())}
            await connection.execute(SQL["index_hold_facts"], values)
            kept = await connection.execute(SQL["index_seen_facts"], values)
    found = [] if kept is None else await kept.fetchall()
    return {what for what, cursor in asked if cursor.rowcount} | {(EntryKind.FACT, fact) for (fact,) in found}


async def write_vectors(connection: AsyncConnection[Any], work: IndexWork, space: int, vectors: Vectors) -> bool:
    """Write the vectors of entries, and copy the codes of facts to the facts. Returns whether the claim was still held;
    if not, nothing is written."""
    codes = [one.tobytes() for one in codes_of(vectors)]
    halves = [one.tobytes() for one in vectors.astype("<f2")]
    nos = [one.no for one in work.unembedded]
    at = {**at_claim(work), "space": space}
    entries = {**at, "nos": integers(nos)}
    async with connection.pipeline():
        await connection.execute("begin")
        # The order in which units of work lock too: facts, then the scope's row.
        await connection.execute(SQL["index_hold_facts_of"], entries)
        held = await connection.execute(SQL["index_hold"], at_claim(work))
        found = await connection.execute(SQL["index_facts_of"], entries)
    if not await held.fetchone():
        await connection.execute("rollback")
        return False
    coded = dict(zip(nos, codes, strict=True))
    facts = {fact: coded[no] for no, fact in await found.fetchall()}
    async with connection.pipeline():
        for start in range(0, len(nos), _AT_ONCE):
            stop = start + _AT_ONCE
            some = {"nos": integers(nos[start:stop]), "codes": codes[start:stop], "vectors": halves[start:stop]}
            await connection.execute(SQL["index_vectors"], {**at, **some})
            await asyncio.sleep(0)
        if facts:
            some = {"facts": integers(facts), "codes": list(facts.values())}
            await connection.execute(SQL["index_fact_codes"], {**at, **some})
        await connection.execute(SQL["index_embedded"], {**at, "to": work.embedded_to})
        await connection.execute("commit")
    return True


def _entry_arrays(some: Sequence[tuple[Source, IndexEntry]]) -> dict[str, Any]:
    return {
        "kinds": integers([CODES[source.kind] for source, _ in some]),
        "origins": integers([source.origin for source, _ in some]),
        "places": integers([source.place for source, _ in some]),
        "starts": integers([entry.start for _, entry in some]),
        "ends": integers([entry.end for _, entry in some]),
        "lengths": integers([min(entry.terms.length, np.iinfo(np.uint16).max) for _, entry in some]),
        "times": [in_utc(source.said_at) for source, _ in some],
        "offsets": integers([offset_of(source.said_at) for source, _ in some]),
        "authors": [source.author for source, _ in some],
        "hashes": [entry.terms.hashes.astype("<i8").tobytes() for _, entry in some],
        "counts": [entry.terms.counts.tobytes() for _, entry in some],
    }
