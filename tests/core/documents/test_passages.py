"""Passages: every character that shows, none too long, whole seams, in linear time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from semantic_text_splitter import MarkdownSplitter, TextSplitter

from hitherto import tokens
from hitherto.core.documents import Passage, passages
from tests.store.samples import chances

count = tokens.counter_for(tokens.CANONICAL).count

ROOT = Path(__file__).resolve().parents[3]

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
HOSTILE = [
    *("\u2028", "\x85", "\r", "\n", "\r\n", " \n", "\t\n", "\n\r", "\t", "\xa0", " ", "\u3000", "x" + "\u2028" * 999),
    *("x" + " \n" * 499, " " * 9_999 + "x", "word ", "Some words here. ", "x\n", "a", "ab", "字", "ไทยไม่เว้นวรรค"),
    *("\u200b", "\u0300\u0316", "e\u0301", "👨\u200d👩\u200d👧", "🇩", "-", "=", ".", "-" * 900 + "a" * 4_000),
    *(
        "\t" * 900 + "a" * 4_000,
        "#",
        "# \n",
        "# x\n",
        "`",
        "```\n",
        "- \n",
        "> ",
        "| a ",
        "**a** ",
        "[a](b)",
        "[",
        "<",
        "$",
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


@settings(deadline=None)
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


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
@pytest.mark.parametrize(("limit", "overlap"), [(800, 100), (60, 20)])
def test_prose_is_cut_as_the_splitter_cuts_it(page: Path, limit: int, overlap: int) -> None:
    for text in page.read_text()[: 20 * limit], page.read_text().replace("#", "")[: 20 * limit]:
        for markdown, splitter in (True, MarkdownSplitter), (False, TextSplitter):
            cuts = splitter.from_callback(count, limit, overlap).chunk_indices(text)
            found = cut(text, limit=limit, overlap=overlap, markdown=markdown)
            assert [(one.start, one.text) for one in found] == cuts


def test_an_indented_line_does_not_break_the_splitter() -> None:
    """Trimmed by the splitter, its second piece would begin before the first."""
    text = "     nniie\n    -glr  e,uhklyr."
    checked(text, 16, 10, cut(text, limit=16, overlap=10, markdown=True))


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize(("limit", "overlap", "markdown"), [(800, 100, False), (100, 50, True)])
def test_the_work_is_linear(unit: str, limit: int, overlap: int, markdown: bool) -> None:
    work = calls = 0

    def counting(text: str) -> int:
        nonlocal work, calls
        work, calls = work + len(text), calls + 1
        assert calls <= size, "so many pieces are counted"
        assert work <= 200 * size + 400 * 20 * limit, "so many characters are counted"
        return count(text)

    for size in (2_000, 10_000):
        work = calls = 0
        text = (unit * size)[:size]
        found = passages(text, limit=limit, overlap=overlap, count=counting, markdown=markdown)
        assert not text[found[-1].start + len(found[-1].text) if found else 0 :].strip()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\u2028" * 300, id="separators"),
        pytest.param("x" + " \n" * 300, id="lines"),
        pytest.param("-" * 1_000 + "a" * 2_000, id="dashes before a word"),
    ],
)
@pytest.mark.parametrize("markdown", [False, True])
def test_what_takes_too_much_work_is_cut_all_the_same(text: str, markdown: bool) -> None:
    text = f"# Before\n\nWords. {text} words.\n\n## After\n\n" * 20
    checked(text, 32, 16, cut(text, limit=32, overlap=16, markdown=markdown))


@pytest.mark.parametrize("markdown", [False, True])
def test_behind_a_page_of_blanks_it_goes_on(markdown: bool) -> None:
    blanks = "\u2028" * 10_000 + "\n"
    text = f"{blanks}    one:\n        two{blanks}three{blanks * 3}"
    found = cut(text, limit=100, markdown=markdown)
    assert [one.text for one in found] == ["    one:\n        two" if markdown else "one:\n        two", "three"]
