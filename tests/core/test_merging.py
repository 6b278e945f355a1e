"""What becomes of statements: new, said again, or a change. The rules, and what holds whatever is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.core.comparisons import Comparisons
from hitherto.core.digest import Ranges
from hitherto.core.fact import Extracted, KnownFact, Learnt, Repeated, strengthened
from hitherto.core.merging import BEARING, bearing, merged
from hitherto.core.repetition import Verdict, compared, fingerprint_of_fact, statement
from tests.core.fact_pairs import labelled_pairs

CITY = "current city"

SENTENCES = tuple(dict.fromkeys(text for pair in labelled_pairs()[::5] for text in (pair.one, pair.other)))
"""Sentences of which many repeat, change or nearly repeat another."""


RETOLD = {
    one: other
    for pair in labelled_pairs()
    for one, other in ((pair.one, pair.other), (pair.other, pair.one))
    if compared(statement(one), statement(other), cosine=None) is Verdict.REPEATS
}
"""Sentences that another one repeats by its words alone."""


def knows(*contents: str, category: str = "hobby", confidence: float = 0.5, start: int = 1) -> list[KnownFact]:
    """Known facts with ids from `start` on."""
    return [
        KnownFact(id=number, category=category, content=content, confidence=confidence)
        for number, content in enumerate(contents, start)
    ]


def says(content: str, *seqs: int, **given: Any) -> Extracted:
    return replace(Extracted(category="hobby", content=content, seqs=seqs, confidence=0.5), **given)


def learn(
    known: Sequence[KnownFact],
    *found: Extracted,
    extracted: Ranges = (),
    single: Sequence[str] = (),
    cosine: float | dict[frozenset[str], float] | None = None,
    said_at: Mapping[int, datetime] | None = None,
    comparisons: Comparisons | None = None,
) -> Learnt:
    """What is learnt; `cosine` is that of any two statements, or of those that are given."""

    def alike(one: str, other: str) -> float | None:
        return cosine.get(frozenset({one, other})) if isinstance(cosine, dict) else cosine

    return merged(
        known,
        found,
        subject="legacy-7",
        extracted=extracted,
        single=single,
        cosine=alike,
        count=len,
        said_at=said_at,
        comparisons=comparisons,
    )


def says_what(learnt: Learnt) -> list[str]:
    return [one.content for one in learnt.facts]


class TestRules:
    def test_a_new_statement_is_a_fact_as_it_was_found(self) -> None:
        found = says("Plays the cello.", 3, 5, confidence=0.7, metadata='{"category": "music"}')
        (fact,) = learn(knows("Was a nurse."), found).facts
        assert (fact.category, fact.content, fact.seqs) == ("hobby", "Plays the cello.", (3, 5))
        assert (fact.confidence, fact.metadata, fact.supersedes) == (0.7, '{"category": "music"}', ())
        assert fact.tokens == len("Plays the cello.")
        assert fact.fingerprint == fingerprint_of_fact("Plays the cello.")

    @pytest.mark.parametrize("again", ["Plays the cello.", "plays the CELLO", "Plays  the cello.."])
    def test_the_same_words_repeat_a_known_fact(self, again: str) -> None:
        """Whatever its category, and without any vector."""
        learnt = learn(knows("Was a nurse.", "Plays the cello."), says(again, 4, category="other"))
        (one,) = learnt.repeated
        assert learnt.facts == ()
        assert (one.fact, one.seqs, one.confidence) == (2, (4,), strengthened(0.5, 0.5))

    def test_said_twice_at_once_it_is_said_in_both_messages(self) -> None:
        learnt = learn([], says("Plays the cello.", 7, confidence=0.4), says("plays the cello", 2, 7, confidence=0.6))
        (one,) = learnt.facts
        assert (one.content, one.seqs, one.confidence) == ("Plays the cello.", (2, 7), 0.6)
        learnt = learn(knows("Plays the cello."), says("Plays the cello.", 7), says("plays the cello", 2))
        (known,) = learnt.repeated
        assert known.seqs == (2, 7)
        assert known.confidence == strengthened(strengthened(0.5, 0.5), 0.5)

    def test_messages_that_were_read_before_say_nothing_more(self) -> None:
        known = knows("Was a nurse.")
        assert learn(known, says("Plays the cello.", 2, 3), extracted=((0, 9),)) == Learnt(subject="legacy-7")
        assert learn(known, says("Was a nurse.", 2), extracted=((0, 9),)) == Learnt(subject="legacy-7")
        replaces = says("Was a doctor.", 2, replaces=1)
        assert learn(known, replaces, extracted=((0, 9),)) == Learnt(subject="legacy-7")
        (one,) = learn(known, says("Plays the cello.", 2, 12), extracted=((0, 9), (20, 29))).facts
        assert one.seqs == (12,)

    @pytest.mark.parametrize(
        ("one", "other", "cosine"),
        [
            ("Ben is into chess.", "Ben enjoys playing chess.", 0.8),
            ("Grandma loved knitting sweaters for the family.", "Grandma loved to knit sweaters for her family.", 0.98),
        ],
    )
    def test_other_words_for_the_same_repeat_it(self, one: str, other: str, cosine: float) -> None:
        assert compared(statement(one), statement(other), cosine=cosine) is Verdict.REPEATS
        learnt = learn(knows(one), says(other, 4), cosine=cosine)
        assert ([again.fact for again in learnt.repeated], learnt.facts) == ([1], ())

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Likes coffee.", "Dislikes coffee."),
            ("Has two sons.", "Has two dogs."),
            ("Has two sons.", "Has three sons."),
            ("Plays the cello.", "Does not play the cello."),
        ],
    )
    def test_a_change_and_a_near_miss_are_facts_of_their_own(self, one: str, other: str) -> None:
        """Without the model's word nothing ends: a fact too many can be put right."""
        for first, second in ((one, other), (other, one)):
            learnt = learn(knows(first), says(second, 4), cosine=0.9)
            assert (says_what(learnt), learnt.repeated, learnt.facts[0].supersedes) == ([second], (), ())

    def test_the_models_word_counts_where_likeness_cannot_tell(self) -> None:
        one, other = "Anna is a very patient person.", "Anna has a lot of patience."
        assert compared(statement(one), statement(other), cosine=0.6) is Verdict.UNSURE
        assert learn(knows(one), says(other, 4, repeats=1), cosine=0.6).repeated[0].fact == 1
        (new,) = learn(knows(one), says(other, 4, replaces=1), cosine=0.6).facts
        assert new.supersedes == (1,)
        (neither,) = learn(knows(one), says(other, 4), cosine=0.6).facts
        assert neither.supersedes == ()

    def test_the_models_word_is_not_believed_of_what_has_nothing_in_common(self) -> None:
        """Lest one muddled answer end or swallow a fact that was never spoken of."""
        known = knows("Was a nurse.", category="occupation")
        for wrong in ({"repeats": 1}, {"replaces": 1}):
            learnt = learn(known, says("Plays the cello.", 4, **wrong), cosine=0.1)
            assert (says_what(learnt), learnt.repeated) == (["Plays the cello."], ())
            assert learnt.facts[0].supersedes == ()
        for unheard_of in ({"repeats": 99}, {"replaces": 99}):
            assert len(learn(known, says("Plays the cello.", 4, **unheard_of)).facts) == 1

    def test_of_one_category_the_model_is_believed_of_what_is_less_alike(self) -> None:
        """ "Lives in Turin", "moved to Genoa": but not where a person has said that it is right, nor of anything."""
        replaces = says("Has moved to Genoa.", 4, category=CITY, replaces=1)
        known = knows("Lives in Turin.", category=CITY)
        for cosine in (None, 0.25):
            assert learn(known, replaces, cosine=cosine).facts[0].supersedes == (1,)
        assert learn(known, replaces, cosine=0.1).facts[0].supersedes == ()
        sure = knows("Lives in Turin.", category=CITY, confidence=1.0)
        assert learn(sure, replaces, cosine=0.25).facts[0].supersedes == ()
        assert learn(sure, replaces, cosine=0.5).facts[0].supersedes == (1,)
        elsewhere = knows("Lives in Turin.", category="other")
        assert learn(elsewhere, replaces, cosine=0.25).facts[0].supersedes == ()

    @pytest.mark.parametrize("how", ["one at a time", "the model's word"])
    def test_what_was_said_before_ends_nothing_that_was_said_after_it(self, how: str) -> None:
        """Old messages are digested when there are new ones: they come to be known too late."""
        june, july = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
        single = [CITY] if how == "one at a time" else []
        moved = says("Lives in Genoa.", 4, category=CITY, replaces=1)
        for known_at, told_at, new in ((june, july, True), (july, july, True), (july, june, False), (None, june, True)):
            known = [replace(one, said_at=known_at) for one in knows("Lives in Turin.", category=CITY)]
            learnt = learn(known, moved, single=single, cosine=0.5, said_at={4: told_at})
            assert says_what(learnt) == (["Lives in Genoa."] if new else [])
            again = learn(known, says("Lives in Turin.", 4, category=CITY), single=single, said_at={4: told_at})
            assert [one.fact for one in again.repeated] == [1], "it may say it again"

    def test_what_likeness_finds_counts_before_the_models_word(self) -> None:
        learnt = learn(knows("Plays the cello.", "Was a nurse."), says("plays the cello", 4, replaces=1), cosine=0.9)
        assert ([one.fact for one in learnt.repeated], learnt.facts) == ([1], ())

    def test_of_several_that_are_repeated_the_most_alike(self) -> None:
        """Of equals, the first that was known."""
        one, other, new = "Ben is into chess.", "Ben likes playing chess.", "Ben enjoys playing chess."
        near = {frozenset({one, new}): 0.8, frozenset({other, new}): 0.95}
        assert learn(knows(one, other), says(new, 4), cosine=near).repeated[0].fact == 2
        assert learn(knows(one, other), says(new, 4), cosine=0.8).repeated[0].fact == 1

    def test_one_value_at_a_time(self) -> None:
        known = [*knows("Lives in Turin.", category=CITY), *knows("Plays the cello.", start=2)]
        learnt = learn(known, says("Lives in Genoa.", 4, category=CITY), single=[CITY])
        assert [(one.content, one.supersedes) for one in learnt.facts] == [("Lives in Genoa.", (1,))]
        elsewhere = learn(known, says("Lives in Genoa.", 4, category="other"), single=[CITY])
        assert elsewhere.facts[0].supersedes == ()
        assert learn(known, says("Lives in Genoa.", 4, category=CITY)).facts[0].supersedes == (), "if it is declared"

    def test_of_several_values_the_latest(self) -> None:
        """By the messages, not by the answer's order; those in between never were."""
        found = [
            says(f"Lives in {city}.", seq, category=CITY) for seq, city in ((9, "Genoa"), (2, "Milan"), (5, "Bari"))
        ]
        learnt = learn(knows("Lives in Turin.", category=CITY), *found, single=[CITY])
        assert [(one.content, one.seqs, one.supersedes) for one in learnt.facts] == [("Lives in Genoa.", (9,), (1,))]

    def test_there_and_back_again(self) -> None:
        """Who moves away and returns within one digest lives where he lived: that fact was said again, in whatever
        words, and keeps what it rests on and who has confirmed it."""
        away = says("Lives in Genoa.", 2, category=CITY)
        known = knows("Lives in Turin.", category=CITY, confidence=1.0)
        for words, cosine in (("Lives in Turin.", 0.1), ("Is living in Turin.", 0.9)):
            learnt = learn(known, away, says(words, 5, category=CITY), single=[CITY], cosine=cosine)
            assert learnt.repeated == (Repeated(fact=1, seqs=(5,), confidence=1.0),)
            assert learnt.facts == ()
        known = knows("Lives in Turin.", category="other")
        away = replace(away, replaces=1)
        learnt = learn(known, away, says("Lives in Turin.", 5, category=CITY), single=[CITY], cosine=0.6)
        assert after(known, learnt) == [("Lives in Turin.", CITY)]
        assert learnt.facts == ()

    def test_there_and_back_again_between_two_that_were_known(self) -> None:
        known = knows("Lives in Turin.", "Lives in Genoa.", category=CITY)
        found = [says("Lives in Genoa.", 2, category=CITY), says("Lives in Turin.", 5, category=CITY)]
        learnt = learn(known, *found, single=[CITY])
        assert after(known, learnt) == [("Lives in Turin.", CITY)]
        assert learnt.facts == ()

    def test_what_is_repeated_and_then_replaced_is_replaced(self) -> None:
        found = [says("Lives in Turin.", 2, category=CITY), says("Lives in Genoa.", 5, category=CITY)]
        learnt = learn(knows("Lives in Turin.", category=CITY), *found, single=[CITY])
        assert (learnt.repeated, learnt.facts[0].supersedes) == ((), (1,))

    def test_a_value_that_is_said_again_ends_the_others(self) -> None:
        """There can be several from before the category was declared."""
        known = knows("Lives in Turin.", "Lives in Genoa.", category=CITY)
        learnt = learn(known, says("lives in turin", 4, category=CITY), single=[CITY])
        assert learnt.repeated == (Repeated(fact=1, seqs=(4,), confidence=strengthened(0.5, 0.5), alone=True),)
        assert after(known, learnt) == [("Lives in Turin.", CITY)]
        assert not learn(known, says("lives in turin", 4, category=CITY)).repeated[0].alone, "if it is declared"
        elsewhere = learn(known, says("lives in turin", 4, category="other"), single=[CITY])
        assert after(known, elsewhere) == [("Lives in Turin.", CITY)], "whatever it is taken for this time"

    def test_what_was_under_other_is_a_value_from_then_on(self) -> None:
        known = [*knows("Lives in Turin.", category="other"), *knows("Lives in Genoa.", category=CITY, start=2)]
        learnt = learn(known, says("Lives in Turin.", 4, category=CITY), single=[CITY])
        assert [(one.category, one.alone) for one in learnt.repeated] == [(CITY, True)]
        assert after(known, learnt) == [("Lives in Turin.", CITY)]
        (undeclared,) = learn(known, says("Lives in Turin.", 4, category=CITY)).repeated
        assert (undeclared.category, undeclared.alone) == (None, False)
        hobby = [replace(known[0], category="hobby"), known[1]]
        (stays,) = learn(hobby, says("Lives in Turin.", 4, category=CITY), single=[CITY]).repeated
        assert (stays.category, stays.alone) == (None, False), "only what was nothing in particular"

    def test_one_after_the_other_is_said_again(self) -> None:
        """The last of them is the value; the other was one, too, and ends with its category."""
        known = knows("Lives in Turin.", "Lives in Genoa.", category="other")
        found = [says("Lives in Genoa.", 2, category=CITY), says("Lives in Turin.", 5, category=CITY)]
        assert after(known, learn(known, *found, single=[CITY])) == [("Lives in Turin.", CITY)]

    def test_new_ones_of_other_become_values_too(self) -> None:
        found = [
            says("Lives in Turin.", 1, category="other", metadata='{"category": "home"}'),
            says("Lives in Genoa.", 2, category=CITY),
            says("Lives in Turin.", 5, category=CITY),
        ]
        (fact,) = learn(knows("Lives in Bari.", category=CITY), *found, single=[CITY]).facts
        assert (fact.content, fact.category, fact.seqs, fact.metadata) == ("Lives in Turin.", CITY, (1, 5), "{}")
        assert fact.supersedes == (1,)

    def test_what_is_taken_back_at_once_has_ended_nothing(self) -> None:
        """It never was, so what it would have ended by the model's word goes on."""
        known = [*knows("Lives in Turin.", category=CITY), *knows("Has a flat in Genoa.", start=2)]
        moves, returns = says("Lives in Genoa.", 2, category=CITY, replaces=2), says("Lives in Turin.", 5)
        assert learn(known, moves, cosine=0.6, single=[CITY]).facts[0].supersedes == (1, 2)
        known = [replace(known[0], category="other"), known[1]]
        learnt = learn(known, moves, replace(returns, category=CITY), cosine=0.6, single=[CITY])
        assert after(known, learnt) == [("Lives in Turin.", CITY), ("Has a flat in Genoa.", "hobby")]
        flat = says("Has a flat in Genoa.", 1)
        again = learn(known, flat, moves, replace(returns, category=CITY), cosine=0.6, single=[CITY]).repeated
        assert [(one.fact, one.alone) for one in again] == [(1, False), (2, False)]

    def test_what_was_said_before_is_no_value_again(self) -> None:
        """It is known to have been said, and ends nothing that was said after it."""
        june, july = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
        genoa = replace(knows("Lives in Genoa.", category=CITY, start=2)[0], said_at=july)
        for category in ("other", CITY):
            known = [replace(knows("Lives in Turin.", category=category)[0], said_at=june), genoa]
            again = says("Lives in Turin.", 4, category=CITY)
            (late,) = learn(known, again, single=[CITY], said_at={4: june}).repeated
            assert (late.fact, late.category, late.alone) == (1, None, False)
            for unknown in ({4: july}, {}):
                learnt = learn(known, again, single=[CITY], said_at=unknown)
                assert after(known, learnt) == [("Lives in Turin.", CITY)]


