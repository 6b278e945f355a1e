"""Facts that say the same are merged, and no others: measured on labelled pairs and on LoCoMo, and case by case."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core import repetition_words as tables
from hitherto.core.repetition import LEAST_COSINE, Verdict, compared, fingerprint_of_fact, statement
from hitherto.core.repetition_forms import listed
from hitherto.embedders.wordllama import Wordllama
from tests.core.fact_pairs import cosines_of, labelled_pairs
from tests.core.observations import fed_twice, observations

PAIRS = labelled_pairs()
SENTENCES = sorted({text for pair in PAIRS for text in (pair.one, pair.other)})
COSINES = st.none() | st.floats(min_value=-1, max_value=1)

CANNOT_BE_THE_SAME = """
Tom lives in Rome. | Tom lived in Rome.
Tom has lived in Rome for two years. | Tom lived in Rome for two years.
Tom used to live in Rome. | Tom lives in Rome.
Tom no longer lives in Rome. | Tom lives in Rome.
Tom was a teacher. | Tom is a teacher.
Tom moved to Rome. | Tom moved from Rome.
Tom moved from Leeds to London. | Tom moved from London to Leeds.
Tom has a friend in Rome. | Tom has a friend from Rome.
Tom works at a bakery. | Tom has a bakery.
Tom plays the piano. | Tom has a piano.
Tom likes his teacher. | Tom likes to teach.
Tom likes fish. | Tom likes fishing.
Tom likes trains. | Tom likes training.
Tom loves paintings. | Tom loves painting.
Tom has a garden. | Tom gardens.
Tom is a general. | Tom is generally.
Tom has a brother. | Tom has brothers.
The user's daughter is four. | The user has four daughters.
Tom has a 12-year-old dog. | Tom has 12 dogs.
Tom owns two cats and three dogs. | Tom owns three cats and two dogs.
Tom has two sons and two daughters. | Tom has two sons and daughters.
Tom has a black dog and a white cat. | Tom has a white dog and a black cat.
Tom won 2-1. | Tom won 1-2.
Tom's number is 555-1234. | Tom's number is 555-1243.
Tom wakes up at 6 am. | Tom wakes up at 6 pm.
It is -5 degrees. | It is 5 degrees.
The party is on 10 December at 12. | The party is on 12 December at 10.
Guitar on Mondays and piano on Tuesdays. | Piano on Mondays and guitar on Tuesdays.
The user's tests run in 40 seconds. | The user's tests run every 40 seconds.
Tom likes tea but not coffee. | Tom likes coffee but not tea.
Tom eats neither meat nor fish. | Tom eats meat and fish.
Tom has no siblings and no pets. | Tom has siblings and pets.
Tom does not always eat meat. | Tom does not eat meat.
Tom never skips breakfast. | Tom always skips breakfast.
Tom hardly sleeps. | Tom sleeps.
Tom can't swim. | Tom can swim.
Tom can swim. | Tom swims.
Tom almost died. | Tom died.
Tom drinks too much. | Tom drinks much.
Tom will move to Rome. | Tom moved to Rome.
Tom would move to Rome for Anna. | Tom moved to Rome for Anna.
Tom is about to retire. | Tom is retired.
Tom hopes to win. | Tom won.
Tom wants to be a nurse. | Tom wants a nurse.
Tom prefers tea to coffee. | Tom prefers coffee to tea.
Tom prefers Python over Java. | Tom prefers Java over Python.
The user wants logs in JSON. | The user wants JSON in logs.
Anna told Tom about Lea. | Tom told Anna about Lea.
Anna is Tom's boss. | Tom is the boss of Anna.
Anna is a nurse and Lea is a teacher. | Anna is a teacher and Lea is a nurse.
Tom's wife's sister is ill. | Tom's sister's wife is ill.
Tom's wife works. | Tom works for his wife.
Tom knows Anna from school. | Tom knows Anna's school.
Tom gave up his job to write. | Tom gave up writing for his job.
Tom hired Anna. | Tom was hired by Anna.
Tom was given a dog. | Tom gave a dog.
Tom wrote a song about Anna. | Tom wrote a song for Anna.
Tom loves Anna. | Tom likes Anna.
Tom called Anna. | Tom is called Anna.
Tom is calling Anna. | Tom is called Anna.
He left her. | She left him.
His mother lives in Rome. | Her mother lives in Rome.
User's husband is a doctor. | User's wife is a doctor.
Tom moved to the US. | Tom moved.
Tom knows C++. | Tom knows C#.
Tom spent $50. | Tom spent €50.
Tom likes 🍎. | Tom likes 🍊.
Anna wohnte in Berlin. | Anna wohnt in Berlin.
Carlos vivió en Madrid. | Carlos vive en Madrid.
用户去过上海。 | 用户没去过上海。
"""

TURNS_WHO_DOES_WHAT = """
Likes Paul's cooking. | Likes cooking Paul's.
Has a few friends. | Has few friends.
Has a daughter in Paris. | Has a daughter called Paris.
Is taller than Ben. | Ben is taller than her.
Taught by Maria. | Taught Maria.
Teaches children French. | Teaches French children.
Plays cello in an orchestra. | Plays in an orchestra with a cello.
Says she can cook. | Can cook.
Likes tea or coffee. | Likes tea and coffee.
Has twin sons. | Has a twin and sons.
Cares for her mother. | Her mother cares for her.
Her son loves her. | She loves her son.
Is older than she looks. | Looks older than she is.
Is the son of a doctor. | Is a doctor and has a son.
Believes in God. | Believes in gods.
Stopped to smoke. | Stopped smoking.
Paid Ben back. | Ben paid back.
Her best friend died. | Her friend died best.
Tom drinks tea with milk. | Tom drinks tea and milk.
Tom loves cooking for friends. | Tom loves friends who cook.
Ben's sister is her boss. | Is Ben's sister's boss.
Owes the bank money. | The bank owes her money.
Introduced Ana to Ben. | Introduced Ben to Ana.
Her brother taught her to drive. | Taught her brother to drive.
Was left by her husband. | Left by her husband's car.
Has a son named Florence. | Has a son from Florence.
Got little sleep. | Got a little sleep.
Hopes that Ben is well. | Ben hopes that she is well.
Knows Ben's mother. | Ben's mother knows her.
Is a friend of the mayor. | Is the mayor and a friend.
Believes her son is innocent. | Her son is innocent.
Heard that Ana is pregnant. | Ana is pregnant.
Dreams she can fly. | Can fly.
Claims to be a doctor. | Is a doctor.
Told Ben that Ana was ill. | Told Ana that Ben was ill.
Would rather die than marry Ben. | Would rather marry Ben than die.
Earns more than her husband. | Her husband earns more than her.
Is as tall as Ben. | Is taller than Ben.
Works as a clown. | Works with a clown.
Dressed as a nurse. | Dressed a nurse.
Painted by Ana. | Painted Ana.
Robbed by a neighbour. | Robbed a neighbour.
A novel written by her father. | Her father, a novel writer.
Has a twin. | Is a twin.
Has a doctor. | Is a doctor.
Taught himself French. | Taught French.
Shot himself. | Shot.
Is used to smoking. | Used to smoke.
Remembered to call Ana. | Remembered calling Ana.
Wants Ben to leave. | Wants to leave Ben.
Had her car stolen. | Had stolen her car.
Moved because she was ill. | Was ill because she moved.
Ate because she was sad. | Ate and was sad.
Left Ben, who was ill. | Left Ben when ill.
Loves dogs but hates cats. | Hates dogs but loves cats.
Either tea or coffee is fine. | Both tea and coffee are fine.
Has Ben's car. | Ben has a car.
Is in Ben's band. | Ben is in a band.
The user has Ana's cat. | Ana has a cat.
Ben told the user about Lea. | The user told Ben about Lea.
The user's mother cares for the user. | The user cares for the mother.
Her mother is in a band. | Is in her mother's band.
Her sister is the boss. | Is the sister of the boss.
Is a dog trainer. | Trains a dog.
Has a horse race. | Has a race horse.
Lives in a boat house. | Lives in a house boat.
Prefers her dog to people. | Prefers people to her dog.
Is old enough to vote. | Is old and votes.
Eats because Ana cooks. | Cooks because Ana eats.
Tells him about Ben. | Tells Ben about him.
Gave her a dog. | Gave her dog.
Sees Ben as a son. | Sees Ben's son.
Grew up without a father. | Grew up as a father.
Ana makes her laugh. | Makes Ana laugh.
Followed by a black cat. | Followed a black cat.
Plays chess like Ben. | Plays chess with Ben.
Is married, and her sister is single. | Is single, and her sister is married.
Sold her a car. | Sold her car.
Was happy until Ben came. | Was happy when Ben came.
Some of her friends smoke. | Her friends smoke.
Gets her hair cut by Ana. | Cuts Ana's hair.
Has him paint the house. | Has painted the house.
Is about to lose her job. | Is to lose her job.
Is so shy that she never speaks. | Is shy and never speaks.
Likes it when it rains. | Likes rain.
Speaks to her mother. | Speaks for her mother.
Believes Ben. | Believes in Ben.
Thinks of Ben. | Thinks like Ben.
Ran into Ben. | Ran with Ben.
Ran over a dog. | Ran a dog.
Looks up to Ben. | Looks for Ben.
Turned down the job. | Turned the job up.
Is through with Ben. | Is with Ben.
Lives off her parents. | Lives with her parents.
Is over sixty. | Is sixty.
Is under thirty. | Is thirty.
Works from home. | Works at a home.
Has been to Rome. | Is from Rome.
Drinks while driving. | Drinks and drives.
Even Ben likes her. | Even likes Ben.
Is the only doctor. | Is only a doctor.
Was asked to leave. | Asked to leave.
Went out with Ben. | Went without Ben.
Is her own boss. | Is her boss.
Had two of his three dogs stolen. | Had three of his two dogs stolen.
Fears for her son. | Fears her son.
Cooks for Ben. | Cooks with Ben.
Is like her mother. | Likes her mother.
Her mother is like Ana. | Her mother likes Ana.
Smells like fish. | Likes the smell of fish.
Is married to a doctor. | Is a married doctor.
Is writing to Ben. | Is writing about Ben.
Was near death. | Was near, dead.
Called her sister Ana. | Called her sister, Ana's.
Her doctor is Ben. | Her doctor's Ben's.
Gave up on Ben. | Gave up Ben.
Put up with Ben. | Put Ben up.
Came between Ana and Ben. | Came with Ana and Ben.
Is too shy to sing. | Is shy to sing too.
Was made to sing. | Made to sing.
Her nurse is a friend of Ben. | Her friend is a nurse of Ben.
Thinks of leaving Ben. | Thinks Ben is leaving.
Ordered by Ben, she left. | Ordered Ben left.
Asked Ana about Ben's dog. | Asked Ben about Ana's dog.
Knows who killed Ben. | Knows whom Ben killed.
Does not know if Ben is alive. | Does not know Ben is alive.
Has a bad memory of school. | Has a memory of a bad school.
Bought a house from Ben for Ana. | Bought a house for Ben from Ana.
Is the mother of a nurse. | Has a mother who is a nurse.
Her mother is a nurse. | Is a nurse's mother.
Is a mother of twins. | Is a twin and a mother.
Was a witness against Ben. | Was with Ben a witness.
Was hit by a bus. | Hit a bus.
Ana was told by Ben to go. | Ana told Ben to go.
Thinks Ana likes Ben. | Ana thinks Ben likes her.
Is proud of her son's wife. | Is her proud son's wife.
Does what Ana says. | Says what Ana does.
Ana saw her swimming. | Saw Ana swimming.
Talks a little. | Talks little.
Never talks to strangers but Ben. | Never talks to strangers or Ben.
Her cousin from Rome knows Ben. | Her cousin knows Ben from Rome.
Is good with children. | Has good children.
Her son is a fan of Ben. | Is a fan of her son Ben.
Laughs at Ben's jokes. | Jokes at Ben's laugh.
Sent Ana's letter to Ben. | Sent Ben's letter to Ana.
Was driven home by Ana. | Drove Ana home.
Has a car like Ben's. | Likes Ben's car.
Plays for money. | Plays with money.
The user's cat is called Ana. | The user's cat called Ana.
Is sick of work. | Is sick from work.
Lives to work. | Works to live.
Is a man of few words. | Is a man with few words.
Is at war with Ben. | Was at war with Ben.
Went to school with Ben. | Went with Ben's school.
Is close to her mother. | Her mother is close.
Met Ana through Ben. | Met Ben through Ana.
Knows that Ana can drive. | Can drive, Ana knows that.
Cooks dinner for two friends. | Cooks two dinners for friends.
Sings in the shower. | Sings and showers.
Is the sister of Ana and Ben. | Is Ana, and the sister of Ben.
Ana is in love with Ben. | Ben is in love with Ana.
Ana's son loves Ben. | Ana loves Ben's son.
Wants to stop working to travel. | Wants to stop travelling to work.
Was hurt when Ben left. | Hurt Ben when she left.
"""
"""The same words, or nearly, in another structure. Facts leave their subject out, so that is what turns them most.
"Her uncle was a spy in Berlin" and "Her uncle was in Berlin a spy" are merged: they say the same."""

SAYS_THE_SAME = """
Tom likes films. | Tom enjoys watching movies.
Tom doesn't like cats. | Tom dislikes cats.
Tom can't stand cats. | Tom hates cats.
Tom has a dog called Rex. | Tom's dog is named Rex.
The parents of Hannah are divorced. | Hannah's parents are divorced.
Tom is a school art teacher. | Tom teaches art at a school.
User works at Acme as a nurse. | The user is a nurse at Acme.
Tom drives to work. | Tom goes to work by car.
Tom prefers tea over coffee. | Tom prefers tea to coffee.
Tom is allergic to peanuts. | Tom has a peanut allergy.
Tom eats no meat. | Tom is a vegetarian.
Tom no longer smokes. | Tom does not smoke any more.
Tom was born on 4 July 1988 in Rome. | Tom was born in Rome on July 4th, 1988.
Tom runs five miles daily. | Tom runs 5 miles every day.
Tom goes to church on Sundays. | Every Sunday Tom goes to church.
Tom is twenty-two. | Tom is 22 years old.
Tom’s favourite colour is grey. | TOM'S FAVORITE COLOR IS GRAY!
用户住在上海。 | 用户居住在上海。
Plays the cello. | She plays cello.
Was born in Porto in 1950. | In 1950 she was born in Porto.
Moved to Berlin in 2012 for work. | In 2012 she moved to Berlin for work.
Her boss is Ana. | Ana is her boss.
Ana is engaged to Ben. | Ana and Ben are engaged.
Has a dog named Rex. | Her dog is called Rex.
Is married to Daniel. | Her husband is Daniel.
Has a few friends in Rome. | Has several friends in Rome.
Taught by Maria at school. | At school, taught by Maria.
Cares for her mother. | Looks after her mother.
The user told Ben about Lea. | User told Ben about Lea.
"""


def both(lines: str) -> list[tuple[str, str]]:
    return [
        (one.strip(), other.strip()) for one, _, other in (line.partition("|") for line in lines.split("\n") if line)
    ]


def verdict(one: str, other: str, cosine: float | None) -> Verdict:
    found = compared(statement(one), statement(other), cosine=cosine)
    assert compared(statement(other), statement(one), cosine=cosine) is found
    return found


def test_enough_pairs_of_every_kind() -> None:
    labels = Counter(pair.label for pair in PAIRS)
    assert labels.total() >= 260
    assert labels["repetition"] >= 110
    assert min(labels.values()) >= 50
    assert len({frozenset((pair.one, pair.other)) for pair in PAIRS}) == len(PAIRS)
    assert {pair.category for pair in PAIRS} == {
        *("personality", "hobby", "relationship", "milestone", "occupation", "preference", "habit", "other")
    }


@pytest.mark.parametrize("by_words", [False, True])
async def test_the_labelled_pairs(by_words: bool) -> None:
    """Precision of merging at least 0.98 at a recall of at least 0.6; by words alone it may find less, but no worse."""
    cosines = [None] * len(PAIRS) if by_words else await cosines_of(PAIRS, Wordllama())
    found = [(pair, verdict(pair.one, pair.other, cosine)) for pair, cosine in zip(PAIRS, cosines, strict=True)]
    merged = [pair for pair, said in found if said is Verdict.REPEATS]
    right = sum(pair.label == "repetition" for pair in merged)
    assert right / len(merged) >= 0.98, [pair for pair in merged if pair.label != "repetition"]
    assert right / sum(pair.label == "repetition" for pair in PAIRS) >= (0.45 if by_words else 0.6)
    asked = [said is not Verdict.DIFFERS for pair, said in found if pair.label == "change"]
    apart = [said is Verdict.DIFFERS for pair, said in found if pair.label == "unrelated"]
    assert sum(asked) / len(asked) >= 0.85
    assert sum(apart) / len(apart) >= 0.9


@pytest.mark.parametrize("by_words", [False, True])
async def test_the_observations_of_locomo(locomo: Path, by_words: bool) -> None:
    """All sentences in random order, and again in another: the second pass adds none, and hardly a sentence is merged
    into one that other messages say."""
    sentences = observations(locomo)
    assert len(sentences) == 2_541
    fed = await fed_twice(sentences, random=Random(6), embedder=None if by_words else Wordllama())
    assert fed.kept + len(fed.merges) == len(sentences)
    assert fed.added_again == 0
    assert sum(merge.disjoint for merge in fed.merges) < 0.03 * len(sentences)
    assert fed.unsure < fed.kept  # what a model is asked about stays little


@pytest.mark.parametrize(("one", "other"), both(CANNOT_BE_THE_SAME + TURNS_WHO_DOES_WHAT))
def test_what_differs_is_never_merged(one: str, other: str) -> None:
    """However near the vectors are."""
    assert verdict(one, other, 1.0) is not Verdict.REPEATS
    assert verdict(one, other, None) is not Verdict.REPEATS


@pytest.mark.parametrize(("one", "other"), both(SAYS_THE_SAME))
def test_other_words_for_the_same(one: str, other: str) -> None:
    assert verdict(one, other, 0.8) is Verdict.REPEATS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Lives in Rome.", "Lives in Berlin."),
        ("The user likes coffee.", "The user dislikes coffee."),
        ("Maria has two sons.", "Maria has three sons."),
        ("Tom lives in Rome.", "Tom moved to Berlin."),
    ],
)
def test_a_possible_change_is_asked_about(one: str, other: str) -> None:
    assert verdict(one, other, 0.6) is Verdict.UNSURE


def test_little_more_takes_near_vectors() -> None:
    """What says next to nothing more is merged if the vectors are near, and never by words alone."""
    one, other = "Tom eats oats for breakfast.", "Tom always eats oats for breakfast."
    assert verdict(one, other, 0.95) is Verdict.REPEATS
    assert verdict(one, other, 0.6) is Verdict.UNSURE
    assert verdict(one, other, None) is Verdict.UNSURE


def test_a_detail_is_kept() -> None:
    assert verdict("Tom has a dog.", "Tom has a dog named Biscuit.", 0.99) is Verdict.UNSURE


def test_the_end_of_a_long_text_counts() -> None:
    """Only the beginning of a long text is read word by word; it is merged only if all of it is the same."""
    long = "Tom likes tea and he likes cake. " * 60
    assert verdict(f"{long}He lives in Rome.", f"{long}He lives in Bonn.", 1.0) is not Verdict.REPEATS
    assert verdict(f"{long}He lives in Rome.", f"{long}he lives in rome", 1.0) is Verdict.REPEATS


@given(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES), COSINES)
def test_the_order_makes_no_difference(one: str, other: str, cosine: float | None) -> None:
    found = verdict(one, other, cosine)
    if cosine is not None and cosine < LEAST_COSINE and fingerprint_of_fact(one) != fingerprint_of_fact(other):
        assert found is Verdict.DIFFERS


@given(st.lists(st.sampled_from(" ".join(SENTENCES).split()), max_size=12).map(" ".join), COSINES, st.data())
def test_the_order_makes_no_difference_to_any_words(one: str, cosine: float | None, data: st.DataObject) -> None:
    verdict(one, " ".join(data.draw(st.permutations(one.split()))), cosine)


@given(st.sampled_from(PAIRS))
def test_words_alone_merge_no_more_than_near_vectors(pair: object) -> None:
    assert isinstance(pair, type(PAIRS[0]))
    if verdict(pair.one, pair.other, None) is Verdict.REPEATS:
        assert verdict(pair.one, pair.other, 1.0) is Verdict.REPEATS


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())), COSINES)
def test_any_text_is_taken(one: str, other: str, cosine: float | None) -> None:
    verdict(one, other, cosine)
    assert verdict(one, one, cosine) is Verdict.REPEATS
    assert len(fingerprint_of_fact(one)) == 64
    if fingerprint_of_fact(one) == fingerprint_of_fact(other):
        assert verdict(one, other, cosine) is Verdict.REPEATS


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        "x ",
        "👍🏽",
        "中",
        "日 ",
        "\x00",
        "\ud800",
        "e\u0301\u0301",
        "-",
        "a-",
        "'",
        "a'",
        "1,",
        ".",
        "a/",
        "s ",
        "'s ",
        "2nd ",
        "not ",
        "to ",
    ],
)
def test_hostile_text(piece: str) -> None:
    """10,000 characters of one kind are neither an error nor slow."""
    text = piece * (10_000 // len(piece))
    begun = time.perf_counter()
    assert verdict(text, f"{text}!", 1.0) in Verdict
    assert verdict(text, "Tom likes tea.", 1.0) is not Verdict.REPEATS
    assert time.perf_counter() - begun < 0.5


def test_a_comparison_is_cheap() -> None:
    """At most 30 microseconds each, taken as the best of three rounds on a machine that does other things as well."""
    statements = [statement(text) for text in SENTENCES]
    taken: list[float] = []
    for _ in range(3):
        begun = time.perf_counter()
        for other in statements:
            compared(statements[0], other, cosine=0.9)
        taken.append((time.perf_counter() - begun) / len(statements))
    assert min(taken) < 30e-6


@pytest.mark.parametrize(
    "same",
    [
        "the user likes “café au lait” - a lot",
        '  The user likes\t"café au lait" – a lot...\n',
        'The user likes "cafe\u0301 au lait" — a lot!',
        'Ｔｈｅ user likes "café\u200b au lait" - a lot.',
    ],
)
def test_fingerprint_of_the_same_text(same: str) -> None:
    assert fingerprint_of_fact(same) == fingerprint_of_fact('The user likes "café au lait" - a lot.')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tom knows C.", "Tom knows C++."),
        ("Is Tom ill", "Is Tom ill?"),
        ("-5", "5"),
        ("año", "ano"),
        ("a b", "ab"),
        ("", "a"),
    ],
)
def test_fingerprint_of_other_text(one: str, other: str) -> None:
    assert fingerprint_of_fact(one) != fingerprint_of_fact(other)


def test_no_word_has_two_meanings() -> None:
    groups = Counter(word for group in listed(tables.GROUPS) for word in group.split())
    assert [word for word, times in groups.items() if times > 1] == []
    phrases = Counter(phrase.partition("=")[0].strip() for phrase in listed(tables.PHRASES))
    assert [phrase for phrase, times in phrases.items() if times > 1] == []
