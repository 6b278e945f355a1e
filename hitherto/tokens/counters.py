"""Token counters, exact and by bytes; and what an image costs."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import re
import threading
from collections.abc import Callable, Iterator
from typing import Final, Literal, Protocol, cast

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


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


class _Bindings(Protocol):
    def tokenizer_for_encoding(self, encoding_name: str) -> _Tokenizer: ...


class BpeCounter:
    """Counts in one of OpenAI's encodings, exactly as `tiktoken` does when no special token may act.

    Any text has a count: `<|endoftext|>` and its like are ordinary text, NUL is a character, surrogates that
    form a pair count as the character they form, and lone ones as U+FFFD. Time grows linearly with the text,
    whatever it is: 10,000,000 characters take 0.1 to 0.5 seconds, and up to ten where they are lines of some hundred
    dashes. The interpreter's lock is held for some milliseconds at a time, and longer only within text that has neither
    lines nor words of small letters.
    The vocabulary (about 65 MB of memory) is loaded at the first count, once per process; counters may be
    used from any thread.

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
        tokenizer = _tokenizer(self.name)
        text, removed = _without_long_runs(text)
        try:
            return tokenizer.count(text) + removed
        except UnicodeEncodeError:
            return tokenizer.count(without_surrogates(text)) + removed


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


def _without_long_runs(text: str) -> tuple[str, int]:
    """`text` with long runs of dashes and the like shortened, and the number of tokens that this takes away.

    The tokenizer takes thirty times as long for them as for words. All but the last tokens of a run have 64 characters,
    in both encodings. Whether tokens can stand side by side depends on nothing else, so one of several equal ones can
    go and the others stay.
    """
    removed = 0

    def shorter(run: re.Match[str]) -> str:
        nonlocal removed
        tokens = (len(run[0]) - _RUN // 2) // _RUN_TOKEN
        removed += tokens
        return run[0][tokens * _RUN_TOKEN :]

    if len(text) >= _RUN and any(run in text for run in _RUNS):
        text = _LONG_RUN.sub(shorter, text)
    return text, removed


_RUN: Final = 512
_RUN_TOKEN: Final = 64
_RUNS: Final = tuple(symbol * _RUN for symbol in "-*=#/")
_LONG_RUN: Final = re.compile("|".join(f"{re.escape(symbol)}{{{_RUN},}}" for symbol in "-*=#/"))


def without_surrogates(text: str) -> str:
    """Returns `text` with paired surrogates joined into their character and lone ones replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_loading = threading.Lock()
_loaded: dict[str, _Tokenizer] = {}


def _tokenizer(encoding: str) -> _Tokenizer:
    tokenizer = _loaded.get(encoding)
    if tokenizer is None:
        with _loading:
            tokenizer = _loaded.get(encoding)
            if tokenizer is None:
                tokenizer = _loaded[encoding] = _bindings().tokenizer_for_encoding(encoding)
    return tokenizer


def _bindings() -> _Bindings:
    """Loads the compiled half of bpe-openai, `bpe_openai._bindings`, without the package around it.

    The underscore is on purpose: the public `Encoding` refuses 1,000,000 characters, and the package's import
    alone builds the rank tables of three vocabularies in Python: 0.35 seconds and 68 MB that counting has no
    use for.
    """
    package = importlib.util.find_spec("bpe_openai")
    folder = package.submodule_search_locations if package else None
    spec = importlib.machinery.PathFinder.find_spec("bpe_openai._bindings", folder) if folder else None
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(
            "the token counter of Hitherto needs the package bpe-openai, which is not installed; "
            "run: pip install 'bpe-openai>=0.1.4,<0.2'",
            name="bpe_openai._bindings",
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Through object, because a module and a protocol do not overlap for a type checker.
    return cast("_Bindings", cast("object", module))


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
