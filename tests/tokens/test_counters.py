"""Token counters, against tiktoken as an independent implementation and against their own promises."""

from __future__ import annotations

import functools
import sys
import threading
import unicodedata
import warnings
from typing import Any, cast

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from hitherto.tokens import CANONICAL, BpeCounter, ByteCounter, EstimateCounter, counter_for, counters
from hitherto.tokens.counters import Encoding
from tests.lengths import examples, lasting

ENCODINGS: list[Encoding] = ["o200k_base", "cl100k_base"]

# Pieces that pre-tokenizers disagree about: letters of every case, marks, digits, quotes, spaces, newlines.
HOSTILE = [
    *("a", "A", "é", "e\u0301", "\u0301", "\u0300\u0301", "ß", "\u017f", "İ", "ǅ", "中文", "한국어", "हि"),
    *("😀", "👩\u200d👧", "🏳\ufe0f\u200d🌈", "\u200d", "\ufeff", "\ufffd", "\ue000", "\U0010ffff"),
    *("1", "12", "123", "٣", "Ⅷ", "½", "'s", "'LL", "'\u017f", "\u2019t", ".", "...", "/", "//", "{}", "-"),
    *(" ", "  ", "\u00a0", "\u2003", "\u3000", "\t", "\x0b", "\x1c", "\x85", "\u2028", "\0", "\x7f"),
    *("\n", "\r", "\r\n", "\n\n", " token", "Ġ", "_", "$"),
    *("<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>"),
]
hostile_text = st.lists(st.sampled_from(HOSTILE), max_size=40).map("".join)
runs = st.builds(str.__mul__, st.sampled_from(HOSTILE), st.integers(0, 400))
any_text = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    hostile_text,
    runs,
    st.builds(str.__add__, runs, hostile_text),
)
RULES = ["-", "*", "=", "#", "/"]
BESIDE_RULES = [
    *RULES,
    " ",
    "\n",
    "\r",
    "\t",
    "a",
    "É",
    "1",
    "<",
    ">",
    "|",
    "+",
    "_",
    ".",
    "!",
    "'s",
    "字",
    "\u0301",
    "👍",
]
LENGTHS = st.one_of(st.integers(0, 90), st.integers(505, 700), st.integers(505, 1_500))
broken_text = st.text(st.one_of(st.characters(categories=["Cs"]), st.characters()), max_size=40)


