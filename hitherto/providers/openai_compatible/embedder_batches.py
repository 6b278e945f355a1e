"""Cuts texts to a model's limit of tokens, and says how many of them go into one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitherto.tokens.estimate import utf8_length

_LONGEST_TOKEN = 8
"""Characters. Only blanks and repeated patterns have longer tokens on average, and their rest may be lost."""

_TRIES = 8
"""How often a text is cut by its average of characters per token, before the place is searched for."""


def without_rest(text: str, limit: int) -> str:
    """The beginning of `text` that is long enough for its first `limit` tokens, as far as `_LONGEST_TOKEN` holds."""
    return text[: limit * _LONGEST_TOKEN]


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of `text` that has at most `limit` tokens by `count`, which must never count more than the bytes of
    UTF-8. The time grows with `limit`, not with the length of the text."""
    text = without_rest(text, limit)
    if utf8_length(text) <= limit:
        return text
    for _ in range(_TRIES):
        tokens = count(text)
        if tokens <= limit:
            return text
        text = text[: min(len(text) * limit // tokens, len(text) - 1)]
    # The tokens are dense at the beginning, so that each cut above removed little: bisect.
    fits, over = 0, len(text) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        fits, over = (middle, over) if count(text[:middle]) <= limit else (fits, middle)
    return text[:fits]


def portion(texts: Sequence[str], *, most: int, size: int) -> int:
    """How many of the first of `texts` go into one request: at most `most`, of at most `size` bytes of UTF-8 together,
    but always at least one."""
    used = 0
    for number, text in enumerate(texts[:most]):
        used += utf8_length(text)
        if number and used > size:
            return number
    return min(len(texts), most)
