"""Price lists: what a provider charges for a model's tokens, and how many of them its prompt cache serves."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from hitherto.core.model_family import family_of, without_provider
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
    caching": from 1,024 tokens on, in increments of 128). `cache_write`, if the provider has such a price, replaces
    `input` for the uncached tokens of a prompt of at least `cache_from` tokens.
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

    def call(self, tokens_in: int | None, cached: int | None, out: int | None) -> float:
        """What a call costs in dollars, by the token counts that its endpoint gave; a missing count is 0."""
        prompt = tokens_in or 0
        return self.prompt(prompt, min(cached or 0, prompt)) + self.answer(out or 0)


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of several models by name. `where` names the list in errors."""

    where: str
    prices: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of `model`, or None. It is looked up by its own name, then without its provider, then by its
        family: a snapshot costs what the model does, and a fine-tuned model is assumed to."""
        names = (model, without_provider(model), family_of(model))
        return next((self.prices[name] for name in names if name in self.prices), None)

    def named(self, model: str | None) -> Price:
        """The price of the listed `model`; of the only one where `model` is None. Raises InvalidInput if there is none,
        naming the listed models."""
        if model is None and len(self.prices) == 1:
            (model,) = self.prices
        if model is None or model not in self.prices:
            asked = "is to name a model" if model is None else f"has no price of {model!r}"
            raise InvalidInput(f"{self.where} {asked}; it has: {', '.join(self.prices) or 'none at all'}")
        return self.prices[model]


def price_list(data: bytes, where: str) -> PriceList:
    """The price list in `data`, checked. `where` names it in errors.

    A price list is a JSON object with `date`, `models`, and optionally `source` and `cache`. `models` has, by name,
    objects with `input`, `cached_input`, `output`, `window` and optionally `cache_write`; `cache` has `at_least` and
    `step`, both optional. Raises InvalidInput for anything else, naming the model and the field.
    """
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is no JSON: {error}") from error
    listed = _fields(parsed, where, _LIST, needed={"date", "models"})
    models = _object(listed["models"], f"{where}: models")
    cache = _fields(listed.get("cache", {}), f"{where}: cache", _CACHE, needed=set())
    if not isinstance(listed["date"], str):
        raise InvalidInput(f"{where}: date is {listed['date']!r}; say of which day the prices are, as text")
    prices = {name: _price(name, value, cache, date=listed["date"], where=where) for name, value in models.items()}
    return PriceList(where, prices)


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidInput(f"{where} is {value!r}; give US dollars for 1,000,000 tokens")
    try:
        return float(value)
    except OverflowError:  # a whole number may have any length
        raise InvalidInput(f"{where} is more than any price; give US dollars for 1,000,000 tokens") from None


def _count(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{where} is {value!r}; give a number of tokens")
    return value