class TestBearing:
    """Which of the known facts a model is shown."""

    def test_few_are_all_shown(self) -> None:
        known = knows("Plays the cello.", "Was a nurse.", "Loves bees.")
        assert {one.id for one in bearing(known, ["What a day."])} == {1, 2, 3}
        assert bearing([], ["Hello."]) == ()

    def test_of_many_those_that_bear_on_the_messages_the_most_first(self) -> None:
        known = knows(*(f"Once visited the town number {at} of the county." for at in range(200)))
        known[77] = replace(known[77], content="Played the cello in an orchestra.")
        known[3] = replace(known[3], content="Hated the sound of an orchestra.")
        shown = bearing(known, ["Mum's cello!", "And that orchestra."])
        assert [one.id for one in shown[:2]] == [78, 4]
        assert len(shown) <= BEARING

    def test_those_with_one_value_at_a_time_are_always_shown(self) -> None:
        """They may be replaced by what has no word in common with them."""
        known = [
            *knows("Lives in Turin.", category=CITY),
            *knows(*(f"Loves bees number {at}." for at in range(99)), start=2),
        ]
        assert 1 in [one.id for one in bearing(known, ["All those bees."], single=[CITY])]

    @given(
        contents=st.lists(st.sampled_from(SENTENCES), max_size=80),
        texts=st.lists(st.one_of(st.sampled_from(SENTENCES), st.text(max_size=20)), max_size=5),
    )
    @settings(max_examples=20, deadline=None)
    def test_whatever_is_known_and_said(self, contents: list[str], texts: list[str]) -> None:
        known = knows(*contents)
        shown = bearing(known, texts, single=["hobby"])
        assert len(shown) == len(set(shown)) <= BEARING
        assert set(shown) <= set(known)
        assert len(shown) >= min(len(known), 10)


