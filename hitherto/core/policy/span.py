"""Spans: ranges of messages with their fate in a context, and how to overlay and merge them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Fate(StrEnum):
    """What became of a range of messages in a context."""

    IN = "in"
    DIGESTED = "digested"
    REDACTED = "redacted"
    RECALLED = "recalled"
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why a range has its fate."""

    VERBATIM = "verbatim"
    CALL_OF_INCOMING = "call of the incoming result"
    REDACTED = "its tool results redacted"
    SUMMARIZED = "summarized"
    COMPACTED = "in an opaque item"
    CHUNKED = "in a chunk"
    WINDOW = "older than the window"
    TRIMMED = "dropped by a stage"
    BUDGET = "over the budget"
    CLEARED = "cleared"
    ERASED = "erased"
    RETRACTED = "taken back"
    CALL_NOT_IN = "result of a call that is not in"
    RECALLED = "recalled for the incoming message"


class Span(BaseModel):
    """Messages `start` to `end`, both inclusive, that share one fate. `tokens`: what they cost in this payload, 0
    unless they are in it. `digest` is the id of the digest that stands for them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: int
    end: int
    fate: Fate
    reason: Reason
    digest: int | None = None
    tokens: int = 0


def overlaid(under: Iterable[Span], over: Sequence[Span]) -> Iterator[Span]:
    """The spans of `under` in pieces, in order, with those of `over` in place of what they cover; the spans of each are
    ascending and disjoint."""
    at = 0
    for span in under:
        start = span.start
        while at < len(over) and over[at].start <= span.end:
            first, last = max(over[at].start, start), min(over[at].end, span.end)
            if first <= last:
                if start < first:
                    yield _part(span, start, first - 1)
                yield _part(over[at], first, last)
                start = last + 1
            if over[at].end > span.end:
                break  # it may go on in the next
            at += 1
        if start <= span.end:
            yield _part(span, start, span.end)


def _part(span: Span, start: int, end: int) -> Span:
    whole = (start, end) == (span.start, span.end)
    return span if whole else span.model_copy(update={"start": start, "end": end})


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Ascending spans with neighbors of the same fate joined, their tokens added up."""
    runs: list[list[Span]] = []
    for span in spans:
        last = runs[-1][-1] if runs else None
        same = last and (last.fate, last.reason, last.digest) == (span.fate, span.reason, span.digest)
        if last and same and last.end + 1 == span.start:
            runs[-1].append(span)
        else:
            runs.append([span])
    return tuple(map(_one, runs))


def _one(run: Sequence[Span]) -> Span:
    if len(run) == 1:
        return run[0]
    return run[0].model_copy(update={"end": run[-1].end, "tokens": sum([span.tokens for span in run])})
