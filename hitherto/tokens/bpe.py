"""Exact token counts for OpenAI's models, offline and in linear time."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import re
import threading
from collections.abc import Callable
from typing import Final, Literal, Protocol, cast

from hitherto.tokens.images import LOW_DETAIL, TILES

Encoding = Literal["o200k_base", "cl100k_base"]

# Messages, instructions and tool schemas are counted again at every turn. A count of a text of at most so many
# characters is remembered: it then takes 0.1 microseconds instead of two and one per 75 characters. Longer texts would
# be kept alive.
_REMEMBERED: Final = 2_048
_REMEMBER_UP_TO: Final = 16_384


class _Tokenizer(Protocol):
    def count(self, text: str) -> int: ...


class _Bindings(Protocol):
    def tokenizer_for_encoding(self, encoding_name: str) -> _Tokenizer: ...


class BpeCounter:
    """Counts in one of OpenAI's encodings, exactly as `tiktoken` does when no special token may act.

    Any text has a count: `<|endoftext|>` and its like are ordinary text, NUL is a character, surrogates that
    form a pair count as the character they form, and lone ones as U+FFFD. Time grows linearly with the text,
    whatever it is, with the interpreter's lock held: 10,000,000 characters take 0.1 to 0.5 seconds, and up to ten
    where they are lines of some hundred dashes.
    The vocabulary (about 65 MB of memory) is loaded at the first count, once per process; counters may be
    used from any thread.

    `image_tokens` and `low_image_tokens` are what a model is charged for an image, at most; see `images`.
    """

    exact: bool = True

    def __init__(self, encoding: Encoding, *, image_tokens: int = TILES, low_image_tokens: int = LOW_DETAIL) -> None:
        self.name: str = encoding
        self.image_tokens: int = image_tokens
        self.low_image_tokens: int = low_image_tokens
        self._remembered: Callable[[str], int] = functools.lru_cache(maxsize=_REMEMBERED)(self._count)

    def count(self, text: str) -> int:
        """Returns the number of tokens of `text`; 0 for ''."""
        return self._remembered(text) if len(text) <= _REMEMBER_UP_TO else self._count(text)

    def __repr__(self) -> str:
        return f"BpeCounter({self.name!r})"

    def _count(self, text: str) -> int:
        tokenizer = _tokenizer(self.name)
        text, removed = _without_long_runs(text)
        try:
            return tokenizer.count(text) + removed
        except UnicodeEncodeError:
            return tokenizer.count(without_surrogates(text)) + removed


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
