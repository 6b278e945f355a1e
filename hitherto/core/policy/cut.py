"""Where a stage cuts: the message from which on everything stays verbatim."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.log.head import Head
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import DialogueAt, Mark, Probe, ProbeGenerator, SeqAt, TokensAt, TurnAt, mark_at
from hitherto.core.policy.keep import Keep, LastFraction, LastMessages, LastTokens, LastTurns, Window

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
