"""Helpers of the cases for the search index: writing entries, and reading what is in an index."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from datetime import timedelta

import numpy as np

from hitherto.core.recall.filter import SearchFilter
from hitherto.core.recall.index import Candidate, IndexBlock, IndexEntry, IndexWork, Key, SearchData, Source
from hitherto.core.recall.terms import analyzed, question_terms
from hitherto.core.recall.vectors import Space, Vector, Vectors
from hitherto.store.recall.index import SearchIndex
from hitherto.store.store import Store
from tests.store.samples import HOUR, SCOPE

MINE = SearchFilter(scope=SCOPE)
"""Everything in the suites' scope."""

SPACE = Space("signs", 16)
OTHER_SPACE = Space("other signs", 24)

ENOUGH = 1_000
"""More entries than any test has, except those that say so."""


def term(word: str) -> int:
    """The hash of a word's first term."""
    return int(question_terms(word).words[0])


def vector_of(text: str, space: Space = SPACE) -> Vector:
    """A vector of unit length, the same for the same text."""
    drawn = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(space.dimensions)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def vectors_of(work: IndexWork, space: Space = SPACE) -> Vectors:
    found = [vector_of(one.text, space) for one in work.unembedded]
    return np.array(found, np.float32).reshape(len(found), space.dimensions)


def made(sources: Iterable[Source], *, cut: int | None = None) -> list[list[IndexEntry]]:
    """The entries of these sources, in their order: one each, or passages of `cut` characters."""
    return [_entries(source, cut or max(len(source.text), 1)) for source in sources]


def _entries(source: Source, cut: int) -> list[IndexEntry]:
    ranges = [(start, min(start + cut, len(source.text))) for start in range(0, max(len(source.text), 1), cut)]
    return [
        IndexEntry(start=start, end=end, terms=analyzed(source.text[start:end], author=source.author))
        for start, end in ranges
    ]


async def taken(
    index: SearchIndex, *, space: Space | None = None, lease: timedelta = HOUR, limit: int = ENOUGH
) -> IndexWork:
    """Claim a scope in which there is something to index."""
    work = await index.take(space=space, lease=lease, limit=limit)
    assert work is not None, "something is to be done"
    return work


async def indexed(
    store: Store,
    *,
    space: Space | None = None,
    limit: int = ENOUGH,
    compact_index: bool = True,
    cut: int | None = None,
) -> None:
    """Index all that waits, as an indexing worker does, texts by passages of `cut` characters. Without `compact_index`,
    index one scope and do not compact its index."""
    index = store.index
    for _ in range(ENOUGH):
        work = await index.take(space=space, lease=HOUR, limit=limit)
        if work is None:
            return
        await _index_scope(index, work, space, limit, compact_index=compact_index, cut=cut)
        if not compact_index:
            return
    raise AssertionError("there is no end to what is to be done")


async def _index_scope(
    index: SearchIndex, work: IndexWork, space: Space | None, limit: int, *, compact_index: bool, cut: int | None
) -> None:
    for _ in range(ENOUGH):
        assert await index.add(work, made(work.sources, cut=cut))
        if space is not None and work.unembedded:
            assert await index.embed(work, space, vectors_of(work, space))
        if work.untidy and compact_index:
            assert await index.compact_index(work)
        following = await index.more(work, space=space, lease=HOUR, limit=limit)
        assert following is not None, "the claim holds"
        work = following
        if work.done or (not compact_index and not (work.sources or work.unembedded or work.seen)):
            await index.release(work)
            return
    raise AssertionError("there is no end to what is to be done in a scope")


async def search_data(
    store: Store,
    criteria: SearchFilter = MINE,
    *,
    words: Sequence[str] = (),
    spaces: Sequence[Space] = (),
    limit: int = ENOUGH,
) -> SearchData:
    return await store.index.search_data(criteria, terms=[term(word) for word in words], spaces=spaces, limit=limit)


def keys_of(search_data: SearchData) -> list[Key]:
    """The keys of the entries that are not removed."""
    return [(block.scope, block.first + int(at)) for block in search_data.blocks for at in np.flatnonzero(block.kinds)]


def having(search_data: SearchData, word: str) -> dict[Key, int]:
    """The entries, without removed ones, that have a word, and how often each has it."""
    found: dict[Key, int] = {}
    for block in search_data.blocks:
        offsets, counts = block.postings.get(term(word), ((), ()))
        assert list(offsets) == sorted(set(offsets)), "ascending, each once"
        for at, count in zip(offsets, counts, strict=True):
            if block.kinds[at]:
                found[block.scope, block.first + int(at)] = int(count)
    return found


def block_of(search_data: SearchData, key: Key) -> tuple[IndexBlock, int]:
    """The block that an entry is in, and its place there."""
    (found,) = [
        (block, key[1] - block.first)
        for block in search_data.blocks
        if block.scope == key[0] and 0 <= key[1] - block.first < len(block.kinds)
    ]
    return found


async def candidates(
    store: Store,
    criteria: SearchFilter = MINE,
    *,
    keys: Sequence[Key] | None = None,
    space: Space | None = None,
    around: int = 0,
) -> list[Candidate]:
    """The candidates for `keys`, or for all entries, in the order of their keys."""
    asked = keys_of(await search_data(store, criteria)) if keys is None else keys
    found = await store.index.candidates(criteria, asked, space=space, around=around)
    assert len({one.key for one in found}) == len(found), "each once"
    return sorted(found, key=lambda one: one.key)


async def found(store: Store, criteria: SearchFilter = MINE) -> list[str]:
    """The texts, sorted, of all that a search can find: what has an entry, and what waits for one."""
    there = [one.source for one in await candidates(store, criteria)]
    waiting = list((await search_data(store, criteria)).waiting)
    places = [(one.kind, one.origin, one.place) for one in (*there, *waiting)]
    assert len(set(places)) == len(places), "what has an entry does not wait for one"
    return sorted(one.text for one in (*there, *waiting))


async def waiting(store: Store, criteria: SearchFilter = MINE) -> list[str]:
    """The texts of what waits for an entry, in its order."""
    return [one.text for one in (await search_data(store, criteria)).waiting]
