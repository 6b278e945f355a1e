"""Checks of the model, the compactor, the embedder and the reranker, each by a real call."""

from __future__ import annotations

import time

from hitherto import tokens
from hitherto.cli.doctor.check import Check, failed, ok, skipped, warning
from hitherto.cli.doctor.settings import UsableSettings
from hitherto.core.digests.make import DigestContent, digest
from hitherto.core.prompt import PromptLine
from hitherto.core.recall.vectors import Space
from hitherto.errors import HithertoError, InvalidSettings
from hitherto.ports.models.embedder import Embedder, usable
from hitherto.ports.models.model import Completion, Model
from hitherto.ports.models.reranker import Reranker
from hitherto.providers.names.embedders import NONE, embedder_of, learn
from hitherto.providers.names.models import compactor_of, model_of
from hitherto.providers.names.rerankers import reranker_of

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
