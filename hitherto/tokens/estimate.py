"""An upper estimate for models whose tokenizer is not at hand, by what each character costs other families."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Final

from hitherto.arrays import np
from hitherto.tokens.counters import CLAUDE_IMAGE, REMEMBER_UP_TO, REMEMBERED, BpeCounter, without_surrogates

_ASCII: Final = (
    (0x00, 0x7F, 52),  # punctuation and symbols
    (0x20, 0x20, 0),
    (0x09, 0x09, 95),
    (0x0A, 0x0A, 62),
    (0x30, 0x39, 67),  # one token a digit with the basis' third
    (0x41, 0x5A, 32),
    (0x61, 0x7A, 17),
    (0x77, 0x77, 33),  # w, which Welsh has more of
)
_RARE_IN_ENGLISH: Final = ("jkqxz", 125)
_SCRIPTS: Final = (
    (0x0080, 0x024F, 115),  # Latin beyond ASCII
    (0x0250, 0x036F, 200),
    (0x0370, 0x03FF, 100),  # Greek
    (0x0400, 0x045F, 55),  # Cyrillic, then its letters of other languages than Slavic ones
    (0x0460, 0x052F, 200),
    (0x0530, 0x058F, 200),  # Armenian
    (0x0590, 0x05FF, 90),  # Hebrew
    (0x0600, 0x077F, 120),  # Arabic
    (0x0780, 0x07FF, 200),
    (0x0900, 0x097F, 120),  # Devanagari
    (0x0980, 0x0DFF, 265),  # other scripts of India, of which Bengali and Tamil cost less
    (0x0980, 0x09FF, 190),
    (0x0B80, 0x0BFF, 190),
    (0x0E00, 0x0E7F, 160),  # Thai
    (0x10A0, 0x10FF, 190),  # Georgian
    (0x1E00, 0x1EFF, 250),  # Latin, most of it Vietnamese
    (0x2000, 0x206F, 150),  # quotes and dashes
    (0x3000, 0x30FF, 60),  # Japanese kana
    (0x3400, 0x9FFF, 130),  # Chinese characters
    (0xAC00, 0xD7AF, 150),  # Korean
    (0xD800, 0xDFFF, 200),  # halves of what lies beyond, such as emoji
)
_UNLISTED: Final = 300


@functools.cache
def _hundredths() -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """By UTF-16 unit, hundredths of a token beside what o200k counts. Source: fitted with linear programming, so that
    no passage of 20 characters and more costs more with any of eleven tokenizers: those of Mistral 7B (two), Mistral
    NeMo, Llama 2, 3 and 4, Qwen 2.5 and 3.6, DeepSeek V4 and Claude 2, and o200k. The passages were translations of one
    application into 80 languages, chats, code in 15 languages, base64, hexadecimal and decimal digits."""
    table = np.full(0x10000, _UNLISTED, dtype=np.int16)
    for first, last, hundredths in (*_ASCII, *_SCRIPTS):
        table[first : last + 1] = hundredths
    letters, hundredths = _RARE_IN_ENGLISH
    table[[ord(letter) for letter in letters]] = hundredths
    return table


_BLANK_AGAIN: Final = 7
_END_AGAIN: Final = 75
"""Hundredths for a blank behind a blank, and for the end of a line behind one, a tab or a blank: o200k has a token for
long runs, where others take one for 16 blanks, and one for each empty line."""

_AGAIN: Final = 60
_LONGEST_PIECE: Final = 5
_ROW: Final = re.compile(b"\1" * 3 + b"\1+")
"""A piece of up to so many characters that stands there three times or more, as in "hm hm hm", is charged twice, and at
least so many hundredths a character: o200k has learned whole rows of such pieces. Rows of one symbol, of a digit or of
blanks others have learned too."""


class EstimateCounter:
    """Charges what o200k counts and, for each character, what tokenizers of other families take more; one token for
    the blank that some put before a text; and at most one token per UTF-8 byte, which holds for every tokenizer that
    works on bytes. 0 for ''.

    No less than the tokenizers of Mistral, Llama, Qwen, DeepSeek and Claude 2 count for text in the scripts of the
    table, digits, code and base64; `python -m benchmarks.estimates` prints how far above. A piece of more
    than five characters that is repeated many times may take some tokens more, and so may single words that do not
    stand in running text: the charge of a letter is that of many words. Takes time linear in the text, as the
    basis does.

    `image_tokens` is what Anthropic states for the largest image that Claude does not scale down.
    """

    exact: bool = False
    image_tokens: int = CLAUDE_IMAGE
    low_image_tokens: int = CLAUDE_IMAGE

    def __init__(self, basis: BpeCounter) -> None:
        self.name: str = f"estimate({basis.name})"
        self._basis = basis
        self._remembered: Callable[[str], int] = functools.lru_cache(maxsize=REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Returns an upper estimate of the number of tokens of `text`."""
        return self._remembered(text) if len(text) <= REMEMBER_UP_TO else self._count(text)

    def __repr__(self) -> str:
        return f"EstimateCounter({self._basis!r})"

    def _count(self, text: str) -> int:
        try:
            units = text.encode("utf-16-le")
        except UnicodeEncodeError:
            text = without_surrogates(text)
            units = text.encode("utf-16-le")
        if not unicodedata.is_normalized("NFKC", text):  # as some tokenizers read it: "ﷺ" has 18 characters there
            return max(self._of(text, units), self._count(unicodedata.normalize("NFKC", text)))
        return self._of(text, units)

    def _of(self, text: str, units: bytes) -> int:
        read = np.frombuffer(units, dtype="<u2")
        blank, ends = read == ord(" "), (read == ord("\n")) | (read == ord("\r"))
        charged = _hundredths()[read]
        more = int(charged.sum(dtype=np.int64))
        more += _BLANK_AGAIN * int(np.count_nonzero(blank[1:] & blank[:-1]))
        more += _END_AGAIN * int(np.count_nonzero(ends[1:] & (ends | blank | (read == ord("\t")))[:-1]))
        more += int(np.maximum(charged, _AGAIN)[_repeated(read)].sum(dtype=np.int64))
        return min(self._basis.count(text) - (-more // 100) + 1, len(text.encode()))


def _repeated(read: np.ndarray[tuple[int], np.dtype[np.uint16]]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which units belong to a repeated piece; of a row of one character, only letters."""
    found = np.zeros(len(read), dtype=np.bool_)
    for length in range(1, _LONGEST_PIECE + 1):
        same = (read[length:] == read[:-length]).tobytes()
        for row in _ROW.finditer(same):
            if row.end() - row.start() >= 2 * length:
                found[row.start() : row.end() + length] = True
    found[1:] &= (read[1:] != read[:-1]) | (read[1:] >= ord("A"))
    return found
