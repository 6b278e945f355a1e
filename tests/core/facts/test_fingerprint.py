"""When two statements are worded the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.facts.fact import fingerprint_of_fact


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
