"""Measures recall at k: how much of a question's evidence is among the best k hits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any, Protocol, TypeVar

from hitherto import tokens
from hitherto.cli.bench.questions import LabeledConversation, LabeledQuestion, append
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory

_SCOPE = Scope(tenant="bench", user="bench", agent="bench")


class SearchIn(StrEnum):
    """Where a question is asked: in the conversation that it is about, or in all of them."""

    CONVERSATION = "conversation"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResult:
    """The result of one question: the ranks (from 1) at which its evidence was found, the tokens of each hit in order,
    and how long it took."""

    question: LabeledQuestion
    ranks: tuple[int, ...]
    tokens: tuple[int, ...]
    ms: float

    def recall(self, k: int) -> float:
        """The share of its evidence among the best `k`."""
        return sum(rank <= k for rank in self.ranks) / len(self.question.evidence)


@dataclass(slots=True, kw_only=True)
class RecallReport:
    """All results. `missing` is what recall had to do without, once or always; `space` is the vector space in which
    meanings were compared, None if they were not."""

    ks: tuple[int, ...]
    search_in: SearchIn
    conversations: int
    messages: int
    index_seconds: float
    answers: list[QuestionResult] = field(default_factory=list[QuestionResult])
    missing: set[str] = field(default_factory=set[str])
    space: str | None = None

    @property
    def counted(self) -> list[QuestionResult]:
        """All but the adversarial ones, unless there are no others."""
        return [answer for answer in self.answers if not answer.question.adversarial] or self.answers

    def by_category(self) -> dict[int | None, list[QuestionResult]]:
        """All questions, by category in order; those without one come last."""
        return by_category(self.answers)

    def recall(self, answers: Sequence[QuestionResult]) -> dict[int, float]:
        """Recall at each k, from 0 to 1: the mean over the questions."""
        return {k: fmean(answer.recall(k) for answer in answers) for k in self.ks}

    def tokens_at_k(self) -> dict[int, float]:
        """The tokens of the texts of the best k: the mean over the questions that count."""
        return {k: fmean(sum(answer.tokens[:k]) for answer in self.counted) for k in self.ks}

    def query_ms(self, share: float) -> float:
        """The time in milliseconds that this share of the questions did not exceed."""
        return quantile([answer.ms for answer in self.answers], share)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            **self._figures(self.counted),
            "by_category": {
                "none" if category is None else str(category): self._figures(answers)
                for category, answers in self.by_category().items()
            },
            "query_ms": {"p50": round(self.query_ms(0.5), 3), "p95": round(self.query_ms(0.95), 3)},
            "index_seconds": round(self.index_seconds, 3),
            "tokens_at_k": {str(k): round(value, 1) for k, value in self.tokens_at_k().items()},
            "scope": self.search_in.value,
            "conversations": self.conversations,
            "messages": self.messages,
            "embedder": self.space,
            "missing": sorted(self.missing),
        }

    def _figures(self, answers: Sequence[QuestionResult]) -> dict[str, Any]:
        recall = {str(k): round(value, 6) for k, value in self.recall(answers).items()}
        return {"questions": len(answers), "recall": recall}


async def measure(
    memory: Memory,
    conversations: Sequence[LabeledConversation],
    *,
    ks: Sequence[int],
    search_in: SearchIn,
    advance: Callable[[int], None] = lambda _: None,
) -> RecallReport:
    """Append the conversations to an empty memory, all in one scope, index them, and ask every question, one after the
    other. `advance` gets the number of messages appended, and 1 for each question."""
    for labeled in conversations:
        await append(memory, labeled.transcript, scope=_SCOPE, advance=advance)
    begun = time.perf_counter()
    await memory.wait_for_index()
    report = RecallReport(
        ks=tuple(sorted(set(ks))),
        search_in=search_in,
        conversations=len(conversations),
        messages=sum(len(labeled.transcript.messages) for labeled in conversations),
        index_seconds=time.perf_counter() - begun,
    )
    count = tokens.counter_for(tokens.CANONICAL).count
    sizes = {
        labeled.transcript.id: [count(message.text) for message in labeled.transcript.messages]
        for labeled in conversations
    }
    for labeled in conversations:
        name = labeled.transcript.id
        for question in labeled.questions:
            begun = time.perf_counter()
            found = await memory.recall(
                question.text,
                scope=_SCOPE,
                limit=report.ks[-1],
                kinds={EntryKind.MESSAGE},
                conversation=name if search_in is SearchIn.CONVERSATION else None,
            )
            ms = 1_000 * (time.perf_counter() - begun)
            places = [(hit.conversation or "", hit.start or 0) for hit in found.hits]
            ranks = (rank for rank, (place, seq) in enumerate(places, 1) if place == name and seq in question.evidence)
            found_tokens = tuple(sizes[place][seq] for place, seq in places)
            report.answers.append(QuestionResult(question=question, ranks=tuple(ranks), tokens=found_tokens, ms=ms))
            report.missing.update(found.missing)
            report.space = report.space or found.space
            advance(1)
    return report


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed. Raises ValueError for no values."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("there are no values")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class _OfAQuestion(Protocol):
    @property
    def question(self) -> LabeledQuestion: ...


_Result = TypeVar("_Result", bound=_OfAQuestion)


def by_category(results: Iterable[_Result]) -> dict[int | None, list[_Result]]:
    """Results of questions, by category in order; those without one come last."""
    found: dict[int | None, list[_Result]] = {}
    for one in sorted(results, key=lambda one: (one.question.category is None, one.question.category or 0)):
        found.setdefault(one.question.category, []).append(one)
    return found
