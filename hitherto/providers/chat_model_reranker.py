"""A reranker that asks a chat model: one prompt has all passages, and the answer orders their numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hitherto.core.recall.rerank import most_passages, order_of, rerank_prompt
from hitherto.errors import ModelUnavailable
from hitherto.ports.models import Model, Reranker, RerankResult
from hitherto.providers.endpoints.failures import paid

_AT_MOST = 20


class ChatModelReranker(Reranker):
    """Asks `model`, and waits for it at most `timeout` seconds. The caller owns `model` and closes it."""

    def __init__(self, model: Model, *, timeout: float = 2.0) -> None:
        self._model = model
        self._timeout = timeout

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def limit(self) -> int:
        return most_passages(self._model.input_limit, at_most=_AT_MOST)

    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult:
        if not passages:
            return RerankResult(order=(), asked=False)
        prompt = rerank_prompt(question, passages, input_limit=self._model.input_limit)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._model.complete(prompt)
        except TimeoutError:
            raise ModelUnavailable(
                f"the model {self.name!r} did not put passages in order within {self._timeout:g} seconds; allow it "
                "more time (HITHERTO_RERANKER_TIMEOUT), or take a cross-encoder, which is quicker"
            ) from None
        took = (answer.tokens_in, answer.tokens_cached, answer.tokens_out)
        with paid(took):
            order = order_of(answer.text, len(passages))
        return RerankResult(
            order=order, tokens_in=took[0], tokens_cached=took[1], tokens_out=took[2], asked=answer.asked
        )

    async def aclose(self) -> None:
        """Does nothing: the caller closes the model."""
