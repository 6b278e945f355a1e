"""Which model has which counter, by its name."""

from __future__ import annotations

import functools
import re
from typing import Final

from hitherto.core.log.message import CANONICAL
from hitherto.tokens.counters import BpeCounter, ByteCounter, Encoding, image_rates
from hitherto.tokens.estimate import EstimateCounter

_O200K = BpeCounter(CANONICAL)
_CL100K = BpeCounter("cl100k_base")
_BYTES = ByteCounter()
_ESTIMATE = EstimateCounter(_O200K)

_BY_NAME: Final = {counter.name: counter for counter in (_O200K, _CL100K, _BYTES, _ESTIMATE)}

# As OpenAI's tiktoken has it. (gpt-oss has o200k with other special tokens, which here are inert anyway.)
_BY_MODEL: Final[tuple[tuple[re.Pattern[str], Encoding], ...]] = (
    (re.compile(r"(chat)?gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134](-|$)"), "o200k_base"),
    (re.compile(r"gpt-4(-|$)|gpt-3\.?5"), "cl100k_base"),
)


def counter_for(model_or_encoding: str) -> BpeCounter | EstimateCounter | ByteCounter:
    """Returns the counter for a model, an encoding or a counter's `name`; always the same one for a
    name. Models of one encoding differ in what an image costs.

    Knows OpenAI's chat models, dated ("gpt-4o-2024-11-20"), fine-tuned ("ft:gpt-4o-mini:acme::abc") or behind
    a provider's prefix ("openrouter/openai/gpt-4o"). Any other name gets the estimate, whose `exact` is
    False. Case does not matter.
    """
    name = model_or_encoding.strip().lower()
    named = _BY_NAME.get(name)
    if named is not None:
        return named
    model = name.rpartition("/")[2].removeprefix("ft:").partition(":")[0]
    for pattern, encoding in _BY_MODEL:
        if pattern.match(model):
            return _counter(encoding, *image_rates(model))
    return _ESTIMATE


@functools.cache
def _counter(encoding: Encoding, image_tokens: int, low_image_tokens: int) -> BpeCounter:
    plain = _BY_NAME[encoding]
    if (plain.image_tokens, plain.low_image_tokens) == (image_tokens, low_image_tokens):
        assert isinstance(plain, BpeCounter)
        return plain
    return BpeCounter(encoding, image_tokens=image_tokens, low_image_tokens=low_image_tokens)