statements = st.builds(
    Extracted,
    category=st.sampled_from(["hobby", "other", CITY]),
    content=st.one_of(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES), st.text(min_size=1, max_size=30)),
    seqs=st.sets(st.integers(0, 30), min_size=1, max_size=4).map(lambda seqs: tuple(sorted(seqs))),
    confidence=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    repeats=st.one_of(st.none(), st.none(), st.integers(1, 12)),
    replaces=st.one_of(st.none(), st.none(), st.integers(1, 12)),
)
knowledge = st.lists(
    st.tuples(st.sampled_from(["hobby", "other", CITY]), st.sampled_from(SENTENCES)),
    max_size=10,
    unique_by=lambda one: fingerprint_of_fact(one[1]),
).map(
    lambda told: [
        KnownFact(id=number, category=category, content=content, confidence=0.5)
        for number, (category, content) in enumerate(told, 1)
    ]
)
ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=3).map(
    lambda spans: tuple((start, start + length) for start, length in spans)
)
singles = st.sampled_from([(), (CITY,), (CITY, "hobby")])
cosines = st.sampled_from([None, -0.1, 0.35, 0.6, 0.8, 0.99])


def after(known: Sequence[KnownFact], learnt: Learnt) -> list[tuple[str, str]]:
    """What is current once it is written, as the store's contract has it: contents and categories."""
    return [(one.content, one.category) for one in written(known, learnt)]


