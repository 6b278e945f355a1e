"""Texts cut to a bound of tokens: never more, and no less than there is room for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hitherto.providers.openai_compatible.embedder import cut, portion
from hitherto.tokens import counter_for
from hitherto.tokens.counters import utf8_length

COUNTERS = [counter_for("cl100k_base"), counter_for("nobody-knows")]

WORDS = st.lists(st.sampled_from(["dawn ", "the ", "会议", "🦜", "zzzzqx", " . ", "\n\n", "e\u0301"]), max_size=200)


@example(text="¼", limit=2, counter=COUNTERS[1])  # estimated as what it is composed of
@given(text=st.one_of(st.text(), WORDS.map("".join)), limit=st.integers(1, 60), counter=st.sampled_from(COUNTERS))
def test_what_is_left_is_the_beginning_and_fits(text: str, limit: int, counter: Any):
    count = counter.count
    left = cut(text, limit, count)
    assert text.startswith(left)
    assert count(left) <= limit
    if len(text) <= 8 * limit and count(text) <= limit:
        assert left == text


@pytest.mark.parametrize("text", ["The barge leaves at dawn. ", "会议改到星期五。", "0123456789"])
def test_no_more_is_cut_than_has_to_be(text: str):
    count = counter_for("cl100k_base").count
    assert count(cut(text * 2_000, 500, count)) > 440


def test_the_rest_of_a_huge_text_costs_nothing():
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return counter_for("cl100k_base").count(text)

    cut("The barge leaves at dawn. " * 2_000_000, 512, count)
    assert sum(counted) < 100_000


@pytest.mark.parametrize("rest", [" ", "-"])
def test_a_dense_beginning_takes_few_counts(rest: str):
    """What is cut off by the average takes ever fewer tokens away."""
    dense = "会议改到星期五。" * 400
    limit = counter_for("cl100k_base").count(dense) + 10
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return counter_for("cl100k_base").count(text)

    left = cut(dense + rest * 7 * limit, limit, count)
    assert len(left) > len(dense)
    assert count(left) <= limit < count(left + rest * 200)
    assert len(counted) < 40


@given(texts=st.lists(st.text(max_size=20), max_size=12), most=st.integers(1, 8), size=st.integers(1, 40))
def test_a_portion_is_the_largest_that_an_endpoint_takes(texts: list[str], most: int, size: int):
    taken = portion(texts, most=most, size=size)
    assert taken <= most
    assert taken >= min(len(texts), 1)
    total = sum(utf8_length(text) for text in texts[:taken])
    assert total <= size or taken <= 1
    if taken < min(len(texts), most):
        assert total + utf8_length(texts[taken]) > size
