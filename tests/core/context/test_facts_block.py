"""How facts read in a context, and how many fit."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.core.context.blocks import HEADING, FactLine, block, fitting
from hitherto.core.plain_text import END, has_visible_text, plain

TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FILLERS = "\u115f\u1160\u3164\uffa0"
"""Hangul's, in the place of a letter."""
any_text = st.one_of(
    st.text(max_size=80),
    st.text("a- []()\n\r\x0b\x1c\x85\u2028\u2029\u2800" + TURNING + FILLERS, max_size=40),
)
few = settings(max_examples=60, deadline=None)


def line(
    content: str = "Plays the cello.", *, category: str = "hobby", shared: bool = False, fact: int = 1
) -> FactLine:
    return FactLine(fact=fact, version=1, category=category, content=content, shared=shared)


class TestForm:
    def test_the_seeds_form(self) -> None:
        lines = [line(), line("Was a nurse.", category="occupation", shared=True)]
        assert block("Rosa", lines) == (
            "Known facts about Rosa from conversations:\n"
            "- [hobby] Plays the cello. (personal)\n"
            "- [occupation] Was a nurse. (shared)\n" + END
        )
        assert HEADING == "Known facts about {name} from conversations:"

    @pytest.mark.parametrize(
        ("given", "shown"),
        [
            ("Plays the cello.", "Plays the cello."),
            ("  Plays\tthe\n\ncello. ", "Plays the cello."),
            ("a\r\nb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h", "a b c d e f g h"),
            ("\u202eno cello\u202c", "no cello"),
            ("bell\x07 and \x1b[2K escape", "bell and [2K escape"),
            ("lone \ud800 surrogate", "lone surrogate"),
            ("a\u2800b \u3164c\uffa0 \u115f\u1160", "a b c"),
            ("👩‍👩‍👧 plays 🎻", "👩‍👩‍👧 plays 🎻"),
            ("Où est le café?", "Où est le café?"),
            ("שלום עולם", "שלום עולם"),
            ("{name} %s {0}", "{name} %s {0}"),
            ("", ""),
            ("\n", ""),
        ],
    )
    def test_a_text_on_one_line(self, given: str, shown: str) -> None:
        assert plain(given) == shown

    @few
    @given(given_text=any_text)
    def test_any_text_on_one_line(self, given_text: str) -> None:
        shown = plain(given_text)
        assert len(shown.splitlines()) <= 1
        assert shown == plain(shown)
        assert not set(shown) & set(TURNING)
        assert not any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in shown)
        words = [one for one in given_text if one.isalnum() and one not in FILLERS]
        assert [one for one in shown if one.isalnum()] == words, "no word is lost"

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            *(
                (text, True)
                for text in ("a", "7", "½", "é", "猫", "ｱ", "한", "🎻", "👩\u200d👧", "- b", "\u1160a", "\U0001fa77")
            ),
            *((text, False) for text in ("", " ", "…", "-", "__", "\u0301", "\x00", "\u200b", "\u200d", "\ufe0f")),
            *((text, False) for text in ("\ufffd", "\ufffc", "\ue000", "\U000e0061", "\u2800", "\u2800\u2800")),
            *((text, False) for text in ("\ufdd0", "\uffff", "\U0010fffe", "\u2065", "\ufff3", "\U000e0fff")),
            *((text, False) for text in (*FILLERS, "\u3164 \u3164", "\u115f\u1160")),
        ],
        ids=ascii,
    )
    def test_what_says_something_has_a_letter_a_digit_or_a_sign_to_see(self, text: str, says: bool) -> None:
        assert has_visible_text(text) is says

    @few
    @given(given_text=any_text)
    def test_what_says_something_is_shown(self, given_text: str) -> None:
        assert has_visible_text(given_text) == has_visible_text(plain(given_text))
        assert plain(given_text) or not has_visible_text(given_text)

    @few
    @given(
        name=any_text,
        told=st.lists(st.tuples(any_text, any_text, st.booleans()), max_size=6),
    )
    def test_any_block_has_a_line_a_fact(self, name: str, told: list[tuple[str, str, bool]]) -> None:
        """And one above and one below: whatever name, category and content say."""
        text = block(name, [line(content, category=category, shared=shared) for category, content, shared in told])
        lines = text.splitlines()
        assert len(lines) == len(told) + 2
        assert lines[0].startswith("Known facts about ")
        assert lines[0].endswith(" from conversations:")
        assert lines[-1] == END
        for one, (_, _, shared) in zip(lines[1:-1], told, strict=True):
            assert one.startswith("- [")
            assert one.endswith(" (shared)" if shared else " (personal)")

    def test_a_name_has_its_length(self) -> None:
        assert len(block("R" * 1_000, []).splitlines()[0]) < 300


