"""Passages: every character that shows, none too long, whole seams, in linear time."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hitherto import tokens
from hitherto.core.document import Passage
from hitherto.core.passages import passages
from hitherto.testing.material import chances

count = tokens.counter_for(tokens.CANONICAL).count

PIECES = [
    *("word", "another ", "Dr. Who. ", "1,000", "\n", "\n\n", "\r\n", "\t", "   ", "# Heading\n\n", "## Deeper\n"),
    *("- item\n", "1. first\n", "```python\nx = 1\n\n\ny = 2\n```\n", "| a | b |\n|---|---|\n", "> said\n"),
    *(
        "会议推迟到下周三。",
        "ไทยไม่เว้นวรรค",
        "👨‍👩‍👧",
        "é",
        "e\u0301" * 9,
        "\u200b",
        "\u2028",
        "<|endoftext|>",
        "a" * 200,
    ),
]
TEXTS = st.one_of(st.text(max_size=400), st.lists(st.sampled_from(PIECES), max_size=400).map("".join))


def cut(text: str, *, limit: int = 16, overlap: int = 4, markdown: bool = False) -> tuple[Passage, ...]:
    return passages(text, limit=limit, overlap=overlap, count=count, markdown=markdown)


def checked(text: str, limit: int, overlap: int, found: tuple[Passage, ...]) -> None:
    reached = 0
    for before, one in zip((None, *found), found, strict=False):
        assert text[one.start : one.start + len(one.text)] == one.text
        assert one.text.strip()
        assert one.text == one.text.rstrip(" \n\r\t").lstrip("\n\r")
        assert 0 < one.tokens == count(one.text) <= limit
        assert not text[reached : one.start].strip(), "what is between two passages is blank"
        if before is not None:
            assert one.start > before.start
            shared = text[one.start : reached].strip()
            assert count(shared) <= min(overlap, limit // 2) + 2
            assert one.start + len(one.text) > reached, "each passage has something new"
        reached = max(reached, one.start + len(one.text))
    assert not text[reached:].strip()


@given(TEXTS, st.integers(16, 60), st.integers(0, 80), st.booleans())
@example("x", 16, 0, False)
@example("", 16, 0, True)
@example(" \n\t " * 500, 16, 4, False)
@example("a" * 3_000, 16, 8, True)
@example("字" * 3_000, 16, 8, False)
@example(" " * 2_000 + "x" + " " * 2_000 + "y", 16, 8, False)
def test_passages_cover_the_text_within_the_limit(text: str, limit: int, overlap: int, markdown: bool) -> None:
    text = text.encode("utf-8", "replace").decode("utf-8")
    checked(text, limit, overlap, cut(text, limit=limit, overlap=overlap, markdown=markdown))


@pytest.mark.parametrize("markdown", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_text_of_many_windows_is_cut_without_a_seam(seed: int, markdown: bool) -> None:
    text = "".join(chances(seed).choices(PIECES, k=2_500))
    checked(text, 24, 8, cut(text, limit=24, overlap=8, markdown=markdown))


def test_a_short_text_is_one_passage() -> None:
    assert cut("  Lunch is at noon. \n") == (Passage("Lunch is at noon.", 2, 5),)


def test_it_cuts_after_sentences_and_shares_whole_ones() -> None:
    sentences = [f"Sentence number {n} says something." for n in range(12)]
    found = cut(" ".join(sentences), limit=24, overlap=10)
    assert all(one.text.startswith("Sentence") and one.text.endswith(".") for one in found)
    shared = [(a.start + len(a.text)) - b.start for a, b in pairwise(found)]
    assert min(shared) >= len(sentences[0]), "each begins with what the one before ended with"


def test_without_overlap_nothing_is_there_twice() -> None:
    found = cut("One two three. " * 100, limit=24, overlap=0)
    assert sum(len(one.text) for one in found) <= 1_500


def test_markdown_is_cut_at_its_headings() -> None:
    section = "Some words that take up room, and a few more of them.\n\n"
    text = "".join(f"## Part {n}\n\n{section}" for n in range(6))
    found = cut(text, limit=40, overlap=0, markdown=True)
    assert [one.text.startswith("## Part") for one in found] == [True] * len(found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 1_000_000, id="one character"),
        pytest.param("字" * 200_000, id="no seam"),
        pytest.param("x\n" * 250_000, id="lines of one character"),
        pytest.param(" " * 1_000_000 + "x", id="blanks"),
        pytest.param("Some words here. " * 60_000, id="sentences"),
    ],
)
@pytest.mark.parametrize("markdown", [False, True])
def test_a_megabyte_takes_seconds(text: str, markdown: bool) -> None:
    began = time.process_time()
    found = cut(text, limit=800, overlap=100, markdown=markdown)
    assert time.process_time() - began < 20
    assert found[-1].start + len(found[-1].text) == len(text.rstrip())