@functools.cache
def reference(encoding: str) -> tiktoken.Encoding:
    """tiktoken's core on the vocabulary that bpe-openai ships (tiktoken would download its own)."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        from bpe_openai import registry

        data = cast("dict[str, Any]", registry.ENCODING_CONSTRUCTORS[encoding]())
    ranks = data["mergeable_ranks"]
    return tiktoken.Encoding(encoding, pat_str=data["pat_str"], mergeable_ranks=ranks, special_tokens={})


def reference_count(encoding: str, text: str) -> int:
    return len(reference(encoding).encode(text, disallowed_special=()))


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> Encoding:
    return request.param


@lasting
@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(deadline=None, max_examples=examples(70))
@given(text=any_text)
def test_counts_what_tiktoken_counts(encoding: Encoding, text: str) -> None:
    assert counter_for(encoding).count(text) == reference_count(encoding, text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(deadline=None, max_examples=15)
@given(text=any_text, times=st.integers(100, 2_000))
def test_counts_what_tiktoken_counts_in_long_texts(encoding: Encoding, text: str, times: int) -> None:
    long = f"{text} and then " * times
    assert counter_for(encoding).count(long) == reference_count(encoding, long)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(deadline=None)
@given(
    lines=st.lists(
        st.tuples(st.lists(st.sampled_from(BESIDE_RULES), max_size=3).map("".join), st.sampled_from(RULES), LENGTHS)
    )
)
def test_counts_what_tiktoken_counts_in_rules(encoding: Encoding, lines: list[tuple[str, str, int]]) -> None:
    text = "".join(beside + symbol * length for beside, symbol, length in lines)
    assert BpeCounter(encoding).count(text) == reference_count(encoding, text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(deadline=None)
@given(
    text=st.lists(st.one_of(hostile_text, st.sampled_from(["a b", " a", "\nx", "\n/", " \n", "A", "."]))).map("".join)
)
def test_counts_the_same_in_pieces(encoding: Encoding, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "_PIECE", 2)
        assert "".join(counters._pieces(text)) == text
        assert BpeCounter(encoding)._count(text) == reference_count(encoding, text)


def test_long_texts_are_counted_in_pieces() -> None:
    for text in ("some words of " * 500_000, "EVERY LINE ÉTÉ\n" * 500_000):
        pieces = list(counters._pieces(text))
        assert max(map(len, pieces)) <= 2 * counters._PIECE
        assert "".join(pieces) == text


@settings(deadline=None)
@given(text=any_text)
def test_a_remembered_count_is_the_same_count(text: str) -> None:
    padded = text + "x" * 200
    fresh = BpeCounter("o200k_base")
    assert fresh.count(padded) == fresh.count(padded) == reference_count("o200k_base", padded)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "utf8-bytes", "some-local-model"])
def test_nothing_costs_nothing(name: str) -> None:
    assert counter_for(name).count("") == 0


@lasting
@pytest.mark.parametrize("character", ["a", " ", "\n", "1", "é", "😀", "\u0301", "\0", *RULES])
def test_megabytes_of_one_character(encoding: Encoding, character: str) -> None:
    """One character repeated is one or more equal pieces: beyond its ends the count grows by a fixed step.

    The step is taken from tiktoken, whose time is quadratic here, at sizes that it can take; 1,920 characters
    hold a whole number of pieces of every length that occurs.
    """
    period = 1_920
    small, next_small = (reference_count(encoding, character * size) for size in (period, 2 * period))
    times = examples(1_700_000) // period
    expected = small + (times - 1) * (next_small - small)
    assert counter_for(encoding).count(character * (times * period)) == expected


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>"])
def test_special_tokens_are_ordinary_text(encoding: Encoding, special: str) -> None:
    count = counter_for(encoding).count
    assert count(special) > 1
    assert count(special) == reference_count(encoding, special)
    assert count(f"before{special}after") == reference_count(encoding, f"before{special}after")


@pytest.mark.parametrize(
    ("broken", "same_as"),
    [
        ("\ud800", "\ufffd"),
        ("a\udc00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud800\ud83d\ude00\ud800", "\ufffd😀\ufffd"),
        ("\ufeffx\ud800" + "y" * 300, "\ufeffx\ufffd" + "y" * 300),
        ("\ud800" * 20_000, "\ufffd" * 20_000),
    ],
)
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "utf8-bytes", "some-local-model"])
def test_surrogates_count_as_what_they_stand_for(name: str, broken: str, same_as: str) -> None:
    assert counter_for(name).count(broken) == counter_for(name).count(same_as)


def test_nul_is_a_character(encoding: Encoding) -> None:
    assert counter_for(encoding).count("\0") == 1
    assert counter_for(encoding).count("a\0b") == reference_count(encoding, "a\0b")


@lasting
@settings(deadline=None, max_examples=examples(70))
@given(text=st.one_of(any_text, broken_text))
def test_the_estimate_lies_between_the_exact_count_and_the_bytes(text: str) -> None:
    exact, estimate = counter_for(CANONICAL).count(text), counter_for("some-local-model").count(text)
    read = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    size = len(read.encode())
    assert size == counter_for("utf8-bytes").count(text)
    assert exact <= estimate <= max(size, len(unicodedata.normalize("NFKC", read).encode()))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((m, "o200k_base") for m in ("gpt-4o", "gpt-4o-mini-2024-07-18", "GPT-4.1-nano", "chatgpt-4o-latest")),
        *((m, "o200k_base") for m in ("gpt-5", "gpt-5.2-mini", "o1", "o1-preview", "o3-2025-04-16", "o4-mini")),
        *((m, "o200k_base") for m in ("ft:gpt-4o-mini-2024-07-18:acme::9xYz", "openrouter/openai/gpt-4o:free")),
        *((m, "cl100k_base") for m in ("gpt-4", "gpt-4-0613", "gpt-4-turbo", "openai/gpt-4-32k", "ft:gpt-4:acme")),
        *((m, "cl100k_base") for m in ("gpt-3.5-turbo", "gpt-35-turbo", "azure/gpt-35-turbo-16k")),
        *((m, "estimate(o200k_base)") for m in ("llama3:8b", "anthropic/claude-sonnet-4", "o1x", "gpt-4all")),
        *((m, "estimate(o200k_base)") for m in ("", "olmo3", "mistralai/Mistral-7B", "ft:", "gpt4", "/")),
    ],
)
def test_models_find_their_counter(model: str, name: str) -> None:
    counter = counter_for(model)
    assert counter.name == name
    assert counter.exact == (name in ENCODINGS)
    assert counter_for(counter.name).name == counter.name


def test_models_that_tiktoken_knows_are_counted_as_it_says() -> None:
    known = MODEL_TO_ENCODING | MODEL_PREFIX_TO_ENCODING
    exact = {model: counter.name for model in known if (counter := counter_for(model)).exact}
    assert exact == {model: known[model].replace("harmony", "base") for model in exact}
    assert exact.keys() >= {"gpt-4o", "gpt-4", "gpt-35-turbo", "o3-", "gpt-oss-", "ft:gpt-4o"}


def test_what_an_image_is_charged() -> None:
    assert counter_for("gpt-4o").image_tokens == counter_for("gpt-4").image_tokens == 1_445
    assert counter_for("gpt-4o-mini").image_tokens == 2_833 + 8 * 5_667
    assert counter_for("openai/gpt-4.1-mini").image_tokens == 2_489
    assert counter_for("gpt-4o").low_image_tokens == 85
    assert counter_for("some-local-model").image_tokens == 1_600


def test_what_counters_say_of_themselves() -> None:
    assert isinstance(counter_for("utf8-bytes"), ByteCounter)
    assert isinstance(counter_for("some-local-model"), EstimateCounter)
    assert not counter_for("utf8-bytes").exact
    assert CANONICAL == counter_for(CANONICAL).name == "o200k_base"


def test_many_threads_may_count_first() -> None:
    counter, counts, start = BpeCounter("cl100k_base"), [], threading.Barrier(8)

    def count() -> None:
        start.wait()
        counts.append(counter.count("Where were we?"))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [reference_count("cl100k_base", "Where were we?")] * 8


def test_long_texts_are_not_kept_alive() -> None:
    counter = counter_for("o200k_base")
    text = "".join(["not interned "] * 10_000)
    before = sys.getrefcount(text)
    counter.count(text)
    assert sys.getrefcount(text) == before
