"""Ranking: what answers a question best, by words, vector similarity, author and neighboring messages, in two stages.

First everything in the population gets a rough score from dense arrays. Then the best of it is weighed exactly,
together with the messages around it. A message also counts, at half the weight, as saying what the two messages before
it and after it say: people answer in other words than they were asked in.

The weights are round numbers near a flat optimum, chosen by leaving out one conversation of LoCoMo at a time;
docs/recall.md has the figures, and those of what was tried and not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitherto.core.recall.bm25 import Posting, TermScores, weigh
from hitherto.core.recall.codes import CosineScale, likeness, scale_of
from hitherto.core.recall.terms import QuestionTerms

LIKENESS_WEIGHT = 0.7
"""The weight of a cosine one spread above the floor, in the unit of BM25 (a natural logarithm of rarity)."""

AUTHOR_WEIGHT = 4.0
"""Added to the score of a message whose author the question names."""

ASKS_WEIGHT = -0.5
"""Added to the score of a message that asks something itself: answers are wanted."""

AROUND = 2
"""Messages at most this far apart, in seq, lend score to each other. Those this close to a candidate should be
candidates too."""

_SHARE = 0.5
_AFTER_A_QUESTION = 0.4
"""Added to the share that a message takes from the one before it if that one asks: it may be the answer."""

_OF_LIKENESS = 0.5
"""A factor for lent similarity. It adds up over neighbors, while a word counts once, so each lends less."""

FIRST = 30
"""The number of candidates that the first stage passes on, before their neighbors are added."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FirstStage:
    """The rough scores of a population. `scores` has one for each document, 0 where nothing matches the question;
    `by_author` says whose author the question names."""

    scores: NDArray[np.float32]
    words: TermScores
    by_author: NDArray[np.bool_]
    names: NDArray[np.bool_]
    """Which of the question's words are authors' names."""

    scale: CosineScale
    telling: bool = True
    """As in `QuestionTerms`."""

    def best(self, most: int = FIRST, *, within: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The documents that score above 0, best first: at most `most`, and only those `within`. Of equal scores, the
        higher number first."""
        found = np.flatnonzero(self.scores > 0 if within is None else (self.scores > 0) & within)
        scores = self.scores[found]
        if len(found) > most:
            floor = np.partition(scores, len(found) - most)[len(found) - most]
            enough = scores >= floor
            found, scores = found[enough], scores[enough]
        return found[np.lexsort((-found, -scores))][:most]


def authors_named(terms: QuestionTerms, postings: Mapping[int, Posting]) -> frozenset[int]:
    """Those of `terms.authors` who are the author of a document. `terms.topic` needs them before the question is
    embedded."""
    return frozenset(int(name) for name in terms.authors if int(name) in postings and len(postings[int(name)][0]))


def first_stage(
    terms: QuestionTerms,
    postings: Mapping[int, Posting],
    lengths: NDArray[np.integer],
    *,
    within: NDArray[np.bool_] | None = None,
    codes: NDArray[np.uint8] | None = None,
    coded: NDArray[np.bool_] | None = None,
    vector: NDArray[np.float32] | None = None,
) -> FirstStage:
    """Score everything once.

    `postings` has those of `terms.hashes` that exist; `lengths`, `within` (what is searched), `codes` and `coded` (what
    has a code) have one value per document. Without `codes` or the question's `vector`, only words and authors count.
    """
    none = (np.zeros(0, np.uint32), np.zeros(0, np.uint8))
    words = weigh([postings.get(int(word), none) for word in terms.words], lengths, within=within)
    named = authors_named(terms, postings)
    by_author = np.zeros(len(lengths), dtype=np.bool_)
    for name in named:
        by_author[postings[name][0]] = True
    scores = words.scores + np.float32(AUTHOR_WEIGHT) * by_author
    scale = CosineScale()
    if codes is not None and vector is not None and vector.any():
        alike = likeness(codes, vector)
        wanted = _both(within, coded)
        scale = scale_of(alike if wanted is None else alike[wanted])
        above = np.float32(LIKENESS_WEIGHT) * scale.above(alike)
        scores += above if coded is None else above * coded
    if within is not None:
        scores *= within
    names = np.array([int(name) in named for name in terms.authors[: len(terms.words)]], dtype=np.bool_)
    return FirstStage(scores=scores, words=words, by_author=by_author, names=names, scale=scale, telling=terms.telling)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidates:
    """What the second stage weighs: arrays with one value per candidate, in any order.

    `numbers` are their places in the population's arrays, negative for a candidate outside of it. `cosine` is that of
    its vector and the question's, NaN where it has none; `asks` whether its text does (`terms.asks`). Messages of one
    conversation have the same number in `conversation` (any number), and `seq` is their place there; anything but a
    message has a number to itself.
    """

    numbers: NDArray[np.int64]
    cosine: NDArray[np.float32]
    asks: NDArray[np.bool_]
    conversation: NDArray[np.int64]
    seq: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ranking:
    """The weighed candidates: `order` has their indices, best first; all other arrays have one value per candidate.

    `score` decides the order; it is the sum of `words` (BM25), `likeness`, `author`, `asking` (0 or less) and
    `neighbors`. It can be compared within one question only. `relevance`, from 0 to 1, can be compared between
    questions: see the function `relevance`.
    """

    order: NDArray[np.int64]
    relevance: NDArray[np.float32]
    score: NDArray[np.float32]
    words: NDArray[np.float32]
    likeness: NDArray[np.float32]
    author: NDArray[np.float32]
    asking: NDArray[np.float32]
    neighbors: NDArray[np.float32]


def fused(first: FirstStage, candidates: Candidates) -> Ranking:
    """Weigh the candidates. Of equal scores the higher seq comes first, then the higher number.

    Messages lend to each other only if both are candidates.
    """
    by_term = first.words.by_term(candidates.numbers)
    alike = first.scale.above(candidates.cosine)
    known = candidates.numbers >= 0
    by_author = np.zeros(len(known), dtype=np.bool_)
    by_author[known] = first.by_author[candidates.numbers[known]]
    had = by_term > 0
    had[first.names] |= by_author
    lent_words, lent_had, lent_alike = by_term.copy(), had.astype(np.float32), np.zeros_like(alike)
    for lender, taker, share in _neighbor_shares(candidates):
        # A term that is said twice counts once: where it counts most.
        lent_words[:, taker] = np.maximum(lent_words[:, taker], share * by_term[:, lender])
        lent_had[:, taker] = np.maximum(lent_had[:, taker], np.float32(_SHARE) * had[:, lender])
        lent_alike[taker] += np.float32(_OF_LIKENESS) * share * alike[lender]
    words = by_term.sum(axis=0)
    around = lent_words.sum(axis=0) - words + np.float32(LIKENESS_WEIGHT) * lent_alike
    alike_part = np.float32(LIKENESS_WEIGHT) * alike
    author = np.float32(AUTHOR_WEIGHT) * by_author
    asking = np.float32(ASKS_WEIGHT) * candidates.asks
    score = words + alike_part + author + asking + around
    asked = float(first.words.idf.sum())
    covered = np.zeros_like(score)
    if asked > 0 and first.telling:  # sharing "thanks" means nothing
        covered = (first.words.idf @ lent_had) / np.float32(asked)
    return Ranking(
        order=np.lexsort((-candidates.numbers, -candidates.seq, -score)),
        relevance=relevance(covered, alike, lent_alike),
        score=score,
        words=words,
        likeness=alike_part,
        author=author,
        asking=asking,
        neighbors=around,
    )


def relevance(
    covered: NDArray[np.float32], alike: NDArray[np.float32], around: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The probability, from 0 to 1, that a passage is relevant, if relevant ones were as common as others.

    A logistic function of three things: how much of the question it covers (its terms by their rarity, an author's name
    among them; at half where only a neighbor has one), how far its similarity is above the usual, and how much
    similarity its neighbors lend it. It was fitted to tell LoCoMo's evidence from the ten best for questions about
    another conversation and from the rest of the ten best. At 0.7, 53 % of the evidence passes, 22 % of what is found
    beside it (which is often relevant as well), and 2 % of the best answers to questions about another conversation.
    """
    return (1 / (1 + np.exp(2.6 - 5.0 * covered - 0.15 * alike - 0.25 * around))).astype(np.float32)


def _neighbor_shares(candidates: Candidates) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    """Which messages lend score to which: indices of lenders and takers, and the lenders' shares. No taker occurs twice
    in one entry of the list."""
    by_place = np.lexsort((candidates.seq, candidates.conversation))
    conversation, seq = candidates.conversation[by_place], candidates.seq[by_place]
    loans: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = []
    # Sorted by place, the message at seq + d stands at most d rows further.
    for rows_apart in range(1, AROUND + 1):
        away = seq[rows_apart:] - seq[:-rows_apart]
        near = np.flatnonzero((conversation[rows_apart:] == conversation[:-rows_apart]) & (away > 0) & (away <= AROUND))
        earlier, later = by_place[near], by_place[near + rows_apart]
        share = np.full(len(near), _SHARE, dtype=np.float32)
        loans.append((later, earlier, share))
        answers = (away[near] == 1) & candidates.asks[earlier]
        loans.append((earlier, later, share + np.float32(_AFTER_A_QUESTION) * answers))
    return loans


def _both(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
