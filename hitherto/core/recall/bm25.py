"""Lexical scores: BM25 over a population of documents, with term statistics computed at query time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from hitherto.arrays import NDArray, np

SATURATION = 0.9
"""BM25's k1: how soon repeating a term stops to count."""

LENGTH_WEIGHT = 0.4
"""BM25's b: how much a long text has to say more to count the same."""

Posting: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.uint8]]"
"""The documents that have a term (numbers that index the population's arrays, ascending, each once) and how often each
has it."""


@dataclass(frozen=True, slots=True, eq=False)
class WordScores:
    """The scores of a question's words in a population.

    `scores` has the BM25 score of every document, 0 where nothing matches and outside the population. `idf` has the
    weight (IDF) of each word, in their order: that of its most common term; `strange` is that of a word that no text
    has. `size` counts the words of the population.
    """

    scores: NDArray[np.float32]
    idf: NDArray[np.float32]
    strange: float
    size: int
    _postings: Sequence[Posting]
    _norms: NDArray[np.float32]
    _begins: NDArray[np.int64]
    _idf: NDArray[np.float32]

    def by_word(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The score that each word (row) gives each of these documents (column); 0 for a negative number (no
        document)."""
        given = np.zeros((len(self._postings), len(numbers)), dtype=np.float32)
        for row, rarity, (documents, times) in zip(given, self._idf, self._postings, strict=True):
            if len(documents) == 0:
                continue
            places = np.searchsorted(documents, numbers)
            places[places == len(documents)] = 0
            found = documents[places] == numbers
            often = times[places[found]].astype(np.float32)
            row[found] = rarity * often / (often + self._norms[numbers[found]])
        return np.maximum.reduceat(given, self._begins, axis=0) if len(given) else given


def weigh(
    postings: Sequence[Posting],
    lengths: NDArray[np.integer],
    *,
    begins: NDArray[np.int64] | None = None,
    within: NDArray[np.bool_] | None = None,
    sources: NDArray[np.integer] | None = None,
) -> WordScores:
    """Score every document for the words of a question.

    `postings` has an entry per term (an empty one where no document has it); `begins` says where the terms of each word
    begin: a word counts by the term that gives most. Without it, each term is a word. `lengths` (in words), `within`
    and `sources` have one per document. Only documents `within` count: frequencies and the average length are taken
    from them alone. The formula is Robertson's as Lucene has it: a term that n of N texts have is worth ln(1 + (N - n +
    0.5) / (n + 0.5)), and gives a document that much times its saturated frequency, which is below 1. `sources` has
    numbers, ascending, of the texts that documents are passages of; without it, each document is a text.
    """
    scores = np.zeros(len(lengths), dtype=np.float32)
    idf = np.zeros(len(postings), dtype=np.float32)
    begins = np.arange(len(postings)) if begins is None else begins
    counted = np.arange(len(lengths)) if within is None else np.flatnonzero(within)
    population = _texts(counted, sources)
    size = int(lengths[counted].sum(dtype=np.int64))
    average = max(size / max(len(counted), 1), 1.0)
    norms = lengths * np.float32(SATURATION * LENGTH_WEIGHT / average) + np.float32(SATURATION * (1 - LENGTH_WEIGHT))
    for begin, end in pairwise([*begins.tolist(), len(postings)]):
        best = np.zeros_like(scores) if end > begin + 1 else scores
        for term, (documents, times) in enumerate(postings[begin:end], begin):
            if within is None:
                found, often = documents, times.astype(np.float32)
            else:
                here = within[documents]
                found, often = documents[here], times[here].astype(np.float32)
            having = _texts(found, sources)
            idf[term] = _rarity(population, having)
            gains = idf[term] * often / (often + norms[found])
            best[found] = best[found] + gains if best is scores else np.maximum(best[found], gains)
        if best is not scores:
            scores += best
    rarity = np.minimum.reduceat(idf, begins) if len(begins) else idf
    return WordScores(scores, rarity, _rarity(population, 0), size, postings, norms, begins, idf)


def _rarity(population: int, having: int) -> float:
    return float(np.log1p((population - having + 0.5) / (having + 0.5)))


def _texts(documents: NDArray[np.integer], sources: NDArray[np.integer] | None) -> int:
    """How many texts these documents (ascending) are of."""
    if sources is None or len(documents) == 0:
        return len(documents)
    return 1 + int(np.count_nonzero(np.diff(sources[documents])))
