"""What is shown of a tool's result in its place: its ids, numbers and names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.policy.key_values import key_values
from hitherto.errors import InvalidPolicy
from hitherto.policies import Drop, LastTokens, LastTurns, Nothing, Shorten, Stage, Summarize, Tokens, Window

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


@given(text=st.text(), most=st.integers(50, 400))
def test_it_is_short_and_says_nothing_else(text: str, most: int) -> None:
    shown = key_values(text, most)
    assert len(shown) <= most + 3
    assert all(word in text or word == "…" for word in shown.split(" ") if word)


def test_the_replacement_says_how_much_there_was_and_how_to_read_it() -> None:
    text = json.dumps(PROFILE) * 3
    shown = Shorten(characters=100).shown(7, "get_user", text)
    assert shown is not None
    assert shown.startswith(f"⟦{len(text)} characters, shortened; expand 7 shows all⟧ Mia Li ")
    assert Shorten(characters=100, never=("get_user",)).shown(7, "get_user", text) is None
    assert Shorten(characters=len(text) - 10).shown(7, "get_user", text) is None, "it would hardly be shorter"


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="take Redact"):
        Shorten(calls=True)
    with pytest.raises(InvalidPolicy, match="does not act within a turn"):
        Stage(Tokens(1_000), LastTokens(100), Drop(), within_turn=True)
    for keep in (LastTurns(3), Nothing(), Window(14)):
        with pytest.raises(InvalidPolicy, match="does not say what of a turn stays"):
            Stage(Tokens(1_000), keep, Summarize(), within_turn=True)
