"""The two stages of a search: a rough score for every entry, then an exact one for the best of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hitherto.core.recall import rank
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.filter import CODES, EntryKind, SearchFilter
from hitherto.core.recall.terms import QuestionTerms, analyzed, asks
from hitherto.ports.embedder import Vector, Vectors
from hitherto.ports.recall import Candidate, IndexBlock, Key, SearchData, Source, keeps

Numbers = NDArray[np.int64]
"""Places in a population."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Population:
    """All that is searched, in columns: the blocks of the index one after another, then the sources without an entry.

    `within` marks what passes the filter, as far as columns tell. `codes` are None where nothing has one.
    """

    blocks: tuple[IndexBlock, ...]
    begins: tuple[int, ...]
    waiting: tuple[Source, ...]
    lengths: NDArray[np.int32]
    within: NDArray[np.bool_]
    postings: dict[int, tuple[NDArray[np.uint32], NDArray[np.uint8]]]
    codes: NDArray[np.uint8] | None
    coded: NDArray[np.bool_]
    vectors: Vectors | None

    @property
    def size(self) -> int:
        """How many entries are searched."""
        return int(np.count_nonzero(self.within))

    @property
    def indexed(self) -> int:
        """The number of indexed entries: the places from here on are sources without an entry."""
        return len(self.lengths) - len(self.waiting)

    def candidate(self, number: int) -> Candidate:
        """The source without an entry at this place, as a candidate."""
        at = number - self.indexed
        vector = None if self.vectors is None else self.vectors[at]
        return Candidate(key=(-1, -1), source=self.waiting[at], vector=vector)

    def keys(self, numbers: Numbers) -> list[Key]:
        """The entries at these places; sources without an entry are left out."""
        found: list[Key] = []
        for number in numbers[numbers < self.indexed].tolist():
            at = bisect_right(self.begins, number) - 1
            block = self.blocks[at]
            found.append((block.scope, block.first + number - self.begins[at]))
        return found

    def numbers(self, keys: Sequence[Key]) -> Numbers:
        """The places of entries; -1 for one that is in no block."""
        by_scope: dict[int, list[tuple[int, int]]] = {}
        for at, block in enumerate(self.blocks):
            by_scope.setdefault(block.scope, []).append((block.first, at))
        for firsts in by_scope.values():
            firsts.sort()
        found: list[int] = []
        for scope, no in keys:
            firsts = by_scope.get(scope, [])
            which = bisect_right(firsts, (no, len(self.blocks))) - 1
            if which < 0 or no - firsts[which][0] >= len(self.blocks[firsts[which][1]].lengths):
                found.append(-1)
            else:
                found.append(self.begins[firsts[which][1]] + no - firsts[which][0])
        return np.array(found, dtype=np.int64)


def population(
    search_data: SearchData, criteria: SearchFilter, terms: Sequence[int], *, waiting: Vectors | None = None
) -> Population:
    """The population of `search_data` within the filter, with the postings of `terms`; `waiting` are the vectors of the
    sources without an entry, if these are known."""
    blocks, vectors = search_data.blocks, waiting
    begins = tuple(accumulate((len(block.lengths) for block in blocks), initial=0))
    kept = [at for at, source in enumerate(search_data.waiting) if keeps(source, criteria)]
    waiting_ones = tuple(search_data.waiting[at] for at in kept)
    vectors = None if vectors is None else vectors[kept]
    entries = [analyzed(source.text, author=source.author) for source in waiting_ones]
    lengths = [
        *(block.lengths.astype(np.int32) for block in blocks),
        *(np.array([one.length], np.int32) for one in entries),
    ]
    within = [*(_within(block, criteria, search_data) for block in blocks), np.ones(len(waiting_ones), np.bool_)]
    postings: dict[int, tuple[NDArray[np.uint32], NDArray[np.uint8]]] = {}
    for term in terms:
        documents: list[NDArray[np.uint32]] = []
        counts: list[NDArray[np.uint8]] = []
        for block, begin in zip(blocks, begins, strict=False):
            if term in block.postings:
                offsets, times = block.postings[term]
                documents.append(offsets.astype(np.uint32) + np.uint32(begin))
                counts.append(times)
        for at, one in enumerate(entries):
            place = int(np.searchsorted(one.hashes, term))
            if place < len(one.hashes) and one.hashes[place] == term:
                documents.append(np.array([begins[-1] + at], np.uint32))
                counts.append(one.counts[place : place + 1])
        postings[term] = (
            np.concatenate(documents) if documents else np.zeros(0, np.uint32),
            np.concatenate(counts) if counts else np.zeros(0, np.uint8),
        )
    codes, coded = _codes(blocks, len(waiting_ones), vectors)
    return Population(
        blocks=blocks,
        begins=begins[:-1],
        waiting=waiting_ones,
        vectors=vectors,
        lengths=np.concatenate(lengths) if lengths else np.zeros(0, np.int32),
        within=np.concatenate(within),
        postings=postings,
        codes=codes,
        coded=coded,
    )


