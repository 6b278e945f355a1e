"""Ranking: what answers a question best, by words, vector similarity, author or role, and neighboring messages, in two
stages.

What is ranked is a source (a message, a digest, …), by the best of its passages. First every passage in the population
gets a rough score from dense arrays. Then the best sources are weighed exactly, together with the messages around them.
A message also counts, at half the weight, as saying what the two messages before it and after it say: people answer in
other words than they were asked in.

The weights are round numbers near a flat optimum for conversations of people (LoCoMo) and of agents (BEAM), chosen by
leaving conversations out; docs/recall.md has the figures, and those of what was tried and not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hitherto.arrays import NDArray, np
from hitherto.core.recall.bm25 import Posting, WordScores, weigh
from hitherto.core.recall.codes import CosineScale, likeness, scale_of
from hitherto.core.recall.terms import QuestionTerms

LIKENESS_WEIGHT = 0.7
"""The weight of a cosine one spread above the floor, in the unit of BM25 (a natural logarithm of rarity)."""

AUTHOR_WEIGHT = 4.0
"""Added to the score of a message whose author the question names."""

ROLE_WEIGHT = 0.7
"""By this part of its own score, a message of the role that most probably said it (`QuestionTerms.role`) counts more,
where messages have no authors' names. Most questions to an agent are about what its user said."""

DAY_WEIGHT = 4.0
"""Added to the score of what was said on a day that the question names."""

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

_COVERED, _KNOWN, _SIZE, _RARE = 3.8, 4.0, 0.33, 1.8
"""The weights of `relevance`, for the first hits of questions about the scope and about another one. A fit alone gives
4.1, 2.5, 0.25 and 2.0, which is as right and tells less of whether the question is about the scope."""

FIRST = 30
"""The number of candidates that the first stage passes on, before their neighbors are added."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FirstStage:
    """The rough scores of a population. `scores` has one for each passage, 0 where nothing matches the question;
    `by_author` says whose author the question names, `by_role` whose role it prefers. `begins` has the first passage of
    each source, ascending."""

    scores: NDArray[np.float32]
    words: WordScores
    by_author: NDArray[np.bool_]
    by_role: NDArray[np.bool_]
    begins: NDArray[np.int64]
    by_day: NDArray[np.bool_]
    """What was said on a day that the question names."""

    names: NDArray[np.bool_]
    """Which of the question's words are authors' names."""

    of_days: NDArray[np.bool_] | None
    """Which of the question's words stand in expressions that name days alone."""

    scale: CosineScale
    telling: bool = True
    """As in `QuestionTerms`."""

    def best(self, most: int = FIRST) -> NDArray[np.int64]:
        """The sources of which a passage scores above 0, best first and at most `most`, each by its first passage. Of
        equal scores, the higher number first."""
        if len(self.begins) == 0:
            return self.begins
        best = np.maximum.reduceat(self.scores, self.begins)
        found = np.flatnonzero(best > 0)
        scores = best[found]
        if len(found) > most:
            floor = np.partition(scores, len(found) - most)[len(found) - most]
            enough = scores >= floor
            found, scores = found[enough], scores[enough]
        return self.begins[found[np.lexsort((-found, -scores))][:most]]


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
    further: NDArray[np.bool_] | None = None,
    codes: NDArray[np.uint8] | None = None,
    coded: NDArray[np.bool_] | None = None,
    vector: NDArray[np.float32] | None = None,
) -> FirstStage:
    """Score every passage once.

    `postings` has those of `terms.hashes` that exist; `lengths`, `within` (what is searched), `further` (what is of the
    same source as the passage before it; None: nothing is), `codes` and `coded` (what has a code) have one value per
    passage. Without `codes` or the question's `vector`, only words, authors and roles count.
    """
    none = (np.zeros(0, np.uint32), np.zeros(0, np.uint8))
    begins = np.arange(len(lengths)) if further is None else np.flatnonzero(~further)
    sources = None if further is None else np.cumsum(~further, dtype=np.int64)
    by_day = _said_on(terms.days, postings, len(lengths), within)
    asked = [postings.get(int(word), none) for word in terms.words]
    if terms.of_days is not None and by_day.any():
        asked = [none if of_day else posting for posting, of_day in zip(asked, terms.of_days, strict=True)]
    words = weigh(asked, lengths, begins=terms.begins, within=within, sources=sources)
    named = authors_named(terms, postings)
    by_author = np.zeros(len(lengths), dtype=np.bool_)
    for name in named:
        by_author[postings[name][0]] = True
    scores = words.scores.copy()
    scale = CosineScale()
    if codes is not None and vector is not None and vector.any():
        alike = likeness(codes, vector)
        wanted = _both(within, coded)
        scale = scale_of(alike if wanted is None else alike[wanted])
        above = np.float32(LIKENESS_WEIGHT) * scale.above(alike)
        scores += above if coded is None else above * coded
    by_role = np.zeros(len(lengths), dtype=np.bool_)
    by_role[postings.get(terms.role, none)[0]] = True
    scores += np.float32(DAY_WEIGHT) * by_day
    scores *= 1 + np.float32(ROLE_WEIGHT) * by_role
    scores += np.float32(AUTHOR_WEIGHT) * by_author
    if within is not None:
        scores *= within
    names = np.array([int(name) in named for name in terms.authors[: len(terms.words)]], dtype=np.bool_)
    if len(names):
        names = np.logical_or.reduceat(names, terms.begins)
    of_days = terms.of_days
    if of_days is not None and len(of_days):
        of_days = np.logical_and.reduceat(of_days, terms.begins)
    return FirstStage(
        scores=scores,
        words=words,
        by_author=by_author,
        by_role=by_role,
        begins=begins,
        by_day=by_day,
        names=names,
        of_days=of_days,
        scale=scale,
        telling=terms.telling,
    )