def fit(sizes: Sequence[int], room: int, *, factor: float = 1.0, order: Sequence[int] | None = None) -> list[int]:
    """The ids (place + 1) of the facts that fit, of `sizes` tokens; their lines take `factor` times what is judged."""
    found = fitting(
        list(range(len(sizes))) if order is None else order,
        lambda at: line("x" * sizes[at], fact=at + 1),
        np.array(sizes, np.int32),
        room=room,
        cost=costing(factor),
    )
    return [one.fact for one in found]


def costing(factor: float) -> Callable[[Sequence[FactLine]], int]:
    def cost(lines: Sequence[FactLine]) -> int:
        return int(factor * (30 + sum(len(one.content) + 6 for one in lines)))

    return cost


class TestFitting:
    def test_all_that_fit_in_order_of_extraction(self) -> None:
        assert fit([5, 5, 5], 1_000) == [1, 2, 3]
        assert fit([5, 5, 5], 1_000, order=[2, 0, 1]) == [1, 2, 3]
        assert fit([], 1_000) == []
        assert fit([5], 0) == fit([5], -9) == fit([5], 20) == []

    def test_the_first_of_the_order_before_others(self) -> None:
        assert fit([5] * 9, 100, order=[7, 3, 5, 0, 1, 2, 4, 6, 8])[:3] in ([4, 6, 8], [1, 4, 6])
        assert {8, 4} <= set(fit([5] * 9, 80, order=[7, 3, 5, 0, 1, 2, 4, 6, 8]))

    def test_one_that_is_too_long_is_passed_over(self) -> None:
        assert fit([500, 5, 5], 100) == [2, 3]
        assert fit([5, 500, 5], 100) == [1, 3]

    @pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
    def test_one_that_turns_out_too_long_is_passed_over_too(self, factor: float) -> None:
        """Where a model's tokens are counted by an upper bound, lines take more than was judged."""
        room = int(factor * (30 + 6 + 5)) + 5
        assert fit([5], room, factor=factor) == [1], "it fits by itself"
        assert fit([room - 55, 5], room, factor=factor) == [2]

    @few
    @given(
        sizes=st.lists(st.integers(1, 130), max_size=40),
        room=st.integers(-10, 1_500),
        factor=st.sampled_from([0.5, 1.0, 1.0, 1.4, 2.5]),
        seed=st.integers(0, 99),
    )
    def test_never_over_the_room(self, sizes: list[int], room: int, factor: float, seed: int) -> None:
        order = random.Random(seed).sample(range(len(sizes)), len(sizes))
        ids = fit(sizes, room, factor=factor, order=order)
        assert ids == sorted(set(ids))
        cost = costing(factor)
        assert not ids or cost([line("x" * sizes[at - 1]) for at in ids]) <= room
        taken = [at for at in order if at + 1 in ids]
        left = [at for at in order if at + 1 not in ids]
        if factor == 1.0 and left:
            # What was passed over would not have fitted beside those before it, as it was judged.
            for at in left:
                before = [one for one in taken if order.index(one) < order.index(at)]
                assert 40 + sum(sizes[one] + 8 for one in [*before, at]) > room
