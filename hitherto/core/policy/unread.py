"""What of a conversation has not been read for facts yet, and how much of it is read in one go. Pure."""

from __future__ import annotations

from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import ProbeGenerator, SeqAt, TokensAt, TurnAt, mark_at
from hitherto.core.policy.span import Cut

MOST_AT_ONCE = 10_000
"""Tokens that are read in one go, of several calls to the model perhaps: what fails is read again from their start."""


def unread_from(head: Head) -> ProbeGenerator[Cut]:
    """Where the messages of the view begin that come after all that was read. Without a probe, unless another policy's
    digests were the last to read, or a reading was taken back."""
    last = head.extracted[-1][1] if head.extracted else -1
    if last < head.view_start:
        return Cut(head.view_start, head.view_sums)
    reached = head.reaches(DigestAction.FACTS)
    if reached is not None and reached.end == last:
        return Cut(last + 1, reached.sums)
    mark = yield from mark_at(SeqAt(last))
    return Cut(last + 1, Sums() if mark is None else mark.sums)


def read_up_to(begin: Cut, end: Cut) -> ProbeGenerator[Cut | None]:
    """The cut at which a reading from `begin` on ends: at `end`, or at the turn that goes beyond `MOST_AT_ONCE` tokens,
    but behind a whole turn at least. None where no user speaks in it."""
    if end.sums.turns <= begin.sums.turns:
        return None
    if end.sums.tokens - begin.sums.tokens > MOST_AT_ONCE:
        beyond = yield from mark_at(TokensAt(begin.sums.tokens + MOST_AT_ONCE + 1))
        turn = 0 if beyond is None else beyond.sums.turns
        mark = yield from mark_at(TurnAt(max(turn, begin.sums.turns + 2)))
        if mark is not None and mark.seq < end.seq:
            return Cut(mark.seq, mark.before)
    return end
