"""Text on one line, without invisible characters."""

from __future__ import annotations

import unicodedata


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
