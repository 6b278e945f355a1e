"""Spans: ranges of messages with their fate in a context, and how to overlay and merge them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from hitherto.core.log.head import Head
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import (
    DialogueAt,
    Mark,
    Probe,
    ProbeGenerator,
    SeqAt,
    SpeakerAt,
    TokensAt,
    ToolIds,
    ToolItem,
    TurnAt,
    mark_at,
)
from hitherto.core.log.ranges import joined
from hitherto.core.policy.parts import Keep, LastFraction, LastMessages, LastTokens, LastTurns, Window


class Fate(StrEnum):
    """What became of a range of messages in a context."""

    IN = "in"
    DIGESTED = "digested"
    REDACTED = "redacted"
    SHORTENED = "shortened"
    RECALLED = "recalled"
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why a range has its fate."""

    VERBATIM = "verbatim"
    RULES = "a system message at its beginning"
    QUESTION = "what the user said in the turn that is not finished"
    BEGINNING = "its first user message"
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


MessageFate = tuple[int, Fate, Reason, int]
"""The seq of a message, its fate, the reason, and its tokens."""


def spans_of(found: Iterable[MessageFate]) -> tuple[Span, ...]:
    """Messages that ascend by seq as spans: neighbors of the same fate and reason in one."""
    spans: list[Span] = []
    start = end = tokens = 0
    last: tuple[Fate, Reason] | None = None

    def close() -> None:
        if last is not None:
            spans.append(Span(start=start, end=end, fate=last[0], reason=last[1], tokens=tokens))

    for seq, fate, reason, takes in found:
        if (fate, reason) == last and seq == end + 1:
            end, tokens = seq, tokens + takes
            continue
        close()
        start, end, tokens, last = seq, seq, takes, (fate, reason)
    close()
    return tuple(spans)


_HOPS = 8
"""A cut moves back at most this often for late results: where it would move more often, late results form a chain."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Message `seq` and what comes after it stay verbatim; `sums` run up to the message before it."""

    seq: int
    sums: Sums


def kept(keep: Keep, head: Head, budget: int = 0) -> ProbeGenerator[Cut]:
    """The cut that leaves what `keep` says, where contexts have a budget of so many tokens. It lies at the start of a
    turn and splits no group: a call whose result is awaited stays verbatim, and so does one whose result came after the
    cut."""
    last = head.sums
    match keep:
        case Window():
            return (yield from kept(keep.keep, head, budget))
        case LastFraction(f):
            return (yield from kept(LastTokens(max(int(f * budget), 1)), head))
        case LastTurns(k):
            mark = yield from mark_at(TurnAt(max(last.turns - k + 1, 1)))
        case LastMessages(k):
            mark = yield from _turn_of(DialogueAt(max(last.dialogue - k + 1, 1)))
        case LastTokens(t):
            mark = yield from mark_at(TokensAt(max(last.tokens - t + 1, 1)))
            if mark is not None and not (mark.opens_turn and last.tokens - mark.before.tokens <= t):
                mark = yield from mark_at(TurnAt(max(min(mark.sums.turns + 1, last.turns), 1)))
        case _:
            if head.round_ended:
                return Cut(head.next_seq, head.sums)
            mark = yield from mark_at(TurnAt(max(last.turns, 1)))
    return (yield from whole_groups(mark, head))


def kept_within(keep: Keep, head: Head, budget: int) -> ProbeGenerator[Cut | None]:
    """The cut within the turn that is not finished that leaves the newest messages of at most as many tokens, or as
    many messages of any kind, as `keep` says, and in any case the results that no message follows yet; None where
    nothing is left to be taken away."""
    last = yield from _last_within(keep, head, budget)
    mark = None if last is None else (yield from mark_at(SeqAt(last)))
    return None if mark is None else Cut(mark.seq + 1, mark.sums)


def kept_groups_within(keep: Keep, begin: Cut, head: Head, budget: int) -> ProbeGenerator[Cut | None]:
    """As `kept_within`, for a range from `begin` on that takes whole groups: it ends with a result behind the newest
    user message, and no call in it has its result after it. None where there is no such cut, and while a call waits for
    its result."""
    last = None if head.awaited else (yield from _last_within(keep, head, budget))
    if last is None:
        return None
    turn = yield from mark_at(TurnAt(max(head.sums.turns, 1)))
    first = begin.seq if turn is None else max(begin.seq, turn.seq)
    if last < first:
        return None
    items = yield ToolIds(begin.seq)
    assert isinstance(items, tuple), "the answer to ToolIds"
    end = _last_whole(items, last)
    mark = None if end is None or end < first else (yield from mark_at(SeqAt(end)))
    return None if mark is None else Cut(mark.seq + 1, mark.sums)


