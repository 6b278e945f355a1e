"""What texts are about, by what comes often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.providers.extractive import names, topics

TALK = [
    "I want to fly to Lisbon in May. The budget is 900 euros.",
    "Hotel Aurora in Lisbon fits the budget. Shall I book the Hotel Aurora?",
    "Yes, please. Tell Ada that the booking is made, and that the budget holds.",
]


def test_topics_are_the_words_that_come_most_often() -> None:
    assert topics(TALK) == ["budget"]
    assert topics(["soup and bread", "bread, and soup, and bread"]) == ["bread", "soup"]


def test_names_are_the_capitals_that_come_more_than_once() -> None:
    assert names(TALK) == ["Lisbon"]
    assert names(["We took the Hotel Aurora.", "Is the Hotel Aurora nice? I love the Hotel Aurora."]) == [
        "Hotel Aurora"
    ]


@pytest.mark.parametrize("texts", [[], [""], ["The the THE"], ["What is it?", "It is."], ["1 2 3 1 2 3"]])
def test_what_says_little_has_neither(texts: list[str]) -> None:
    assert (topics(texts), names(texts)) == ([], [])


@given(st.lists(st.text()))
def test_any_texts_have_some(texts: list[str]) -> None:
    for found in (topics(texts), names(texts)):
        assert len(found) == len(set(found)) <= 6
        assert all(any(map(str.isalpha, word)) for word in found)
