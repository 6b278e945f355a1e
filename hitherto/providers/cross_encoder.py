"""A cross-encoder behind `POST …/rerank`: Cohere, Jina, vLLM, llama.cpp, Text Embeddings Inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, cast

from openai import APIStatusError

from hitherto.core.log.message import storable
from hitherto.errors import InvalidModelAnswer
from hitherto.ports.models import Reranker, RerankResult
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import paid
from hitherto.providers.endpoints.response import at, tokens
from hitherto.providers.openai_compatible.endpoint import OpenAIEndpoint

NAMED = EndpointSettingNames(
    model="HITHERTO_RERANKER",
    key="HITHERTO_RERANKER_KEY",
    base_url="HITHERTO_RERANKER_BASE_URL",
    timeout="HITHERTO_RERANKER_TIMEOUT",
    smaller="take another model",
    form="it is what stands before /rerank",
    example="http://localhost:8080",
)
"""The settings of a cross-encoder's endpoint."""

_LIMIT = 32
"""Passages of one request. Text Embeddings Inference accepts no more by default."""

_LONGEST = 2_000
"""Characters of a passage or a question that are sent: about what most cross-encoders read."""

_Name = Literal["documents", "texts"]
"""The request field for the passages: `texts` for Text Embeddings Inference, `documents` for all others."""


class CrossEncoder(Reranker):
    """The model `model` at `base_url`, to which /rerank is added. `timeout` bounds one `rerank` in seconds.

    Requests have Cohere's form; if the endpoint asks for `texts`, they have the form of Text Embeddings Inference, and
    the instance remembers that. The scores in an answer determine the order, not the order of its list. No key is read
    from the environment, and none appears in an error message. Raises InvalidSettings for a key or a base URL that no
    request can be made with.
    """

    def __init__(self, *, model: str, base_url: str, api_key: str | None = None, timeout: float = 2.0) -> None:
        self._model = model
        # OpenAI's SDK has no such call; it provides the size limit, the timeout, proxies, headers and errors.
        self._endpoint = OpenAIEndpoint(model=model, base_url=base_url, api_key=api_key, timeout=timeout, named=NAMED)
        self._called: _Name = "documents"

    @property
    def name(self) -> str:
        return self._model

    @property
    def limit(self) -> int:
        return _LIMIT

    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult:
        if not passages:
            return RerankResult(order=(), asked=False)
        async with self._endpoint.answering():
            try:
                body = await self._ask(self._called, question, passages)
            except APIStatusError as error:
                if self._called == "texts" or error.status_code not in (400, 422) or "texts" not in str(error.body):
                    raise
                body = await self._ask("texts", question, passages)
                self._called = "texts"
            return self._read(body, len(passages))

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _ask(self, called: _Name, question: str, passages: Sequence[str]) -> str:
        asked: dict[str, object] = {
            "query": storable(question[:_LONGEST]),
            called: [storable(passage[:_LONGEST]) for passage in passages],
        }
        if called == "documents":
            asked |= {"model": self._model, "top_n": len(passages)}
        else:
            asked |= {"truncate": True}
        return await self._endpoint.client.post("/rerank", body=asked, cast_to=str)

    def _read(self, body: str, count: int) -> RerankResult:
        answer = self._endpoint.answer(body)
        usage = at(answer, "usage")
        took = tokens(at(usage, "total_tokens") or at(usage, "prompt_tokens"))
        with paid((took, None, None)):
            # Text Embeddings Inference answers with nothing but the list.
            results = at(answer, "results") or answer
            if not isinstance(results, list):
                raise self._endpoint.wrong_shape(body, "list of scores")
            order = _order(cast("list[object]", results), count)
            if not order:
                raise InvalidModelAnswer(
                    f"{self._endpoint.url} has no score for any of the {count} passages; their order stays as it was"
                )
        return RerankResult(order=order, tokens_in=took)


def _order(results: Sequence[object], count: int) -> tuple[int, ...]:
    """The indexes of the results, highest score first, equal scores in the order of the passages. Results without a
    finite score, or with an index that is not below `count`, are left out, and so are repeated indexes."""
    scores: dict[int, float] = {}
    for result in results:
        place = at(result, "index")
        score = _finite(at(result, "relevance_score"), at(result, "score"))
        if type(place) is int and 0 <= place < count and score is not None:
            scores.setdefault(place, score)
    return tuple(sorted(scores, key=lambda place: (-scores[place], place)))


def _finite(*named: object) -> float | None:
    """The first of the values that is a finite number, or None."""
    numbers = (
        float(value) for value in named if isinstance(value, float) or (type(value) is int and abs(value) < 2**53)
    )
    return next((number for number in numbers if math.isfinite(number)), None)
