"""Appending a batch of messages: the messages, their receipt and the digests that they start, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hitherto.aside import aside
from hitherto.core.changes import Changes
from hitherto.core.digests.work import EarlierDigest
from hitherto.core.log.append import expiring, extended, fingerprint
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.head import Head, LatestDigest
from hitherto.core.log.message import Logged, Message, size_of
from hitherto.core.policy.policy import Policy, policy_json
from hitherto.engine.context.injection import earlier_than
from hitherto.engine.digests.fire import committed, fired
from hitherto.engine.handle import Handle
from hitherto.engine.services import Services
from hitherto.errors import ConcurrentWrite, DatabaseUnavailable, IdempotencyKeyReused, InvalidInput
from hitherto.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from hitherto.stores.postgres.unit import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """The result of an append: its messages are `start` to `end` (inclusive) at revision `rev`, and durable.

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


def check_key(key: object) -> None:
    """Raises InvalidInput for what cannot be an idempotency key."""
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidInput(f"key={key!r} cannot be an idempotency key; give a non-empty string, unique for this batch")


@dataclass(frozen=True, slots=True)
class Appender:
    """Appends to one conversation, under the request's policy if there is one."""

    handle: Handle
    request: Policy | None

    async def append(self, batch: Sequence[Message], *, key: str | None, expect: int | None) -> AppendResult:
        """See `Conversation.append`."""
        scope, watch, began = self.handle.scope, self.handle.services.watch, time.perf_counter()
        with watch.span("append", tenant=scope.tenant, conversation=self.handle.id, messages=len(batch)) as span:
            done = await self._appended(batch, key=key, expect=expect)
            span.set(start=done.start, end=done.end, rev=done.rev, digest=done.digest)
        watch.appended(messages=0 if done.replayed else len(batch), seconds=time.perf_counter() - began)
        return done

    async def _appended(self, batch: Sequence[Message], *, key: str | None, expect: int | None) -> AppendResult:
        size = size_of(batch)
        tokens = await aside(size, _counted, self.handle.services, batch)
        mark = await aside(size, fingerprint, batch)
        earlier: EarlierDigest | None = None
        looked = lost = False
        while True:
            async with self.handle.services.store.write(self.handle.scope, self.handle.id, key=key) as unit:
                if unit.receipt is not None:
                    return _replayed(unit.receipt, mark, key)
                if expect is not None and expect != unit.head.next_seq:
                    raise ConcurrentWrite(
                        f"expect={expect}, but the next message of {self.handle.id!r} gets seq {unit.head.next_seq}: "
                        "others were appended since; read them and decide again",
                        actual=unit.head.next_seq,
                    )
                if looked or not self._begins_with_earlier(unit.head):
                    kept = expiring(unit.head, batch, self.handle.services.settings.ttl)
                    logged, head = await aside(size, extended, unit.head, kept, tokens)
                    if earlier is not None:
                        head = replace(head, latest=LatestDigest(digest=earlier.digest))
                    receipt = Receipt(start=logged[0].seq, end=logged[-1].seq, rev=head.rev, fingerprint=mark)
                    try:
                        return await self._write(unit, logged, head, key, receipt)
                    except DatabaseUnavailable:
                        # Whether it was written is not known: only the key's receipt tells.
                        if key is None or lost:
                            raise
                        lost = True
                        continue
            # Looked for while the conversation is not locked; then the append starts again.
            earlier, looked = await earlier_than(self.handle), True

    def _begins_with_earlier(self, head: Head) -> bool:
        """Whether this append begins a conversation that shows "latest" of `cross_session`: the digest to be shown is
        chosen once, with the first messages."""
        return head.next_seq == 0 and bool(self.handle.crossing(head).latest)

    async def _write(
        self, unit: Unit, logged: Sequence[Logged], head: Head, key: str | None, receipt: Receipt
    ) -> AppendResult:
        head = replace(head, policy=policy_json(self.handle.policy) or head.policy, subject=self.handle.about(head))
        governing, _ = self.handle.governing(head, self.request)
        head, fire = await fired(self.handle, governing, head, unit, batch=logged)
        changes = Changes(
            head=head,
            messages=tuple(logged),
            key=key,
            receipt=None if key is None else receipt,
            fire=fire,
        )
        if all(one.completed for one in changes.fire):
            ids, begun = await unit.commit(changes), []
        else:
            # Even if this task is cancelled meanwhile, a digest that is written is also submitted.
            ids, begun = await uninterrupted(committed(self.handle, unit, changes))
        self.handle.services.appended.set()
        digest = begun[0] if begun else None
        return AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, digest=digest, fired=ids)


def _replayed(receipt: Receipt, mark: str, key: str | None) -> AppendResult:
    """The answer to a key that was used before. Raises IdempotencyKeyReused if it came with other messages then."""
    if receipt.fingerprint not in (None, mark):
        raise IdempotencyKeyReused(
            f"key={key!r} was used for other messages (seq {receipt.start} to {receipt.end}); nothing was written. "
            "Give every batch a key of its own, and the same key only to a retry of the same batch"
        )
    return AppendResult(start=receipt.start, end=receipt.end, rev=receipt.rev, replayed=True)


def _counted(services: Services, batch: Sequence[Message]) -> list[int]:
    """The canonical tokens of each message, as sent in its own wire format."""
    codecs = [services.codec(message.wire) for message in batch]
    return [codec.tokens(message.payload, services.canonical) for codec, message in zip(codecs, batch, strict=True)]
