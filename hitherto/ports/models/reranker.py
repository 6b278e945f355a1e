"""The port to rerankers, which reorder the passages that a search found. Its docstrings are the contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """The order in which a reranker puts passages: their indices in what it was given, each at most once, the best
    first. Those it left out come after these, in their old order. `asked` and tokens are as in `Completion`."""

    order: tuple[int, ...]
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    asked: bool = True


class Reranker(Protocol):
    """Puts passages in the order in which they answer a question.

    `limit` is how many passages it takes at once. `rerank` raises what `Model.complete` raises, and never anything else
    of its own; one call is one request. Cancelling the task ends it. `aclose` releases what it holds; calling it twice
    is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def limit(self) -> int: ...
    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult: ...
    async def aclose(self) -> None: ...
