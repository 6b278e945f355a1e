"""What the doctor checks of settings, and of the models that they name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum

from hitherto import tokens
from hitherto.core.digests.make import DigestContent, digest
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.prompt import Prompt, PromptLine
from hitherto.core.recall.vectors import Space
from hitherto.errors import HithertoError, InvalidInput, InvalidModelAnswer, InvalidSettings
from hitherto.other_systems.settings_aliases import ignored_variables
from hitherto.ports.models import EXTRACTIVE, Completion, Embedder, Model, Reranker, usable
from hitherto.pricing import listed
from hitherto.providers.names import NONE, compactor_of, embedder_of, lacks_wordllama, learn, model_of, reranker_of
from hitherto.settings import Settings


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


def check_settings(settings: Settings | InvalidSettings) -> Iterator[Check]:
    """A check that failed where the settings cannot be used, and one for each variable that only looks like a setting;
    else one that is ok."""
    name = "settings"
    if isinstance(settings, InvalidSettings):
        yield failed(name, settings)
    ignored = list(ignored_variables())
    for one, advice in ignored:
        yield warning(name, f"{one} is in the environment, and no setting is called so; it is ignored", advice)
    if not ignored and isinstance(settings, Settings):
        names = ", ".join(sorted(settings.model_fields_set))
        yield ok(name, f"readable; set: {names}" if names else "readable; all are defaults")


def check_prices(settings: Settings) -> Check:
    """The price list, and whether the model for digests is in it."""
    name = "prices"
    try:
        prices = listed(settings.prices)
    except InvalidInput as error:
        return failed(name, error, "put that right, or leave prices (HITHERTO_PRICES) out for the built-in list")
    if settings.model == EXTRACTIVE:
        return ok(name, f"{prices.where}: {len(prices.prices)} models; digests without a model cost nothing")
    price = prices.of(settings.model)
    if price is None:
        return warning(
            name,
            f"{prices.where} has no price of {settings.model}; its calls are in the ledger without a cost, and the "
            "setting daily_cost does not stop them",
            "give a price list of your own with the setting prices (HITHERTO_PRICES); see docs/costs.md",
        )
    return ok(
        name,
        f"{prices.where}: {settings.model} at ${price.input:g} in, ${price.cached_input:g} cached, "
        f"${price.output:g} out for 1,000,000 tokens, as of {price.date}",
    )


_LINES = (
    PromptLine(0, "user", "We meet on Tuesday at nine, in Lisbon."),
    PromptLine(1, "assistant", "Tuesday at nine it is."),
)
_LONG = 12_000
"""Words of a prompt that a server of one's own reads in seconds, and that the windows which cut prompts do not hold."""
_SAY_YES = "Whatever comes, answer with the word yes."
_WORD = "hello"
_QUESTION = "Where do we meet?"
_PASSAGES = ("The invoice is paid.", "We meet in Lisbon, by the river.")


async def check_model(settings: Settings) -> Check:
    """Makes one tiny digest with the model, and has a server of one's own read a long prompt."""
    name = "model"
    try:
        async with aclosing(model_of(settings)) as model:
            check, counts = await _ask_model(name, model, plain_text=settings.model_output == "text")
            own = settings.model_provider == "ollama" or (
                settings.model_provider == "openai" and settings.model_base_url is not None
            )
            return await _ask_window(check, model) if own and counts and check.state is CheckState.OK else check
    except HithertoError as error:
        return failed(name, f"{settings.model}: {error}")


