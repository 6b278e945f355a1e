"""What is checked of a text, part by part: as if it were searched whole, and others wait for no more than a part."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core import documents
from hitherto.core.documents import checked_text, fingerprint_of, heading_of, is_markdown
from hitherto.errors import InvalidDocument

TEXTS = st.lists(st.sampled_from(["\n", " ", " " * 60, "#", "# x", "```", "~~", "-", "a", "\0", "\ud800"])).map("".join)


def result(check: Callable[[str], Any], text: str) -> Any:
    try:
        return check(text)
    except InvalidDocument as error:
        return str(error)


@given(TEXTS, st.integers(1, 9))
def test_parts_are_searched_as_the_whole(text: str, part: int) -> None:
    checks = (checked_text, is_markdown, fingerprint_of)
    whole = [result(check, text) for check in checks]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(documents, "_PART", part)
        assert [result(check, text) for check in checks] == whole


@pytest.mark.parametrize("text", [" " * 300_000, "-\n" * 150_000, "#" + "\n" * 300_000], ids=["blanks", "lines", "#"])
def test_no_part_is_long(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0

    class Watched:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def search(self, text: str, start: int = 0, end: int = 2**62) -> re.Match[str] | None:
            nonlocal most
            most = max(most, min(end, len(text)) - start)
            return self._pattern.search(text, start, end)

        def match(self, text: str, start: int = 0, end: int = 2**62) -> re.Match[str] | None:
            nonlocal most
            most = max(most, min(end, len(text)) - start)
            return self._pattern.match(text, start, end)

    for name in ("_UNSTORABLE", "_SEEN", "_MARKDOWN", "_HEADING"):
        monkeypatch.setattr(documents, name, Watched(getattr(documents, name)))
    for check in (checked_text, is_markdown, heading_of):
        result(check, text)
    assert 0 < most < 60_000
