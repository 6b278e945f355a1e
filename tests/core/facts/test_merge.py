"""What becomes of statements: new, said again, or a change. The rules, and what holds whatever is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.core.facts.fact import (
    ExtractedFact,
    KnownFact,
    LearnedFacts,
    RepeatedFact,
    fingerprint_of_fact,
    strengthened,
)
from hitherto.core.facts.merge import merged
from hitherto.core.log.ranges import Ranges
from tests.core.facts.fact_pairs import labeled_pairs
from tests.core.policy.observations import disjoint, fed_twice, observations

CITY = "current city"

SENTENCES = tuple(dict.fromkeys(text for pair in labeled_pairs()[::5] for text in (pair.one, pair.other)))
"""Sentences of which many repeat, change or nearly repeat another."""


def knows(*contents: str, category: str = "hobby", start: int = 1, confirmed: bool = False) -> list[KnownFact]:
    """Known facts with ids from `start` on."""
    confidence = 1.0 if confirmed else 0.5
    return [
        KnownFact(id=number, category=category, content=content, confidence=confidence, confirmed=confirmed)
        for number, content in enumerate(contents, start)
    ]


def says(content: str, *seqs: int, **given: Any) -> ExtractedFact:
    return replace(ExtractedFact(category="hobby", content=content, seqs=seqs, confidence=0.5), **given)


def learn(
    known: Sequence[KnownFact],
    *found: ExtractedFact,
    extracted: Ranges = (),
    single: Sequence[str] = (),
    said_at: Mapping[int, datetime] | None = None,
) -> LearnedFacts:
    return merged(known, found, subject="legacy-7", extracted=extracted, single=single, count=len, said_at=said_at)


def says_what(learned: LearnedFacts) -> list[str]:
    return [one.content for one in learned.facts]


class TestRules:
    def test_a_new_statement_is_a_fact_as_it_was_found(self) -> None:
        found = says("Plays the cello.", 3, 5, confidence=0.7, metadata={"category": "music"})
        (fact,) = learn(knows("Was a nurse."), found).facts
        assert (fact.category, fact.content, fact.seqs) == ("hobby", "Plays the cello.", (3, 5))
        assert (fact.confidence, fact.metadata, fact.supersedes) == (0.7, {"category": "music"}, ())
        assert fact.tokens == len("Plays the cello.")
        assert fact.fingerprint == fingerprint_of_fact("Plays the cello.")

    @pytest.mark.parametrize("again", ["Plays the cello.", "plays the CELLO", "Plays  the cello.."])
    def test_the_same_words_repeat_a_known_fact(self, again: str) -> None:
        """Whatever its category, and without any vector."""
        learned = learn(knows("Was a nurse.", "Plays the cello."), says(again, 4, category="other"))
        (one,) = learned.repeated
        assert learned.facts == ()
        assert (one.fact, one.seqs, one.confidence) == (2, (4,), strengthened(0.5, 0.5))

    def test_said_twice_at_once_it_is_said_in_both_messages(self) -> None:
        learned = learn([], says("Plays the cello.", 7, confidence=0.4), says("plays the cello", 2, 7, confidence=0.6))
        (one,) = learned.facts
        assert (one.content, one.seqs, one.confidence) == ("Plays the cello.", (2, 7), 0.6)
        learned = learn(knows("Plays the cello."), says("Plays the cello.", 7), says("plays the cello", 2))
        (known,) = learned.repeated
        assert known.seqs == (2, 7)
        assert known.confidence == strengthened(strengthened(0.5, 0.5), 0.5)

    def test_messages_that_were_read_before_say_nothing_more(self) -> None:
        known = knows("Was a nurse.")
        assert learn(known, says("Plays the cello.", 2, 3), extracted=((0, 9),)) == LearnedFacts(subject="legacy-7")
        assert learn(known, says("Was a nurse.", 2), extracted=((0, 9),)) == LearnedFacts(subject="legacy-7")
        replaces = says("Was a doctor.", 2, replaces=1)
        assert learn(known, replaces, extracted=((0, 9),)) == LearnedFacts(subject="legacy-7")
        (one,) = learn(known, says("Plays the cello.", 2, 12), extracted=((0, 9), (20, 29))).facts
        assert one.seqs == (12,)

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
            learned = learn(knows(first), says(second, 4))
            assert (says_what(learned), learned.repeated, learned.facts[0].supersedes) == ([second], (), ())

    def test_other_words_are_told_by_the_model_alone(self) -> None:
        known, other = knows("Is a very patient person."), says("Has a lot of patience.", 4)
        learned = learn(known, replace(other, repeats=1))
        assert ([one.fact for one in learned.repeated], learned.facts) == ([1], ())
        assert learn(known, replace(other, replaces=1)).facts[0].supersedes == (1,)
        (neither,) = learn(known, other).facts
        assert neither.supersedes == ()

    def test_what_says_one_fact_again_in_several_ways_says_it_once(self) -> None:
        found = [says("Plays the cello.", 2), says("Is a cellist.", 4, 9, repeats=1)]
        (one,) = learn(knows("Plays the cello."), *found).repeated
        assert (one.fact, one.seqs, one.confidence) == (1, (2, 4, 9), strengthened(strengthened(0.5, 0.5), 0.5))

    def test_the_model_is_not_believed_of_what_is_not_known(self) -> None:
        for unheard_of in ({"repeats": 99}, {"replaces": 99}):
            learned = learn(knows("Was a nurse."), says("Plays the cello.", 4, **unheard_of))
            assert (says_what(learned), learned.repeated) == (["Plays the cello."], ())
            assert learned.facts[0].supersedes == ()

    def test_what_replaces_a_fact_is_of_its_category(self) -> None:
        """Lest one muddled answer end a fact that was never spoken of. What repeats one may be of any."""
        known = knows("Was a nurse.", category="occupation")
        (new,) = learn(known, says("Plays the cello.", 4, replaces=1)).facts
        assert new.supersedes == ()
        assert learn(known, says("Worked at a hospital.", 4, repeats=1)).repeated[0].fact == 1

    def test_what_a_person_has_confirmed_is_not_ended_by_the_models_word(self) -> None:
        """The later statement stands beside it. How sure a model was makes no difference."""
        moved = says("Has moved to Genoa.", 4, category=CITY, replaces=1)
        known = knows("Lives in Turin.", category=CITY, confirmed=True)
        assert [(one.content, one.supersedes) for one in learn(known, moved).facts] == [("Has moved to Genoa.", ())]
        sure = [replace(known[0], confirmed=False)]
        assert learn(sure, moved).facts[0].supersedes == (1,)
        assert learn(known, moved, single=[CITY]).facts[0].supersedes == (1,), "it is declared to hold one value"

    @pytest.mark.parametrize("how", ["one at a time", "the model's word"])
    def test_what_was_said_before_ends_nothing_that_was_said_after_it(self, how: str) -> None:
        """Old messages are digested when there are new ones: they come to be known too late."""
        june, july = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
        single = [CITY] if how == "one at a time" else []
        moved = says("Lives in Genoa.", 4, category=CITY, replaces=1)
        for known_at, told_at, new in ((june, july, True), (july, july, True), (july, june, False), (None, june, True)):
            known = [replace(one, said_at=known_at) for one in knows("Lives in Turin.", category=CITY)]
            learned = learn(known, moved, single=single, said_at={4: told_at})
            assert says_what(learned) == (["Lives in Genoa."] if new else [])
            confirmed = [replace(known[0], confirmed=True)]
            assert says_what(learn(confirmed, moved, single=single, said_at={4: told_at})) == says_what(learned)
            again = learn(known, says("Lives in Turin.", 4, category=CITY), single=single, said_at={4: told_at})
            assert [one.fact for one in again.repeated] == [1], "it may say it again"

    def test_the_same_words_count_before_the_models(self) -> None:
        learned = learn(knows("Plays the cello.", "Was a nurse."), says("plays the cello", 4, repeats=2, replaces=2))
        assert ([one.fact for one in learned.repeated], learned.facts) == ([1], ())

    def test_one_fact_takes_the_place_of_another(self) -> None:
        """Who replaces what is replaced already stands beside it."""
        found = [says("Plays the viola.", 2, replaces=1), says("Plays the harp.", 5, replaces=1)]
        facts = learn(knows("Plays the cello."), *found).facts
        assert [(one.content, one.supersedes) for one in facts] == [("Plays the viola.", (1,)), ("Plays the harp.", ())]

    def test_one_value_at_a_time(self) -> None:
        known = [*knows("Lives in Turin.", category=CITY), *knows("Plays the cello.", start=2)]
        learned = learn(known, says("Lives in Genoa.", 4, category=CITY), single=[CITY])
        assert [(one.content, one.supersedes) for one in learned.facts] == [("Lives in Genoa.", (1,))]
        elsewhere = learn(known, says("Lives in Genoa.", 4, category="other"), single=[CITY])
        assert elsewhere.facts[0].supersedes == ()
        assert learn(known, says("Lives in Genoa.", 4, category=CITY)).facts[0].supersedes == (), "if it is declared"

    def test_of_several_values_the_latest(self) -> None:
        """By the messages, not by the answer's order; those in between never were."""
        found = [
            says(f"Lives in {city}.", seq, category=CITY) for seq, city in ((9, "Genoa"), (2, "Milan"), (5, "Bari"))
        ]
        learned = learn(knows("Lives in Turin.", category=CITY), *found, single=[CITY])
        assert [(one.content, one.seqs, one.supersedes) for one in learned.facts] == [("Lives in Genoa.", (9,), (1,))]

    def test_there_and_back_again(self) -> None:
        """Who moves away and returns within one digest lives where he lived: that fact was said again, in whatever
        words, and keeps what it rests on and who has confirmed it."""
        away = says("Lives in Genoa.", 2, category=CITY)
        known = knows("Lives in Turin.", category=CITY, confirmed=True)
        for back in (says("Lives in Turin.", 5, category=CITY), says("Is back in Turin.", 5, category=CITY, repeats=1)):
            learned = learn(known, away, back, single=[CITY])
            assert learned.repeated == (RepeatedFact(fact=1, seqs=(5,), confidence=1.0),)
            assert learned.facts == ()
        known = knows("Lives in Turin.", category="other")
        learned = learn(known, away, says("Lives in Turin.", 5, category=CITY), single=[CITY])
        assert after(known, learned) == [("Lives in Turin.", CITY)]
        assert learned.facts == ()

    def test_what_replaces_a_fact_that_is_said_again_later_held_in_between(self) -> None:
        found = [says("Has quit smoking.", 2, replaces=1), says("Smokes.", 5)]
        learned = learn(knows("Smokes."), *found)
        assert ([one.fact for one in learned.repeated], learned.facts) == ([1], ())
        found = [says("Smokes.", 2), says("Has quit smoking.", 5, replaces=1)]
        learned = learn(knows("Smokes."), *found)
        assert ([one.supersedes for one in learned.facts], learned.repeated) == ([(1,)], ())

    def test_there_and_back_again_between_two_that_were_known(self) -> None:
        known = knows("Lives in Turin.", "Lives in Genoa.", category=CITY)
        found = [says("Lives in Genoa.", 2, category=CITY), says("Lives in Turin.", 5, category=CITY)]
        learned = learn(known, *found, single=[CITY])
        assert after(known, learned) == [("Lives in Turin.", CITY)]
        assert learned.facts == ()

    def test_what_is_repeated_and_then_replaced_is_replaced(self) -> None:
        found = [says("Lives in Turin.", 2, category=CITY), says("Lives in Genoa.", 5, category=CITY)]
        learned = learn(knows("Lives in Turin.", category=CITY), *found, single=[CITY])
        assert (learned.repeated, learned.facts[0].supersedes) == ((), (1,))

    def test_a_value_that_is_said_again_ends_the_others(self) -> None:
        """There can be several from before the category was declared."""
        known = knows("Lives in Turin.", "Lives in Genoa.", category=CITY)
        learned = learn(known, says("lives in turin", 4, category=CITY), single=[CITY])
        assert learned.repeated == (
            RepeatedFact(fact=1, seqs=(4,), confidence=strengthened(0.5, 0.5), single_valued=True),
        )
        assert after(known, learned) == [("Lives in Turin.", CITY)]
        assert not learn(known, says("lives in turin", 4, category=CITY)).repeated[0].single_valued, "if it is declared"
        elsewhere = learn(known, says("lives in turin", 4, category="other"), single=[CITY])
        assert after(known, elsewhere) == [("Lives in Turin.", CITY)], "whatever it is taken for this time"

    def test_what_was_under_other_is_a_value_from_then_on(self) -> None:
        known = [*knows("Lives in Turin.", category="other"), *knows("Lives in Genoa.", category=CITY, start=2)]
        learned = learn(known, says("Lives in Turin.", 4, category=CITY), single=[CITY])
        assert [(one.category, one.single_valued) for one in learned.repeated] == [(CITY, True)]
        assert after(known, learned) == [("Lives in Turin.", CITY)]
        (undeclared,) = learn(known, says("Lives in Turin.", 4, category=CITY)).repeated
        assert (undeclared.category, undeclared.single_valued) == (None, False)
        hobby = [replace(known[0], category="hobby"), known[1]]
        (stays,) = learn(hobby, says("Lives in Turin.", 4, category=CITY), single=[CITY]).repeated
        assert (stays.category, stays.single_valued) == (None, False), "only what was nothing in particular"

    def test_one_after_the_other_is_said_again(self) -> None:
        """The last of them is the value; the other was one, too, and ends with its category."""
        known = knows("Lives in Turin.", "Lives in Genoa.", category="other")
        found = [says("Lives in Genoa.", 2, category=CITY), says("Lives in Turin.", 5, category=CITY)]
        assert after(known, learn(known, *found, single=[CITY])) == [("Lives in Turin.", CITY)]

    def test_new_ones_of_other_become_values_too(self) -> None:
        found = [
            says("Lives in Turin.", 1, category="other", metadata={"category": "home"}),
            says("Lives in Genoa.", 2, category=CITY),
            says("Lives in Turin.", 5, category=CITY),
        ]
        (fact,) = learn(knows("Lives in Bari.", category=CITY), *found, single=[CITY]).facts
        assert (fact.content, fact.category, fact.seqs, fact.metadata) == ("Lives in Turin.", CITY, (1, 5), {})
        assert fact.supersedes == (1,)

    def test_what_was_said_before_is_no_value_again(self) -> None:
        """It is known to have been said, and ends nothing that was said after it."""
        june, july = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
        genoa = replace(knows("Lives in Genoa.", category=CITY, start=2)[0], said_at=july)
        for category in ("other", CITY):
            known = [replace(knows("Lives in Turin.", category=category)[0], said_at=june), genoa]
            again = says("Lives in Turin.", 4, category=CITY)
            (late,) = learn(known, again, single=[CITY], said_at={4: june}).repeated
            assert (late.fact, late.category, late.single_valued) == (1, None, False)
            for unknown in ({4: july}, {}):
                learned = learn(known, again, single=[CITY], said_at=unknown)
                assert after(known, learned) == [("Lives in Turin.", CITY)]


