"""Token counters, exact and by bytes; and what an image costs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from splintr import AnyTokenizer

_MOST_TILES: Final = 8
_MOST_PATCHES: Final = 1_536

LOW_DETAIL: Final = 85
TILES: Final = LOW_DETAIL + 170 * _MOST_TILES
"""The rate of GPT-4o, GPT-4.1 and GPT-4.5, taken for models of these encodings that are not listed."""


def _tiles(base: int, tile: int) -> tuple[int, int]:
    return base + tile * _MOST_TILES, base


def _patches(hundredths: int) -> tuple[int, int]:
    most = -(-_MOST_PATCHES * hundredths // 100)
    return most, most


_RATES: Final = (
    (re.compile(r"gpt-4o-mini"), _tiles(2_833, 5_667)),
    (re.compile(r"gpt-(4\.1|5)-nano"), _patches(246)),
    (re.compile(r"gpt-(4\.1|5)-mini"), _patches(162)),
    (re.compile(r"o4-mini"), _patches(172)),
    (re.compile(r"o[13](-|$)"), _tiles(75, 150)),
    (re.compile(r"gpt-5(-|$)"), _tiles(70, 140)),
)


def image_rates(model: str) -> tuple[int, int]:
    """The most tokens one image costs at high or automatic detail, and at low detail."""
    return next((rates for pattern, rates in _RATES if pattern.match(model)), (TILES, LOW_DETAIL))


Encoding = Literal["o200k_base", "cl100k_base"]

# Messages, instructions and tool schemas are counted again at every turn. A count of a text of at most so many
# characters is remembered: it then takes 0.1 microseconds instead of two and one per 75 characters. Longer texts would
# be kept alive.
REMEMBERED: Final = 2_048
REMEMBER_UP_TO: Final = 16_384


class BpeCounter:
    """Counts in one of OpenAI's encodings, exactly as `tiktoken` does when no special token may act.

    Any text has a count: `<|endoftext|>` and its like are ordinary text, NUL is a character, surrogates that
    form a pair count as the character they form, and lone ones as U+FFFD. Time grows linearly with the text,
    whatever it is: 10,000,000 characters of words take 0.1 seconds, and up to five where they are one word or one
    blank. The interpreter's lock is held for some milliseconds at a time, and longer only within text that has neither
    lines nor words of small letters.
    The vocabulary (about 30 MB of memory) is loaded at the first count; counters may be used from any thread.

    `image_tokens` and `low_image_tokens` are what a model is charged for an image, at most; see `images`.
    """

    exact: bool = True

    def __init__(self, encoding: Encoding, *, image_tokens: int = TILES, low_image_tokens: int = LOW_DETAIL) -> None:
        self.name: str = encoding
        self.image_tokens: int = image_tokens
        self.low_image_tokens: int = low_image_tokens
        self._remembered: Callable[[str], int] = functools.lru_cache(maxsize=REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Returns the number of tokens of `text`; 0 for ''."""
        return self._remembered(text) if len(text) <= REMEMBER_UP_TO else self._count(text)

    def __repr__(self) -> str:
        return f"BpeCounter({self.name!r})"

    def _count(self, text: str) -> int:
        return sum(map(self._count_piece, _pieces(text)))

    def _count_piece(self, text: str) -> int:
        encode = _tokenizer(self.name).encode_ordinary
        try:
            return len(encode(text))
        except UnicodeEncodeError:
            return len(encode(without_surrogates(text)))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of about `_PIECE` characters, cut where a token ends in both encodings, whatever stands
    beside: other threads go on between two of them. One piece where there is no such place."""
    start, at = 0, _PIECE
    while at < len(text):
        edge = _EDGE.search(text, at, at + _PIECE)
        if edge is not None:
            yield text[start : edge.end()]
            start = edge.end()
        at = (at if edge is None else start) + _PIECE
    yield text[start:]


_PIECE = 65_536
_EDGE: Final = re.compile(r"[a-z](?= [a-z])|\n(?=[^\s/])")
"""Behind a word and before the space of the next, or behind a line. (A slash belongs to the line ends before it.)"""


def without_surrogates(text: str) -> str:
    """Returns `text` with paired surrogates joined into their character and lone ones replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@functools.cache
def _tokenizer(encoding: str) -> AnyTokenizer:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(encoding)


CLAUDE_IMAGE: Final = 1_600
"""About what Anthropic states for the largest image that Claude does not scale down: its width times its height in
pixels divided by 750."""


class ByteCounter:
    """Charges one token per UTF-8 byte: for text, a strict upper bound for any tokenizer that works on bytes.

    An image is charged as with Claude.
    """

    name: str = "utf8-bytes"
    exact: bool = False
    image_tokens: int = CLAUDE_IMAGE
    low_image_tokens: int = CLAUDE_IMAGE

    def count(self, text: str) -> int:
        """Returns the number of bytes of `text` in UTF-8, surrogates counted as `BpeCounter` counts them."""
        return utf8_length(text)

    def __repr__(self) -> str:
        return "ByteCounter()"


def utf8_length(text: str) -> int:
    """Returns the number of bytes of `text` in UTF-8; a lone surrogate takes the three of U+FFFD."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return len(without_surrogates(text).encode())
