"""Upper estimates, each named by its formula, for models whose tokenizer is not available."""

from __future__ import annotations

from hitherto.tokens.bpe import BpeCounter, without_surrogates


class EstimateCounter:
    """Charges half as much again as another counter, rounded up, but at most one token per UTF-8 byte.

    The factor is room for vocabularies that split text more finely than o200k; the cap holds for every
    tokenizer that works on bytes. Never less than the counter it rests on; 0 for ''.

    `image_tokens` is what Anthropic states for the largest image that Claude does not scale down: about
    1,600, its width times its height in pixels divided by 750.
    """

    exact: bool = False
    image_tokens: int = 1_600
    low_image_tokens: int = 1_600

    def __init__(self, basis: BpeCounter) -> None:
        self.name: str = f"estimate({basis.name} x 1.5)"
        self._basis = basis

    def count(self, text: str) -> int:
        """Returns an upper estimate of the number of tokens of `text`."""
        return min((3 * self._basis.count(text) + 1) // 2, utf8_length(text))

    def __repr__(self) -> str:
        return f"EstimateCounter({self._basis!r})"


class ByteCounter:
    """Charges one token per UTF-8 byte: for text, a strict upper bound for any tokenizer that works on bytes.

    An image is charged as `EstimateCounter` charges it.
    """

    name: str = "utf8-bytes"
    exact: bool = False
    image_tokens: int = EstimateCounter.image_tokens
    low_image_tokens: int = EstimateCounter.low_image_tokens

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
