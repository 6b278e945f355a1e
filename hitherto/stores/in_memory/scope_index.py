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
from hitherto.core.recall.filter import CODES, EntryKind, SearchFilter
from hitherto.core.recall.terms import TermCounts
from hitherto.core.scope import Scope
from hitherto.ports.embedder import Space, Vector
from hitherto.ports.recall import OF_NO_AGENT, IndexBlock
from hitherto.stores.in_memory.sources import SearchableText, SourceKey

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
    """An entry of the index. `text` is a hash of the text it was made of, which tells whether that was rewritten.
    `time` is in seconds of the epoch, `length` in terms."""

    place: SourceKey
    text: int
    time: float
    length: int
    terms: tuple[int, ...]


@dataclass
class ScopeIndex:
    """The index of the scope with the number `ref`. `postings` are by term, then by entry. `taken` is larger the later
    the scope was last claimed."""

    ref: int
    owner: Owner
    next_no: int = 0
    attempt: int = 0
    taken: int = 0
    claimed_until: datetime | None = None
    by_no: dict[int, Entry] = field(default_factory=dict[int, Entry])
    by_place: dict[SourceKey, int] = field(default_factory=dict[SourceKey, int])
    postings: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    vectors: dict[Space, dict[int, Vector]] = field(default_factory=dict[Space, dict[int, Vector]])
    _columns: dict[tuple[int, Space | None, bool], IndexBlock] = field(default_factory=dict[Any, IndexBlock])
    """A cache of blocks without postings, emptied at each change."""

    def add(self, place: SourceKey, text: str, time: float, made: TermCounts) -> None:
        self._columns.clear()
        no, self.next_no = self.next_no, self.next_no + 1
        terms: tuple[int, ...] = tuple(made.hashes.tolist())
        self.by_no[no], self.by_place[place] = Entry(place, hash(text), time, made.length, terms), no
        for term, count in zip(terms, made.counts.tolist(), strict=True):
            self.postings.setdefault(term, {})[no] = count

    def sweep(self, findable: Mapping[SourceKey, SearchableText]) -> None:
        """Remove each entry whose source is not in `findable`, or has another text there."""
        for no, entry in list(self.by_no.items()):
            found = findable.get(entry.place)
            if found is None or hash(found.text) != entry.text:
                self._remove(no, entry)

    def embed(self, no: int, space: Space, vector: Vector) -> None:
        """Keep the vector of the entry `no`, if it is still there."""
        if no in self.by_no:
            self._columns.clear()
            self.vectors.setdefault(space, {})[no] = vector

    def _remove(self, no: int, entry: Entry) -> None:
        self._columns.clear()
        del self.by_no[no], self.by_place[entry.place]
        for term in entry.terms:
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
            kinds=np.array([0 if one is _NOTHING else CODES[one.place.kind] for one in found], np.uint8),
            postings={},
            origins=np.array([one.place.origin for one in found], np.int64) if told else None,
            places=np.array([one.place.place for one in found], np.int64) if told else None,
            times=np.array([one.time for one in found], np.float64) if told else None,
            codes=None if space is None else _codes(space, [vectors.get(no) for no in nos]),
            coded=None if space is None else np.array([no in vectors for no in nos], np.bool_),
        )

    def _postings(self, term: int, nos: range) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
        having = self.postings.get(term, {})
        found = sorted(no for no in having if no in nos)
        return np.array([no - nos.start for no in found], np.uint16), np.array([having[no] for no in found], np.uint8)


def _codes(space: Space, vectors: Sequence[Vector | None]) -> NDArray[np.uint8]:
    nothing = np.zeros(space.dimensions, np.float32)
    return codes_of(np.stack([nothing if vector is None else vector for vector in vectors]))


_LONGEST = 2**16 - 1
_NOTHING = Entry(SourceKey(EntryKind.MESSAGE, 0, 0), 0, 0.0, 0, ())
