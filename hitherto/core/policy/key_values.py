"""What of a tool's result later calls are likely to name: its ids, numbers and names."""

from __future__ import annotations

import re
from itertools import accumulate

_WORD = re.compile(r"[\w@#$%.+:/\\-]*\w")
_OPENS = re.compile(r"(?:^|[.!?:\n]\s*)$")


def key_values(text: str, most: int) -> str:
    """The words of the text with a digit, an "@", a "/", a "_" or a capital, each once and in order, with a blank
    between them; where they have more than `most` characters, the first and the last of them, with "…" between.
    Numbers of one and two digits, names of fields in JSON and a capital that only begins a sentence do not count. Takes
    time in proportion to the text."""
    found = dict.fromkeys(one[0] for one in _WORD.finditer(text) if _tells(one[0], text, one.start(), one.end()))
    words = list(found)
    if sum(map(len, words)) + len(words) <= most:
        return " ".join(words)
    return " ".join([*_within(words, most // 2), "…", *reversed(_within(words[::-1], most // 2))])


def _within(words: list[str], most: int) -> list[str]:
    """The first of the words, as many as have at most `most` characters with a blank behind each."""
    return [word for word, end in zip(words, accumulate(len(one) + 1 for one in words), strict=True) if end <= most]


def _tells(word: str, text: str, start: int, end: int) -> bool:
    if word.isdigit():
        return len(word) > 2
    if any(map(str.isdigit, word)):
        return True
    if text[end : end + 2] == '":':
        return False
    if any(one in "@/\\_" for one in word):
        return True
    if word[1:].lower() != word[1:]:
        return True
    return word[0].isupper() and len(word) > 1 and not _OPENS.search(text[max(start - 3, 0) : start])