statements = st.builds(
    ExtractedFact,
    category=st.sampled_from(["hobby", "other", CITY]),
    content=st.one_of(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES), st.text(min_size=1, max_size=30)),
    seqs=st.sets(st.integers(0, 30), min_size=1, max_size=4).map(lambda seqs: tuple(sorted(seqs))),
    confidence=st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    repeats=st.one_of(st.none(), st.none(), st.integers(1, 12)),
    replaces=st.one_of(st.none(), st.none(), st.integers(1, 12)),
)
documents = st.lists(
    st.tuples(st.sampled_from(["hobby", "other", CITY]), st.sampled_from(SENTENCES), st.booleans()),
    max_size=10,
    unique_by=lambda one: fingerprint_of_fact(one[1]),
).map(
    lambda told: [
        KnownFact(id=number, category=category, content=content, confidence=0.5, confirmed=confirmed)
        for number, (category, content, confirmed) in enumerate(told, 1)
    ]
)
ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=3).map(
    lambda spans: tuple((start, start + length) for start, length in spans)
)
singles = st.sampled_from([(), (CITY,), (CITY, "hobby")])


def after(known: Sequence[KnownFact], learned: LearnedFacts) -> list[tuple[str, str]]:
    """What is current once it is written, as the store's contract has it: contents and categories."""
    return [(one.content, one.category) for one in written(known, learned)]


