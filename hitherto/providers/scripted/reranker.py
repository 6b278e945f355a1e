"""A reranker for tests, with orders, delays and faults from a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from hitherto.ports.models.reranker import Reranker, RerankResult
from hitherto.providers.scripted.model import Hang

Order: TypeAlias = "Sequence[int] | Callable[[str, Sequence[str]], Sequence[int]]"
"""Places from 0, the best first, or a function that returns them for a question and its passages."""


@dataclass(frozen=True, slots=True)
class DelayedOrder:
    """`reply`, after `seconds`."""

    seconds: float
    reply: Reply


Reply: TypeAlias = "Order | Exception | DelayedOrder | Hang"
"""What one call gets: an order, an error to raise, or one of these after a wait."""


class ScriptedReranker(Reranker):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`. By
    default the passages stay in their order.

    `calls` are the questions and passages of its calls. `closed` counts calls of `aclose`.
    """

    def __init__(
        self, replies: Sequence[Reply] = (), *, then: Reply = (), name: str = "scripted", limit: int = 20
    ) -> None:
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.closed = 0
        self._replies = list(replies)
        self._then = then
        self._name = name
        self._limit = limit

    @property
    def name(self) -> str:
        return self._name

    @property
    def limit(self) -> int:
        return self._limit

    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult:
        reply = self._replies[len(self.calls)] if len(self.calls) < len(self._replies) else self._then
        self.calls.append((question, tuple(passages)))
        while isinstance(reply, DelayedOrder):
            await asyncio.sleep(reply.seconds)
            reply = reply.reply
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Hang):
            await asyncio.Event().wait()
        order = reply(question, passages) if callable(reply) else cast("Sequence[int]", reply)
        return RerankResult(order=tuple(order))

    async def aclose(self) -> None:
        self.closed += 1
