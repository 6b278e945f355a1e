"""Normalization: what Python's own gives, without the time that it takes for rows of combining characters."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from itertools import groupby
from typing import Literal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hitherto.core.facts.fact import fingerprint_of_fact
from hitherto.core.plain_text import MOST_MARKS, normalized
from hitherto.core.recall.terms import analyzed, question_terms
from hitherto.core.recall.trigger_phrases import TRIGGERS, triggered

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

MARKS = [
    "\u0300",
    "\u0316",
    "\u0345",
    "\u05b0",
    "\u064b",
    "\u0f73",
    "\u0f71",
    "\u3099",
    "\uff9e",
    "\u1ab0",
    "\U0001d165",
]
PIECES = [
    *MARKS,
    *(
        "a",
        "é",
        "ﷺ",
        "ﬁ",
        "Å",
        "か",
        "ｶ",
        "각",
        "\u1100\u1161\u11a8",
        "\u0bc6\u0bbe",
        " ",
        "\n",
        "-",
        "“",
        "👍",
        "字",
        "1",
    ),
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=200).map("".join))
HOSTILE = ["\u0300\u0316", "\u0316", "\u0f73\u0f71", "\u0301\uff9e", "\u05b0\u064b", "\U0001d165\u0301"]


def longest_row(text: str) -> int:
    """Of combining characters, as they stand in the text."""
    rows = groupby(text, lambda one: unicodedata.combining(unicodedata.normalize("NFKD", one)[0]) != 0)
    return max((len(list(row)) for combining, row in rows if combining), default=0)


@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
@example("e" + "\u0316\u0301" * 15 + "e\u0301", "NFC")
@example("👍" * 40 + "\u0301" + "⊃\u0338" * 40, "NFC")
def test_it_is_what_python_gives(text: str, form: Form) -> None:
    assume(longest_row(text) <= MOST_MARKS)
    assert normalized(form, text) == unicodedata.normalize(form, text)


@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_all_of_a_longer_row_is_there(text: str, form: Form) -> None:
    text = f"{text}a{''.join(MARKS) * 9}{text}"
    found, python = normalized(form, text), unicodedata.normalize(form, text)
    assert sorted(unicodedata.normalize("NFD", found)) == sorted(unicodedata.normalize("NFD", python))


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The longest row of combining characters in each text that Python is given to normalize."""
    found: list[int] = []
    real = unicodedata.normalize

    def normalize(form: Form, text: str) -> str:
        if len(text) > 1:
            found.append(max((len(list(row)) for marks, row in groupby(text, _combines) if marks), default=0))
        return real(form, text)

    def _combines(character: str) -> bool:
        return unicodedata.combining(real("NFKD", character)[0]) != 0

    monkeypatch.setattr(unicodedata, "normalize", normalize)
    return found


@pytest.mark.parametrize("marks", HOSTILE)
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda text: triggered(text, TRIGGERS), id="phrases"),
        pytest.param(analyzed, id="terms"),
        pytest.param(question_terms, id="terms of a question"),
        pytest.param(fingerprint_of_fact, id="fingerprints"),
    ],
)
def test_python_gets_no_long_row(work: Callable[[str], object], marks: str, rows: list[int]) -> None:
    """It takes the square of a row's length: 15 seconds for 120,000 characters."""
    for text in (marks * 2_000, f"what did we discuss {marks * 2_000} last time", f"a{marks}" * 2_000):
        work(text)
    assert max(rows, default=0) <= MOST_MARKS


@pytest.mark.slow
def test_every_combining_character_is_one(rows: list[int]) -> None:
    every = [chr(point) for point in range(0x300, sys.maxunicode + 1) if unicodedata.category(chr(point)) != "Cs"]
    decomposed = unicodedata.normalize("NFKD", "\0".join(every)).split("\0")
    combining = [one for one, apart in zip(every, decomposed, strict=True) if unicodedata.combining(apart[0])]
    assert len(combining) > 900
    rows.clear()
    for one in combining:
        normalized("NFKD", one * (2 * MOST_MARKS))
    assert max(rows) == MOST_MARKS
