"""Price lists: what a model's provider charges for tokens, and which of them it has in its cache."""

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

    def call(self, tokens_in: int | None, cached: int | None, out: int | None) -> float:
        """What a call costs in dollars by its endpoint's figures; one that it did not give counts as 0."""
        prompt = tokens_in or 0
        return self.prompt(prompt, min(cached or 0, prompt)) + self.answer(out or 0)


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of several models by name. `where` is what errors call the list."""

    where: str
    prices: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """The price of `model`: that of its own name, or else without its provider, or else of its family; None where
        none of them is listed. A snapshot costs what the model does; so, for want of better, does a fine-tuned one."""
        names = (model, without_provider(model), family_of(model))
        return next((self.prices[name] for name in names if name in self.prices), None)

    def named(self, model: str | None) -> Price:
        """The price of the listed `model`, or of the only one. Raises InvalidInput for a list without it, naming those
        it has."""
        if model is None and len(self.prices) == 1:
            (model,) = self.prices
        if model is None or model not in self.prices:
            asked = "is to name a model" if model is None else f"has no price of {model!r}"
            raise InvalidInput(f"{self.where} {asked}; it has: {', '.join(self.prices) or 'none at all'}")
        return self.prices[model]


def price_list(data: bytes, where: str) -> PriceList:
    """The price list `data`, which errors call `where`, all of it checked.

    A price list is a JSON object: `date`, `models` with, by name, `input`, `cached_input`, `output`, `window` and
    perhaps `cache_write`; and perhaps `source` and `cache` with `at_least` and `step`. Raises InvalidInput for
    anything else, naming the model and the field.
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