def written(known: Sequence[KnownFact], learnt: Learnt) -> list[KnownFact]:
    current = {one.id: one for one in known}
    for again in learnt.repeated:
        one = current[again.fact]
        one = replace(one, confidence=again.confidence, category=again.category or one.category)
        if again.alone:
            current = {other.id: other for other in current.values() if other.category != one.category}
        current[again.fact] = one
    for number, new in enumerate(learnt.facts, 1_000 + len(known)):
        same = next((one.id for one in current.values() if fingerprint_of_fact(one.content) == new.fingerprint), None)
        for gone in new.supersedes:
            if gone != same:
                current.pop(gone, None)
        if same is None:
            current[number] = KnownFact(
                id=number, category=new.category, content=new.content, confidence=new.confidence
            )
    return list(current.values())


def said_again(known: Sequence[KnownFact], found: Sequence[Extracted]) -> list[Extracted]:
    """Every second statement in the words of a known one, which hardly ever comes about by itself."""
    words = [one.content for one in known]
    return [
        replace(one, content=words[one.seqs[-1] % len(words)]) if words and at % 2 else one
        for at, one in enumerate(found)
    ]


few = settings(max_examples=60, deadline=None)


@few
@given(known=knowledge, found=st.lists(statements, max_size=8), extracted=ranges, single=singles, cosine=cosines)
def test_whatever_is_found(
    known: list[KnownFact], found: list[Extracted], extracted: Ranges, single: tuple[str, ...], cosine: float | None
) -> None:
    """Nothing is both repeated and ended; nothing comes of a message that was read before, or was never shown."""
    found = said_again(known, found)
    learnt = learn(known, *found, extracted=extracted, single=single, cosine=cosine)
    ids = {one.id for one in known}
    repeated = [one.fact for one in learnt.repeated]
    ended = [number for one in learnt.facts for number in one.supersedes]
    assert len(repeated) == len(set(repeated))
    assert len(ended) == len(set(ended)), "one fact takes the place of another"
    assert set(repeated) | set(ended) <= ids
    assert not set(repeated) & set(ended)
    shown = {seq for one in found for seq in one.seqs}
    read = {seq for first, last in extracted for seq in range(first, last + 1)}
    for one in (*learnt.facts, *learnt.repeated):
        assert one.seqs
        assert list(one.seqs) == sorted(set(one.seqs))
        assert set(one.seqs) <= shown - read
        assert 0 < one.confidence <= 1
    before = {one.id: one.confidence for one in known}
    assert all(one.confidence >= before[one.fact] for one in learnt.repeated)
    fingerprints = [one.fingerprint for one in learnt.facts]
    assert len(fingerprints) == len(set(fingerprints))
    assert {one.content for one in learnt.facts} <= {one.content for one in found}
    now = {one.content: one.category for one in written(known, learnt)}
    for category in single:
        assert sum(one.category == category for one in learnt.facts) <= 1
        said = any(now.get(one.content) == category for one in (*learnt.facts, *(known[at - 1] for at in repeated)))
        assert not said or list(now.values()).count(category) == 1, "the latest value is the only one"


