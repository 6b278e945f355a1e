"""The estimate for models without a tokenizer at hand, against the tokenizers of other families."""

from __future__ import annotations

import gettext
import json
from collections.abc import Iterator
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.estimates import PASSAGES, families, main, passages
from hitherto.tokens import counter_for

LATIN = ["English", "German", "French", "Spanish", "Polish", "Turkish", "Indonesian", "Vietnamese"]
ESTIMATE = counter_for("a model of an unknown family")

pieces = st.sampled_from([text[at : at + 40] for text in PASSAGES.values() for at in range(0, len(text) - 40, 40)])


def largest(text: str) -> int:
    return max(count(text) for count in families().values())


@pytest.mark.parametrize("name", list(passages()))
def test_it_is_no_less_than_any_tokenizer_counts(name: str) -> None:
    text = passages()[name]
    for size in (len(text), 80, 20):
        for at in range(0, len(text), size):
            piece = text[at : at + size]
            assert ESTIMATE.count(piece) >= largest(piece)


@pytest.mark.parametrize("name", LATIN)
def test_for_latin_text_it_is_at_most_half_as_much_again(name: str) -> None:
    assert ESTIMATE.count(PASSAGES[name]) <= 1.5 * largest(PASSAGES[name])


@settings(deadline=None, max_examples=300)
@given(texts=st.lists(pieces, min_size=2, max_size=30), between=st.sampled_from([" ", "", "\n"]))
def test_it_is_no_less_for_mixtures_of_running_text(texts: list[str], between: str) -> None:
    text = between.join(texts)
    assert ESTIMATE.count(text) >= largest(text)


@pytest.mark.parametrize("letter", ["ﷺ", "ﬁ", "½", "և", "㍻", "ｆ"])
def test_it_is_no_less_for_what_tokenizers_write_out_first(letter: str) -> None:
    assert ESTIMATE.count(letter * 40) >= largest(letter * 40)


BLANKS = {
    "empty lines": "page one" + "\n" * 40 + "page two" + "\r\n" * 40,
    "a table": "\n".join("|".join(word.ljust(100) for word in ("a", "b", "c")) for _ in range(8)),
    "padded lines": "\n".join(f"line {number} of it".ljust(80) for number in range(20)),
    "indented": json.dumps({"a": [{"k": one, "v": {"x": [1, {"y": one}]}} for one in range(9)]}, indent=8),
    "braces": "\n".join(" " * (4 * depth) + "}" for depth in range(12, 0, -1)),
}


@pytest.mark.parametrize("text", BLANKS.values(), ids=BLANKS.keys())
def test_it_is_no_less_for_runs_of_blanks(text: str) -> None:
    assert ESTIMATE.count(text) >= largest(text)


PIECES = [
    "ab ",
    "hm ",
    "haha ",
    "o",
    "K",
    "Au",
    "?!",
    "=-=-",
    "....",
    "<br><br>",
    "<br>\n",
    " \n",
    "}\n",
    "\t",
    "哈",
    "ー",
    "،",
]


@pytest.mark.parametrize("piece", PIECES)
def test_it_is_no_less_for_a_short_piece_that_is_repeated(piece: str) -> None:
    for times in (10, 40, 200):
        assert ESTIMATE.count(piece * times) >= largest(piece * times)


@settings(deadline=None, max_examples=300)
@given(piece=st.text(st.sampled_from("aehlmorvwKAT  \n.-!?/<>=*"), min_size=1, max_size=5), times=st.integers(5, 60))
def test_it_is_no_less_for_any_short_piece(piece: str, times: int) -> None:
    assert ESTIMATE.count(piece * times) >= largest(piece * times)


def translations() -> Iterator[tuple[str, str]]:
    """Passages of about 250 characters in some 80 languages."""
    for folder in files("django").joinpath("conf/locale").iterdir():
        catalog = folder.joinpath("LC_MESSAGES/django.mo")
        if catalog.is_file():
            with catalog.open("rb") as file:
                found: dict[object, str] = vars(gettext.GNUTranslations(file))["_catalog"]
            text = "\n".join([one for key, one in found.items() if key and len(one) > 15])
            yield from ((folder.name, text[at : at + 250]) for at in range(0, min(len(text), 2_000), 250))


def test_it_is_no_less_in_eighty_languages() -> None:
    over = {language: text for language, text in translations() if ESTIMATE.count(text) < largest(text)}
    assert over == {}


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1].strip() == "GPT-4o"
    assert [row.split()[0] for row in rows] == list(passages())
