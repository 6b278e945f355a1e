"""Texts that are cut in the middle because they are too long for a context."""

from __future__ import annotations

from hitherto.core.context.budget import TokenCounter

MARK = "\n⟦{left:,} characters left out⟧\n"
"""Stands where the middle of a text was."""


def shortened(text: str, most: int, counter: TokenCounter) -> str:
    """The text, or as much of its beginning and its end, half each, as takes at most `most` tokens with what says how
    many characters are left out; "" where there is no room for any of it. Takes time in proportion to what fits."""
    fits, too_long = 0, max(most, 1)
    while too_long < len(text) and counter.count(_cut(text, too_long)) <= most:
        fits, too_long = too_long, 2 * too_long
    if too_long >= len(text):
        if counter.count(text) <= most:
            return text
        too_long = len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if counter.count(_cut(text, middle)) <= most:
            fits = middle
        else:
            too_long = middle
    return _cut(text, fits) if fits else ""


def _cut(text: str, kept: int) -> str:
    """The first and last characters, `kept` in all, and between them how many are left out."""
    tail = kept // 2
    return text[: kept - tail] + MARK.format(left=len(text) - kept) + text[len(text) - tail :]
