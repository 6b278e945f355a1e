"""What of a tool's result later calls are likely to name: its ids, numbers and names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""The letters of scripts that put no blank between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""

_RUN = re.compile(rf"(?:(?![{_UNSPACED}])[\w@#$%.+:/\\-])+")
_OPENS = re.compile(r"(?:^|[.!?:\n]\s*)$")


def key_values(text: str, most: int) -> str:
    """The words of the text with a digit, an "@", a "/", a "_" or a capital, and strings of one word in JSON, each once
    and in order, with a blank between them; where they have more than `most` characters, the first and the last of
    them, with "…" between. Where they have less than half of that, and the text more, its beginning and its end stand
    around them.

    Numbers of one and two digits, names of fields in JSON and a capital that only begins a sentence do not count. Takes
    time in proportion to the text."""
    words = list(dict.fromkeys(_words(text)))
    if sum(map(len, words)) + len(words) <= most:
        shown = " ".join(words)
    else:
        shown = " ".join([*_within(words, most // 2), "…", *reversed(_within(words[::-1], most // 2))])
    if len(shown) >= most // 2 or len(text) <= most:
        return shown
    ends = max((most - len(shown)) // 2 - len(_GAP), 0)
    parts = " ".join(text[:ends].split()), shown, " ".join(text[len(text) - ends :].split())
    return _GAP.join(part for part in parts if part)


_GAP = " … "


def _within(words: list[str], most: int) -> list[str]:
    """The first of the words, as many as have at most `most` characters with a blank behind each."""
    return [word for word, end in zip(words, accumulate(len(one) + 1 for one in words), strict=True) if end <= most]


def _words(text: str) -> Iterator[str]:
    for run in _RUN.finditer(text):
        word = run[0].lstrip(":.%+")
        start = run.end() - len(word)
        word = word.rstrip("@#$%.+:/\\-")
        if word and _tells(word, text, start, start + len(word)):
            yield word


def _tells(word: str, text: str, start: int, end: int) -> bool:
    if word.isdigit():
        return len(word) > 2
    if any(map(str.isdigit, word)):
        return True
    if text[end : end + 2] == '":':
        return False
    is_string = text[max(start - 1, 0) : start] == '"' == text[end : end + 1]
    if is_string or any(one in "@/\\_" for one in word) or word[1:].lower() != word[1:]:
        return True
    return word[0].isupper() and len(word) > 1 and not _OPENS.search(text[max(start - 3, 0) : start])
