"""The search index of one scope in memory: its entries, their postings and vectors, and the claim of the worker that
indexes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.filter import CODES, FURTHER, EntryKind, SearchFilter
from hitherto.core.scope import Scope
from hitherto.ports.models.embedder import Space, Vector
from hitherto.ports.recall import OF_NO_AGENT, IndexBlock, IndexEntry
from hitherto.stores.in_memory.recall.sources import SearchableText, SourceKey

_IN_BLOCK = 2**16
"""Entries of a block: offsets in it have 16 bits."""


class Owner(NamedTuple):
    """The scope that an index belongs to; the agent may be `OF_NO_AGENT`."""

    tenant: str
    user: str
    agent: str

    @staticmethod
    def of(scope: Scope) -> Owner:
        return Owner(scope.tenant, scope.user, scope.agent)

    @property
    def scope(self) -> Scope:
        """The same as a `Scope`. Raises InvalidScope for `OF_NO_AGENT`."""
        return Scope(tenant=self.tenant, user=self.user, agent=self.agent)

    def within(self, criteria: SearchFilter) -> bool:
        """Whether a search with this filter may read the index. Every search is checked here."""
        asked = Owner.of(criteria.scope)
        agents = criteria.all_agents or self.agent in (asked.agent, OF_NO_AGENT)
        return self[:2] == asked[:2] and agents


class Entry(NamedTuple):
    """An entry of the index: the passage from `start` to `end` of a source's text. `text` is a hash of that text, which
    tells whether it was rewritten. `time` is in seconds of the epoch, `length` in terms."""

    place: SourceKey
    text: int
    time: float
    start: int
    end: int
    length: int
    terms: tuple[int, ...]


@dataclass
class ScopeIndex:
    """The index of the scope with the number `ref`. `by_place` has the entries of each source; `postings` are by term,
    then by entry. `taken` is larger the later the scope was last claimed."""

    ref: int
    owner: Owner
    next_no: int = 0
    attempt: int = 0
    taken: int = 0
    claimed_until: datetime | None = None
    by_no: dict[int, Entry] = field(default_factory=dict[int, Entry])
    by_place: dict[SourceKey, range] = field(default_factory=dict[SourceKey, range])
    postings: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    vectors: dict[Space, dict[int, Vector]] = field(default_factory=dict[Space, dict[int, Vector]])
    _columns: dict[tuple[int, Space | None, bool], IndexBlock] = field(default_factory=dict[Any, IndexBlock])
    """A cache of blocks without postings, emptied at each change."""

    def add(self, place: SourceKey, text: str, time: float, passages: Sequence[IndexEntry]) -> None:
        self._columns.clear()
        self.by_place[place] = range(self.next_no, self.next_no + len(passages))
        for no, one in zip(self.by_place[place], passages, strict=True):
            terms: tuple[int, ...] = tuple(one.terms.hashes.tolist())
            self.by_no[no] = Entry(place, hash(text), time, one.start, one.end, one.terms.length, terms)
            for term, count in zip(terms, one.terms.counts.tolist(), strict=True):
                self.postings.setdefault(term, {})[no] = count
        self.next_no = self.by_place[place].stop

    def sweep(self, findable: Mapping[SourceKey, SearchableText]) -> None:
        """Remove the entries of each source that is not in `findable`, or has another text there."""
        for place, entries in list(self.by_place.items()):
            found = findable.get(place)
            if found is None or hash(found.text) != self.by_no[entries.start].text:
                self._remove(place, entries)

    def embed(self, no: int, space: Space, vector: Vector) -> None:
        """Keep the vector of the entry `no`, if it is still there."""
        if no in self.by_no:
            self._columns.clear()
            self.vectors.setdefault(space, {})[no] = vector

    def _remove(self, place: SourceKey, entries: range) -> None:
        self._columns.clear()
        del self.by_place[place]
        for no in entries:
            for term in self.by_no.pop(no).terms:
                del self.postings[term][no]
                if not self.postings[term]:
                    del self.postings[term]
            for vectors in self.vectors.values():
                vectors.pop(no, None)

    def unembedded(self, space: Space) -> list[int]:
        """The entries without a vector in the space, ascending."""
        return sorted(self.by_no.keys() - self.vectors.get(space, {}).keys())

    def embedded(self, space: Space) -> int:
        return len(self.vectors.get(space, {}))

    def blocks(self, terms: Sequence[int], space: Space | None, *, told: bool) -> Iterator[IndexBlock]:
        """All entries, with the postings of `terms`; with origins, places and times if `told`."""
        for first in range(0, self.next_no, _IN_BLOCK):
            nos = range(first, min(first + _IN_BLOCK, self.next_no))
            if (key := (first, space, told)) not in self._columns:
                self._columns[key] = self._block(nos, space, told=told)
            yield replace(self._columns[key], postings={term: self._postings(term, nos) for term in terms})

    def _block(self, nos: range, space: Space | None, *, told: bool) -> IndexBlock:
        """A block without postings."""
        found = [self.by_no.get(no, _NOTHING) for no in nos]
        vectors = {} if space is None else self.vectors.get(space, {})
        return IndexBlock(
            scope=self.ref,
            first=nos.start,
            lengths=np.array([min(one.length, _LONGEST) for one in found], np.uint16),
            kinds=np.array([self._kind(no) for no in nos], np.uint8),
            postings={},
            origins=np.array([one.place.origin for one in found], np.int64) if told else None,
            places=np.array([one.place.place for one in found], np.int64) if told else None,
            times=np.array([one.time for one in found], np.float64) if told else None,
            codes=None if space is None else _codes(space, [vectors.get(no) for no in nos]),
            coded=None if space is None else np.array([no in vectors for no in nos], np.bool_),
        )

    def _kind(self, no: int) -> int:
        if no not in self.by_no:
            return 0
        place = self.by_no[no].place
        return CODES[place.kind] + (FURTHER if no > self.by_place[place].start else 0)

    def _postings(self, term: int, nos: range) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        having = self.postings.get(term, {})
        found = sorted(no for no in having if no in nos)
        return np.array([no - nos.start for no in found], np.uint16), np.array([having[no] for no in found], np.uint8)


def _codes(space: Space, vectors: Sequence[Vector | None]) -> NDArray[np.uint8]:
    nothing = np.zeros(space.dimensions, np.float32)
    return codes_of(np.stack([nothing if vector is None else vector for vector in vectors]))


_LONGEST = 2**16 - 1
_NOTHING = Entry(SourceKey(EntryKind.MESSAGE, 0, 0), 0, 0.0, 0, 0, 0, ())