@few
@given(known=knowledge, found=st.lists(statements, max_size=8), single=singles, cosine=cosines, data=st.data())
def test_what_was_said_after_all_messages_goes_on(
    known: list[KnownFact],
    found: list[Extracted],
    single: tuple[str, ...],
    cosine: float | None,
    data: st.DataObject,
) -> None:
    """However late they are read, they end nothing that was said since, and put nothing beside it."""
    told = {seq: datetime(2026, 6, 1, 12, seq, tzinfo=UTC) for seq in range(31)}
    hours = data.draw(st.lists(st.sampled_from([11, 13, None]), min_size=len(known), max_size=len(known)))
    times = [None if hour is None else datetime(2026, 6, 1, hour, tzinfo=UTC) for hour in hours]
    known = [replace(one, said_at=at) for one, at in zip(known, times, strict=True)]
    found = said_again(known, found)
    now = written(known, learn(known, *found, single=single, cosine=cosine, said_at=told))
    since = [one for one, hour in zip(known, hours, strict=True) if hour == 13]
    assert {one.id for one in since} <= {one.id for one in now}
    before = {one.id: one.category for one in known}
    for one in since:
        if one.category in single:
            came = [other for other in now if other.category == one.category != before.get(other.id)]
            assert came == []


books = st.lists(
    st.tuples(
        st.sampled_from(["gone", "edited", "moved", "new"]), st.one_of(st.sampled_from(SENTENCES), st.integers(0, 2))
    ),
    max_size=5,
)
"""What becomes of it; a number is for another wording of what is found."""


