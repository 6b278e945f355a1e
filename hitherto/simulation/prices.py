"""Price lists: what a model's provider charges for tokens, and which of them it has in its cache."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hitherto.errors import InvalidInput

_PER = 1_000_000
_CACHE_FROM, _CACHE_STEP = 1_024, 128
_LIST = {"date", "source", "cache", "models"}
_CACHE = {"at_least", "step"}
_MODEL = {"input", "cached_input", "cache_write", "output", "window"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one model costs, in US dollars for 1,000,000 tokens, as its provider's list had it on `date`.

    `window` is the most tokens of a prompt at this price. A prompt's start is served from the cache when at least
    `cache_from` tokens of it repeat an earlier prompt, in steps of `cache_step` (source: OpenAI's guide "Prompt
    caching": from 1,024 tokens on, in increments of 128). `cache_write` is charged instead of `input` for what a
    prompt of that length adds to the cache, where the provider charges for it.
    """

    model: str
    date: str
    input: float
    cached_input: float
    output: float
    window: int
    cache_write: float | None = None
    cache_from: int = _CACHE_FROM
    cache_step: int = _CACHE_STEP

    def cached(self, repeated: int) -> int:
        """How many tokens come from the cache when a prompt's first `repeated` tokens repeat the one before."""
        if repeated < self.cache_from:
            return 0
        return self.cache_from + (repeated - self.cache_from) // self.cache_step * self.cache_step

    def prompt(self, tokens: int, cached: int) -> float:
        """What a prompt of `tokens` costs in dollars, `cached` of them from the cache."""
        written = self.cache_write if self.cache_write is not None and tokens >= self.cache_from else self.input
        return ((tokens - cached) * written + cached * self.cached_input) / _PER

    def answer(self, tokens: int) -> float:
        """What an answer of `tokens` costs in dollars."""
        return tokens * self.output / _PER


def price_of(model: str | None, data: bytes, where: str) -> Price:
    """The price of `model` (or of the only one) in the price list `data`, which errors call `where`.

    A price list is a JSON object: `date`, `models` with, by name, `input`, `cached_input`, `output`, `window` and
    perhaps `cache_write`; and perhaps `source` and `cache` with `at_least` and `step`. Raises InvalidInput for
    anything else, and for a list without the model, naming those it has.
    """
    try:
        listed = _fields(json.loads(data), where, _LIST, needed={"date", "models"})
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{where} is no JSON: {error}") from error
    models = _object(listed["models"], f"{where}: models")
    cache = _fields(listed.get("cache", {}), f"{where}: cache", _CACHE, needed=set())
    if not isinstance(listed["date"], str):
        raise InvalidInput(f"{where}: date is {listed['date']!r}; say of which day the prices are, as text")
    if model is None and len(models) == 1:
        (model,) = models
    if model is None or model not in models:
        asked = "is to name a model" if model is None else f"has no price of {model!r}"
        raise InvalidInput(f"{where} {asked}; it has: {', '.join(models) or 'none at all'}")
    return _price(model, models[model], cache, date=listed["date"], where=where)


def _price(model: str, value: object, cache: Mapping[str, object], *, date: str, where: str) -> Price:
    of = f"{where}: {model}"
    fields = _fields(value, of, _MODEL, needed=_MODEL - {"cache_write"})
    money = {name: _money(fields[name], f"{of}.{name}") for name in _MODEL - {"window"} if name in fields}
    if money["cached_input"] > money["input"]:
        raise InvalidInput(f"{of} has cached input dearer than input; check whether the two changed places")
    return Price(
        model=model,
        date=date,
        input=money["input"],
        cached_input=money["cached_input"],
        cache_write=money.get("cache_write"),
        output=money["output"],
        window=_count(fields["window"], f"{of}.window"),
        cache_from=_count(cache.get("at_least", _CACHE_FROM), f"{where}: cache.at_least"),
        cache_step=_count(cache.get("step", _CACHE_STEP), f"{where}: cache.step"),
    )


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} is {value!r}; give a JSON object")
    return cast("dict[str, object]", value)


def _fields(value: object, where: str, known: set[str], *, needed: set[str]) -> Mapping[str, Any]:
    fields = _object(value, where)
    missing, unknown = sorted(needed - set(fields)), sorted(set(fields) - known)
    if missing:
        raise InvalidInput(f"{where} lacks {missing[0]!r}; a price list is described in docs/cli.md")
    if unknown:
        raise InvalidInput(f"{where} has the unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return fields


def _money(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise InvalidInput(f"{where} is {value!r}; give US dollars for 1,000,000 tokens")
    return float(value)


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{where} is {value!r}; give a number of tokens")
    return value