def _last_within(keep: Keep, head: Head, budget: int) -> ProbeGenerator[int | None]:
    """The last message that may be taken away within a turn."""
    match keep:
        case Window():
            return (yield from _last_within(keep.keep, head, budget))
        case LastFraction(f):
            return (yield from _last_within(LastTokens(max(int(f * budget), 1)), head, budget))
        case LastTokens(t):
            crossing = yield from mark_at(TokensAt(head.sums.tokens - t))
            last = None if crossing is None else crossing.seq
        case LastMessages(k):
            last = _before_newest(k, head)
        case _:
            return None
    speaker = yield from mark_at(SpeakerAt(head.last_seq))
    return None if last is None or speaker is None else min(last, speaker.seq - 1)


def _before_newest(k: int, head: Head) -> int:
    """The seq before the newest `k` messages that were not retracted."""
    end = head.next_seq
    for first, last in reversed(joined(head.retracted)):
        if end - last > k:
            break
        k -= end - last - 1
        end = first
    return end - k - 1


def _last_whole(items: Sequence[ToolItem], last: int) -> int | None:
    """The last result up to seq `last` behind which no result of an earlier call comes."""
    made: dict[str, int] = {}
    begun: list[tuple[ToolItem, int]] = []
    for item in items:
        begun.append((item, min([made.pop(call) for call in item.answers if call in made], default=item.seq)))
        made.update(dict.fromkeys(item.calls, item.seq))
    earliest = items[-1].seq + 1 if items else 0
    for item, first in reversed(begun):
        if item.answers and item.seq <= last and item.seq < earliest:
            return item.seq
        earliest = min(earliest, first)
    return None


def whole_groups(mark: Mark | None, head: Head) -> ProbeGenerator[Cut]:
    """The cut at `mark`, which opens a turn, moved back to where it splits no group. Without a mark, or without a turn
    to move back to, it is at the start of the view: nothing can be taken away.

    Where each turn's calls are answered in the next, every cut splits some group. After `_HOPS` moves for late results
    the cut therefore goes back to `mark`, and a result whose call lies before it is not shown.
    """
    first, hops = mark, 0
    while mark is not None:
        turn, seq = mark.sums.turns, mark.seq
        held = [called for called, _ in head.awaited if called < turn]
        late = [called for called, result in head.late if called < turn and result >= seq and hops <= _HOPS]
        if late and hops == _HOPS:
            mark, hops = first, _HOPS + 1
            continue
        if not held and not late:
            return Cut(seq, mark.before)
        hops += bool(late)
        mark = None if min(held + late) < 1 else (yield from mark_at(TurnAt(min(held + late))))
    return Cut(head.view_start, head.view_sums)


def past_late_results(mark: Mark, begin: Cut, head: Head) -> ProbeGenerator[Cut]:
    """As `whole_groups`, for a range from `begin` on whose end does not move on as the conversation grows: where that
    would leave it empty, it ends at the first turn after `mark` with which it splits no group, if there is one."""
    cut = yield from whole_groups(mark, head)
    after: Mark | None = mark
    while cut.seq <= begin.seq and after is not None:
        late = [result for called, result in head.late if called < after.sums.turns and result >= after.seq]
        last = (yield from mark_at(SeqAt(max(late)))) if late else None
        after = None if last is None else (yield from mark_at(TurnAt(last.sums.turns + 1)))
        cut = cut if after is None else (yield from whole_groups(after, head))
    return cut


def window_start(n: int, head: Head) -> ProbeGenerator[int]:
    """The first message of the window of the newest `n` messages."""
    if head.sums.dialogue - head.view_sums.dialogue <= n:
        return head.view_start
    mark = yield from mark_at(DialogueAt(head.sums.dialogue - n + 1))
    assert mark is not None, "the running sums promise a message at every count below the last"
    if mark.opens_turn:
        return mark.seq
    turn = yield from mark_at(TurnAt(mark.sums.turns + 1))
    return mark.seq if turn is None else turn.seq


def _turn_of(probe: Probe) -> ProbeGenerator[Mark | None]:
    """The message that opens the turn in which the answer to `probe` lies."""
    mark = yield from mark_at(probe)
    if mark is None or mark.opens_turn:
        return mark
    return None if mark.sums.turns < 1 else (yield from mark_at(TurnAt(mark.sums.turns)))
