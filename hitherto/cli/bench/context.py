"""Measures contexts: how much of a question's evidence the payload shows at a budget."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from hitherto.cli.bench.questions import LabeledConversation, LabeledQuestion, append
from hitherto.cli.bench.retrieval import by_category, quantile
from hitherto.cli.transcripts.transcript import FileConversation
from hitherto.core.scope import Scope
from hitherto.engine.context.context import Context
from hitherto.engine.memory import Memory
from hitherto.simulation.figures import common_start, evidence_shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextResult:
    """The context of one question at one budget: the share of its evidence that is shown, its tokens, those of them
    that are `recalled`, the share of the request (up to what is recalled) that repeats the one before, and how long it
    took. `elsewhere` are the tokens recalled for the same question in a scope that it is not about."""

    question: LabeledQuestion
    evidence: float
    tokens: int
    recalled: int
    repeated: float | None
    ms: float
    elsewhere: int | None = None


@dataclass(slots=True, kw_only=True)
class ContextReport:
    """All results, by budget in tokens. `missing` is what contexts had to do without, once or always."""

    policy: str
    conversations: int
    messages: int
    results: dict[int, list[ContextResult]]
    missing: set[str] = field(default_factory=set[str])

    def ms(self, share: float) -> float:
        """So much of the contexts took no longer than this."""
        return quantile([one.ms for results in self.results.values() for one in results], share)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; shares in percent."""
        return {
            "questions": len(next(iter(self.results.values()))),
            "budgets": {str(budget): _figures(results) for budget, results in self.results.items()},
            "context_ms": {"p50": round(self.ms(0.5), 3), "p95": round(self.ms(0.95), 3)},
            "policy": self.policy,
            "conversations": self.conversations,
            "messages": self.messages,
            "missing": sorted(self.missing),
        }


def evidence_of(results: Sequence[ContextResult]) -> float:
    """The evidence shown, in percent: the mean over the questions."""
    return 100 * fmean(one.evidence for one in results)


def repeated_of(results: Sequence[ContextResult]) -> float | None:
    """What repeats the request before, in percent: the mean; None where no request has one before it."""
    shares = [one.repeated for one in results if one.repeated is not None]
    return 100 * fmean(shares) if shares else None


def elsewhere_of(results: Sequence[ContextResult]) -> float | None:
    """The tokens recalled in a scope that the question is not about: the mean; None where none was asked."""
    found = [one.elsewhere for one in results if one.elsewhere is not None]
    return fmean(found) if found else None


def _figures(results: Sequence[ContextResult]) -> dict[str, Any]:
    repeated, elsewhere = repeated_of(results), elsewhere_of(results)
    return {
        "evidence": round(evidence_of(results), 3),
        "tokens": round(fmean(one.tokens for one in results), 1),
        "recalled": round(fmean(one.recalled for one in results), 1),
        "recalled_elsewhere": None if elsewhere is None else round(elsewhere, 1),
        "repeated": None if repeated is None else round(repeated, 3),
        "by_category": {
            "none" if category is None else str(category): {
                "questions": len(some),
                "evidence": round(evidence_of(some), 3),
            }
            for category, some in by_category(results).items()
        },
    }


async def measure(
    memory: Memory,
    conversations: Sequence[LabeledConversation],
    *,
    budgets: Sequence[int],
    policy: str | None,
    recall: bool | int | None,
    sessions: bool = False,
    beside: int = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> ContextReport:
    """Append each conversation to a scope of its own, with the next `beside` others of the list, index them, and ask
    every question at each budget, one after the other. With `sessions`, each session is a conversation of its own, and
    each question is asked in a new one, and once more in another scope, which it is not about: in all of these by
    turns. `advance` gets the number of messages appended, and 1 for each question."""
    scopes = [Scope(tenant="bench", user=labeled.transcript.id, agent="bench") for labeled in conversations]
    for at, scope in enumerate(scopes):
        for labeled in [*conversations[at:], *conversations[:at]][: beside + 1]:
            for name, seqs in _parts(labeled, sessions).items():
                part = FileConversation(name, labeled.transcript.messages[seqs.start : seqs.stop])
                await append(memory, part, scope=scope, policy=policy, advance=advance)
    await memory.wait_for_digests()
    await memory.wait_for_index()
    report = ContextReport(
        policy=policy or "the default",
        conversations=len(conversations),
        messages=sum(len(labeled.transcript.messages) for labeled in conversations),
        results={budget: [] for budget in budgets},
    )
    for at, (labeled, scope) in enumerate(zip(conversations, scopes, strict=True)):
        name = "a new conversation" if sessions else labeled.transcript.id
        chat = memory.conversation(name, scope=scope, policy=policy)
        strangers = [
            memory.conversation(name, scope=scopes[(at + ahead) % len(scopes)], policy=policy)
            for ahead in range(1, len(scopes) - beside if sessions else 1)
        ]
        starts = {name: seqs.start for name, seqs in _parts(labeled, sessions).items()}
        before: dict[int, str] = {}
        for number, question in enumerate(labeled.questions):
            for budget in budgets:
                begun = time.perf_counter()
                context = await chat.context(question.text, budget=budget, recall=recall)
                ms = 1_000 * (time.perf_counter() - begun)
                elsewhere = None
                if strangers:
                    other = strangers[number % len(strangers)]
                    elsewhere = _recalled(await other.context(question.text, budget=budget, recall=recall))
                stable = _stable(context)
                report.results[budget].append(
                    ContextResult(
                        question=question,
                        evidence=evidence_shown(context, labeled.transcript.messages, question.evidence, starts),
                        tokens=context.tokens,
                        recalled=_recalled(context),
                        repeated=_repeated(before.get(budget), stable),
                        ms=ms,
                        elsewhere=elsewhere,
                    )
                )
                before[budget] = stable
                report.missing.update(context.manifest.missing)
            advance(1)
    return report


def _parts(labeled: LabeledConversation, sessions: bool) -> dict[str, range]:
    """The conversations that it is put into the log as, and which of its messages each has."""
    transcript = labeled.transcript
    return labeled.sessions() if sessions else {transcript.id: range(len(transcript.messages))}


def _recalled(context: Context) -> int:
    return context.manifest.sections.get("recalled", 0)


def _stable(context: Context) -> str:
    """The request as JSON up to what changes with each question: what is recalled, and the incoming message."""
    changes = 1 + ("recalled" in context.manifest.sections)
    items: Sequence[Mapping[str, Any]] = context.messages[:-changes]
    return json.dumps(list(items), ensure_ascii=False)[:-1]


def _repeated(before: str | None, now: str) -> float | None:
    if before is None or not now:
        return None
    return common_start(before, now) / len(now)
