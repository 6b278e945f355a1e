"""What is shown of a tool's result in its place: its ids, numbers and names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.policy.key_values import gist, key_values
from hitherto.errors import InvalidPolicy
from hitherto.policies import (
    AllOf,
    AnyOf,
    Drop,
    Fraction,
    LastTokens,
    LastTurns,
    Messages,
    Nothing,
    Redact,
    Seq,
    Shorten,
    Stage,
    Summarize,
    Tokens,
    Trigger,
    Turns,
    Undigested,
    Window,
)

PROFILE = {
    "name": {"first_name": "Mia", "last_name": "Li"},
    "email": "mia.li3818@example.com",
    "payment_methods": {"credit_card_4421486": {"last_four": "7447"}, "certificate_7504069": {"amount": 250}},
    "seats": 12,
    "cabin": "basic_economy",
}


def test_values_stay_and_names_of_fields_go() -> None:
    words = "Mia Li mia.li3818@example.com credit_card_4421486 7447 certificate_7504069 250 basic_economy"
    assert key_values(json.dumps(PROFILE), 400) == words


def test_each_stands_once_and_a_capital_that_begins_a_sentence_does_not_count() -> None:
    text = "The flight HAT069 leaves JFK. It lands in Boston. Then HAT069 goes to src/app/main.py, line 12 of 3400."
    assert key_values(text, 400) == "HAT069 JFK Boston src/app/main.py 3400"


def test_of_many_the_first_and_the_last_stay() -> None:
    shown = key_values(" ".join(f"id_{at:04}" for at in range(1_000)), 60)
    assert shown == "id_0000 id_0001 id_0002 … id_0997 id_0998 id_0999"


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_json_has_its_values_whichever_way_it_is_written(separators: tuple[str, str]) -> None:
    items = [
        {"id": 4711, "qty": 12, "name": "anna", "city": "oslo"},
        {"id": 815, "tags": ["late", "to pay"], "at": "9:30"},
    ]
    assert key_values(json.dumps(items, separators=separators), 400) == "4711 anna oslo 815 late 9:30"


@given(
    ids=st.lists(st.integers(100, 10**9), min_size=1, max_size=12, unique=True),
    names=st.lists(st.from_regex(r"[a-zé][a-z]{2,8}", fullmatch=True), max_size=5, unique=True),
    compact=st.booleans(),
)
def test_ids_and_names_of_json_stay_in_order(ids: list[int], names: list[str], *, compact: bool) -> None:
    text = json.dumps({"ids": ids, "names": names}, ensure_ascii=False, separators=(",", ":") if compact else None)
    assert key_values(text, 400) == " ".join([*map(str, ids), *names])


_SCRIPTS = (
    "Die Rechnung ist bezahlt, das Paket kommt am Freitag.",
    "the parcel is on its way and comes on friday",
    "包裹已经寄出，星期五送到。",
    "小包は発送されました。",
    "พัสดุถูกส่งแล้ว",
    "पार्सल भेज दिया गया है",
    "الطرد في الطريق",
    "החבילה בדרך",
    "посылка уже в пути",
    "def main(argv):\n    return run(argv)\n",
    "x" * 90,
)


@given(
    text=st.text(min_size=1).filter(str.strip) | st.lists(st.sampled_from(_SCRIPTS), min_size=1).map("\n".join),
    times=st.integers(1, 30),
    most=st.integers(50, 400),
)
def test_it_is_short_and_has_something_of_any_text_and_nothing_else(text: str, times: int, most: int) -> None:
    text *= times
    shown = gist(text, most)
    assert len(shown) <= most + 3
    assert all(word in text or word == "…" for word in shown.split(" ") if word)
    assert len(text) <= most or shown.strip(" …")


def test_an_id_among_letters_without_blanks() -> None:
    assert "4711" in gist("订单4711已经发货了请您注意查收" * 20, 100).split()


@pytest.mark.parametrize("text", ["-" * 200_000, "a-" * 100_000 + "-", ":" * 200_000, "x" * 200_000, "9" * 200_000])
def test_a_long_run_takes_time_in_proportion(text: str) -> None:
    assert len(gist(text, 400)) <= 403


def test_the_replacement_says_how_much_there_was_and_how_to_read_it() -> None:
    text = json.dumps(PROFILE) * 3
    shown = Shorten(characters=100).shown(7, "get_user", text)
    assert shown is not None
    assert shown.startswith(f"⟦{len(text)} characters, shortened; expand message 7 for all⟧ Mia Li ")
    assert Shorten(characters=100, never=("get_user",)).shown(7, "get_user", text) is None
    assert Shorten(characters=len(text) - 10).replacement("get_user", text) is None, "it would hardly be shorter"


@pytest.mark.parametrize(
    ("budget", "characters"), [(1, 300), (7_999, 300), (8_000, 600), (31_999, 600), (32_000, 1_200)]
)
def test_what_stays_grows_with_the_budget(budget: int, characters: int) -> None:
    assert Shorten().within(budget).characters == characters
    assert Shorten(characters=70).within(budget).characters == 70


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="take Redact"):
        Shorten(calls=True)
    with pytest.raises(InvalidPolicy, match="does not act within a turn"):
        Stage(Tokens(1_000), LastTokens(100), Drop(), within_turn=True)
    for keep in (LastTurns(3), Nothing(), Window(14)):
        with pytest.raises(InvalidPolicy, match="does not say what of a turn stays"):
            Stage(Tokens(1_000), keep, Summarize(), within_turn=True)


@pytest.mark.parametrize(
    "trigger",
    [
        Turns(3),
        Messages(3),
        Seq(3),
        Undigested(3),
        AnyOf((Turns(3), Messages(3))),
        AllOf((Turns(3), Messages(3))),
        AllOf((Tokens(1_000), Seq(3))),
    ],
)
def test_a_trigger_that_cannot_fire_within_a_turn_is_refused(trigger: Trigger) -> None:
    with pytest.raises(InvalidPolicy, match="wait for Tokens or Fraction"):
        Stage(trigger, LastTokens(100), Summarize(), within_turn=True)


@pytest.mark.parametrize("of", [Tokens(1_000), Fraction(0.5)])
def test_one_that_counts_tokens_is_enough(of: Trigger) -> None:
    for trigger in (of, AnyOf((Turns(3), of)), AllOf((Turns(3), of))):
        Stage(trigger, LastTokens(100), Redact(), within_turn=True)
