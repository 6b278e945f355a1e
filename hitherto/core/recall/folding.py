"""Forms of letters that make no difference to a search: case, width, accents, vowel points, digits of other scripts."""

from __future__ import annotations

import re
import unicodedata

from hitherto.core.plain_text import normalized

# Vowel points, the tatweel and the nukta, which people may leave out when typing; other scripts' marks are letters.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed\u093c\ufe00-\ufe0f\u200b-\u200f\u00ad\ufeff]+"
)
_ACCENTS = re.compile("(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f]+")  # й is a letter, and ends words
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ＇`´", "'"))
_LETTERS = str.maketrans(
    {"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe"}
    | {"ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه", "ँ": "ं"}
    | {
        chr(point): str(unicodedata.decimal(chr(point)))
        for point in range(0x0600, 0x1100)
        if unicodedata.category(chr(point)) == "Nd"
    }
)
# Hindi's half nasals, which may be written as a dot.
_NASALS = re.compile("[\u0919\u091e\u0923\u0928\u092e]\u094d(?=[\u0915-\u092e])")


def lower(text: str) -> str:
    """A text in lower case, of full width and without points. Accents are part of their letters."""
    if text.isascii():
        return text.lower()
    apart = _POINTS.sub("", normalized("NFKD", text.translate(_APOSTROPHES))).casefold()
    return _ACCENTS.sub("", normalized("NFC", _POINTS.sub("", apart)))


def folded(text: str) -> str:
    """What `lower` returns, without accents and other differences that people may leave out when typing."""
    if text.isascii():
        return text
    plain = normalized("NFC", _ACCENTS.sub("", normalized("NFKD", text)))
    return _NASALS.sub("\u0902", plain.translate(_LETTERS))
