"""What an endpoint with OpenAI's embeddings API accepts, learned from its error messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_SHORTEST = 16
"""Tokens of a text at which its length is no longer taken for the cause of an error."""

_TOO_LONG = re.compile(
    r"(maximum|max|exceeds?|longer than)\W.{0,40}(context|input|sequence|length)|context (length|size|window)|"
    r"too (long|large to process)|must have less than \d+ tokens",
    re.IGNORECASE,
)
"""In the messages of OpenAI, vLLM, llama.cpp, Ollama and Text Embeddings Inference about a text that is too long."""

_TOO_MANY = re.compile(r"(allowed|maximum) batch size|too many inputs|(max|maximum) number of inputs", re.IGNORECASE)
"""In the messages of Text Embeddings Inference and Azure about too many texts."""

_TOO_LARGE = "request too large"
"""In OpenAI's 429 for one request above the account's tokens per minute."""

_DIMENSIONS = re.compile(r"dimension|matryoshka", re.IGNORECASE)

_NUMBER = re.compile(r"(?<![\w.-])\d{2,6}(?![\w-]|\.\d)")


@dataclass(frozen=True, slots=True)
class EmbedderDialect:
    """The maximum tokens of one text (`limit`) and texts of one request (`most`), the dimensions to ask for (None: not
    sent), and whether vectors are requested in base64 or as decimals."""

    limit: int
    most: int
    dimensions: int | None
    base64: bool = True

    def next_dialect(self, status: int, reason: str) -> EmbedderDialect:
        """The dialect to try after an error with `status` and `reason`; this one if they are about something else."""
        if self.most > 1 and (_TOO_LARGE in reason.lower() if status == 429 else _TOO_MANY.search(reason)):
            return replace(self, most=self.most // 2)
        # llama.cpp's server answers 500 to what is too long for it.
        if status not in (400, 413, 422) and not (status == 500 and "too large to process" in reason):
            return self
        if self.base64 and "encoding_format" in reason:
            return replace(self, base64=False)
        if self.dimensions is not None and _DIMENSIONS.search(reason):
            return replace(self, dimensions=None)
        if self.limit > _SHORTEST and _TOO_LONG.search(reason):
            return replace(self, limit=_shorter(self.limit, reason))
        return self


def _shorter(limit: int, reason: str) -> int:
    """The smallest limit that the error names below `limit`, else half of `limit`: an endpoint may count more tokens
    than we do."""
    named = [int(number) for number in _NUMBER.findall(reason)]
    return min((one for one in named if _SHORTEST <= one < limit), default=max(limit // 2, _SHORTEST))
