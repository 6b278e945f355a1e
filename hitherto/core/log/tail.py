"""The end of a log as a head describes it, derived from the newest messages.

It is needed after a retraction, and after a clear is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitherto.core.log.head import HeadWithCalls, OpenCall
from hitherto.core.log.message import Kind, Logged, Role

_OF_A_RUN = (Kind.TOOL_CALL, Kind.REASONING)


def covers(tail: Sequence[Logged], first: int) -> bool:
    """Whether the newest messages `tail` (ascending) are enough for `without_from`: they have a message before `first`,
    the calls that those from there on answer, and the beginning of the run of tool calls and reasoning items before
    it."""
    kept, gone = _parted(tail, first)
    made = {call for logged in tail for call in logged.message.calls}
    answered = {call for logged in gone for call in logged.message.answers}
    return answered <= made and any(one.message.kind not in _OF_A_RUN for one in kept[1:])


def without_from(head: HeadWithCalls, tail: Sequence[Logged], first: int) -> HeadWithCalls:
    """`head`, one revision on, without its live messages from seq `first` on, of which there is at least one; `tail`
    are its newest (ascending). `open_calls` are those before it that were open, and those that they answered, which
    are open again; what is awaited is left to be counted."""
    kept, gone = _parted(tail, first)
    makers = _made(kept)
    before = {call: one for call, one in head.open_calls.items() if one.seq < first}
    again = {call: makers[call] for one in gone for call in one.message.answers if call in makers}
    return replace(
        head,
        rev=head.rev + 1,
        sums=gone[0].before,
        closed=_closed(kept),
        run_start=_run_start(kept, head.next_seq),
        open_calls=before | again,
        late=tuple(one for one in head.late if one[1] < first),
    )


def _parted(tail: Sequence[Logged], first: int) -> tuple[Sequence[Logged], Sequence[Logged]]:
    at = next((at for at, one in enumerate(tail) if one.seq >= first), len(tail))
    return tail[:at], tail[at:]


def ending(head: HeadWithCalls, tail: Sequence[Logged]) -> HeadWithCalls:
    """`head` with `closed`, `run_start` and `late` derived from its newest live messages `tail` (ascending)."""
    makers = _made(tail)
    return replace(
        head,
        closed=_closed(tail),
        run_start=_run_start(tail, head.next_seq),
        late=tuple(
            (makers[call].turn, logged.seq)
            for logged in tail
            for call in logged.message.answers
            if call in makers and makers[call].turn < logged.sums.turns
        ),
    )


def open_after(tools: Sequence[Logged]) -> dict[str, OpenCall]:
    """Those of the calls that these tool calls, results and reasoning items (ascending) make and do not answer."""
    found: dict[str, OpenCall] = {}
    group: int | None = None
    behind = 0
    for one in tools:
        if one.seq != behind or one.message.kind not in _OF_A_RUN:
            group = None
        behind = one.seq + 1
        for call in one.message.answers:
            found.pop(call, None)
        if one.message.kind in _OF_A_RUN:
            group = one.seq if group is None else group
            found |= _calls_of(one, group)
    return found


def _closed(messages: Sequence[Logged]) -> bool:
    if not messages:
        return False
    last = messages[-1].message
    return last.role is Role.ASSISTANT and last.kind is Kind.TEXT


def _run_start(messages: Sequence[Logged], next_seq: int) -> int:
    start = next_seq
    for logged in reversed(messages):
        if logged.message.kind not in _OF_A_RUN:
            break
        start = logged.seq
    return start


def _made(messages: Sequence[Logged]) -> dict[str, OpenCall]:
    found: dict[str, OpenCall] = {}
    group: int | None = None
    for logged in messages:
        if logged.message.kind not in _OF_A_RUN:
            group = None
            continue
        group = logged.seq if group is None else group
        found |= _calls_of(logged, group)
    return found


def _calls_of(logged: Logged, group: int) -> dict[str, OpenCall]:
    tools = (*logged.message.tools, *("tool",) * len(logged.message.calls))
    return {
        call: OpenCall(seq=logged.seq, group=group, turn=logged.sums.turns, tool=tool)
        for call, tool in zip(logged.message.calls, tools, strict=False)
    }
