"""What the doctor checks of settings, and of the models that they name."""

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
from hitherto.core.digests.make import DigestContent, digest
from hitherto.core.prompt import PromptLine
from hitherto.core.recall.vectors import Space
from hitherto.errors import HithertoError, InvalidInput, InvalidSettings
from hitherto.other_systems.settings_aliases import ALIASES
from hitherto.ports.models import Completion, Embedder, Model, Reranker, usable
from hitherto.pricing import listed
from hitherto.providers.names import NONE, compactor_of, embedder_of, learn, model_of, reranker_of
from hitherto.settings import Settings, variable, why_unusable
from hitherto.settings.sources import CONFIG, environment_values
from hitherto.watching import watch_of


class CheckState(StrEnum):
    """How a check ended. `skipped`: it is not needed, or another check that it depends on failed."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was found, and what to do about it, if anything."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name=name, state=CheckState.OK, found=found)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name=name, state=CheckState.WARNING, found=found, advice=advice)


def failed(name: str, found: str | Exception, advice: str = "") -> Check:
    """A failed check. Messages of Hitherto's own errors say what to do, so they need no `advice`."""
    return Check(name=name, state=CheckState.FAILED, found=str(found), advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, state=CheckState.SKIPPED, found=found)


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
    ignored = list(ignored_variables())
    for one, advice in ignored:
        yield warning(name, f"{one} is in the environment, and no setting is called so; it is ignored", advice)
    if not loaded.broken and not ignored:
        names = ", ".join(sorted(loaded.settings.model_fields_set))
        yield ok(name, f"readable; set: {names}" if names else "readable; all are defaults")


def ignored_variables() -> Iterator[tuple[str, str]]:
    """The variables of the environment that only look like settings, and those that are settings by their names in
    other systems, which few commands know; and what to do about each."""
    for one in sorted(environment_values(ALIASES).values(), key=lambda one: one.where):
        yield (
            one.where,
            "only `hitherto serve --other-systems` and `hitherto agent` know it; set HITHERTO_MODEL, "
            "HITHERTO_MODEL_BASE_URL or HITHERTO_POLICY instead",
        )
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


_LINES = (
    PromptLine(0, "user", "We meet on Tuesday at nine, in Lisbon."),
    PromptLine(1, "assistant", "Tuesday at nine it is."),
)
_WORD = "hello"
_QUESTION = "Where do we meet?"
_PASSAGES = ("The invoice is paid.", "We meet in Lisbon, by the river.")


async def check_model(loaded: UsableSettings) -> Check:
    """Makes one tiny digest with the model."""
    name = "model"
    if skip := loaded.skipped(name):
        return skip
    try:
        model = model_of(loaded.settings)
    except InvalidSettings as error:
        return failed(name, error)
    try:
        return await _ask_model(name, model, plain_text=loaded.settings.model_output == "text")
    except HithertoError as error:
        return failed(name, f"{model.name}: {error}")
    finally:
        await model.aclose()


async def _ask_model(name: str, model: Model, *, plain_text: bool) -> Check:
    making = digest(
        base=(),
        lines=_LINES,
        start=0,
        limit=100,
        input_limit=model.input_limit,
        count=tokens.counter_for(tokens.CANONICAL).count,
        plain_text=plain_text,
    )
    prompt = next(making)
    begun = time.perf_counter()
    answer = await model.complete(prompt)
    took = f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"
    try:
        making.send(answer.text)
    except StopIteration as end:
        made: DigestContent = end.value
    else:  # a digest would ask once more
        nothing, fail = "nothing that makes a digest", "such digests fail"
        if '"summary"' in answer.text:  # another form of the answer, which is read where facts are asked for
            nothing, fail = f"{nothing} without facts", "digests that find facts understand it; others fail"
        return warning(
            name,
            f"{model.name} answered in {took}, but with {nothing}: {answer.text[:200]!r}",
            f"{fail} after a second try; take a model or a server that can answer after a JSON schema, or say that it "
            "writes text: HITHERTO_MODEL_OUTPUT=text",
        )
    if not answer.asked:
        return ok(name, f"{model.name}: digests are made in this process, without a model")
    if plain_text:
        return ok(name, f"{model.name} answered in {took}, in plain text: each digest is one text, without facts")
    return ok(
        name, f"{model.name} answered in {took}, after the JSON schema ({len(made.items)} statements{_usage(answer)})"
    )


def _usage(answer: Completion) -> str:
    return "" if answer.tokens_in is None else f"; {answer.tokens_in} tokens in, {answer.tokens_out or 0} out"


async def check_compactor(loaded: UsableSettings) -> Check:
    """Asks whether the compactor's endpoint can compact, which costs nothing."""
    name = "compactor"
    if skip := loaded.skipped(name):
        return skip
    try:
        compactor = compactor_of(loaded.settings)
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


async def check_embedder(loaded: UsableSettings) -> tuple[Check, Space | None]:
    """Embeds one word. Also returns the embedder's vector space, None if it did not answer."""
    name = "embedder"
    if skip := loaded.skipped(name):
        return skip, None
    try:
        embedder = embedder_of(loaded.settings)
    except InvalidSettings as error:
        return failed(name, error), None
    if embedder is None:
        return skipped(name, f"{NONE}: recall goes by words alone (the setting embedder)"), None
    try:
        return await _ask_embedder(name, embedder)
    except HithertoError as error:
        return failed(name, f"{loaded.settings.embedder}: {error}; until then recall goes by words alone"), None
    finally:
        await embedder.aclose()


async def _ask_embedder(name: str, embedder: Embedder) -> tuple[Check, Space]:
    await learn(embedder)  # loads a local embedder, which is not timed
    begun = time.perf_counter()
    answer = await embedder.query(_WORD)
    took = f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"
    space = embedder.space
    usable(answer.vectors, count=1, space=space)
    if not answer.asked:
        return ok(name, f"{space.name}: vectors of {space.dimensions:,} numbers are made in this process"), space
    return ok(name, f"{space.name} answered in {took}, with a vector of {space.dimensions:,} numbers"), space


async def check_reranker(loaded: UsableSettings) -> Check:
    """Has the reranker put two passages in order."""
    name = "reranker"
    if skip := loaded.skipped(name):
        return skip
    if loaded.settings.reranker is None and loaded.settings.reranker_base_url is None:
        return skipped(name, "none is configured (the setting reranker); none is needed")
    try:
        model = model_of(loaded.settings)
    except InvalidSettings as error:
        return skipped(name, f"not looked at: see model ({error})")
    try:
        reranker = reranker_of(loaded.settings, model)
        assert reranker is not None, "one is configured"
        try:
            return await _ask_reranker(name, reranker)
        finally:
            await reranker.aclose()
    except HithertoError as error:
        return failed(name, f"{error}; until then what is found stays in the order of the search")
    finally:
        await model.aclose()


async def _ask_reranker(name: str, reranker: Reranker) -> Check:
    begun = time.perf_counter()
    answer = await reranker.rerank(_QUESTION, _PASSAGES)
    took = f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"
    if answer.order[:1] != (1,):
        return warning(
            name,
            f"{reranker.name} answered in {took}, and did not put first what answers the question",
            "compare its results with those without it (hitherto recall, memory.recall(rerank=False)), or leave it out",
        )
    return ok(name, f"{reranker.name} answered in {took}")
