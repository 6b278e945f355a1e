"""The end of a log as a head describes it, derived from the newest messages.

It is needed after a retraction, and after a clear is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitherto.core.log.head import Head, OpenCall
from hitherto.core.log.message import Kind, Logged, Role

_OF_A_RUN = (Kind.TOOL_CALL, Kind.REASONING)


def covers_last_run(tail: Sequence[Logged]) -> bool:
    """Whether the newest messages `tail` (ascending) are enough for `without_last`: they have the calls that the last
    one answers, and the beginning of the run of tool calls and reasoning items before it."""
    rest, last = tail[:-1], tail[-1]
    made = {call for logged in rest for call in logged.message.calls}
    return set(last.message.answers) <= made and any(one.message.kind not in _OF_A_RUN for one in rest[1:])


def without_last(head: Head, tail: Sequence[Logged]) -> Head:
    """`head`, one revision on, without the last of its newest live messages `tail` (ascending): the calls that it
    answered are open again, and those that it made are gone."""
    rest, last = tail[:-1], tail[-1]
    open_calls = {call: one for call, one in head.open_calls.items() if call not in last.message.calls}
    makers = _made(rest)
    open_calls |= {call: makers[call] for call in last.message.answers if call in makers}
    return replace(
        head,
        rev=head.rev + 1,
        sums=last.before,
        closed=_closed(rest),
        run_start=_run_start(rest, head.next_seq),
        open_calls=open_calls,
        late=tuple(one for one in head.late if one[1] != last.seq),
    )


def ending(head: Head, tail: Sequence[Logged]) -> Head:
    """`head` with `closed`, `run_start`, `open_calls` and `late` derived from its newest live messages `tail`
    (ascending)."""
    makers = _made(tail)
    answered = {call for logged in tail for call in logged.message.answers}
    return replace(
        head,
        closed=_closed(tail),
        run_start=_run_start(tail, head.next_seq),
        open_calls={call: made for call, made in makers.items() if call not in answered},
        late=tuple(
            (makers[call].turn, logged.seq)
            for logged in tail
            for call in logged.message.answers
            if call in makers and makers[call].turn < logged.sums.turns
        ),
    )


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
        tools = (*logged.message.tools, *("tool",) * len(logged.message.calls))
        for call, tool in zip(logged.message.calls, tools, strict=False):
            found[call] = OpenCall(seq=logged.seq, group=group, turn=logged.sums.turns, tool=tool)
    return found
