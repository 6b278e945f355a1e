"""Text that is shown on one line, with nothing in it that cannot be seen."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """`text` on one line, without what cannot be seen: what breaks a line, moves the cursor or is blank becomes a
    space; what turns the direction of writing, hides in a text, fills the place of a letter or is no character at all
    goes, but for what joins letters and emoji."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join("".join(_visible(character) for character in text).split())


def says_something(text: str) -> bool:
    """Whether a letter, a digit or a sign such as an emoji is to be seen in `text`; what stands in the place of an
    unreadable character is none."""
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
    """Whether it is none now or is reserved for what is invisible. Others without a category are newer than Python's
    table of them, as every year's emoji are."""
    number = ord(character)
    return number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF or 0xFFF0 <= number <= 0xFFF8 or number == 0x2065


_JOINING = frozenset("\u200c\u200d")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Hangul's: letters by their category, and nothing to the eye."""

_BLANK = "\u2800"
"""Braille without a dot: a sign by its category."""
