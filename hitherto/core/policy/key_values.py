"""What of a tool's result later calls are likely to name: its ids, numbers and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""The letters of scripts that put no blank between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""

_RUN = re.compile(rf"(?:(?![{_UNSPACED}])[\w@#$%.+:/\\-])+")
_GAP = " … "

_LOOKED_AT = 50_000
"""Characters at the beginning and at the end of a long text in which its values are looked for."""

_OPENS = re.compile(r"(?:^|[.!?:\n]\s*)$")


def key_values(text: str, most: int) -> str:
    """The words of the text with a digit, an "@", a "/", a "_" or a capital, and if there is room the strings of one
    word in JSON, each once and in order, with a blank between them; where they have more than `most` characters, the
    first and the last of them, with "…" between.

    Numbers of one and two digits, names of fields in JSON and a capital that only begins a sentence do not count. Of a
    very long text, its beginning and its end are looked at."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    found: dict[str, bool] = {}
    for word, tells in _words(text):
        found[word] = tells or found.get(word, False)
    words = list(found)
    if _size(words) > most:
        words = [word for word in words if found[word]]
    if _size(words) <= most:
        return " ".join(words)
    return " ".join([*_within(words, most // 2), "…", *reversed(_within(words[::-1], most // 2))])


def gist(text: str, most: int) -> str:
    """The key values of the text, in at most `most` characters; where they have less than a quarter of that, and the
    text more, between its beginning and its end."""
    values = key_values(text, most)
    if len(values) >= most // 4 or len(text) <= most:
        return values
    ends = max((most - len(values)) // 2 - len(_GAP), 0)
    parts = " ".join(text[:ends].split()), values, " ".join(text[len(text) - ends :].split())
    return _GAP.join(part for part in parts if part)


def _within(words: list[str], most: int) -> list[str]:
    """The first of the words, as many as have at most `most` characters with a blank behind each."""
    return [word for word, end in zip(words, accumulate(len(one) + 1 for one in words), strict=True) if end <= most]


def _size(words: Sequence[str]) -> int:
    return sum(map(len, words)) + len(words)


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """The words that count, and whether each does by what it is."""
    for run in _RUN.finditer(text):
        word = run[0].lstrip(":.%+")
        start = run.end() - len(word)
        word = word.rstrip("@#$%.+:/\\-")
        end = start + len(word)
        tells = bool(word) and _tells(word, text, start, end)
        if tells or (word and _is_string(text, start, end)):
            yield word, tells


def _is_string(text: str, start: int, end: int) -> bool:
    return text[max(start - 1, 0) : start] == '"' == text[end : end + 1] and text[end + 1 : end + 2] != ":"


def _tells(word: str, text: str, start: int, end: int) -> bool:
    if word.isdigit():
        return len(word) > 2
    if any(map(str.isdigit, word)):
        return True
    if text[end : end + 2] == '":':
        return False
    if any(one in "@/\\_" for one in word) or word[1:].lower() != word[1:]:
        return True
    return word[0].isupper() and len(word) > 1 and not _OPENS.search(text[max(start - 3, 0) : start])
