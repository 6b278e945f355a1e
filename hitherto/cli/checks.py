"""What `hitherto doctor` looks at beside the database: settings, models, prices, ceilings, tracing."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from hitherto import tokens
from hitherto.core.digesting import Digested, digest
from hitherto.core.prompts import Line
from hitherto.errors import HithertoError, InvalidInput, InvalidSettings
from hitherto.models.named import compactor_of, model_of
from hitherto.ports.model import Completion, Model
from hitherto.pricing import listed
from hitherto.settings import Settings, why_unusable
from hitherto.watching import watch_of

_PREFIX = "HITHERTO_"
_NO_SETTINGS = {"HITHERTO_TRACEBACK"}
"""Variables that the command line reads itself."""

_OF: Mapping[str, tuple[str, ...]] = {
    "database": ("database", "home", "pool_size", "database_timeout"),
    "model": ("model", "model_provider", "model_api_version", "model_base_url", "model_key", "model_timeout"),
    "embedder": (
        *("embedder", "embedder_provider", "embedder_base_url", "embedder_key", "embedder_api_version"),
        *("embedder_dimensions", "embedder_input_limit", "embedder_timeout", "former_embedder"),
    ),
    "reranker": (
        *("reranker", "reranker_base_url", "reranker_key", "reranker_timeout"),
        *("model", "model_provider", "model_api_version", "model_base_url", "model_key", "model_timeout"),
    ),
    "compactor": ("compact_model", "compact_base_url", "compact_key", "model_timeout"),
    "prices": ("prices", "model"),
    "ceilings": ("daily_cost", "daily_tokens"),
    "tracing": ("tracing",),
}
"""The settings without which there is nothing to check."""

_LINES = (Line(0, "user", "We meet on Tuesday at nine, in Lisbon."), Line(1, "assistant", "Tuesday at nine it is."))


class State(StrEnum):
    """How a check came out. `skipped` is what needs no check, or cannot be checked for another that failed."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was found, and what to do about it if something is to be done."""

    name: str
    state: State
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """The settings, with defaults in the place of those that are unusable; `broken` says why these are."""

    settings: Settings
    broken: Mapping[str, str]

    def missing(self, name: str) -> Check | None:
        """The check of that name where its own settings are broken."""
        broken = [one for one in _OF[name] if one in self.broken]
        return skipped(name, f"not looked at: {' and '.join(broken)} cannot be used") if broken else None


def ok(name: str, found: str) -> Check:
    return Check(name=name, state=State.OK, found=found)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name=name, state=State.WARNING, found=found, advice=advice)


def failed(name: str, found: str | Exception, advice: str = "") -> Check:
    """An error of ours says what to do itself."""
    return Check(name=name, state=State.FAILED, found=str(found), advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, state=State.SKIPPED, found=found)


def given(**options: Any) -> Given:
    """The settings of the environment, overridden by `options`, whatever is wrong with some of them."""
    wanted = {name: value for name, value in options.items() if value is not None}
    try:
        return Given(Settings(**wanted), {})
    except ValidationError as error:
        broken = {
            str(one["loc"][0]): why_unusable(one["msg"]) for one in error.errors(include_input=False) if one["loc"]
        }
    defaults = {name: Settings.model_fields[name].default for name in broken}
    return Given(Settings(**{**wanted, **defaults}), broken)


def check_settings(found: Given) -> Iterator[Check]:
    """Each unusable setting, and each variable that is like a setting and is none; else one check that all is well."""
    name = "settings"
    for setting, why in found.broken.items():
        yield failed(
            name,
            f"the setting {setting} ({_PREFIX}{setting.upper()}) is unusable: {why}",
            "give it a value as in docs/settings.md, or leave it out; until then no process starts",
        )
    known = {f"{_PREFIX}{setting.upper()}" for setting in Settings.model_fields}
    unknown = sorted(one for one in map(str.upper, os.environ) if one.startswith(_PREFIX))
    unknown = [one for one in unknown if one not in known | _NO_SETTINGS]
    for variable in unknown:
        near = difflib.get_close_matches(variable, known, n=1)
        advice = f"if {near[0]} is meant, rename it" if near else "leave it out, or see docs/settings.md for its name"
        yield warning(name, f"{variable} is in the environment, and no setting is called so; it is ignored", advice)
    if not found.broken and not unknown:
        names = ", ".join(sorted(found.settings.model_fields_set))
        yield ok(name, f"readable; set: {names}" if names else "readable; all are defaults")


async def check_model(found: Given) -> Check:
    """One tiny digest, really asked for."""
    name = "model"
    if skip := found.missing(name):
        return skip
    try:
        model = model_of(found.settings)
    except InvalidSettings as error:
        return failed(name, error)
    try:
        return await _asked(name, model)
    except HithertoError as error:
        return failed(name, f"{model.name}: {error}")
    finally:
        await model.aclose()


