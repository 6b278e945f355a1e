"""Unicode normalization of any text, in linear time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

MOST_MARKS = 30
"""Combining characters in a row that are normalized together. No language writes more: it is the bound of Unicode's
Stream-Safe Text Format (UAX #15)."""


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """What `unicodedata.normalize` gives; of a longer row of combining characters, MOST_MARKS at a time.

    That function takes the square of the row's length: 15 seconds for 120,000 characters.
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
    """Whether it stands with the combining characters around it once it is normalized."""
    return character >= "\u0300" and unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


_PERHAPS_MARKS = re.compile(f"[\\W\uff9e\uff9f]{{{MOST_MARKS + 1},}}")
"""Rows of what is no letter and no digit, as marks are; two letters become marks of Japanese."""
