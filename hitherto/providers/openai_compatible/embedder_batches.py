"""Texts cut to what a model reads, and put together into requests that an endpoint takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hitherto.tokens.estimate import utf8_length

_LONGEST_TOKEN = 8
"""Characters. What has longer ones on average is blanks or a pattern, of which the rest may go."""

_TRIES = 8
"""So often a text is cut by what its characters take on average."""


def without_rest(text: str, limit: int) -> str:
    """`text` without what nobody needs to look at who wants no more than `limit` tokens of it."""
    return text[: limit * _LONGEST_TOKEN]


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of `text` that has at most `limit` tokens by `count`, which counts no more than the bytes of UTF-8;
    in time that grows with `limit`, however long the text is."""
    text = without_rest(text, limit)
    if utf8_length(text) <= limit:
        return text
    for _ in range(_TRIES):
        tokens = count(text)
        if tokens <= limit:
            return text
        text = text[: min(len(text) * limit // tokens, len(text) - 1)]
    # Its tokens stand close together at its beginning, where few are left to go each time.
    fits, over = 0, len(text) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        fits, over = (middle, over) if count(text[:middle]) <= limit else (fits, middle)
    return text[:fits]


def portion(texts: Sequence[str], *, most: int, size: int) -> int:
    """How many of the first of `texts` go into one request: at most `most`, of at most `size` bytes of UTF-8 together;
    one in any case."""
    used = 0
    for number, text in enumerate(texts[:most]):
        used += utf8_length(text)
        if number and used > size:
            return number
    return min(len(texts), most)