def _codes(
    blocks: Sequence[IndexBlock], waiting: int, vectors: Vectors | None
) -> tuple[NDArray[np.uint8] | None, NDArray[np.bool_]]:
    """The codes of all, zeros where there are none, and which of them have one."""
    of_waiting = None if vectors is None or not waiting else codes_of(vectors)
    widths = [block.codes.shape[1] for block in blocks if block.codes is not None]
    width = next(iter(widths), 0 if of_waiting is None else of_waiting.shape[1])
    coded = [
        np.zeros(len(block.lengths), np.bool_) if block.coded is None else block.coded[: len(block.lengths)]
        for block in blocks
    ]
    flags = np.concatenate([*coded, np.full(waiting, of_waiting is not None, np.bool_)])
    if not width:
        return None, flags
    columns = [
        np.zeros((len(block.lengths), width), np.uint8) if block.codes is None else block.codes for block in blocks
    ]
    return np.concatenate([*columns, np.zeros((waiting, width), np.uint8) if of_waiting is None else of_waiting]), flags


def _within(block: IndexBlock, criteria: SearchFilter, search_data: SearchData) -> NDArray[np.bool_]:
    """Which entries of a block pass the filter, as far as its columns tell. All but messages are checked again as
    candidates."""
    if criteria.kinds == frozenset(EntryKind):
        mask = block.kinds > 0
    else:
        mask = np.isin(block.kinds, [CODES[kind] for kind in criteria.kinds])
    if not criteria.needs_origin_columns:
        return mask
    assert block.origins is not None, "it was asked for"
    assert block.places is not None, "it was asked for"
    assert block.times is not None, "it was asked for"
    # The origin of a passage or a fact is not a conversation.
    apart = (block.kinds == CODES[EntryKind.PASSAGE]) | (block.kinds == CODES[EntryKind.FACT])
    if criteria.conversation is not None:
        mask = mask & (apart | (block.origins == search_data.refs.get(criteria.conversation, -1)))
    if criteria.exclude_conversation is not None and criteria.exclude_conversation in search_data.refs:
        mask = mask & (apart | (block.origins != search_data.refs[criteria.exclude_conversation]))
    if search_data.about is not None:
        mask = mask & (apart | np.isin(block.origins, search_data.about))
    message = block.kinds == CODES[EntryKind.MESSAGE]
    if criteria.as_of is not None:
        mask = mask & (~message | (block.places <= criteria.as_of))
    for name, start in criteria.hidden.items():
        if name in search_data.refs:
            mask = mask & ~(message & (block.origins == search_data.refs[name]) & (block.places >= start))
    if criteria.after is not None:
        mask = mask & (block.times >= criteria.after.timestamp())
    if criteria.before is not None:
        mask = mask & (block.times <= criteria.before.timestamp())
    return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A candidate with its scores: see `rank.Ranking`."""

    candidate: Candidate
    relevance: float
    score: float
    words: float
    likeness: float | None
    author: float
    asking: float
    neighbors: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Search:
    """One question after the first stage: `best` are the places of what goes on to the second stage, `keys` the entries
    among it."""

    population: Population
    first: rank.FirstStage
    best: Numbers
    vector: Vector | None

    @property
    def keys(self) -> list[Key]:
        return self.population.keys(self.best)

    def weighed(self, candidates: Sequence[Candidate], *, most: int, min_score: float) -> list[RankedCandidate]:
        """The second stage: the `most` best of the candidates and of the sources without an entry, the best first, all
        with a relevance of at least `min_score`. Messages around a candidate add to its score, and may be hits
        themselves."""
        among = self.population
        waiting: list[int] = [number for number in self.best.tolist() if number >= among.indexed]
        every: list[Candidate] = [
            *candidates,
            *(among.candidate(number) for number in waiting),
        ]
        if not every:
            return []
        numbers = np.concatenate([among.numbers([one.key for one in candidates]), np.array(waiting, np.int64)])
        cosine = np.full(len(every), np.nan, np.float32)
        embedded = [at for at, one in enumerate(every) if one.vector is not None]
        if self.vector is not None and embedded:
            cosine[embedded] = np.stack([one.vector for one in every if one.vector is not None]) @ self.vector
        message = np.array([one.source.kind is EntryKind.MESSAGE for one in every])
        # What is no message has a conversation to itself.
        alone = -1 - np.arange(len(every))
        ranked = rank.fused(
            self.first,
            rank.Candidates(
                numbers=numbers,
                cosine=cosine,
                asks=np.array([asks(one.source.text) for one in every]),
                conversation=np.where(message, np.array([one.source.origin for one in every], np.int64), alone),
                seq=np.array([one.source.place for one in every], np.int64),
            ),
        )
        return [
            RankedCandidate(
                candidate=every[at],
                relevance=float(ranked.relevance[at]),
                score=float(ranked.score[at]),
                words=float(ranked.words[at]),
                likeness=None if np.isnan(cosine[at]) else float(ranked.likeness[at]),
                author=float(ranked.author[at]),
                asking=float(ranked.asking[at]) + 0.0,  # never -0.0
                neighbors=float(ranked.neighbors[at]),
            )
            for at in cast(list[int], ranked.order[ranked.relevance[ranked.order] >= min_score][:most].tolist())
        ]


def search(among: Population, terms: QuestionTerms, vector: Vector | None, *, most: int) -> Search:
    """The first stage: a rough score for every entry, by words, codes and author, and the best `most` of them."""
    first = rank.first_stage(
        terms,
        among.postings,
        among.lengths,
        within=among.within,
        codes=among.codes,
        coded=among.coded,
        vector=vector,
    )
    return Search(population=among, first=first, best=first.best(most, within=among.within), vector=vector)