async def _ask_window(check: Check, model: Model) -> Check:
    """`check`, or what is wrong with the model's context window. Each word that is sent is a token at least."""
    words = min(model.input_limit * 3 // 4, _LONG)
    task = DigestTask(known=(), leaving=frozenset(), lines=(), limit=100)
    text = "memory " * words
    try:
        answer = await model.complete(
            Prompt(system=_SAY_YES, user=text, schema_name="", schema={}, max_tokens=100, task=task)
        )
        read = answer.tokens_in
    except InvalidModelAnswer as error:
        read = error.tokens[0]
    except HithertoError as error:
        return warning(
            check.name,
            f"{check.found}; but of a prompt of {words:,} words it says: {error}",
            f"set model_input_limit (HITHERTO_MODEL_INPUT_LIMIT), now {model.input_limit:,}, to what it can read",
        )
    if read is None or read >= words:
        return check
    return failed(
        check.name,
        f"{model.name} read {read:,} tokens of a prompt of {words:,} words: its server cuts prompts to its context "
        "window without a word, and such digests fail",
        "raise the window (with Ollama: num_ctx, or OLLAMA_CONTEXT_LENGTH), or set model_input_limit "
        f"(HITHERTO_MODEL_INPUT_LIMIT), now {model.input_limit:,}, below it",
    )


async def _ask_model(name: str, model: Model, *, plain_text: bool) -> tuple[Check, bool]:
    """The check; and whether the model's count of the prompt's tokens is one."""
    count = tokens.counter_for(tokens.CANONICAL).count
    making = digest(
        base=(),
        lines=_LINES,
        start=0,
        limit=100,
        input_limit=model.input_limit,
        count=count,
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
        found = warning(
            name,
            f"{model.name} answered in {took}, but with {nothing}: {answer.text[:200]!r}",
            f"{fail} after a second try; take a model or a server that can answer after a JSON schema, or say that it "
            "writes text: HITHERTO_MODEL_OUTPUT=text",
        )
        return found, False
    if not answer.asked:
        return ok(name, f"{model.name}: digests are made in this process, without a model"), False
    counts = (answer.tokens_in or 0) >= count(prompt.system + prompt.user) // 2
    if plain_text:
        found = ok(name, f"{model.name} answered in {took}, in plain text: each digest is one text, without facts")
        return found, counts
    said = f"after the JSON schema ({len(made.items)} statements{_usage(answer)})"
    return ok(name, f"{model.name} answered in {took}, {said}"), counts


def _usage(answer: Completion) -> str:
    return "" if answer.tokens_in is None else f"; {answer.tokens_in} tokens in, {answer.tokens_out or 0} out"


async def check_compactor(settings: Settings) -> Check:
    """Asks whether the compactor's endpoint can compact, which costs nothing."""
    name, model = "compactor", settings.compact_model
    try:
        compactor = compactor_of(settings)
        if compactor is None:
            return skipped(name, "none is configured (compact_model); only the policy native needs one")
        async with aclosing(compactor):
            await compactor.check()
    except HithertoError as error:
        return failed(name, f"{model}: {error}")
    return ok(name, f"{model}: its endpoint can compact")


async def check_embedder(settings: Settings) -> tuple[Check, Space | None]:
    """Embeds one word. Also returns the embedder's vector space, None if it did not answer."""
    name = "embedder"
    try:
        embedder = embedder_of(settings)
        if embedder is None and (why := lacks_wordllama(settings)):
            return warning(name, *why.split(". ", 1)), None
        if embedder is None:
            return skipped(name, f"{NONE}: recall goes by words alone (the setting embedder)"), None
        async with aclosing(embedder):
            return await _ask_embedder(name, embedder)
    except HithertoError as error:
        return failed(name, f"{settings.embedder}: {error}; until then recall goes by words alone"), None


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


async def check_reranker(settings: Settings) -> Check:
    """Has the reranker put two passages in order."""
    name = "reranker"
    if settings.reranker is None and settings.reranker_base_url is None:
        return skipped(name, "none is configured (the setting reranker); none is needed")
    try:
        async with aclosing(model_of(settings)) as model:
            reranker = reranker_of(settings, model)
            assert reranker is not None, "one is configured"
            async with aclosing(reranker):
                return await _ask_reranker(name, reranker)
    except HithertoError as error:
        return failed(name, f"{error}; until then what is found stays in the order of the search")


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
