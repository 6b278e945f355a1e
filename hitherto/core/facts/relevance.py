"""Which facts bear most on a text: for the facts that a context shows, and those that a model is shown when it extracts
new ones."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.arrays import NDArray, np
from hitherto.core.recall import rank
from hitherto.core.recall.bm25 import Posting
from hitherto.core.recall.terms import QuestionTerms


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FactColumns:
    """What the relevance of facts is computed from, in columns of one length.

    `terms` and `counts` are those of all contents, one after another (`core.recall.terms.analyzed`): `sizes` says how
    many of them belong to each fact, `lengths` how many terms its content has in all. `codes` are those of the facts'
    vectors (`core.recall.codes.codes_of`), and `coded` says which have one; both None where none has.
    """

    ids: NDArray[np.int64]
    sizes: NDArray[np.int32]
    lengths: NDArray[np.int32]
    terms: NDArray[np.int64]
    counts: NDArray[np.uint8]
    codes: NDArray[np.uint8] | None = None
    coded: NDArray[np.bool_] | None = None


def relevance_of(columns: FactColumns, terms: QuestionTerms, vector: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """How much each fact bears on a question, 0 where it does not: by its words and, given its `vector` and codes of
    the facts, by similarity, weighed as a recall weighs them (`core.recall.rank`)."""
    found = rank.first_stage(
        terms,
        _postings(columns, terms),
        columns.lengths,
        codes=None if vector is None else columns.codes,
        coded=columns.coded,
        vector=vector,
    )
    return found.scores


def most_relevant_first(ids: NDArray[np.int64], relevance: NDArray[np.float32]) -> NDArray[np.int64]:
    """The places of all facts, the most relevant first; of equals, the newest first."""
    return np.lexsort((-ids, -relevance))


def _postings(columns: FactColumns, terms: QuestionTerms) -> dict[int, Posting]:
    asked = np.sort(terms.words)
    if not len(asked) or not len(columns.terms):
        return {}
    at = np.minimum(np.searchsorted(asked, columns.terms), len(asked) - 1)
    hits = np.flatnonzero(asked[at] == columns.terms)
    facts = np.repeat(np.arange(len(columns.ids), dtype=np.uint32), columns.sizes)[hits]
    said, counts = columns.terms[hits], columns.counts[hits]
    return {int(term): (facts[said == term], counts[said == term]) for term in asked}
