"""The passages that long texts are ranked by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.recall.passages import CUT, LENGTH, excerpt, narrowed, passage_ranges

LINES = ["# A heading", "- a point of a list", "```python\nprint(1)\n```", "A sentence. One more!", "", "  ", "x" * 900]


@given(st.one_of(st.text(), st.lists(st.sampled_from(LINES), max_size=80).map("\n".join)))
def test_passages_are_all_of_the_text(text: str) -> None:
    ranges = passage_ranges(text)
    assert ranges[0][0] == 0
    assert all(start < end <= start + LENGTH for start, end in ranges[1:])
    gaps = zip((end for _, end in ranges), [*(start for start, _ in ranges[1:]), len(text)], strict=True)
    assert all(end <= start and not text[end:start].strip() for end, start in gaps)


@pytest.mark.parametrize("words", ["A word, ", "x" * 900 + " "])
@pytest.mark.parametrize("blanks", [900, CUT, 3 * CUT])
def test_blank_lines_are_no_passage(blanks: int, words: str) -> None:
    text = "\n" * blanks + words * 2_000 + "\n" * blanks + words
    ranges = passage_ranges(text)
    assert ranges[0][0] == 0
    assert all(text[start:end].strip() for start, end in ranges)
    assert words[:6] in text[slice(*narrowed(text, ranges[:1], words)[0])]


def test_a_short_text_is_one_passage() -> None:
    assert passage_ranges("") == ((0, 0),)
    assert passage_ranges("a\n\n" * (LENGTH // 3)) == ((0, LENGTH // 3 * 3),)


def test_code_and_lists_are_not_cut_where_they_need_not_be() -> None:
    code = "```python\ndef vat(net):\n    return net * 1.19\n```"
    text = "\n\n".join(["An introduction. " * 40, code, "A conclusion. " * 40])
    assert any(code in text[start:end] for start, end in passage_ranges(text))


def test_further_on_in_a_very_long_text_passages_are_longer() -> None:
    text = "word " * 1_000_000
    ranges = passage_ranges(text)
    assert len(ranges) <= 12 * CUT / LENGTH
    assert all(end - start <= max(LENGTH, start // (CUT // LENGTH)) for start, end in ranges[1:-1])
    assert all(text[start:end].rstrip().endswith("word") for start, end in ranges)
    assert ranges[-1][0] > 950_000
    assert ranges[-1][1] == len(text)
    assert len(passage_ranges("語" * 3 * CUT)) <= 5 * CUT / LENGTH


def test_of_a_long_passage_the_part_that_matches_is_shown() -> None:
    text = "\n".join(f"{n} INFO all is well" if n != 31_000 else "ERROR the magic port is 48213" for n in range(40_000))
    ranges = passage_ranges(text)
    (long,) = [(start, end) for start, end in ranges if "magic" in text[start:end]]
    ((start, end), other) = narrowed(text, [long, ranges[3], ranges[-1]], "magic port ERROR")
    assert "magic port" in text[start:end]
    assert end - start <= LENGTH < long[1] - long[0]
    assert other == ranges[3]


DATA = "data:image/png;base64,", "iVBORw0KGgo+/" * 15_000


@given(words=st.lists(st.sampled_from(["", "What is this?", *LINES[:4], "A sentence. " * 90]), min_size=1, max_size=60))
def test_data_in_a_text_is_in_no_passage(words: list[str]) -> None:
    text = f" {DATA[0]}{DATA[1]} ".join(words)
    ranges = passage_ranges(text)
    shown = excerpt(text, ranges)
    assert ranges[0][0] == 0
    assert len(ranges) <= 3 * CUT / LENGTH
    if len(words) < CUT // LENGTH // 2:
        assert DATA[1][:1_000] not in shown
        assert [one for one in shown.split() if one != "…"] == text.replace(DATA[1], "").split()


def test_data_alone_is_one_passage_without_a_word() -> None:
    assert passage_ranges(DATA[1]) == ((0, 0),)


@pytest.mark.parametrize("text", ["-".join(["river", "stone", "tulip"] * 90), "ACGTTGCA" * 200])
def test_words_without_blanks_are_no_data(text: str) -> None:
    assert excerpt(text, passage_ranges(text)).replace(" … ", "") == text
