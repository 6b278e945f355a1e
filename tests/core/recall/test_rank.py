"""Ranking: what its formulas promise, and that it puts what answers a question before what merely has its words."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, log, pi
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitherto.core.recall.bm25 import LENGTH_WEIGHT, SATURATION, Posting, weigh
from hitherto.core.recall.codes import CosineScale, codes_of, likeness, scale_of
from hitherto.core.recall.rank import AROUND, Candidates, FirstStage, Ranking, authors_named, first_stage, fused
from hitherto.core.recall.terms import analyzed, asks, question_terms


@dataclass(frozen=True)
class Corpus:
    """Messages as an index would hold them: (author, text), all of one conversation."""

    messages: tuple[tuple[str | None, str], ...]

    @property
    def postings(self) -> dict[int, Posting]:
        rows: dict[int, list[tuple[int, int]]] = {}
        for number, (author, text) in enumerate(self.messages):
            one = analyzed(text, author=author)
            for term, count in zip(one.hashes.tolist(), one.counts.tolist(), strict=True):
                rows.setdefault(term, []).append((number, count))
        return {
            term: (np.array([n for n, _ in row], np.uint32), np.array([c for _, c in row], np.uint8))
            for term, row in rows.items()
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        return np.array([analyzed(text).length for _, text in self.messages], np.int32)

    def first(self, question: str, *, within: NDArray[np.bool_] | None = None) -> FirstStage:
        return first_stage(question_terms(question), self.postings, self.lengths, within=within)

    def ranked(self, question: str, cosine: NDArray[np.float32] | None = None) -> Ranking:
        count = len(self.messages)
        return fused(
            self.first(question),
            Candidates(
                numbers=np.arange(count),
                cosine=np.full(count, np.nan, np.float32) if cosine is None else cosine,
                source=np.arange(count),
                asks=np.array([asks(text) for _, text in self.messages], np.bool_),
                conversation=np.zeros(count, np.int64),
                seq=np.arange(count),
            ),
        )


def spaced(*messages: tuple[str | None, str]) -> Corpus:
    """With so much of something else between them that none is around another."""
    between = ((None, "Fine."),) * AROUND
    return Corpus(tuple(one for message in messages for one in (message, *between)))


def terms_of(*texts: str) -> tuple[list[Posting], NDArray[np.int32]]:
    corpus = Corpus(tuple((None, text) for text in texts))
    postings = corpus.postings
    question = question_terms("cello lute")
    wanted = question.words[question.begins].tolist()
    none = (np.zeros(0, np.uint32), np.zeros(0, np.uint8))
    return [postings.get(term, none) for term in wanted], corpus.lengths


def test_bm25_is_its_formula() -> None:
    postings, lengths = terms_of("cello cello sister", "cello", "nothing of it here at all", "lute")
    words = weigh(postings, lengths)
    average = (3 + 1 + 6 + 1) / 4
    rarity = log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * 3 / average)
    assert words.idf[0] == pytest.approx(rarity, rel=1e-5)
    assert words.scores[0] == pytest.approx(rarity * 2 / (2 + norm), rel=1e-5)
    assert words.scores[2] == 0


def test_bm25_counts_only_what_is_within() -> None:
    postings, lengths = terms_of("cello", "cello cello", "cello", "red", "blue")
    within = np.array([True, True, False, True, False])
    words = weigh(postings, lengths, within=within)
    alone, fewer = terms_of("cello", "cello cello", "red")
    assert words.scores.tolist() == pytest.approx([*weigh(alone, fewer).scores[:2].tolist(), 0, 0, 0], rel=1e-5)


def test_a_word_counts_by_the_term_that_gives_most() -> None:
    postings, lengths = terms_of("cello lute", "cello", "lute lute", "red")
    apart = weigh(postings, lengths)
    as_one = weigh(postings, lengths, begins=np.array([0]))
    every = np.arange(len(lengths))
    assert as_one.by_word(every).tolist() == [apart.by_word(every).max(axis=0).tolist()]
    assert as_one.scores.tolist() == as_one.by_word(every)[0].tolist()
    assert as_one.idf.tolist() == [apart.idf.min()]


@pytest.mark.parametrize("within", [None, np.zeros(0, np.bool_)])
def test_a_population_of_nobody(within: NDArray[np.bool_] | None) -> None:
    first = first_stage(question_terms("cello"), {}, np.zeros(0, np.int32), within=within)
    assert first.best().tolist() == []
    empty = np.zeros(0, np.int64)
    ranked = fused(
        first,
        Candidates(
            numbers=empty,
            cosine=np.zeros(0, np.float32),
            source=empty,
            asks=np.zeros(0, np.bool_),
            conversation=empty,
            seq=empty,
        ),
    )
    assert ranked.order.tolist() == []


@given(st.lists(st.lists(st.sampled_from(["cello", "lute", "red", "blue"]), max_size=6), max_size=12), st.data())
def test_what_each_term_gives_adds_up_to_the_score(texts: list[list[str]], data: st.DataObject) -> None:
    postings, lengths = terms_of(*map(" ".join, texts))
    words = weigh(postings, lengths)
    numbers = np.array(data.draw(st.lists(st.integers(-2, len(texts) - 1) if texts else st.just(-1))), np.int64)
    given_ = words.by_word(numbers)
    assert given_.shape == (2, len(numbers))
    assert (given_ <= words.idf[:, np.newaxis]).all()
    expected = [float(words.scores[number]) if number >= 0 else 0.0 for number in numbers.tolist()]
    assert given_.sum(axis=0).tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dimensions", [256, 64, 20])
def test_likeness_is_the_angle_between_signs(dimensions: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(50, dimensions)).astype(np.float32)
    codes, question = codes_of(vectors), vectors[7]
    assert codes.shape == (50, -(-dimensions // 8))
    differing = ((vectors > 0) != (question > 0)).sum(axis=1)
    expected = [cos(pi * h / dimensions) for h in differing.tolist()]
    assert likeness(codes, question).tolist() == pytest.approx(expected, abs=1e-6)
    assert likeness(codes, question)[7] == 1
    assert not likeness(codes, np.zeros(dimensions, np.float32)).any()


@pytest.mark.parametrize("dimensions", [256, 384, 1_536, 3_072])
def test_likeness_is_near_the_cosine(dimensions: int) -> None:
    random = np.random.default_rng(2)
    question = random.normal(size=dimensions).astype(np.float32)
    noise = random.normal(size=(400, dimensions))
    vectors = (question * random.uniform(0, 1.5, size=(400, 1)) + noise).astype(np.float32)
    assert codes_of(vectors).shape == (400, 32), "a code of 256 bits, however wide the vectors are"
    cosines = vectors @ question / np.linalg.norm(vectors, axis=1) / np.linalg.norm(question)
    assert np.abs(likeness(codes_of(vectors), question) - cosines).mean() < 0.1


def test_a_scale_makes_embedders_alike() -> None:
    cosines = np.random.default_rng(3).normal(0.05, 0.1, 5_000).astype(np.float32)
    offset = cosines * np.float32(0.3) + np.float32(0.6)
    assert scale_of(offset).above(offset) == pytest.approx(scale_of(cosines).above(cosines), abs=0.3)
    assert scale_of(cosines[:0]) == CosineScale()
    assert scale_of(np.full(5_000, -0.2, np.float32)).floor == 0
    assert scale_of(np.ones(100_000, np.float32)).above(np.ones(1, np.float32)).tolist() == pytest.approx([0], abs=0.2)
    assert CosineScale().above(np.array([np.nan, -1, 0], np.float32)).tolist() == [0, 0, 0]


def test_the_best_come_first_and_of_equals_the_later() -> None:
    corpus = Corpus(((None, "cello lute"), (None, "cello"), (None, "red"), (None, "cello"), (None, "lute cello")))
    first = corpus.first("cello lute")
    assert first.best().tolist() == [4, 0, 3, 1]
    assert first.best(3).tolist() == [4, 0, 3]
    within = np.array([True, True, False, False, False])
    assert corpus.first("cello lute", within=within).best().tolist() == [0, 1]


def of_passages(texts: list[list[str]]) -> tuple[Corpus, NDArray[np.bool_], NDArray[np.int64]]:
    """The passages of several texts, which of them are further ones, and the text that each is of."""
    corpus = Corpus(tuple((None, passage) for text in texts for passage in text))
    further = np.array([at > 0 for text in texts for at in range(len(text))], np.bool_)
    return corpus, further, np.repeat(np.arange(len(texts)), [len(text) for text in texts])


def test_a_text_is_as_good_as_its_best_passage() -> None:
    corpus, further, source = of_passages(
        [["red", "the cello and the lute", "blue"], ["the cello", "the lute"], ["red"]]
    )
    first = first_stage(question_terms("cello lute"), corpus.postings, corpus.lengths, further=further)
    assert first.best().tolist() == [0, 3], "each text once, by its first passage"
    ranked = fused(
        first,
        Candidates(
            numbers=np.arange(6),
            cosine=np.full(6, np.nan, np.float32),
            source=source,
            asks=np.zeros(3, np.bool_),
            conversation=-1 - np.arange(3),
            seq=np.zeros(3, np.int64),
        ),
    )
    assert ranked.order.tolist() == [0, 1, 2]
    assert ranked.words.tolist() == pytest.approx([ranked.passages[1], max(ranked.passages[3:5]), 0])
    assert ranked.passages[:3].argmax() == 1


def test_a_term_is_as_rare_as_the_texts_that_have_it() -> None:
    corpus, further, _ = of_passages([["cello", "cello", "cello"], ["red"], ["blue", "blue"]])
    several = first_stage(question_terms("cello"), corpus.postings, corpus.lengths, further=further).words
    whole = first_stage(question_terms("cello"), *_postings_and_lengths([["cello"], ["red"], ["blue"]])).words
    assert several.idf.tolist() == pytest.approx(whole.idf.tolist())
    assert several.scores[0] == pytest.approx(several.idf[0] / (1 + SATURATION)), "lengths are those of passages"


def _postings_and_lengths(texts: list[list[str]]) -> tuple[dict[int, Posting], NDArray[np.int32]]:
    corpus, _, _ = of_passages(texts)
    return corpus.postings, corpus.lengths


@pytest.mark.parametrize(
    ("question", "preferred"),
    [
        ("Which cello did I buy?", "user"),
        ("Can you tell me about the cello?", "user"),
        ("Which cello did you recommend?", "assistant"),
        ("the cello you told me about", "assistant"),
    ],
)
def test_the_role_that_probably_said_it_comes_first(question: str, preferred: str) -> None:
    roles = ["user", "assistant", "user", "assistant"]
    texts = ["About a cello.", "About a cello.", "Something else.", "Something else."]
    rows: dict[int, list[int]] = {}
    for number, (role, text) in enumerate(zip(roles, texts, strict=True)):
        for term in analyzed(text, role=role).hashes.tolist():
            rows.setdefault(term, []).append(number)
    postings = {term: (np.array(row, np.uint32), np.ones(len(row), np.uint8)) for term, row in rows.items()}
    first = first_stage(question_terms(question), postings, np.full(4, 3, np.int32))
    assert [roles[number] for number in first.best().tolist()][:1] == [preferred]
    assert len(first.best()) == 2, "a role alone makes nothing relevant"


def test_a_message_with_an_author_has_no_role() -> None:
    assert analyzed("Hi", author="Mira", role="user").hashes.tolist() == analyzed("Hi", author="Mira").hashes.tolist()


def test_an_author_who_is_named_comes_first() -> None:
    corpus = spaced(("Mira", "I play the cello"), ("Jan", "I play the cello"), ("Jan", "Mira plays the cello"))
    assert corpus.first("What does Jan play, the cello?").best(1).tolist() != [0]
    ranked = corpus.ranked("When did Mira play the cello?")
    assert ranked.order[0] == 0
    assert (ranked.author > 0).tolist() == [author == "Mira" for author, _ in corpus.messages]
    terms = question_terms("When did Mira play the cello?")
    assert authors_named(terms, corpus.postings) == {int(question_terms("Mira").authors[0])}
    assert authors_named(question_terms("cello"), corpus.postings) == frozenset()


def test_what_does_not_search_by_vectors_goes_by_words() -> None:
    corpus = spaced((None, "the cello"), (None, "the lute"))
    vector = np.ones(16, np.float32)
    codes = codes_of(np.ones((len(corpus.messages), 16), np.float32))
    arguments = (question_terms("cello"), corpus.postings, corpus.lengths)
    blind = first_stage(*arguments)
    for without in (
        first_stage(*arguments, codes=codes),
        first_stage(*arguments, vector=vector),
        first_stage(*arguments, codes=codes, vector=vector * 0),
        first_stage(*arguments, codes=codes, vector=vector, coded=np.zeros(len(codes), np.bool_)),
    ):
        assert without.scores.tolist() == blind.scores.tolist()
    only = codes_of(np.where(np.arange(len(codes))[:, np.newaxis] == AROUND + 1, 1, -np.ones(16)))
    assert set(first_stage(*arguments, codes=only, vector=vector).best().tolist()) == {0, AROUND + 1}


def test_an_answer_has_what_its_question_asked() -> None:
    corpus = Corpus(
        (
            (None, "Where do you keep the spare key of the boathouse?"),
            (None, "Under the third flowerpot."),
            *((None, "Fine."),) * 10,
            (None, "The boathouse."),
        )
    )
    ranked = corpus.ranked("Where is the spare key of the boathouse?")
    assert set(ranked.order[:2].tolist()) == {0, 1}
    assert ranked.neighbors[1] > 0
    assert ranked.words[1] == 0
    assert ranked.asking[0] < 0
    after_no_question = Corpus(((None, corpus.messages[0][1].replace("?", ".")), *corpus.messages[1:]))
    assert after_no_question.ranked("Where is the spare key of the boathouse?").neighbors[1] < ranked.neighbors[1]


def test_what_stands_around_lends_and_nothing_else_does() -> None:
    words = [(None, "Fine.")] * 7
    words[3] = (None, "the cello")
    ranked = Corpus(tuple(words)).ranked("cello")
    assert (ranked.neighbors > 0).tolist() == [0 < abs(place - 3) <= AROUND for place in range(7)]
    apart = Candidates(
        numbers=np.arange(3),
        cosine=np.array([0.9, 0.9, 0.9], np.float32),
        source=np.arange(3),
        asks=np.zeros(3, np.bool_),
        conversation=np.array([0, 1, 0]),
        seq=np.array([0, 1, AROUND + 1]),
    )
    first = Corpus(((None, "the cello"),) * 3).first("cello")
    assert fused(first, apart).neighbors.tolist() == pytest.approx([0, 0, 0])


def test_a_term_said_twice_in_a_row_counts_once() -> None:
    once = Corpus(((None, "the cello"), (None, "Fine."))).ranked("cello")
    twice = Corpus(((None, "the cello"), (None, "the cello"))).ranked("cello")
    assert once.neighbors[0] == pytest.approx(0)
    assert twice.neighbors[0] == pytest.approx(0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["Mira", "Jan", None]), st.sampled_from(["cello", "lute?", "red", "cello and lute"])),
        min_size=1,
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
def test_parts_add_up_and_the_order_of_candidates_does_not_matter(
    messages: list[tuple[str | None, str]], random: Random
) -> None:
    corpus = Corpus(tuple(messages))
    count = len(messages)
    cosine = np.linspace(-0.5, 0.9, count).astype(np.float32)
    ranked = corpus.ranked("Mira's cello lute", cosine)
    parts = ranked.words + ranked.likeness + ranked.author + ranked.asking + ranked.neighbors
    assert parts == pytest.approx(ranked.score, abs=1e-4)
    assert sorted(ranked.order.tolist()) == list(range(count))
    assert (np.diff(ranked.score[ranked.order]) <= 0).all()
    assert ((ranked.relevance > 0) & (ranked.relevance < 1)).all()
    shuffled = list(range(count))
    random.shuffle(shuffled)
    mixed = np.array(shuffled)
    again = fused(
        corpus.first("Mira's cello lute"),
        Candidates(
            numbers=mixed,
            cosine=cosine[mixed],
            source=np.arange(count),
            asks=np.array([asks(messages[n][1]) for n in shuffled], np.bool_),
            conversation=np.zeros(count, np.int64),
            seq=mixed,
        ),
    )
    assert again.score == pytest.approx(ranked.score[mixed], abs=1e-4)
    assert again.relevance == pytest.approx(ranked.relevance[mixed], abs=1e-4)


def test_what_is_not_in_the_population_counts_by_its_vector() -> None:
    first = Corpus(((None, "the cello"),)).first("cello")
    ranked = fused(
        first,
        Candidates(
            numbers=np.array([-1, 0]),
            cosine=np.array([0.9, np.nan], np.float32),
            source=np.arange(2),
            asks=np.zeros(2, np.bool_),
            conversation=np.array([-1, -2]),
            seq=np.zeros(2, np.int64),
        ),
    )
    assert ranked.words.tolist()[0] == 0
    assert ranked.likeness.tolist()[0] > 0
    assert ranked.likeness.tolist()[1] == 0


def test_relevance_tells_what_is_to_the_point_by_itself() -> None:
    corpus = spaced(
        ("Mira", "My sister plays the cello in the orchestra of Ghent"),
        ("Mira", "My sister is here"),
        ("Jan", "The orchestra was late, and the weather in the mountains was fine all week"),
    )
    ranked = corpus.ranked("Where does Mira's sister play the cello?")
    assert ranked.relevance[0] > 0.7
    assert ranked.relevance[0] > ranked.relevance[AROUND + 1] > ranked.relevance[2 * (AROUND + 1)]
    strange = corpus.ranked("Which router did Pieter order for the boathouse?")
    assert strange.relevance.max() < 0.1