def _said_on(
    days: Sequence[Sequence[Sequence[int]]],
    postings: Mapping[int, Posting],
    size: int,
    within: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:
    """Which passages were said on the days that are meant: of each expression, those of the first choice on which any
    was said that is `within`."""
    found = np.zeros(size, dtype=np.bool_)
    for choices in days:
        for choice in choices:
            said = np.concatenate([postings[day][0] for day in choice if day in postings] or [np.zeros(0, np.uint32)])
            if len(said) and (within is None or within[said].any()):
                found[said] = True
                break
    return found


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Candidates:
    """What the second stage weighs: sources, in any order, each with its passages.

    For each passage, `numbers` is its place in the population's arrays (negative for one outside of it), `cosine` that
    of its vector and the question's (NaN where it has none), and `source` the number of its source, ascending: sources
    are numbered from 0, and each has a passage. For each source, `asks` is whether its text does (`terms.asks`);
    messages of one conversation have the same number in `conversation` (any number), and `seq` is their place there;
    anything but a message has a number to itself.
    """

    numbers: NDArray[np.int64]
    cosine: NDArray[np.float32]
    source: NDArray[np.int64]
    asks: NDArray[np.bool_]
    conversation: NDArray[np.int64]
    seq: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ranking:
    """The weighed sources: `order` has their numbers, best first; all other arrays but `passages` have one value per
    source.

    `score` decides the order; it is the sum of `words` (BM25) and `likeness` of the best passage, `author` (or role),
    `day`, `asking` (0 or less) and `neighbors`. It can be compared within one question only. `relevance`, from 0 to 1,
    can be compared between questions: see the function `relevance`. `passages` has the sum of words and likeness of
    each passage.
    """

    order: NDArray[np.int64]
    relevance: NDArray[np.float32]
    score: NDArray[np.float32]
    words: NDArray[np.float32]
    likeness: NDArray[np.float32]
    author: NDArray[np.float32]
    day: NDArray[np.float32]
    asking: NDArray[np.float32]
    neighbors: NDArray[np.float32]
    passages: NDArray[np.float32]


def fused(first: FirstStage, candidates: Candidates) -> Ranking:
    """Weigh the candidates. Of equal scores the higher seq comes first, then the higher number.

    Messages lend to each other only if both are candidates.
    """
    by_word = first.words.by_word(candidates.numbers)
    alike = first.scale.above(candidates.cosine)
    passages = by_word.sum(axis=0) + np.float32(LIKENESS_WEIGHT) * alike
    begins = np.flatnonzero(np.diff(candidates.source, prepend=-1))
    best = np.lexsort((-passages, candidates.source))[begins]  # of equal ones the first
    numbers = candidates.numbers[best]
    known = numbers >= 0
    by_author, by_role = np.zeros(len(best), dtype=np.bool_), np.zeros(len(best), dtype=np.bool_)
    by_author[known], by_role[known] = first.by_author[numbers[known]], first.by_role[numbers[known]]
    by_day = np.zeros(len(best), dtype=np.bool_)
    by_day[known] = first.by_day[numbers[known]]
    # What a source says on the whole: each term where it counts most.
    said, alike_most = (
        (np.maximum.reduceat(by_word, begins, axis=1), np.maximum.reduceat(alike, begins))
        if len(begins)
        else (by_word, alike)
    )
    had = said > 0
    had[first.names] |= by_author
    if first.of_days is not None:
        had[first.of_days] |= by_day
    lent_words, lent_had, lent_alike = said.copy(), had.astype(np.float32), np.zeros_like(alike_most)
    for lender, taker, share in _neighbor_shares(candidates):
        # A term that is said twice counts once: where it counts most.
        lent_words[:, taker] = np.maximum(lent_words[:, taker], share * said[:, lender])
        lent_had[:, taker] = np.maximum(lent_had[:, taker], np.float32(_SHARE) * had[:, lender])
        lent_alike[taker] += np.float32(_OF_LIKENESS) * share * alike_most[lender]
    around = lent_words.sum(axis=0) - said.sum(axis=0) + np.float32(LIKENESS_WEIGHT) * lent_alike
    words = by_word[:, best].sum(axis=0)
    alike_part = np.float32(LIKENESS_WEIGHT) * alike[best]
    day = np.float32(DAY_WEIGHT) * by_day
    in_role = np.float32(ROLE_WEIGHT) * by_role * (words + alike_part + day)
    author = np.float32(AUTHOR_WEIGHT) * by_author + in_role
    asking = np.float32(ASKS_WEIGHT) * candidates.asks
    score = words + alike_part + author + day + asking + around
    asked = float(first.words.idf.sum())
    covered = (first.words.idf @ lent_had) / np.float32(asked) if asked > 0 else np.zeros_like(score)
    return Ranking(
        order=np.lexsort((-numbers, -candidates.seq, -score)),
        relevance=relevance(first.words, covered) if first.telling else np.zeros_like(score),
        score=score,
        words=words,
        likeness=alike_part,
        author=author,
        day=day,
        asking=asking,
        neighbors=around,
        passages=passages,
    )


def relevance(words: WordScores, covered: NDArray[np.float32]) -> NDArray[np.float32]:
    """The probability, from 0 to 1, that a passage is evidence: that it helps to answer the question, which may as well
    be about something else than all that is searched.

    A logistic function of how much of the question the passage covers (its words by their rarity, an author's name
    among them; at half where only a neighbor has one), how well the question's words are known in all that is searched
    (1: each is in every text), and the size of that in words: of a long text, more is known by chance. Similarity adds
    nothing that holds from one kind of chat to another. docs/recall.md says what it was fitted to, and how well it
    holds.
    """
    known = 1 - float(words.idf.mean()) / words.strange if len(words.idf) and words.strange > 0 else 0.0
    beside = _KNOWN * known - _SIZE * np.log(max(words.size, 1)) - _RARE
    return (1 / (1 + np.exp(-(_COVERED * covered + beside)))).astype(np.float32)


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
