"""The steps of an append beside the transaction itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.core.append import found_in, reached
from hitherto.core.digest import Done
from hitherto.core.head import Head
from hitherto.core.message import Logged, Message
from hitherto.core.plan import Firing, due, plan
from hitherto.core.policy import Policy
from hitherto.engine.parts import Parts
from hitherto.errors import InvalidInput, KeyReused
from hitherto.ports.store import NewDigest, Receipt, Unit

log = logging.getLogger("hitherto.digest")

_BIG = 200_000
"""Characters from which on counting a batch's tokens leaves the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What an append answers: its messages are `start` to `end` (inclusive) at revision `rev`, durable by now.

    `replayed` says that the key had been used for this very batch before, and nothing was written this time.
    `digest` is the id of the digest that this append set off, if it did.
    """

    start: int
    end: int
    rev: int
    replayed: bool = False
    digest: int | None = None


def check_key(key: object) -> None:
    """Raises InvalidInput for what cannot be an idempotency key."""
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidInput(f"key={key!r} cannot be an idempotency key; give a non-empty string, unique for this batch")


def replayed(receipt: Receipt, mark: str, key: str | None) -> Appended:
    """The answer to a key that was used before. Raises KeyReused if it came with other messages then."""
    if receipt.fingerprint not in (None, mark):
        raise KeyReused(
            f"key={key!r} was used for other messages (seq {receipt.start} to {receipt.end}); nothing was written. "
            "Give every batch a key of its own, and the same key only to a retry of the same batch"
        )
    return Appended(start=receipt.start, end=receipt.end, rev=receipt.rev, replayed=True)


async def counted(parts: Parts, batch: Sequence[Message]) -> list[int]:
    """The canonical tokens of each message, as sent in its own wire format."""

    def count() -> list[int]:
        codecs = [parts.codec(message.wire) for message in batch]
        pairs = zip(codecs, batch, strict=True)
        return [codec.tokens(message.payload, parts.canonical) for codec, message in pairs]

    if sum(len(message.raw) for message in batch) < _BIG:
        return count()
    return await asyncio.to_thread(count)


async def planned(policy: Policy, head: Head, batch: Sequence[Logged], unit: Unit, conversation: str) -> Firing | None:
    """What is due once `batch` is in the log: probes are answered by the store or by the batch it has not got yet."""
    planning = plan(policy, head)
    try:
        probe = next(planning)
        while True:
            mark = await unit.probe(probe) if reached(unit.head.sums, probe) else found_in(batch, probe)
            probe = planning.send(mark)
    except StopIteration as end:
        firing: Firing | None = end.value
    if firing is None and due(policy, head) is not None:
        if head.running:
            log.debug("Summarization already in progress for %s", conversation)
        else:
            log.debug("No new messages to summarize for %s", conversation)
    return firing


def new_digest(firing: Firing) -> NewDigest:
    """The row that says that a digest is in progress."""
    return NewDigest(
        stage=firing.stage.fingerprint,
        spec=json.dumps(firing.stage.to_json()),
        done=Done.SUMMARISE,
        start=firing.start,
        end=firing.end,
        base=firing.base,
    )