async def _asked(name: str, model: Model) -> Check:
    making = digest(
        base=(),
        lines=_LINES,
        start=0,
        end=_LINES[-1].seq,
        limit=100,
        input_limit=model.input_limit,
        count=tokens.counter_for(tokens.CANONICAL).count,
    )
    prompt = next(making)
    begun = time.perf_counter()
    answer = await model.complete(prompt)
    took = f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"
    try:
        making.send(answer.text)
    except StopIteration as end:
        made: Digested = end.value
    else:  # it would be asked for once more
        nothing, fail = "nothing that makes a digest", "such digests fail"
        if '"summary"' in answer.text:  # seed 002's answer, which is read where facts are asked for
            nothing, fail = f"{nothing} without facts", "digests that find facts understand it; others fail"
        return warning(
            name,
            f"{model.name} answered in {took}, but with {nothing}: {answer.text[:200]!r}",
            f"{fail} after a second try; take a model or a server that can answer after a JSON schema",
        )
    if not answer.asked:
        return ok(name, f"{model.name}: digests are made in this process, without a model")
    if '"add"' not in answer.text:  # what is no JSON was taken as one statement on everything
        return warning(
            name,
            f"{model.name} answered in {took}, in plain text and not after the JSON schema it was given",
            "each digest will be one statement on its whole range; take a model or a server with structured output",
        )
    return ok(
        name, f"{model.name} answered in {took}, after the JSON schema ({len(made.items)} statements{_usage(answer)})"
    )


def _usage(answer: Completion) -> str:
    return "" if answer.tokens_in is None else f"; {answer.tokens_in} tokens in, {answer.tokens_out or 0} out"


async def check_compactor(found: Given) -> Check:
    """Whether its endpoint compacts, at no cost."""
    name = "compactor"
    if skip := found.missing(name):
        return skip
    try:
        compactor = compactor_of(found.settings)
    except InvalidSettings as error:
        return failed(name, error)
    if compactor is None:
        return skipped(name, "none is configured (compact_model); only the policy native needs one")
    try:
        await compactor.check()
    except HithertoError as error:
        return failed(name, f"{compactor.name}: {error}")
    finally:
        await compactor.aclose()
    return ok(name, f"{compactor.name}: its endpoint can compact")


def check_prices(found: Given) -> Check:
    """The price list, and whether the model for digests is in it."""
    name = "prices"
    if "prices" in found.broken:
        return skipped(name, "not looked at: prices cannot be used")
    try:
        prices = listed(found.settings.prices)
    except InvalidInput as error:
        return failed(name, error, "put that right, or leave prices (HITHERTO_PRICES) out for the built-in list")
    if "model" in found.broken or found.settings.model == "extractive":
        return ok(name, f"{prices.where}: {len(prices.prices)} models; digests without a model cost nothing")
    price = prices.of(found.settings.model)
    if price is None:
        return warning(
            name,
            f"{prices.where} has no price of {found.settings.model}; its calls are in the ledger without a cost",
            "give a price list of your own with the setting prices (HITHERTO_PRICES); see docs/costs.md",
        )
    return ok(
        name,
        f"{prices.where}: {found.settings.model} at ${price.input:g} in, ${price.cached_input:g} cached, "
        f"${price.output:g} out for 1,000,000 tokens, as of {price.date}",
    )


def check_ceilings(found: Given) -> Check:
    """What a tenant may spend on a day."""
    name = "ceilings"
    if skip := found.missing(name):
        return skip
    cost, most = found.settings.daily_cost, found.settings.daily_tokens
    if cost is None and most is None:
        return ok(name, "none: digests are made whatever they cost (daily_cost, daily_tokens)")
    words = [*([] if cost is None else [f"${cost:g}"]), *([] if most is None else [f"{most:,} tokens"])]
    says = f"{' and '.join(words)} a tenant and day"
    if cost is not None and most is None and found.settings.model != "extractive" and not _priced(found.settings):
        return warning(
            name,
            f"{says}, but calls of {found.settings.model} have no known cost, so that it stops nothing",
            "give its price (HITHERTO_PRICES), or set daily_tokens instead",
        )
    return ok(name, says)


def _priced(settings: Settings) -> bool:
    try:
        return listed(settings.prices).of(settings.model) is not None
    except InvalidInput:
        return False


def check_tracing(found: Given) -> Check:
    name = "tracing"
    if skip := found.missing(name):
        return skip
    if not found.settings.tracing:
        return skipped(name, "off (the setting tracing)")
    try:
        watch_of(found.settings)
    except InvalidSettings as error:
        return failed(name, error)
    return ok(name, "on: spans go wherever the application's OpenTelemetry SDK sends them")