def written(known: Sequence[KnownFact], learned: LearnedFacts) -> list[KnownFact]:
    current = {one.id: one for one in known}
    for again in learned.repeated:
        one = current[again.fact]
        one = replace(one, confidence=again.confidence, category=again.category or one.category)
        if again.single_valued:
            current = {other.id: other for other in current.values() if other.category != one.category}
        current[again.fact] = one
    for number, new in enumerate(learned.facts, 1_000 + len(known)):
        same = next((one.id for one in current.values() if fingerprint_of_fact(one.content) == new.fingerprint), None)
        for gone in new.supersedes:
            if gone != same:
                current.pop(gone, None)
        if same is None:
            current[number] = KnownFact(
                id=number, category=new.category, content=new.content, confidence=new.confidence
            )
    return list(current.values())


def said_again(known: Sequence[KnownFact], found: Sequence[ExtractedFact]) -> list[ExtractedFact]:
    """Every second statement in the words of a known one, which hardly ever comes about by itself."""
    words = [one.content for one in known]
    return [
        replace(one, content=words[one.seqs[-1] % len(words)]) if words and at % 2 else one
        for at, one in enumerate(found)
    ]


few = settings(max_examples=60, deadline=None)


@few
@given(known=documents, found=st.lists(statements, max_size=8), extracted=ranges, single=singles)
def test_whatever_is_found(
    known: list[KnownFact], found: list[ExtractedFact], extracted: Ranges, single: tuple[str, ...]
) -> None:
    """Nothing is both repeated and ended; nothing comes of a message that was read before, or was never shown."""
    found = said_again(known, found)
    learned = learn(known, *found, extracted=extracted, single=single)
    ids = {one.id for one in known}
    repeated = [one.fact for one in learned.repeated]
    ended = [number for one in learned.facts for number in one.supersedes]
    assert len(repeated) == len(set(repeated))
    assert len(ended) == len(set(ended)), "one fact takes the place of another"
    assert set(repeated) | set(ended) <= ids
    assert not set(repeated) & set(ended)
    shown = {seq for one in found for seq in one.seqs}
    read = {seq for first, last in extracted for seq in range(first, last + 1)}
    for one in (*learned.facts, *learned.repeated):
        assert one.seqs
        assert list(one.seqs) == sorted(set(one.seqs))
        assert set(one.seqs) <= shown - read
        assert 0 < one.confidence <= 1
    by_word = [number for one in learned.facts if one.category not in single for number in one.supersedes]
    assert not any(known[number - 1].confirmed for number in by_word), "never against a person's word"
    before = {one.id: one.confidence for one in known}
    assert all(one.confidence >= before[one.fact] for one in learned.repeated)
    fingerprints = [one.fingerprint for one in learned.facts]
    assert len(fingerprints) == len(set(fingerprints))
    assert {one.content for one in learned.facts} <= {one.content for one in found}
    now = {one.content: one.category for one in written(known, learned)}
    for category in single:
        assert sum(one.category == category for one in learned.facts) <= 1
        said = any(now.get(one.content) == category for one in (*learned.facts, *(known[at - 1] for at in repeated)))
        assert not said or list(now.values()).count(category) == 1, "the latest value is the only one"


