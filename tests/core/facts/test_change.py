"""What may be done to a fact by hand, when two are worded the same, and which bear on a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitherto.core.facts.change import check_change, deleted_fact, no_such_fact
from hitherto.core.facts.fact import FactAction, FactState, fingerprint_of_fact
from hitherto.core.facts.known import MOST_SHOWN, known_facts_to_show, pieces
from hitherto.core.facts.relevance import FactColumns, most_relevant_first, relevance_of
from hitherto.core.recall.terms import question_terms
from hitherto.core.scope import Scope
from hitherto.errors import InvalidFact, NotFound, StaleVersion
from tests.core.facts.fact_columns import columns, shares_shown
from tests.lengths import at_length, lasting

SCOPE = Scope(tenant="acme", user="ana", agent="planner")
CURRENT, ENDED = (FactState.CURRENT,), (FactState.SUPERSEDED, FactState.WITHDRAWN)
MAY = {
    FactAction.EDITED: CURRENT,
    FactAction.CONFIRMED: CURRENT,
    FactAction.SHARED: CURRENT,
    FactAction.UNSHARED: CURRENT + ENDED,
    FactAction.RESTORED: ENDED,
    FactAction.DELETED: CURRENT + ENDED,
}


@pytest.mark.parametrize(("action", "state"), list(product(FactAction, FactState)))
def test_what_may_be_done_in_which_state(action: FactAction, state: FactState) -> None:
    if state in MAY.get(action, ()):
        check_change(action, 2, state=state, version=3)
        check_change(action, 2, state=state, version=3, expect=3)
        with pytest.raises(StaleVersion, match="fact 2 is at version 3 and not 4") as told:
            check_change(action, 2, state=state, version=3, expect=4)
        assert told.value.actual == 3
        return
    with pytest.raises(NotFound if action in MAY and state is FactState.DELETED else InvalidFact):
        check_change(action, 2, state=state, version=3)


@pytest.mark.parametrize("action", MAY)
def test_two_current_facts_do_not_say_the_same(action: FactAction) -> None:
    state = MAY[action][0]
    if action in (FactAction.EDITED, FactAction.RESTORED):
        with pytest.raises(InvalidFact, match="fact 7 says already what 2 would say"):
            check_change(action, 2, state=state, version=3, alike=7)
    else:
        check_change(action, 2, state=state, version=3, alike=7)


def test_a_deleted_fact_is_called_deleted() -> None:
    """Whatever version it is expected to be at."""
    for action, expect in product(MAY, (None, 1)):
        with pytest.raises(NotFound) as told:
            check_change(action, 2, state=FactState.DELETED, version=3, expect=expect)
        assert f"{told.value}" == f"{deleted_fact(2)}"
    assert f"{deleted_fact(2)}".startswith("fact 2 is deleted: only ")


def test_who_has_no_such_fact_is_told_where_to_look() -> None:
    mine = f"{no_such_fact(SCOPE, 2)}"
    assert mine.startswith("scope acme/ana/planner has no fact 2; ")
    everywhere = f"{no_such_fact(SCOPE, 2, all_agents=True)}"
    assert everywhere.startswith("user 'ana' of tenant 'acme' has no fact 2; ")
    assert ("--all-agents" in mine, "--all-agents" in everywhere) == (True, False)
    for text in (mine, everywhere):
        assert "memory.facts(scope).list()" in text
        assert "`hitherto facts list`" in text


@pytest.mark.parametrize(
    "same",
    [
        "the user likes “café au lait” - a lot",
        '  The user likes\t"café au lait" – a lot...\n',
        'The user likes "cafe\u0301 au lait" — a lot!',
        'Ｔｈｅ user likes "café\u200b au lait" - a lot.',
    ],
)
def test_of_the_same_text(same: str) -> None:
    assert fingerprint_of_fact(same) == fingerprint_of_fact('The user likes "café au lait" - a lot.')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Is allergic to nuts.", "Is not allergic to nuts."),
        ("Tom knows C.", "Tom knows C++."),
        ("Is Tom ill", "Is Tom ill?"),
        ("-5", "5"),
        ("año", "ano"),
        ("a b", "ab"),
        ("", "a"),
    ],
)
def test_of_other_text(one: str, other: str) -> None:
    assert fingerprint_of_fact(one) != fingerprint_of_fact(other)


def test_it_stays_as_it_is() -> None:
    """It is kept with every fact."""
    kept = "10ab7eea1a2f3da2d02a2acfac96f361b45273ad5358ae7c6c24e794c739627d"
    assert fingerprint_of_fact("Plays the “cello” – daily…") == kept


@given(st.text(st.characters(exclude_categories=())))
def test_of_any_text(text: str) -> None:
    assert len(fingerprint_of_fact(text)) == 64
    assert fingerprint_of_fact(text) == fingerprint_of_fact(f"  {text} . ")


@pytest.mark.parametrize("piece", ["x", "👍🏽", "日 ", "\x00", "\ud800", "e\u0301\u0327", "\u2028"], ids=ascii)
def test_of_long_text(piece: str) -> None:
    """What takes the square of its length would never end."""
    assert len(fingerprint_of_fact(piece * 300_000)) == 64


few = settings(max_examples=40, deadline=None)


def order_of(known: FactColumns, question: str, vector: NDArray[np.float32] | None) -> list[int]:
    return most_relevant_first(known.ids, relevance_of(known, question_terms(question), vector)).tolist()


TOWN = ["Plays the cello.", "Was a nurse.", "Loves bees.", "Bees and cellos are what she loves.", "Lives in Turin."]


class TestRelevance:
    def test_by_words_the_most_first(self) -> None:
        order = order_of(columns(TOWN), "Does she love bees, or the cello?", None)
        assert order[0] == 3
        assert set(order[:3]) == {3, 2, 0}

    def test_of_equals_the_newest_first(self) -> None:
        for question in ("", "???", "quantum physics", "thanks!"):
            assert order_of(columns(TOWN), question, None) == [4, 3, 2, 1, 0]
        assert order_of(columns([]), "What of bees?", None) == []

    def test_by_likeness_where_there_are_vectors(self) -> None:
        """What has none is judged by its words alone."""
        rng = np.random.default_rng(7)
        made: dict[int, Sequence[float]] = {at: rng.normal(size=64).tolist() for at in range(40)}
        contents = [f"Knows the town number {at}." for at in range(41)]
        asked = np.asarray(made[17], dtype=np.float32)
        asked /= np.linalg.norm(asked)
        order = order_of(columns(contents, made), "Which instrument?", asked)
        assert order[0] == 17
        words = order_of(columns(contents, made), "Which instrument?", None)
        assert words[0] == 40, "without the question's vector they are as good as each other"
        by_both = order_of(columns([*contents[:40], "Plays an instrument."], made), "Which instrument?", None)
        assert by_both[0] == 40

    @few
    @given(contents=st.lists(st.text(max_size=40), max_size=12), question=st.text(max_size=40))
    def test_every_fact_has_one_place(self, contents: list[str], question: str) -> None:
        order = order_of(columns(contents), question, None)
        assert sorted(order) == list(range(len(contents)))


def shown(
    contents: Sequence[str],
    texts: Sequence[str],
    *,
    single: Sequence[int] = (),
    shared: Sequence[int] = (),
) -> list[int]:
    """The places that a model is shown by words; those in `shared` are facts of others."""
    places = np.arange(len(contents))
    return known_facts_to_show(
        columns(contents), pieces(texts), None, own=~np.isin(places, shared), single=np.isin(places, single)
    )


@pytest.mark.slow
class TestShownToAModel:
    TOWNS = tuple(f"Once visited the town number {at} of the county." for at in range(200))

    def test_those_that_bear_on_any_of_the_messages_the_most_first(self) -> None:
        known = list(self.TOWNS)
        known[77], known[3] = "Played the cello in an orchestra.", "Hated the sound of an orchestra."
        found = shown(known, ["Mum's cello!", "And that orchestra.", "What a day."])
        assert found[:2] == [77, 3]
        assert len(found) == MOST_SHOWN

    def test_those_of_others_are_not_shown(self) -> None:
        known = ["Played the cello.", *self.TOWNS]
        assert shown(known, ["Mum's cello!"])[0] == 0
        assert 0 not in shown(known, ["Mum's cello!"], shared=[0])

    def test_those_with_one_value_at_a_time_are_always_shown(self) -> None:
        """They may be replaced by what has no word in common with them."""
        known = ["Lives in Turin.", *(f"Loves bees number {at}." for at in range(99))]
        assert 0 not in shown(known, ["All those bees."])
        assert shown(known, ["All those bees."], single=[0])[0] == 0
        many = shown(known, ["All those bees."], single=range(50))
        assert many[:10] == list(range(40, 50)), "the newest ten"

    @lasting
    async def test_meanings_find_what_has_other_words(self) -> None:
        """Of the labeled repetitions and changes, beside long answers of an assistant."""
        by_words, by_meaning = await shares_shown(answers=3, every=1 if at_length() else 2)
        assert by_words >= 0.93
        assert by_meaning >= 0.97

    async def test_what_is_said_late_in_a_long_message_counts(self) -> None:
        assert min(await shares_shown(behind=20)) >= 0.9

    def test_chinese_too(self) -> None:
        """It has a term for each two characters, and no spaces."""
        known = [f"她去过第{at}号小镇。" for at in range(60)]
        known[7] = "她会拉小提琴。"
        for place in range(0, 600, 60):
            filler = "".join(chr(0x4E00 + (7 * at) % 3_000) for at in range(600))
            assert 7 in shown(known, [f"{filler[:place]}她的小提琴拉得真好{filler[place:]}"])

    def test_small_talk_chooses_none(self) -> None:
        known = ["Was where she was, and then they did it.", *self.TOWNS]
        assert 0 not in shown(known, ["And then what did they do?", "I see.", "Yes, that is it."])

    def test_what_the_assistant_says_counts_half_as_much(self) -> None:
        known = [*(f"Loved bees number {at}." for at in range(40)), "Played the cello."]
        known[0], known[1] = "Lived in Porto.", "Was a nurse."
        assert known_facts_to_show(
            columns(known),
            pieces(["Yes, she was a nurse."], ["So she lived in Porto?"]),
            None,
            own=np.ones(len(known), np.bool_),
            single=np.zeros(len(known), np.bool_),
        )[:2] == [1, 0]

    def test_what_is_said_once_counts_as_much_as_what_is_said_again_and_again(self) -> None:
        known = ["Played the cello in an orchestra.", *(f"Loved bees number {at}." for at in range(40))]
        assert shown(known, ["Her cello, her orchestra.", *["All those bees."] * 9])[0] == 0

    @pytest.mark.parametrize("length", [1, 99, 100, 101, 199, 200, 201, 299, 300, 301, 900])
    def test_pieces_have_all_of_a_text(self, length: int) -> None:
        """Each stretch of up to half a piece is whole in one of them, and none crosses from a text to the next."""
        text = "".join(chr(0x4E00 + at) for at in range(length))
        found = pieces([text, "And that.", text], ["And so?"])
        assert all(one in text for one in found if one not in ("And that.", "And so?"))
        assert all(any(text[at : at + 100] in one for one in found) for at in range(length))
        assert (found["And that."], found["And so?"]) == (1.0, 0.5)

    def test_what_both_say_is_what_a_user_says(self) -> None:
        assert pieces(["Porto."], ["Porto.", ""]) == {"Porto.": 1.0}

    def test_very_much_text_makes_few_pieces(self) -> None:
        assert len(pieces([f"{at:07}" * 1_000 for at in range(300)])) <= 1_000

    @few
    @given(
        contents=st.lists(st.sampled_from([*TOWN, "Lives in Bari."]), max_size=60),
        texts=st.lists(st.one_of(st.sampled_from(TOWN), st.text(max_size=20)), max_size=5),
        single=st.sets(st.integers(0, 59)),
        shared=st.sets(st.integers(0, 59)),
    )
    def test_whatever_is_known_and_said(
        self, contents: list[str], texts: list[str], single: set[int], shared: set[int]
    ) -> None:
        """As many as there are, at most MOST_SHOWN, each once, and the user's own."""
        found = shown(contents, texts, single=sorted(single), shared=sorted(shared))
        own = {at for at in range(len(contents)) if at not in shared}
        assert len(found) == len(set(found)) == min(len(own), MOST_SHOWN)
        assert set(found) <= own
