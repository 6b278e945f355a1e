"""What an append does to a conversation's head: pure arithmetic on running sums, and the rules of a batch."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import zip_longest

from hitherto.core.log.head import PATIENCE, Head, HeadWithCalls, OpenCall
from hitherto.core.log.message import Kind, Logged, Message, Role, Sums, checked_id, id_hash, short_id
from hitherto.core.log.probe import DialogueAt, Mark, Probe, SeqAt, SpeakerAt, TokensAt, ToolItem, TurnAt
from hitherto.core.log.time_zone import in_zone, zone_named
from hitherto.core.scope import Scope
from hitherto.errors import Conflict, InvalidBatch, InvalidInput
from hitherto.frozen import build, change

LONGEST_TTL = timedelta(days=36_500)

_LATE = 64
"""The most late results that a head remembers. A cut may separate an older one from its call; that result is then not
shown."""


def fingerprint(messages: Sequence[Message]) -> str:
    """SHA-256, in hexadecimal, over all that is stored of a batch. An idempotency key that is used again must come with
    the same fingerprint."""
    digest = hashlib.sha256()
    for message in messages:
        for part in (
            message.wire,
            message.raw,
            message.raw_metadata,
            message.expires_at,
            message.said_at,
            message.id,
        ):
            text = part.astimezone(UTC).isoformat() if isinstance(part, datetime) else part or ""
            digest.update(len(text).to_bytes(8, "big"))
            digest.update(text.encode())
    return digest.hexdigest()


def key_hash(scope: Scope, conversation: str, key: str) -> bytes:
    """What a store keeps of an idempotency key: SHA-256 over the parts, each with its length in front, so that no two
    sets of parts read the same."""
    digest = hashlib.sha256()
    for part in (scope.user, scope.agent, conversation, key):
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()


def checked_ids(messages: Sequence[Message], *, skip_known: bool) -> frozenset[str]:
    """The ids of a batch's messages. Raises InvalidMessage for one that cannot be kept, and InvalidBatch for one that
    several of them have, unless with `skip_known` only the first of these is appended."""
    found: set[str] = set()
    for message in messages:
        if message.id is None:
            continue
        if checked_id(message.id) in found and not skip_known:
            raise InvalidBatch(
                f"two messages of the batch have the id {short_id(message.id)}; give each its own, or skip_known=True "
                "to append the first of them only"
            )
        found.add(message.id)
    return frozenset(found)


def added(messages: Sequence[Message], known: Mapping[str, int], conversation: str, *, skip_known: bool) -> list[bool]:
    """Which messages of a batch are appended, where the conversation has these ids (their hashes, with the message that
    has each): with `skip_known`, those whose id is not known and that no message before in the batch has. Raises
    Conflict for a known id without it."""
    seen: set[str] = set()
    found: list[bool] = []
    for message in messages:
        there = None if message.id is None else known.get(id_hash(message.id))
        if message.id is not None and there is not None and not skip_known:
            raise id_is_known(message.id, there, conversation)
        found.append(there is None and message.id not in seen)
        seen.update(() if message.id is None else (message.id,))
    return found


def id_is_known(id: str, seq: int, conversation: str) -> Conflict:
    """The error for an id that message `seq` has, or had before it was erased."""
    return Conflict(
        f"{conversation!r} has a message with the id {short_id(id)} already, message {seq}; nothing was appended. "
        "append(…, skip_known=True) leaves out what is there already, and a turn that is tried again takes the key= of "
        "the first try"
    )


def checked_ttl(value: object) -> timedelta | None:
    """The time to live, zero for none; None stays None. Raises InvalidInput."""
    if value is None or (isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST_TTL):
        return value
    raise InvalidInput(
        f"ttl is {value!r}; give a timedelta of at most {LONGEST_TTL.days:,} days, timedelta(0) to keep messages for "
        "ever"
    )


def checked_time_zone(value: object) -> str:
    """The name of a time zone. Raises InvalidInput."""
    name = value if isinstance(value, str) else repr(value)
    try:
        zone_named(name)
    except ValueError as error:
        raise InvalidInput(f"time_zone: {error}") from error
    return name


def expiring(head: Head, messages: Sequence[Message], default: timedelta | None) -> Sequence[Message]:
    """The messages, of which those without an expiry get the one of the time to live that applies at `head`: that of
    the head, else `default`."""
    ttl = default if head.ttl is None else head.ttl
    if not ttl:
        return messages
    return [one if one.expires_at is not None else one.expiring(head.now + ttl) for one in messages]


def placed(head: Head, messages: Sequence[Message], default: tzinfo) -> Sequence[Message]:
    """The messages with the time at which they were said in the zone of the head, else in `default`, where their own
    time has no zone but UTC."""
    zone = default if head.time_zone is None else zone_named(head.time_zone)
    if zone is UTC:
        return messages
    return [one.dated(in_zone(one.said_at or head.now, zone)) for one in messages]


def extended(
    head: HeadWithCalls, messages: Sequence[Message], tokens: Sequence[int]
) -> tuple[tuple[Logged, ...], HeadWithCalls]:
    """The messages as they enter the log after `head`, and the head after them, one revision on. `tokens` has each
    message's own tokens. `head.open_calls` must have those of the calls in the batch that are open, whether made again
    or answered.

    Raises InvalidBatch for an empty batch and for a tool result without its call.
    """
    if not messages:
        raise InvalidBatch("the batch is empty; append at least one message")
    logged: list[Logged] = []
    sums, run_start, open_calls = head.sums, head.run_start, dict(head.open_calls)
    awaited = Counter(dict(head.awaited))
    late = [one for one in head.late if one[1] >= head.view_start][-_LATE:]
    for seq, (given, own) in enumerate(zip(messages, tokens, strict=True), head.next_seq):
        sums = sums.after(given, own)
        answered: list[OpenCall] = []
        for call in given.answers:
            waiting = open_calls.pop(call, None)
            if waiting is None:
                raise InvalidBatch(
                    f"message {seq - head.next_seq} of the batch is the result of tool call {call!r}, but no such call "
                    "is waiting for one; append the call first, and its result once"
                )
            answered.append(waiting)
            awaited[waiting.turn] -= 1
            if waiting.turn < sums.turns:
                late.append((waiting.turn, seq))
        message = replace(given, tools=tuple(call.tool for call in answered)) if answered else given
        logged.append(
            build(
                Logged,
                seq=seq,
                message=message,
                tokens=own,
                sums=sums,
                rev=head.rev + 1,
                created_at=head.now,
                erased=False,
                retracted_rev=None,
                id_hash=None,
            )
        )
        if message.kind not in (Kind.TOOL_CALL, Kind.REASONING):
            run_start = seq + 1
        for call, tool in zip_longest(message.calls, message.tools[: len(message.calls)], fillvalue="tool"):
            if call in open_calls:
                awaited[open_calls[call].turn] -= 1
            open_calls[call] = OpenCall(seq=seq, group=run_start, turn=sums.turns, tool=tool)
            awaited[sums.turns] += 1
    last = messages[-1]
    return tuple(logged), change(
        head,
        rev=head.rev + 1,
        next_seq=head.next_seq + len(messages),
        sums=sums,
        closed=last.role is Role.ASSISTANT and last.kind is Kind.TEXT,
        run_start=run_start,
        open_calls=open_calls,
        awaited=tuple((turn, n) for turn, n in sorted(awaited.items()) if n > 0 and sums.turns - turn < PATIENCE),
        late=tuple(late),
        next_expiry=min(filter(None, [head.next_expiry, *[message.expires_at for message in messages]]), default=None),
    )


def found_in(batch: Sequence[Logged], probe: Probe) -> Mark | None:
    """The answer to `probe` among messages that are not in the store yet."""
    found: Logged | None = None
    for logged in batch:
        match probe:
            case DialogueAt(n):
                reached = logged.message.counts and logged.sums.dialogue >= n
            case TurnAt(n):
                reached = logged.message.opens_turn and logged.sums.turns >= n
            case TokensAt(n):
                reached = logged.sums.tokens >= n
            case SeqAt(n):
                found = logged if logged.seq <= n else found
                reached = False
            case SpeakerAt(n):
                speaks = logged.seq <= n and logged.message.kind is not Kind.TOOL_RESULT
                found = logged if speaks else found
                reached = False
        if reached:
            return marked(logged)
    return None if found is None else marked(found)


def tool_items(messages: Iterable[Logged]) -> tuple[ToolItem, ...]:
    """The answer to `ToolIds` among live messages."""
    found = [(one.seq, one.message.calls, one.message.answers) for one in messages if not one.erased]
    return tuple(ToolItem(seq, calls, answers) for seq, calls, answers in found if calls or answers)


def reached(sums: Sums, probe: Probe, next_seq: int) -> bool:
    """Whether the answer to `probe` lies before message `next_seq`; `sums` run up to the message before that."""
    match probe:
        case DialogueAt(n):
            return sums.dialogue >= n
        case TurnAt(n):
            return sums.turns >= n
        case TokensAt(n):
            return sums.tokens >= n
        case SeqAt(n) | SpeakerAt(n):
            return n < next_seq


def marked(logged: Logged) -> Mark:
    """A message as a probe's answer."""
    return Mark(logged.seq, logged.sums, logged.tokens, logged.message.opens_turn)