@few
@given(known=documents, found=st.lists(statements, max_size=8), single=singles, data=st.data())
def test_what_was_said_after_all_messages_goes_on(
    known: list[KnownFact],
    found: list[ExtractedFact],
    single: tuple[str, ...],
    data: st.DataObject,
) -> None:
    """However late they are read, they end nothing that was said since, and put nothing beside it."""
    told = {seq: datetime(2026, 6, 1, 12, seq, tzinfo=UTC) for seq in range(31)}
    hours = data.draw(st.lists(st.sampled_from([11, 13, None]), min_size=len(known), max_size=len(known)))
    times = [None if hour is None else datetime(2026, 6, 1, hour, tzinfo=UTC) for hour in hours]
    known = [replace(one, said_at=at) for one, at in zip(known, times, strict=True)]
    found = said_again(known, found)
    now = written(known, learn(known, *found, single=single, said_at=told))
    since = [one for one, hour in zip(known, hours, strict=True) if hour == 13]
    assert {one.id for one in since} <= {one.id for one in now}
    before = {one.id: one.category for one in known}
    for one in since:
        if one.category in single:
            came = [other for other in now if other.category == one.category != before.get(other.id)]
            assert came == []


@few
@given(known=documents, found=st.lists(statements, max_size=8), single=singles)
def test_the_same_messages_twice_add_nothing(
    known: list[KnownFact], found: list[ExtractedFact], single: tuple[str, ...]
) -> None:
    """However the model words them the second time."""
    now = written(known, learn(known, *found, single=single))
    read = ((0, 30),)
    assert learn(now, *found, extracted=read, single=single) == LearnedFacts(subject="legacy-7")
    reworded = [replace(one, content=f"In other words: {one.content}") for one in found]
    assert learn(now, *reworded, extracted=read, single=single) == LearnedFacts(subject="legacy-7")


