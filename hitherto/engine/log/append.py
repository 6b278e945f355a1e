"""Appending a batch of messages: the messages, their receipt and the digests that they start, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

from hitherto.aside import aside
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestJob, EarlierDigest
from hitherto.core.log.append import added, checked_ids, expiring, extended, fingerprint, placed
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.head import Head, HeadWithCalls, LatestDigest
from hitherto.core.log.message import Logged, Message, size_of
from hitherto.core.policy.policy import Policy, policy_json
from hitherto.engine.context.injection import earlier_than
from hitherto.engine.digests.fire import committed, fired
from hitherto.engine.handle import Handle, check_end, check_unchanged
from hitherto.engine.log.rewind import retraction
from hitherto.engine.services import Services
from hitherto.errors import ConcurrentWrite, DatabaseUnavailable, IdempotencyKeyReused

if TYPE_CHECKING:
    from hitherto.store.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """The result of an append: its messages are `start` to `end` (inclusive) at revision `rev`, and durable. Where all
    that were given were known already, it has none: `end` is the newest message, and `start` the seq behind it.

    `replayed` says that the key had been used for this very batch before, and nothing was written this time; or that
    this call wrote it, lost the connection before it was told so, and found it when it tried again. `fired`
    are the ids of the digest rows that this append wrote, one for each stage that was due; `digest` is the first of
    those that are made in the background, None if there is none.
    """

    start: int
    end: int
    rev: int
    replayed: bool = False
    digest: int | None = None
    fired: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a batch goes. `expect` is the seq that its first message must get, and since the revision `since` no
    message may have come or gone. Behind message `at` it takes the place of what follows. None: wherever the log
    ends."""

    expect: int | None = None
    at: int | None = None
    since: int | None = None


async def append(
    handle: Handle,
    batch: Sequence[Message],
    *,
    key: str | None,
    place: Place,
    request: Policy | None,
    skip_known: bool = False,
) -> AppendResult:
    """See `Conversation.append`. `request` is the policy that governs this append alone."""
    ids = checked_ids(batch, skip_known=skip_known)
    watch, began = handle.services.watch, time.perf_counter()
    with watch.span("append", tenant=handle.scope.tenant, conversation=handle.id, messages=len(batch)) as span:
        done = await _append(handle, batch, ids, key=key, place=place, request=request, skip_known=skip_known)
        span.set(start=done.start, end=done.end, rev=done.rev, digest=done.digest)
    watch.appended(messages=0 if done.replayed else done.end - done.start + 1, seconds=time.perf_counter() - began)
    return done


async def _append(
    handle: Handle,
    batch: Sequence[Message],
    ids: frozenset[str],
    *,
    key: str | None,
    place: Place,
    request: Policy | None,
    skip_known: bool,
) -> AppendResult:
    services, size = handle.services, size_of(batch)
    tokens, mark = await aside(size, _measure, services, batch, keyed=key is not None)
    earlier: EarlierDigest | None = None
    looked = lost = False
    calls = {call for message in batch for call in (*message.calls, *message.answers)}
    while True:
        async with services.store.write(handle.scope, handle.id, key=key, calls=calls, ids=ids) as unit:
            before = unit.head
            if unit.receipt is not None:
                if lost:  # the append that was written submitted nothing
                    for one in before.running:
                        services.queue.submit(DigestJob(handle.scope.tenant, one.id))
                return _replayed(unit.receipt, mark, key)
            _check_place(place, before, handle.id)
            new = added(batch, unit.known, handle.id, skip_known=skip_known) if ids else ()
            if ids and not any(new):
                return AppendResult(start=before.next_seq, end=before.last_seq, rev=before.rev)
            if looked or not _begins_with_earlier(handle, before):
                if place.at is not None:
                    check_end(before, place.at, "at", handle.id)
                    taken, changes = await retraction(unit, place.at + 1)
                    if taken:
                        await unit.apply(changes)
                    before = unit.head
                kept = expiring(before, placed(before, batch, services.zone), services.settings.ttl)
                some = (list(compress(kept, new)), list(compress(tokens, new))) if ids else (kept, tokens)
                logged, head = await aside(size, extended, before, *some)
                if earlier is not None:
                    head = replace(head, latest=LatestDigest(digest=earlier.digest))
                if (handle.policy, handle.subject, handle.remember) != (None, None, None):
                    stored = policy_json(handle.policy) or head.policy
                    about, private = handle.about(head), handle.private(head)
                    head = replace(head, policy=stored, subject=about, private=private)
                receipt = Receipt(start=before.next_seq, end=head.last_seq, rev=head.rev, fingerprint=mark)
                try:
                    return await _write(handle, unit, logged, head, receipt, key=key, request=request)
                except DatabaseUnavailable:
                    # Whether it was written is not known: only the key's receipt tells.
                    if key is None or lost:
                        raise
                    lost = True
                    continue
        # Looked for while the conversation is not locked; then the append starts again.
        earlier, looked = await earlier_than(handle), True


def _check_place(place: Place, head: Head, conversation: str) -> None:
    """Raises ConcurrentWrite where others have written since."""
    check_unchanged(head, place.since, conversation)
    if place.expect is not None and place.expect != head.next_seq:
        raise ConcurrentWrite(
            f"expect={place.expect}, but the next message of {conversation!r} gets seq {head.next_seq}: others were "
            "appended since; read them and decide again",
            actual=head.next_seq,
        )


def _begins_with_earlier(handle: Handle, head: Head) -> bool:
    """Whether this append begins a conversation that shows "latest" of `cross_session`: the digest to be shown is
    chosen once, with the first messages."""
    return head.next_seq == 0 and bool(handle.crossing(head).latest)


async def _write(
    handle: Handle,
    unit: Unit,
    logged: tuple[Logged, ...],
    head: HeadWithCalls,
    receipt: Receipt,
    *,
    key: str | None,
    request: Policy | None,
) -> AppendResult:
    head, fire = await fired(handle, handle.governing(head, request)[0], head, unit, batch=logged)
    changes = Changes(head=head, messages=logged, key=key, receipt=None if key is None else receipt, fire=fire)
    ids, begun = await committed(handle, unit, changes)
    handle.services.appended.set()
    digest = begun[0] if begun else None
    return AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, digest=digest, fired=ids)


def _replayed(receipt: Receipt, mark: str | None, key: str | None) -> AppendResult:
    """The answer to a key that was used before. Raises IdempotencyKeyReused if it came with other messages then."""
    if receipt.fingerprint not in (None, mark):
        raise IdempotencyKeyReused(
            f"key={key!r} was used for other messages (seq {receipt.start} to {receipt.end}); nothing was written. "
            "Give every batch a key of its own, and the same key only to a retry of the same batch"
        )
    return AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, replayed=True)


def _measure(services: Services, batch: Sequence[Message], *, keyed: bool) -> tuple[list[int], str | None]:
    """The canonical tokens of each message, as sent in its own wire format; and the fingerprint of a batch with a
    key."""
    tokens = [services.codec(message.wire).tokens(message.payload, services.canonical) for message in batch]
    return tokens, fingerprint(batch) if keyed else None
