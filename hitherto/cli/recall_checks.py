"""What `hitherto doctor` looks at of recall: the embedder and the reranker, both really asked."""

from __future__ import annotations

import time

from hitherto.cli.checks import Check, Given, failed, ok, skipped, warning
from hitherto.embedders.named import NONE, embedder_of, learn
from hitherto.errors import HithertoError, InvalidSettings
from hitherto.models.named import model_of
from hitherto.ports.embedder import Embedder, Space, usable
from hitherto.ports.reranker import Reranker
from hitherto.rerankers.named import reranker_of

_WORD = "hello"
_QUESTION = "Where do we meet?"
_PASSAGES = ("The invoice is paid.", "We meet in Lisbon, by the river.")


async def check_embedder(found: Given) -> tuple[Check, Space | None]:
    """One word, really embedded; and the space that the embedder fills, as far as that could be found out."""
    name = "embedder"
    if skip := found.missing(name):
        return skip, None
    try:
        embedder = embedder_of(found.settings)
    except InvalidSettings as error:
        return failed(name, error), None
    if embedder is None:
        return skipped(name, f"{NONE}: recall goes by words alone (the setting embedder)"), None
    try:
        return await _embedded(name, embedder)
    except HithertoError as error:
        says = f"{found.settings.embedder}: {error}; until then recall goes by words alone"
        return failed(name, says), None
    finally:
        await embedder.aclose()


async def _embedded(name: str, embedder: Embedder) -> tuple[Check, Space]:
    await learn(embedder)  # loads what computes here, which is not what is timed
    begun = time.perf_counter()
    answer = await embedder.query(_WORD)
    took = f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"
    space = embedder.space
    usable(answer.vectors, count=1, space=space)
    if not answer.asked:
        return ok(name, f"{space.name}: vectors of {space.dimensions:,} numbers are made in this process"), space
    return ok(name, f"{space.name} answered in {took}, with a vector of {space.dimensions:,} numbers"), space


async def check_reranker(found: Given) -> Check:
    """Two passages, really put in order."""
    name = "reranker"
    if skip := found.missing(name):
        return skip
    if found.settings.reranker is None and found.settings.reranker_base_url is None:
        return skipped(name, "none is configured (the setting reranker); none is needed")
    try:
        model = model_of(found.settings)
    except InvalidSettings as error:
        return skipped(name, f"not looked at: see model ({error})")
    try:
        reranker = reranker_of(found.settings, model)
        assert reranker is not None, "one is configured"
        try:
            return await _reranked(name, reranker)
        finally:
            await reranker.aclose()
    except HithertoError as error:
        return failed(name, f"{error}; until then what is found stays in the order of the search")
    finally:
        await model.aclose()


async def _reranked(name: str, reranker: Reranker) -> Check:
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
