"""How much of what answers a question is among the best k that recall finds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any

from hitherto import tokens
from hitherto.cli.evidence import Asked, Question
from hitherto.core.scope import Scope
from hitherto.core.wanted import EntryKind
from hitherto.engine.memory import Memory

_BATCH = 500
_SCOPE = Scope(tenant="bench", user="bench", agent="bench")


class Among(StrEnum):
    """Where a question is asked: within the conversation that it is about, or in all of them together."""

    CONVERSATION = "conversation"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of one question: the places (from 1) at which its evidence was found, the tokens of what was found, in
    its order, and how long it took."""

    question: Question
    places: tuple[int, ...]
    tokens: tuple[int, ...]
    ms: float

    def recall(self, k: int) -> float:
        """The share of its evidence among the best `k`."""
        return sum(place <= k for place in self.places) / len(self.question.evidence)


@dataclass(slots=True, kw_only=True)
class Measured:
    """All that was measured. `missing` is what recall had to do without, once or always; `space` is where meanings were
    compared, None if they were not."""

    ks: tuple[int, ...]
    among: Among
    conversations: int
    messages: int
    index_seconds: float
    answered: list[Answered] = field(default_factory=list[Answered])
    missing: set[str] = field(default_factory=set[str])
    space: str | None = None

    @property
    def counted(self) -> list[Answered]:
        """All but the adversarial ones, unless there are no others."""
        return [one for one in self.answered if not one.question.adversarial] or self.answered

    def by_category(self) -> dict[int | None, list[Answered]]:
        """All questions, by category in order; those without one come last."""
        found: dict[int | None, list[Answered]] = {}
        for one in sorted(self.answered, key=lambda one: _last(one.question.category)):
            found.setdefault(one.question.category, []).append(one)
        return found

    def recall(self, answered: Sequence[Answered]) -> dict[int, float]:
        """Recall at each k, from 0 to 1: the mean over the questions."""
        return {k: fmean(one.recall(k) for one in answered) for k in self.ks}

    def tokens_at_k(self) -> dict[int, float]:
        """How many tokens the texts of the best k have: the mean over the questions that count."""
        return {k: fmean(sum(one.tokens[:k]) for one in self.counted) for k in self.ks}

    def query_ms(self, share: float) -> float:
        """The time that so large a share of all questions took at most, in milliseconds."""
        return quantile([one.ms for one in self.answered], share)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **self._figures(self.counted),
            "by_category": {
                "none" if category is None else str(category): self._figures(answered)
                for category, answered in self.by_category().items()
            },
            "query_ms": {"p50": round(self.query_ms(0.5), 3), "p95": round(self.query_ms(0.95), 3)},
            "index_seconds": round(self.index_seconds, 3),
            "tokens_at_k": {str(k): round(value, 1) for k, value in self.tokens_at_k().items()},
            "scope": self.among.value,
            "conversations": self.conversations,
            "messages": self.messages,
            "embedder": self.space,
            "missing": sorted(self.missing),
        }

    def _figures(self, answered: Sequence[Answered]) -> dict[str, Any]:
        recall = {str(k): round(value, 6) for k, value in self.recall(answered).items()}
        return {"questions": len(answered), "recall": recall}


async def loaded(memory: Memory, asked: Iterable[Asked], *, advance: Callable[[int], None] = lambda _: None) -> None:
    """Append the conversations to an empty memory, all in one scope; `advance` hears of every so many messages."""
    for one in asked:
        chat = memory.conversation(one.transcript.id, scope=_SCOPE)
        messages = one.transcript.messages
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            await chat.append(*batch, expect=start)
            advance(len(batch))


async def indexed(memory: Memory) -> float:
    """Index and embed what was loaded; returns how many seconds that took."""
    begun = time.perf_counter()
    await memory.indexed()
    return time.perf_counter() - begun


async def measured(
    memory: Memory,
    asked: Sequence[Asked],
    *,
    ks: Sequence[int],
    among: Among,
    index_seconds: float,
    advance: Callable[[], None] = lambda: None,
) -> Measured:
    """Ask every question, one after the other, of what was loaded and indexed; `advance` is called after each."""
    found = Measured(
        ks=tuple(sorted(set(ks))),
        among=among,
        conversations=len(asked),
        messages=sum(len(one.transcript.messages) for one in asked),
        index_seconds=index_seconds,
    )
    count = tokens.counter_for(tokens.CANONICAL).count
    costs = {one.transcript.id: [count(message.text) for message in one.transcript.messages] for one in asked}
    for one in asked:
        for question in one.questions:
            begun = time.perf_counter()
            answer = await memory.recall(
                question.text,
                scope=_SCOPE,
                k=found.ks[-1],
                kinds={EntryKind.MESSAGE},
                conversation=one.transcript.id if among is Among.CONVERSATION else None,
            )
            ms = 1_000 * (time.perf_counter() - begun)
            places = [(hit.conversation or "", hit.start or 0) for hit in answer.hits]
            wanted = {(one.transcript.id, seq) for seq in question.evidence}
            found.answered.append(
                Answered(
                    question=question,
                    places=tuple(at for at, place in enumerate(places, 1) if place in wanted),
                    tokens=tuple(costs[name][seq] for name, seq in places),
                    ms=ms,
                )
            )
            found.missing.update(answer.missing)
            found.space = found.space or answer.space
            advance()
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least so large a share of them does not exceed. Raises ValueError for none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there are no values")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _last(category: int | None) -> tuple[bool, int]:
    return category is None, category or 0
