"""Checks of the settings, the price list, the ceilings and tracing."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hitherto.cli.doctor.check import Check, failed, ok, skipped, warning
from hitherto.errors import InvalidInput, InvalidSettings
from hitherto.other_systems.settings_aliases import ALIASES
from hitherto.pricing import listed
from hitherto.settings import Settings, variable, why_unusable
from hitherto.settings.sources import CONFIG
from hitherto.watching import watch_of

_PREFIX = "HITHERTO_"
_OTHER_VARIABLES = {CONFIG, "HITHERTO_TRACEBACK"}
"""Variables that are not settings themselves."""

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "database": ("database", "data_dir", "pool_size", "database_timeout"),
    "model": ("model", "model_provider", "model_api_version", "model_base_url", "model_key", "model_timeout"),
    "embedder": (
        *("embedder", "embedder_provider", "embedder_base_url", "embedder_key", "embedder_api_version"),
        *("embedder_dimensions", "embedder_input_limit", "embedder_timeout", "previous_embedder"),
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
"""The settings that a check needs."""


@dataclass(frozen=True, slots=True)
class UsableSettings:
    """The settings, with defaults for those that are unusable; `broken` has the reason for each of these. `unreadable`
    says why not even their sources can be read; then all are defaults."""

    settings: Settings
    broken: Mapping[str, str]
    places: Mapping[str, str]
    unreadable: str | None = None

    def skipped(self, name: str) -> Check | None:
        """The check of that name as skipped, if a setting that it needs is unusable."""
        if self.unreadable is not None:
            return skipped(name, "not looked at: see settings")
        broken = [setting for setting in _NEEDED[name] if setting in self.broken]
        return skipped(name, f"not looked at: {' and '.join(broken)} cannot be used") if broken else None


def usable_settings(**options: Any) -> UsableSettings:
    """The settings in force, overridden by `options`, whatever is wrong with some of them."""
    try:
        found = Settings.read_sources(None, options)
    except InvalidSettings as error:
        return UsableSettings(Settings(), {}, {}, str(error))
    given = {name: one.value for name, one in found.items()}
    places = {name: one.where if one.level else variable(name) for name, one in found.items()}
    try:
        return UsableSettings(Settings.model_validate(given), {}, places)
    except ValidationError as error:
        broken = {
            str(each["loc"][0]): why_unusable(each["msg"]) for each in error.errors(include_input=False) if each["loc"]
        }
    defaults = {name: Settings.model_fields[name].default for name in broken}
    return UsableSettings(Settings.model_validate({**given, **defaults}), broken, places)


def check_settings(loaded: UsableSettings) -> Iterator[Check]:
    """A check for each unusable setting and each variable that only looks like one; else one that is ok."""
    name = "settings"
    if loaded.unreadable is not None:
        yield failed(name, loaded.unreadable)
        return
    for setting, why in loaded.broken.items():
        yield failed(
            name,
            f"the setting {setting} ({loaded.places.get(setting, variable(setting))}) is unusable: {why}",
            "give it a value as in docs/settings.md, or leave it out; until then no process starts",
        )
    unknown = list(unknown_variables())
    for one, advice in unknown:
        yield warning(name, f"{one} is in the environment, and no setting is called so; it is ignored", advice)
    if not loaded.broken and not unknown:
        names = ", ".join(sorted(loaded.settings.model_fields_set))
        yield ok(name, f"readable; set: {names}" if names else "readable; all are defaults")


def unknown_variables() -> Iterator[tuple[str, str]]:
    """The variables of the environment that only look like settings, and what to do about each."""
    known = {*map(variable, Settings.model_fields), *ALIASES.values(), *_OTHER_VARIABLES}
    for one in sorted(map(str.upper, os.environ)):
        if one.startswith(_PREFIX) and one not in known:
            near = difflib.get_close_matches(one, known, n=1)
            yield one, f"if {near[0]} is meant, rename it" if near else "leave it out, or see docs/settings.md"


def check_prices(loaded: UsableSettings) -> Check:
    """The price list, and whether the model for digests is in it."""
    name = "prices"
    if loaded.unreadable is not None:
        return skipped(name, "not looked at: see settings")
    if "prices" in loaded.broken:
        return skipped(name, "not looked at: prices cannot be used")
    try:
        prices = listed(loaded.settings.prices)
    except InvalidInput as error:
        return failed(name, error, "put that right, or leave prices (HITHERTO_PRICES) out for the built-in list")
    if "model" in loaded.broken or loaded.settings.model == "extractive":
        return ok(name, f"{prices.where}: {len(prices.prices)} models; digests without a model cost nothing")
    price = prices.of(loaded.settings.model)
    if price is None:
        return warning(
            name,
            f"{prices.where} has no price of {loaded.settings.model}; its calls are in the ledger without a cost",
            "give a price list of your own with the setting prices (HITHERTO_PRICES); see docs/costs.md",
        )
    return ok(
        name,
        f"{prices.where}: {loaded.settings.model} at ${price.input:g} in, ${price.cached_input:g} cached, "
        f"${price.output:g} out for 1,000,000 tokens, as of {price.date}",
    )


def check_ceilings(loaded: UsableSettings) -> Check:
    """The most that a tenant may spend in a day."""
    name = "ceilings"
    if skip := loaded.skipped(name):
        return skip
    cost, most = loaded.settings.daily_cost, loaded.settings.daily_tokens
    if cost is None and most is None:
        return ok(name, "none: digests are made whatever they cost (daily_cost, daily_tokens)")
    words = [*([] if cost is None else [f"${cost:g}"]), *([] if most is None else [f"{most:,} tokens"])]
    says = f"{' and '.join(words)} a tenant and day"
    if cost is not None and most is None and loaded.settings.model != "extractive" and not _priced(loaded.settings):
        return warning(
            name,
            f"{says}, but calls of {loaded.settings.model} have no known cost, so that it stops nothing",
            "give its price (HITHERTO_PRICES), or set daily_tokens instead",
        )
    return ok(name, says)


def _priced(settings: Settings) -> bool:
    try:
        return listed(settings.prices).of(settings.model) is not None
    except InvalidInput:
        return False


def check_tracing(loaded: UsableSettings) -> Check:
    name = "tracing"
    if skip := loaded.skipped(name):
        return skip
    if not loaded.settings.tracing:
        return skipped(name, "off (the setting tracing)")
    try:
        watch_of(loaded.settings)
    except InvalidSettings as error:
        return failed(name, error)
    return ok(name, "on: spans go wherever the application's OpenTelemetry SDK sends them")
