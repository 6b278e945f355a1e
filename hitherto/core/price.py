"""Price lists: what a provider charges for a model's tokens, and how many of them its prompt cache serves."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from hitherto.core.model_family import family_of, without_provider
from hitherto.errors import InvalidInput

_PER = 1_000_000
_CACHE_FROM, _CACHE_STEP = 1_024, 128
_LIST = {"date", "source", "cache", "models"}
_CACHE = {"at_least", "step", "breakpoints"}
_MODEL = {"input", "cached_input", "cache_write", "output", "window", "cache"}
_MONEY = ("input", "cached_input", "cache_write", "output")

Breakpoints = Literal["none", "implicit", "explicit"]
"""Where what a prompt cache has may end: anywhere, in steps; at the breakpoints of the prompt before and at its end; or
at its breakpoints alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one model costs, in US dollars for 1,000,000 tokens, as its provider's list had it on `date`.

    `window` is the most tokens of a prompt at this price. A prompt's start is served from the cache when at least
    `cache_from` tokens of it repeat an earlier prompt: in steps of `cache_step`, or as far as a breakpoint (sources:
    the guides "Prompt caching" of OpenAI, from 1,024 tokens on in increments of 128, since GPT-5.6 at breakpoints; and
    of Anthropic, at breakpoints, from 512 to 4,096 tokens on). `cache_write`, if the provider has such a price,
    replaces `input` for what is put into the cache.
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
    cache_breakpoints: Breakpoints = "none"

    def cached(self, repeated: int, *, breakpoints: Sequence[int] | None = None, end: int = 0) -> int:
        """How many tokens come from the cache when a prompt's first `repeated` tokens repeat the one before, which had
        its `breakpoints` behind so many tokens each and was `end` tokens long. Without these (None: not known) as many
        as if it had breakpoints everywhere."""
        if breakpoints is not None and self.cache_breakpoints != "none":
            ends = breakpoints if self.cache_breakpoints == "explicit" else (*breakpoints, end)
            return max((at for at in ends if self.cache_from <= at <= repeated), default=0)
        if repeated < self.cache_from:
            return 0
        return self.cache_from + (repeated - self.cache_from) // self.cache_step * self.cache_step

    def prompt(self, tokens: int, cached: int, *, breakpoints: Sequence[int] = ()) -> float:
        """What a prompt of `tokens` costs in dollars, `cached` of them from the cache: what comes after them is put
        into it as far as the last of the prompt's `breakpoints`, or all of it if the provider does so by itself."""
        until = max(breakpoints, default=0) if self.cache_breakpoints == "explicit" else tokens
        written = max(until - cached, 0) if self.cache_write is not None and until >= self.cache_from else 0
        write = self.input if self.cache_write is None else self.cache_write
        return (cached * self.cached_input + written * write + (tokens - cached - written) * self.input) / _PER

    def answer(self, tokens: int) -> float:
        """What an answer of `tokens` costs in dollars."""
        return tokens * self.output / _PER

    def call(self, tokens_in: int | None, cached: int | None, out: int | None, written: int | None = None) -> float:
        """What a call costs in dollars, by the token counts that its endpoint gave; a missing count is 0. `written` of
        the prompt's tokens were put into the cache; None where the endpoint does not say."""
        prompt = tokens_in or 0
        cached = min(cached or 0, prompt)
        if written is None or self.cache_write is None:
            return self.prompt(prompt, cached) + self.answer(out or 0)
        written = min(written, prompt - cached)
        plain = (prompt - cached - written) * self.input
        return (cached * self.cached_input + written * self.cache_write + plain) / _PER + self.answer(out or 0)


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
    objects with `input`, `cached_input`, `output`, `window` and optionally `cache_write` and a `cache` of its own;
    `cache` has `at_least`, `step` and `breakpoints`, all optional. Raises InvalidInput for anything else, naming the
    model and the field.
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
    fields = _fields(value, of, _MODEL, needed=_MODEL - {"cache_write", "cache"})
    money = {name: _money(fields[name], f"{of}.{name}") for name in _MONEY if name in fields}
    if money["cached_input"] > money["input"]:
        raise InvalidInput(f"{of} has cached input dearer than input; check whether the two changed places")
    own = _fields(fields.get("cache", {}), f"{of}.cache", _CACHE, needed=set())

    def rule(name: str, default: object) -> tuple[object, str]:
        """The model's own rule or else the list's, and where it stands."""
        return (
            (own[name], f"{of}.cache.{name}") if name in own else (cache.get(name, default), f"{where}: cache.{name}")
        )

    return Price(
        model=model,
        date=date,
        input=money["input"],
        cached_input=money["cached_input"],
        cache_write=money.get("cache_write"),
        output=money["output"],
        window=_count(fields["window"], f"{of}.window"),
        cache_from=_count(*rule("at_least", _CACHE_FROM)),
        cache_step=_count(*rule("step", _CACHE_STEP)),
        cache_breakpoints=_breakpoints(*rule("breakpoints", "none")),
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


def _breakpoints(value: object, where: str) -> Breakpoints:
    known = get_args(Breakpoints)
    if value not in known:
        raise InvalidInput(f"{where} is {value!r}; it must be one of {', '.join(known)}")
    return cast("Breakpoints", value)