@few
@given(
    known=knowledge,
    found=st.lists(statements, max_size=6),
    retold=st.lists(st.sampled_from(sorted(RETOLD)), min_size=1, max_size=3),
    cosine=st.dictionaries(
        st.sets(st.sampled_from(SENTENCES), min_size=1, max_size=2).map(frozenset), st.floats(-1, 1)
    ),
    extracted=st.tuples(ranges, ranges),
    single=singles,
    happens=books,
    data=st.data(),
)
def test_what_was_compared_before_changes_nothing(
    known: list[KnownFact],
    found: list[Extracted],
    retold: list[str],
    cosine: dict[frozenset[str], float],
    extracted: tuple[Ranges, Ranges],
    single: tuple[str, ...],
    happens: list[tuple[str, str | int]],
    data: st.DataObject,
) -> None:
    """Whatever becomes of the book in between, it comes to the same as comparing all anew."""
    comparisons = Comparisons()
    found = [*said_again(known, found), *(says(one, at) for at, one in enumerate(retold))]
    learn(known, *found, extracted=extracted[0], single=single, cosine=cosine, comparisons=comparisons)
    later = list(known)
    for number, (what, told) in enumerate(happens, 100):
        content = RETOLD[retold[told % len(retold)]] if isinstance(told, int) else told
        at = data.draw(st.integers(0, len(later) - 1)) if later else None
        if what == "new" or at is None:
            later.append(KnownFact(id=number, category="other", content=content, confidence=0.5))
        elif what == "gone":
            del later[at]
        elif what == "edited":
            later[at] = replace(later[at], content=content, confidence=1.0)
        else:
            later[at] = replace(later[at], category=CITY)
    for span in (extracted[1], extracted[0]):
        anew = learn(later, *found, extracted=span, single=single, cosine=cosine)
        assert learn(later, *found, extracted=span, single=single, cosine=cosine, comparisons=comparisons) == anew


