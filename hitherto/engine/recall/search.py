"""The two stages of a search: a rough score for every entry, then an exact one for the best sources."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TypeAlias, cast

from hitherto.arrays import NDArray, np
from hitherto.core.log.message import Role
from hitherto.core.recall import rank
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.filter import CODES, FURTHER, EntryKind, SearchFilter
from hitherto.core.recall.index import (
    Candidate,
    IndexBlock,
    IndexedPassage,
    IndexEntry,
    Key,
    MessagePlace,
    SearchData,
    Source,
    keeps,
    with_neighbors,
)
from hitherto.core.recall.passages import CharRange, passage_ranges
from hitherto.core.recall.terms import QuestionTerms, analyzed, asks, telling_words
from hitherto.core.recall.vectors import Vector, Vectors

Numbers: TypeAlias = "NDArray[np.int64]"
"""Places in a population."""


def entries_of(source: Source, passages: Sequence[CharRange]) -> list[IndexEntry]:
    """The entries of a source in an index: one for each of its passages."""
    who, day = (source.author, source.role), source.said_at.date()
    return [
        IndexEntry(start=start, end=end, terms=analyzed(source.text[start:end], author=who[0], role=who[1], day=day))
        for start, end in passages
    ]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WaitingSource:
    """A source without an entry, with the passages of its text, and their vectors if these are known."""

    source: Source
    passages: tuple[CharRange, ...]
    vectors: Vectors | None = None


def cut_waiting(sources: Sequence[Source]) -> list[WaitingSource]:
    """The sources with their passages, without vectors."""
    return [WaitingSource(source=one, passages=passage_ranges(one.text)) for one in sources]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Population:
    """All that is searched, in columns: the blocks of the index one after another, then the sources without an entry.

    `within` marks what passes the filter, as far as columns tell. `codes` are None where nothing has one.
    """

    blocks: tuple[IndexBlock, ...]
    begins: tuple[int, ...]
    waiting: dict[int, WaitingSource]
    """Sources without an entry, by the place of their first passage."""

    indexed: int
    """The number of indexed entries: the places from here on are passages of sources without an entry."""

    lengths: NDArray[np.int32]
    further: NDArray[np.bool_]
    within: NDArray[np.bool_]
    postings: dict[int, tuple[NDArray[np.uint32], NDArray[np.uint8]]]
    codes: NDArray[np.uint8] | None
    coded: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """How many sources are searched."""
        return int(np.count_nonzero(self.within & ~self.further))

    def candidate(self, number: int) -> Candidate:
        """The source without an entry whose first passage is at this place, as a candidate. Its passages have their
        places in the population as numbers."""
        one = self.waiting[number]
        return Candidate(
            scope=_WAITING,
            source=one.source,
            passages=tuple(
                IndexedPassage(
                    no=number + at, start=start, end=end, vector=None if one.vectors is None else one.vectors[at]
                )
                for at, (start, end) in enumerate(one.passages)
            ),
        )

    def keys(self, numbers: Numbers) -> list[Key]:
        """The entries at these places; sources without an entry are left out."""
        found: list[Key] = []
        for number in numbers[numbers < self.indexed].tolist():
            at = bisect_right(self.begins, number) - 1
            block = self.blocks[at]
            found.append((block.scope, block.first + number - self.begins[at]))
        return found

    def numbers(self, keys: Sequence[Key]) -> Numbers:
        """The places of entries; -1 for one that is in no block. Passages of `candidate` have theirs already."""
        by_scope: dict[int, list[tuple[int, int]]] = {}
        for at, block in enumerate(self.blocks):
            by_scope.setdefault(block.scope, []).append((block.first, at))
        for firsts in by_scope.values():
            firsts.sort()
        found: list[int] = []
        for scope, no in keys:
            if scope == _WAITING:
                found.append(no)
                continue
            firsts = by_scope.get(scope, [])
            which = bisect_right(firsts, (no, len(self.blocks))) - 1
            if which < 0 or no - firsts[which][0] >= len(self.blocks[firsts[which][1]].lengths):
                found.append(-1)
            else:
                found.append(self.begins[firsts[which][1]] + no - firsts[which][0])
        return np.array(found, dtype=np.int64)


_WAITING = -1
"""The scope in the keys of sources without an entry; none has this number."""


def population(
    search_data: SearchData, criteria: SearchFilter, terms: Sequence[int], waiting: Sequence[WaitingSource]
) -> Population:
    """The population of `search_data` within the filter, with the postings of `terms`; `waiting` are its sources
    without an entry."""
    blocks = search_data.blocks
    begins = tuple(accumulate((len(block.lengths) for block in blocks), initial=0))
    indexed = begins[-1]
    kept = [one for one in waiting if keeps(one.source, criteria)]
    entries = [entry for one in kept for entry in entries_of(one.source, one.passages)]
    starts = [indexed, *accumulate((len(one.passages) for one in kept), initial=indexed)][1:]
    further = np.ones(len(entries), np.bool_)
    further[[at - indexed for at in starts[:-1]]] = False
    lengths = [
        *(block.lengths.astype(np.int32) for block in blocks),
        np.array([one.terms.length for one in entries], np.int32),
    ]
    within = [*(_within(block, criteria, search_data) for block in blocks), np.ones(len(entries), np.bool_)]
    postings: dict[int, tuple[NDArray[np.uint32], NDArray[np.uint8]]] = {}
    for term in terms:
        documents: list[NDArray[np.uint32]] = []
        counts: list[NDArray[np.uint8]] = []
        for block, begin in zip(blocks, begins, strict=False):
            if term in block.postings:
                offsets, times = block.postings[term]
                documents.append(offsets.astype(np.uint32) + np.uint32(begin))
                counts.append(times)
        for at, one in enumerate(entries, indexed):
            place = int(np.searchsorted(one.terms.hashes, term))
            if place < len(one.terms.hashes) and one.terms.hashes[place] == term:
                documents.append(np.array([at], np.uint32))
                counts.append(one.terms.counts[place : place + 1])
        postings[term] = (
            np.concatenate(documents) if documents else np.zeros(0, np.uint32),
            np.concatenate(counts) if counts else np.zeros(0, np.uint8),
        )
    codes, coded = _codes(blocks, kept)
    return Population(
        blocks=blocks,
        begins=begins[:-1],
        waiting=dict(zip(starts, kept, strict=False)),
        indexed=indexed,
        lengths=np.concatenate(lengths),
        further=np.concatenate([*(block.kinds >= FURTHER for block in blocks), further]),
        within=np.concatenate(within),
        postings=postings,
        codes=codes,
        coded=coded,
    )


def _codes(
    blocks: Sequence[IndexBlock], waiting: Sequence[WaitingSource]
) -> tuple[NDArray[np.uint8] | None, NDArray[np.bool_]]:
    """The codes of all, zeros where there are none, and which of them have one."""
    made = [None if one.vectors is None else codes_of(one.vectors) for one in waiting]
    columns = [(block.codes, block.coded, len(block.lengths)) for block in blocks]
    columns += [(codes, None, len(one.passages)) for codes, one in zip(made, waiting, strict=True)]
    width = next((codes.shape[1] for codes, _, _ in columns if codes is not None), 0)
    flags = [
        np.full(size, codes is not None, np.bool_) if coded is None else coded[:size] for codes, coded, size in columns
    ]
    coded = np.concatenate([np.zeros(0, np.bool_), *flags])
    if not width:
        return None, coded
    filled = [np.zeros((size, width), np.uint8) if codes is None else codes for codes, _, size in columns]
    return np.concatenate(filled), coded


def _within(block: IndexBlock, criteria: SearchFilter, search_data: SearchData) -> NDArray[np.bool_]:
    """Which entries of a block pass the filter, as far as its columns tell. All are checked again as candidates."""
    kinds = block.kinds % FURTHER
    if criteria.kinds == frozenset(EntryKind):
        mask = kinds > 0
    else:
        wanted = np.zeros(FURTHER, np.bool_)
        wanted[[CODES[kind] for kind in criteria.kinds]] = True
        mask = wanted[kinds]
    if not criteria.needs_origin_columns and not search_data.unseen:
        return mask
    assert block.origins is not None, "it was asked for"
    assert block.places is not None, "it was asked for"
    assert block.times is not None, "it was asked for"
    # The origin of a passage or a fact is not a conversation.
    of_no_conversation = (kinds == CODES[EntryKind.PASSAGE]) | (kinds == CODES[EntryKind.FACT])
    if criteria.conversation is not None:
        mask = mask & (of_no_conversation | (block.origins == search_data.refs.get(criteria.conversation, -1)))
    if criteria.exclude_conversation is not None and criteria.exclude_conversation in search_data.refs:
        mask = mask & (of_no_conversation | (block.origins != search_data.refs[criteria.exclude_conversation]))
    if search_data.about is not None:
        mask = mask & (of_no_conversation | np.isin(block.origins, search_data.about))
    for kind, starts in search_data.unseen.items():
        origins = np.array(sorted(starts), np.int64)
        firsts = np.array([starts[origin] for origin in origins.tolist()], np.int64)
        at = np.minimum(np.searchsorted(origins, block.origins), len(origins) - 1)
        mask = mask & ~((kinds == CODES[kind]) & (origins[at] == block.origins) & (block.places >= firsts[at]))
    message = kinds == CODES[EntryKind.MESSAGE]
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
    """A candidate with its scores: see `rank.Ranking`. `passages` are those of a long text that match, best first."""

    candidate: Candidate
    relevance: float
    score: float
    words: float
    likeness: float | None
    author: float
    day: float
    asking: float
    neighbors: float
    passages: tuple[CharRange, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Search:
    """One question after the first stage: `best` are the sources that go on to the second stage, each by the place of
    its first passage, `keys` the entries among these."""

    population: Population
    first: rank.FirstStage
    best: Numbers
    vector: Vector | None
    terms: QuestionTerms

    @property
    def keys(self) -> list[Key]:
        return self.population.keys(self.best)

    @property
    def waiting(self) -> dict[int, Source]:
        """Those of `best` that have no entry."""
        waiting = self.population.waiting
        return {number: waiting[number].source for number in self.best.tolist() if number in waiting}

    @property
    def waiting_messages(self) -> set[MessagePlace]:
        return {(one.origin, one.place) for one in self.waiting.values() if one.kind is EntryKind.MESSAGE}

    def weighed(self, candidates: Sequence[Candidate], *, most: int, min_score: float) -> list[RankedCandidate]:
        """The second stage: the `most` best of the candidates and of the sources without an entry, the best first, all
        with a relevance of at least `min_score`. Messages around a candidate add to its score, and may be hits
        themselves. A message that tells nothing, such as "Got it.", is none, unless it has a word of the question, the
        message before it asks something, or the question names nothing but the day on which it was said."""
        among = self.population
        every = [*candidates]
        if among.waiting:  # some may have got an entry meanwhile
            waiting = {_name(one.source) for one in among.waiting.values()}
            every = [one for one in candidates if _name(one.source) not in waiting]
            every += map(among.candidate, among.waiting)
            keys = [*self.keys, *((_WAITING, number) for number in self.waiting)]
            every = with_neighbors(every, keys, around=rank.AROUND)
        if not every:
            return []
        passages = [passage for one in every for passage in one.passages]
        source = np.repeat(np.arange(len(every)), [len(one.passages) for one in every])
        cosine = np.full(len(passages), np.nan, np.float32)
        embedded = [at for at, one in enumerate(passages) if one.vector is not None]
        if self.vector is not None and embedded:
            cosine[embedded] = np.stack([one.vector for one in passages if one.vector is not None]) @ self.vector
        message = np.array([one.source.kind is EntryKind.MESSAGE for one in every])
        asking = np.array([asks(one.source.text) for one in every])
        # What is no message has a conversation to itself.
        by_itself = -1 - np.arange(len(every))
        ranked = rank.fused(
            self.first,
            rank.Candidates(
                numbers=among.numbers([(one.scope, entry.no) for one in every for entry in one.passages]),
                cosine=cosine,
                source=source,
                asks=asking,
                conversation=np.where(message, np.array([one.source.origin for one in every], np.int64), by_itself),
                seq=np.array([one.source.place for one in every], np.int64),
            ),
        )
        begins = [0, *accumulate([len(one.passages) for one in every])]
        asked = {(every[at].source.origin, every[at].source.place) for at in np.flatnonzero(message & asking).tolist()}
        whole_day = not self.terms.beside_days
        hits = (
            at
            for at in cast(list[int], ranked.order[ranked.relevance[ranked.order] >= min_score].tolist())
            if ranked.words[at] > 0 or (whole_day and ranked.day[at] > 0) or self._tells(every[at].source, asked)
        )
        return [
            RankedCandidate(
                candidate=every[at],
                relevance=float(ranked.relevance[at]),
                score=float(ranked.score[at]),
                words=float(ranked.words[at]),
                likeness=None if np.isnan(cosine[begins[at] : begins[at + 1]]).all() else float(ranked.likeness[at]),
                author=float(ranked.author[at]),
                day=float(ranked.day[at]),
                asking=float(ranked.asking[at]) + 0.0,  # never -0.0
                neighbors=float(ranked.neighbors[at]),
                passages=_best_first(every[at], ranked.passages[begins[at] : begins[at + 1]]),
            )
            for at in islice(hits, most)
        ]

    def _tells(self, source: Source, asked: Container[tuple[int, int]]) -> bool:
        """Whether it has a telling word, answers a message that is `asked` (origin and place), or is no message. One
        such word of an assistant that asks nothing is courtesy ("Noted!"), unless the question is about what it said.
        """
        if source.kind is not EntryKind.MESSAGE or (source.origin, source.place - 1) in asked:
            return True
        courteous = source.role == Role.ASSISTANT and source.author is None and not self.terms.of_assistant
        least = 2 if courteous and (source.origin, source.place) not in asked else 1
        return telling_words(source.text, most=least) == least


def _name(source: Source) -> tuple[EntryKind, int, int]:
    return (source.kind, source.origin, source.place)


def _best_first(candidate: Candidate, scores: NDArray[np.float32]) -> tuple[CharRange, ...]:
    """Of a candidate with several passages those that match, at least half as well as its best: the best first, of
    equal ones the first."""
    if len(candidate.passages) == 1:
        return ()
    order = cast(list[int], np.argsort(-scores, kind="stable").tolist())
    best = float(scores.max())
    return tuple(
        (candidate.passages[at].start, candidate.passages[at].end) for at in order if float(scores[at]) >= best / 2
    )


def search(among: Population, terms: QuestionTerms, vector: Vector | None, *, most: int) -> Search:
    """The first stage: a rough score for every entry, by words, codes, author and role, and the best `most` sources."""
    first = rank.first_stage(
        terms,
        among.postings,
        among.lengths,
        within=among.within,
        further=among.further,
        codes=among.codes,
        coded=among.coded,
        vector=vector,
    )
    return Search(population=among, first=first, best=first.best(most), vector=vector, terms=terms)
