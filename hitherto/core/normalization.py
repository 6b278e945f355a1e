"""Unicode normalization of any text, in linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

MOST_MARKS = 30
"""The most combining characters in a row that are normalized together: the bound of Unicode's Stream-Safe Text Format
(UAX #15). No language writes more."""


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """What `unicodedata.normalize` gives; in a longer row of combining characters, MOST_MARKS are normalized at a time.

    `unicodedata.normalize` takes time quadratic in the length of such a row: 15 seconds for 120,000 characters.
    """
    if text.isascii():
        return text
    places = [0, *_breaks(text), len(text)]
    return "".join(unicodedata.normalize(form, text[start:end]) for start, end in pairwise(places))


def _breaks(text: str) -> Iterator[int]:
    """The places at which rows of combining characters are broken."""
    for found in _PERHAPS_MARKS.finditer(text):
        marks = 0
        for place in range(*found.span()):
            marks = marks + 1 if _combines(text[place]) else 0
            if marks > MOST_MARKS:
                yield place
                marks = 1


@lru_cache(maxsize=1_000)
def _combines(character: str) -> bool:
    """Whether its normal form begins with a combining character."""
    return character >= "\u0300" and unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


_PERHAPS_MARKS = re.compile(f"[\\W\uff9e\uff9f]{{{MOST_MARKS + 1},}}")
"""Rows that may be combining characters: neither letters nor digits, but for two halfwidth letters that normalize to
voicing marks of Japanese."""
