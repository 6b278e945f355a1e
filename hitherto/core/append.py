"""What an append does to a conversation's head: pure arithmetic on running sums, and the rules of a batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hitherto.core.head import Head, OpenCall
from hitherto.core.message import Kind, Logged, Message, Role, Sums
from hitherto.core.plan import Mark, Probe, TalkAt, TurnAt
from hitherto.errors import InvalidBatch


def fingerprint(messages: Sequence[Message]) -> str:
    """SHA-256 over everything of a batch that is stored: the same key must come with the same fingerprint."""
    digest = hashlib.sha256()
    for message in messages:
        expiry = "" if message.expires_at is None else message.expires_at.astimezone(UTC).isoformat()
        for part in (message.wire, message.raw, message.metadata, expiry):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part.encode())
    return digest.hexdigest()


def extended(head: Head, messages: Sequence[Message], tokens: Sequence[int]) -> tuple[tuple[Logged, ...], Head]:
    """The messages as they enter the log after `head`, and the head after them, one revision on.

    Raises InvalidBatch for an empty batch and for a tool result without its call; `tokens` are the messages' own.
    """
    if not messages:
        raise InvalidBatch("the batch is empty; append at least one message")
    logged: list[Logged] = []
    sums, run_start, open_calls = head.sums, head.run_start, dict(head.open_calls)
    for seq, (message, own) in enumerate(zip(messages, tokens, strict=True), head.next_seq):
        sums = sums.after(message, own)
        logged.append(Logged(seq=seq, message=message, tokens=own, sums=sums, rev=head.rev + 1, created_at=head.now))
        for call in message.answers:
            if open_calls.pop(call, None) is None:
                raise InvalidBatch(
                    f"message {seq - head.next_seq} of the batch is the result of tool call {call!r}, but no such call "
                    "is waiting for one; append the call first, and its result once"
                )
        if message.kind not in (Kind.TOOL_CALL, Kind.REASONING):
            run_start = seq + 1
        for call in message.calls:
            open_calls[call] = OpenCall(seq=seq, group=run_start, turn=sums.turns)
    last = messages[-1]
    times = [head.next_expiry, *(message.expires_at for message in messages)]
    return tuple(logged), replace(
        head,
        rev=head.rev + 1,
        next_seq=head.next_seq + len(messages),
        sums=sums,
        closed=last.role is Role.ASSISTANT and last.kind is Kind.TEXT,
        run_start=run_start,
        open_calls=open_calls,
        next_expiry=_earliest(times),
    )


def _earliest(times: Sequence[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def found_in(batch: Sequence[Logged], probe: Probe) -> Mark | None:
    """The answer to `probe` among messages that are not in the store yet."""
    for logged in batch:
        match probe:
            case TalkAt(n):
                reached = logged.message.counts and logged.sums.talk >= n
            case TurnAt(n):
                reached = logged.message.opens_turn and logged.sums.turns >= n
        if reached:
            return Mark(logged.seq, logged.sums, logged.message.opens_turn)
    return None


def reached(sums: Sums, probe: Probe) -> bool:
    """Whether the answer to `probe` lies at or before the message whose running sums these are."""
    match probe:
        case TalkAt(n):
            return sums.talk >= n
        case TurnAt(n):
            return sums.turns >= n
