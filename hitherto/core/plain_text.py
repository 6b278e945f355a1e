"""Text on one line without invisible characters, and in one normal form of Unicode."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal


def plain(text: str) -> str:
    """`text` on one line, without invisible characters.

    Control characters, lone surrogates and runs of white space become one space. Format characters (such as those that
    change the writing direction), private-use characters, tags, fillers and noncharacters are removed, but not the
    joiners of letters and emoji.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join("".join(_visible(character) for character in text).split())


def has_visible_text(text: str) -> bool:
    """Whether `text` shows a letter, a digit or a symbol such as an emoji. The placeholders for unreadable characters
    (U+FFFC, U+FFFD) do not count."""
    return any(unicodedata.category(one) in _TELLING and one not in _UNREADABLE for one in plain(text))


_TELLING = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So", "Cn"})
_UNREADABLE = frozenset("\ufffc\ufffd")


def _visible(character: str) -> str:
    kind = unicodedata.category(character)
    if kind in ("Cc", "Zl", "Zp", "Cs") or character == _BLANK:
        return " "
    hidden = kind in ("Cf", "Co") or character >= "\U000e0000" or character in _FILLERS or _is_no_character(character)
    return "" if hidden and character not in _JOINING else character


def _is_no_character(character: str) -> bool:
    """Whether it is a noncharacter, or reserved for invisible characters. Other unassigned characters are newer than
    Python's Unicode table, as every year's emoji are."""
    number = ord(character)
    return number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF or 0xFFF0 <= number <= 0xFFF8 or number == 0x2065


_JOINING = frozenset("\u200c\u200d")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Hangul fillers: letters by their category, but invisible."""

_BLANK = "\u2800"
"""The Braille pattern without dots: a symbol by its category, but blank."""


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
