"""The search index: reading for a search, and indexing a scope under a claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, LiteralString, TypeVar

import numpy as np
from psycopg import AsyncConnection

from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.recall.index import (
    Candidate,
    IndexBacklog,
    IndexEntry,
    IndexWork,
    Key,
    MessagePlace,
    Relative,
    SearchData,
    Source,
    Unembedded,
    matching,
)
from hitherto.core.recall.vectors import Space, Vectors
from hitherto.errors import StoreError
from hitherto.store.connections.part import Part
from hitherto.store.connections.pool import Connections
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.recall import search
from hitherto.store.recall.entries import VIEW, at_claim, write_entries, write_vectors
from hitherto.store.recall.search import SEGMENT
from hitherto.store.recall.segments import pack, pack_codes
from hitherto.store.sql import SQL

_T = TypeVar("_T")

_NOBODY = ("", "", "")
"""Sorts before the names of all scopes."""

_SCOPES_PER_LOOK = 20
"""How many scopes with work are read at once, to find one that nobody has claimed."""


class SearchIndex(Part):
    """The search index of a store. All methods raise what `Store` says.

    What belongs to another tenant, to another user, or (without `SearchFilter.all_agents`) to another agent is never
    found, counted or named.
    """

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._spaces: dict[Space, int] = {}
        self._after = _NOBODY
        """The scope that was claimed last: the search for the next one begins after it, so that each gets its turn."""

    async def search_data(
        self, criteria: SearchFilter, *, terms: Sequence[int], spaces: Sequence[Space], limit: int
    ) -> SearchData:
        """The data of the first stage, in one round trip: blocks with the postings of `terms` and the codes of the
        first of `spaces` in which every entry has a vector, else of the one in which most have. At most `limit` sources
        without an entry."""
        values: dict[str, Any] = {
            **search.filter_values(criteria),
            **search.space_values(spaces),
            "terms": list(terms),
            "told": criteria.needs_origin_columns,
            "limit": limit,
            "ids": list(criteria.names),
            "subject": criteria.subject,
        }
        queries: list[LiteralString] = [
            *(SQL["search_segments"], SQL["search_postings"], SQL["search_tail"], SQL["search_codes"]),
            *(SQL["search_waiting"], SQL["search_due"], SQL["search_unseen"]),
            *([SQL["search_refs"], SQL["search_copies"]] if criteria.names else []),
            *([] if criteria.subject is None else [SQL["search_about"]]),
        ]

        async def read(connection: AsyncConnection[Any]) -> list[list[Any]]:
            # One snapshot, so that what is packed meanwhile is neither missed nor there twice.
            async with connection.pipeline():
                await connection.execute("begin isolation level repeatable read read only")
                asked = [await connection.execute(query, values, binary=True) for query in queries]
                await connection.execute("commit")
            return [await cursor.fetchall() for cursor in asked]

        async with self._with_connection(read) as (segments, postings, tails, codes, waiting, due, unseen, *beside):
            pass
        about = None if criteria.subject is None else tuple([ref for (ref,) in beside.pop()])
        found = None
        if codes:
            number, name, dimensions = codes[0][:3]
            found = Space(name, dimensions)
            self._spaces.setdefault(found, number)
        named, copies = beside or ([], [])
        relatives = search.relatives_from(named, copies)
        blocks = search.blocks_from(terms, segments, postings, tails, codes)
        return SearchData(
            blocks=tuple(search.of_relatives(block, relatives) for block in blocks),
            waiting=tuple(
                search.without_relatives(
                    (
                        search.message_from(row[1:], row[0]) if row[0] is not None else search.source_from(row[1:])
                        for row in reversed(waiting)
                    ),
                    relatives,
                )
            ),
            space=found,
            entries=sum(int(np.count_nonzero(block.kinds)) for block in blocks),
            embedded=sum(
                int(np.count_nonzero(block.coded & (block.kinds > 0))) for block in blocks if block.coded is not None
            ),
            refs={name: ref for name, ref, *_ in named},
            relatives=relatives,
            about=about,
            unseen=search.unseen_from(unseen),
            due=due[0][0],
        )

    async def candidates(
        self,
        criteria: SearchFilter,
        keys: Sequence[Key],
        *,
        space: Space | None,
        around: int,
        beside: Collection[MessagePlace] = (),
        relatives: Mapping[int, Relative] = {},
    ) -> list[Candidate]:
        """The sources of the entries `keys` that still exist and pass the filter, and the messages at most `around`
        seqs from the messages among them and from those at `beside`, each once, in no order. Nothing that was erased,
        retracted, cleared or superseded, or that rests on expired messages (see `Store`), is among them, whatever the
        index still has. What `relatives` have together with a conversation is that one's, if it shows it."""
        values = {
            **search.filter_values(criteria),
            "scopes": [scope for scope, _ in keys],
            "nos": [no for _, no in keys],
            # None for a space that no search has found yet: to ask for its id would create it, which is a write.
            "space": None if space is None else self._spaces.get(space),
            "around": around,
            "origins": [origin for origin, _ in beside],
            "places": [place for _, place in beside],
            "relatives": list(relatives),
            "throughs": [one.through for one in relatives.values()],
            "owns": [one.own for one in relatives.values()],
            "digests": [digest for one in relatives.values() for digest in one.digests],
            "copies": [copy for one in relatives.values() for copy in one.digests.values()],
        }
        rows = await self._all(SQL["search_candidates"], values, binary=True) if keys or beside else []
        return matching(search.candidates_from(rows), criteria, keys, around=around, beside=beside)

    async def take(
        self, *, space: Space | None, lease: timedelta, limit: int, tenant: str | None = None
    ) -> IndexWork | None:
        """Claim, for `lease`, the scope of any tenant, or of this one, whose work has waited longest (vectors count in
        `space`); None where there is no work. At most `limit` sources and entries."""
        number = None if space is None else await self._space(space)
        begun = after = self._after if tenant is None else (tenant, "", "")
        while True:
            beyond = _scope_values(after)
            beyond["after_tenant"] = beyond.pop("tenant")  # no tenant's statement: it looks at all of them
            values = {"space": number, "limit": _SCOPES_PER_LOOK, **beyond}
            due = [one for one in await self._all(SQL["index_due"], values, binary=True) if tenant in (None, one[0])]
            for whose, user, agent in due:
                name = {**_scope_values((whose, user, agent)), "lease": lease}
                claimed = await self._claim(name)
                if claimed is not None:
                    if tenant is None:
                        self._after = (whose, user, agent)
                    work = IndexWork(tenant=whose, user=user, agent=agent, ref=claimed[0], attempt=claimed[1])
                    try:
                        return await self._filled(work, number, limit)
                    except BaseException:
                        with suppress(StoreError):  # else the claim ends by itself
                            await self.release(work)
                        raise
            if due:  # others have claimed all of these
                after = tuple(due[-1])
            elif tenant is not None:
                return None
            elif begun == _NOBODY:
                self._after = _NOBODY
                return None
            else:
                begun = after = _NOBODY  # once more from the beginning

    async def _claim(self, values: dict[str, Any]) -> tuple[int, int] | None:
        async def claim(connection: AsyncConnection[Any]) -> tuple[int, int] | None:
            async with connection.pipeline():
                await connection.execute(SQL["index_scope"], values)
                claimed = await connection.execute(SQL["index_claim"], values)
            return await claimed.fetchone()

        async with self._with_connection(claim) as found:
            return found

    async def more(self, work: IndexWork, *, space: Space | None, lease: timedelta, limit: int) -> IndexWork | None:
        """Renew the claim, and get the next batch; None when the claim is lost."""
        number = None if space is None else await self._space(space)
        held = await self.prolong(work, lease=lease)
        blank = IndexWork(tenant=work.tenant, user=work.user, agent=work.agent, ref=work.ref, attempt=work.attempt)
        return await self._filled(blank, number, limit) if held else None

    async def prolong(self, work: IndexWork, *, lease: timedelta) -> bool:
        """Renew the claim for `lease` from now; returns whether it still held."""
        return bool(await self._all(SQL["index_prolong"], {**at_claim(work), "lease": lease}, binary=True))

    async def _filled(self, work: IndexWork, space: int | None, limit: int) -> IndexWork:
        """The claim with the next sources and entries to work on."""
        values = {**at_claim(work), "space": space, "limit": limit, "size": SEGMENT}

        async def read(connection: AsyncConnection[Any]) -> list[list[Any]]:
            allow_long_work(connection)
            async with connection.pipeline():
                if space is not None:
                    await connection.execute(SQL["index_fill"], values)
                asked = [
                    await connection.execute(query, values)
                    for query in (
                        SQL["index_messages"],
                        SQL["index_digests"],
                        SQL["index_passages"],
                        SQL["index_facts"],
                        SQL["index_unembedded"],
                        SQL["index_untidy"],
                    )
                ]
                if space is not None:
                    await connection.execute(SQL["index_caught_up"], values)
            return [await cursor.fetchall() for cursor in asked]

        async with self._with_connection(read) as (messages, digests, passages, facts, unembedded, untidy):
            pass
        sources: list[Source] = []
        seen: dict[tuple[str, int], tuple[int, int]] = {}
        # What a relative gets an entry for in this batch waits for the next one: if that one has its entry then, it is
        # seen without one, else it gets one itself.
        kept, waits = set[tuple[int, int]](), set[int]()
        for relatives, start, view_start, payload, *row in messages:
            has_text = bool(row[3] and not row[3].isspace())
            if has_text and any((ref, row[2]) in kept for ref in relatives or ()):
                waits.add(row[1])
            if row[1] in waits:
                continue
            seen[EntryKind.MESSAGE.value, row[1]] = (start, row[2] + 1)
            seen[VIEW, row[1]] = (view_start, 0)
            if has_text:
                kept.add((row[1], row[2]))
                sources.append(search.message_from(row, payload))
        written = set[int]()
        for copies, reads, *row in digests:
            has_text = bool(row[3] and not row[3].isspace())
            if has_text and not written.isdisjoint(copies or ()):
                continue
            seen[EntryKind.DIGEST.value, row[2]] = (row[1], reads)
            if has_text:
                written.add(row[2])
                sources.append(search.source_from(row))
        for row in passages:
            seen[EntryKind.PASSAGE.value, row[1]] = (0, 0)
            if row[3] is not None:
                sources.append(search.source_from(row))
        for version, *row in facts:
            seen[EntryKind.FACT.value, row[1]] = (version, 0)
            sources.append(search.source_from(row))
        return replace(
            work,
            sources=tuple(sources),
            seen=tuple((kind, origin, *span) for (kind, origin), span in seen.items()),
            unembedded=tuple(Unembedded(no=no, text=text or "") for no, text in unembedded),
            embedded_to=unembedded[-1][0] + 1 if unembedded else 0,
            untidy=bool(untidy and untidy[0][0]),
        )

    async def add(self, work: IndexWork, entries: Sequence[Sequence[IndexEntry]]) -> bool:
        """Write the entries of each source of `work` (at least one each), in their order, and remember that they are
        indexed; sources that no longer exist, or have entries already, get none. Returns whether the claim still held;
        if not, nothing is written."""
        assert len(entries) == len(work.sources), "entries for each source"

        async def write(connection: AsyncConnection[Any]) -> bool:
            allow_long_work(connection)
            return await write_entries(connection, work, entries)

        async with self._with_connection(write) as held:
            return held

    async def embed(self, work: IndexWork, space: Space, vectors: Vectors) -> bool:
        """Write the vectors of `work.unembedded`, in their order. Returns whether the claim still held."""
        assert len(vectors) == len(work.unembedded), "a vector for each entry"
        number = await self._space(space)

        async def write(connection: AsyncConnection[Any]) -> bool:
            allow_long_work(connection)
            return await write_vectors(connection, work, number, vectors)

        async with self._with_connection(write) as held:
            return held

    async def compact_index(self, work: IndexWork) -> bool:
        """Compact the scope's index where it has grown or entries have gone. Returns whether the claim still held."""

        async def write(connection: AsyncConnection[Any]) -> bool | None:
            """Pack or rebuild one segment. Returns whether there is more to do; None if the claim is lost."""
            allow_long_work(connection)
            await connection.execute("begin")
            row = await (await connection.execute(SQL["index_hold"], at_claim(work))).fetchone()
            if row is None:
                await connection.execute("rollback")
                return None
            await pack(connection, at_claim(work), next_no=row[0], packed=row[1])
            await pack_codes(connection, at_claim(work))
            left = await (await connection.execute(SQL["index_untidy"], {**at_claim(work), "size": SEGMENT})).fetchone()
            await connection.execute("commit")
            return left is not None and left[0]

        more: bool | None = True
        while more:  # one transaction per segment: whoever deletes entries waits for no more than one
            async with self._with_connection(write) as more:
                pass
        return more is not None

    async def release(self, work: IndexWork) -> None:
        """Give the claim back."""

        async def give_back(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["index_release"], at_claim(work))

        async with self._with_connection(give_back):
            pass

    async def backlog(self, space: Space | None, *, tenant: str | None = None) -> IndexBacklog:
        """The current backlog of all tenants or of one, vectors in `space`."""
        name, dimensions = (None, None) if space is None else (space.name, space.dimensions)
        values = {"name": name, "dimensions": dimensions, "tenant": tenant}
        ((waiting, unembedded, untidy),) = await self._all(SQL["index_backlog"], values, binary=True)
        return IndexBacklog(waiting=waiting, unembedded=unembedded, untidy=untidy)

    async def _space(self, space: Space) -> int:
        """The id of a space. A space that is new is to be filled with vectors in every scope from now on."""
        if space not in self._spaces:
            values = {"name": space.name, "dimensions": space.dimensions}

            async def begin(connection: AsyncConnection[Any]) -> int:
                allow_long_work(connection)
                row = await (await connection.execute(SQL["index_space"], values)).fetchone()
                if row is None:  # another transaction has just created it
                    row = await (await connection.execute(SQL["index_space"], values)).fetchone()
                assert row is not None, "a space has a number once it was asked for"
                in_space = {"space": row[0]}
                for (tenant,) in await (await connection.execute(SQL["tenants_without_vectors"], in_space)).fetchall():
                    await connection.execute(SQL["index_begin_filling"], {**in_space, "tenant": tenant})
                return int(row[0])

            async with self._with_connection(begin) as number:
                self._spaces[space] = number
        return self._spaces[space]


def _scope_values(name: tuple[str, str, str]) -> dict[str, Any]:
    tenant, user, agent = name
    return {"tenant": tenant, "user": user, "agent": agent}