@few
@given(known=documents, found=st.lists(statements, max_size=8))
def test_the_same_statements_in_other_messages_add_nothing(known: list[KnownFact], found: list[ExtractedFact]) -> None:
    """They repeat what was learned of them, as far as they change nothing: what replaces may be replaced anew."""
    steady = [replace(one, replaces=None) for one in found]
    now = written(known, learn(known, *steady))
    later = [replace(one, seqs=tuple(seq + 100 for seq in one.seqs)) for one in steady]
    again = learn(now, *later)
    assert again.facts == ()
    assert {seq for one in again.repeated for seq in one.seqs} == {seq for one in later for seq in one.seqs}


@few
@given(known=documents, found=st.lists(statements, max_size=6), data=st.data())
def test_the_order_of_an_answer_tells_nothing_new(
    known: list[KnownFact], found: list[ExtractedFact], data: st.DataObject
) -> None:
    """Of statements of different messages, that of the messages counts."""
    apart = [replace(one, seqs=(at,)) for at, one in enumerate(found)]
    mixed = data.draw(st.permutations(apart))
    assert learn(known, *mixed, single=[CITY]) == learn(known, *apart, single=[CITY])


def test_the_labeled_pairs() -> None:
    """What is merged without a model says the same; nearly nothing is."""
    pairs = labeled_pairs()
    together = [pair for pair in pairs if learn(knows(pair.one), says(pair.other, 4)).repeated]
    right = sum(pair.label == "repetition" for pair in together)
    assert right / len(together) >= 0.98, [pair for pair in together if pair.label != "repetition"]


def test_the_observations_of_locomo(locomo: Path) -> None:
    """Fed twice, the second pass adds none, and hardly a sentence is merged into one that other messages say."""
    sentences = observations(locomo)
    assert len(sentences) == 2_541
    kept, added = fed_twice(sentences)
    assert added == 0
    assert sum(map(disjoint, kept)) < 0.03 * len(sentences)
