"""How texts of users read on pages."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.plain_text import plain as visible
from hitherto.web.templating import duration, plain, prose


@given(st.text())
def test_nothing_hides(text: str) -> None:
    """What the engine takes for invisible is shown as a code, but for lines, tabs and joiners in their place."""
    left = plain(text)
    hidden = [one for one in left if not visible(one).strip() and not one.isspace() and one not in "\u200c\u200d"]
    assert [one for one in hidden if unicodedata.category(one) != "Co"] == []
    assert not any(one in left for one in text if one in "\u202e\u2066\x1b\xad\u034f\U000e0041\u2800")


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧 ❤️ 1️⃣ ©️", "می‌خواهم", "क्‍ष", "e\u0301\u0323", "שָׁלוֹם", "ที่นี่", "a\tb\nc", "日本語", "🏳️‍🌈", "র‍্য"],
)
def test_what_people_write_stays(text: str) -> None:
    assert plain(text) == text


def test_what_hides_or_piles_up_is_said() -> None:
    assert plain("tea\u00ad\U000e0041\ufe0f") == "tea⟨00AD⟩⟨E0041⟩⟨FE0F⟩"
    assert plain("pay\u200droll") == "pay⟨200D⟩roll"
    assert plain("👍" + "\ufe0f" * 3) == "👍\ufe0f⟨FE0F⟩⟨FE0F⟩"
    for mark in "\u0301\u0eb1\u0730":
        assert plain("a" + mark * 200) == "a" + mark * 4 + "⟨196 marks⟩"
    joined = "\u064e" * 4 + "\u200d"
    assert plain(f"ب{joined * 20}ب") == "ب" + "\u064e" * 4 + "⟨76 marks⟩\u200dب"
    assert plain("ب" + "\u200c\u064e" * 300).endswith("⟨296 marks⟩")


def test_code_stands_between_fences() -> None:
    made = prose("One\n```py\nx < 1\n```\nTwo\n```\nopen")
    code = '<pre><code dir="ltr">```py\nx &lt; 1\n```\n</code></pre>'
    assert made == f'<bdi dir="auto">One\n</bdi>{code}<bdi dir="auto">Two\n```\nopen</bdi>'


def test_fences_that_never_close_take_one_look_each() -> None:
    """Each was searched to the end of the text: a page of 50 KB took 11 seconds."""
    opened = "```a\n" * 200_000
    assert len(prose(opened, len(opened))) == len(opened) + len('<bdi dir="auto"></bdi>')


@pytest.mark.parametrize(
    ("seconds", "says"), [(0, "0 seconds"), (1.2, "1 second"), (480.49, "8 minutes"), (90_000, "1 day")], ids=str
)
def test_durations_in_their_largest_unit(seconds: float, says: str) -> None:
    assert duration(seconds) == says