def test_only_what_is_new_is_compared() -> None:
    asked: list[str] = []

    def cosine(_: str, other: str) -> float:
        asked.append(other)
        return 0.5

    comparisons, found = Comparisons(), [says("Plays the cello.", 1)]
    for known, new in (
        (knows("Was a nurse.", "Loves bees."), ["Was a nurse.", "Loves bees."]),
        (knows("Was a nurse.", "Loves wasps.", "Has two sons."), ["Loves wasps.", "Has two sons."]),
        (knows("Has two sons."), []),
    ):
        asked.clear()
        merged(known, found, subject="", extracted=(), single=(), cosine=cosine, count=len, comparisons=comparisons)
        assert asked == new


@few
@given(known=knowledge, found=st.lists(statements, max_size=8), single=singles, cosine=cosines)
def test_the_same_messages_twice_add_nothing(
    known: list[KnownFact], found: list[Extracted], single: tuple[str, ...], cosine: float | None
) -> None:
    """However the model words them the second time."""
    now = written(known, learn(known, *found, single=single, cosine=cosine))
    read = ((0, 30),)
    assert learn(now, *found, extracted=read, single=single, cosine=cosine) == Learnt(subject="legacy-7")
    reworded = [replace(one, content=f"In other words: {one.content}") for one in found]
    assert learn(now, *reworded, extracted=read, single=single, cosine=cosine) == Learnt(subject="legacy-7")


@few
@given(known=knowledge, found=st.lists(statements, max_size=8), cosine=cosines)
def test_the_same_statements_in_other_messages_add_nothing(
    known: list[KnownFact], found: list[Extracted], cosine: float | None
) -> None:
    """They repeat what was learnt of them, as far as they change nothing: what replaces may be replaced anew."""
    steady = [replace(one, replaces=None) for one in found]
    now = written(known, learn(known, *steady, cosine=cosine))
    later = [replace(one, seqs=tuple(seq + 100 for seq in one.seqs)) for one in steady]
    again = learn(now, *later, cosine=cosine)
    assert again.facts == ()
    assert {seq for one in again.repeated for seq in one.seqs} == {seq for one in later for seq in one.seqs}


@few
@given(known=knowledge, found=st.lists(statements, max_size=6), cosine=cosines, data=st.data())
def test_the_order_of_an_answer_tells_nothing_new(
    known: list[KnownFact], found: list[Extracted], cosine: float | None, data: st.DataObject
) -> None:
    """Of statements of different messages, that of the messages counts."""
    apart = [replace(one, seqs=(at,)) for at, one in enumerate(found)]
    mixed = data.draw(st.permutations(apart))
    assert learn(known, *mixed, single=[CITY], cosine=cosine) == learn(known, *apart, single=[CITY], cosine=cosine)
