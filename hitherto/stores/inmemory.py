"""The store in memory: the same promises but durability, written to be read.

It is the reference of how a store behaves. Nothing is lost while the process lives; nothing is kept when it ends.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from weakref import WeakValueDictionary

from hitherto.core.digest import Digest, Ranges, Status, ranges
from hitherto.core.head import Head, empty
from hitherto.core.message import Logged
from hitherto.core.plan import Mark, Probe, TalkAt, TurnAt
from hitherto.core.scope import Scope
from hitherto.errors import Conflict
from hitherto.ports.store import Changes, DigestWork, Due, Listed, Reading, Receipt, Unit
from hitherto.stores.inmemory_kept import Kept

Name = tuple[Scope, str]


class InMemoryStore:
    """`Store` in this process's memory. `clock` gives the time, with a zone."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._kept: dict[Name, Kept] = {}
        self._receipts: dict[tuple[Name, str], tuple[Receipt, datetime]] = {}
        self._locks = WeakValueDictionary[Name, asyncio.Lock]()
        self._refs = count(1)
        self._digest_ids = count(1)

    async def open(self) -> None:
        """Nothing to make ready."""

    async def aclose(self) -> None:
        """Nothing to give back: what is kept stays until the object goes."""

    @asynccontextmanager
    async def write(self, scope: Scope, conversation: str, *, key: str | None = None) -> AsyncGenerator[Unit]:
        name = (scope, conversation)
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            yield _InMemoryUnit(self, name, key)

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        kept = self._kept.get((scope, conversation))
        if kept is None:
            return None
        return kept.head_now(self._clock()) if at is None else kept.head_at(at, self._clock())

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: Reading) -> list[Logged]:
        kept = self._kept.get((scope, conversation))
        return [] if kept is None or kept.head.ref != ref else kept.read(reading)

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        kept = self._kept.get((scope, conversation))
        return [] if kept is None else list(kept.digests)

    async def work(self, scope: Scope, conversation: str, digest: int, attempt: int) -> DigestWork | None:
        kept = self._kept.get((scope, conversation))
        return None if kept is None else kept.work(digest, attempt)

    async def listed(self, scope: Scope, *, limit: int = 100) -> list[Listed]:
        mine = [(kept, name) for (owner, name), kept in self._kept.items() if owner == scope]
        mine.sort(key=lambda one: (one[0].updated_at, one[0].head.ref), reverse=True)
        return [
            Listed(
                conversation=name,
                messages=kept.head.next_seq,
                tokens=kept.head.sums.tokens,
                rev=kept.head.rev,
                updated_at=kept.updated_at,
            )
            for kept, name in mine[: max(limit, 0)]
        ]

    async def due(self, *, stuck_for: timedelta, limit: int = 1_000) -> list[Due]:
        now = self._clock()
        return [
            Due(scope, conversation)
            for (scope, conversation), kept in self._kept.items()
            if (kept.head.next_expiry is not None and kept.head.next_expiry <= now)
            or any(d.status is Status.PROCESSING and d.created_at < now - stuck_for for d in kept.digests)
        ][: max(limit, 0)]

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        limit = self._clock() - older_than
        old = [key for key, (_, created_at) in self._receipts.items() if created_at < limit]
        for key in old:
            del self._receipts[key]
        return len(old)

    # What a unit needs of the store.

    def begin(self, name: Name, key: str | None) -> tuple[Head, Receipt | None]:
        kept = self._kept.get(name)
        now = self._clock()
        earlier = None if key is None else self._receipts.get((name, key))
        return empty(now) if kept is None else kept.head_now(now), None if earlier is None else earlier[0]

    def kept(self, name: Name) -> Kept | None:
        return self._kept.get(name)

    def apply(self, name: Name, changes: Changes, now: datetime) -> int | None:
        kept = self._kept.get(name) or Kept(replace(changes.head, ref=next(self._refs)), now)
        if changes.key is not None and (name, changes.key) in self._receipts:
            raise Conflict("nothing was written: this idempotency key has a receipt already; begin with the key")
        fired = None if changes.fire is None else next(self._digest_ids)
        kept.apply(changes, fired or 0, now)
        self._kept[name] = kept
        for first, last in changes.erase:
            self._forget_content(name, first, last)
        if changes.receipt is not None and changes.key is not None:
            self._receipts[(name, changes.key)] = (changes.receipt, now)
        return fired

    def drop(self, name: Name) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._forget_content(name, 0, kept.head.last_seq)

    def _forget_content(self, name: Name, first: int, last: int) -> None:
        """Leave of the receipts of these messages only what still answers."""
        for key, (receipt, created_at) in self._receipts.items():
            if key[0] == name and receipt.start <= last and receipt.end >= first:
                self._receipts[key] = (replace(receipt, fingerprint=None), created_at)


class _InMemoryUnit:
    """`Unit`: holds the conversation's lock, which the store took."""

    def __init__(self, store: InMemoryStore, name: Name, key: str | None) -> None:
        self._store, self._name = store, name
        self._head, self._receipt = store.begin(name, key)
        self._done = False

    @property
    def head(self) -> Head:
        return self._head

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt

    @property
    def _log(self) -> list[Logged]:
        kept = self._store.kept(self._name)
        return [] if kept is None else kept.log

    async def probe(self, probe: Probe) -> Mark | None:
        match probe:
            case TalkAt(n):
                at = bisect_left(self._log, n, key=lambda logged: logged.sums.talk)
            case TurnAt(n):
                at = bisect_left(self._log, n, key=lambda logged: logged.sums.turns)
        if at == len(self._log):
            return None
        found = self._log[at]
        return Mark(found.seq, found.sums, found.message.opens_turn)

    async def expired(self) -> tuple[Ranges, datetime | None]:
        times = [(one.seq, one.message.expires_at) for one in self._log if not one.erased]
        now = self._head.now
        due = ranges(seq for seq, at in times if at is not None and at <= now)
        return due, min((at for _, at in times if at is not None and at > now), default=None)

    async def digests(self) -> list[Digest]:
        kept = self._store.kept(self._name)
        return [] if kept is None else list(kept.digests)

    async def commit(self, changes: Changes) -> int | None:
        assert not self._done, "a unit of work commits once"
        self._done = True
        return self._store.apply(self._name, changes, self._head.now)

    async def delete(self) -> None:
        assert not self._done, "a unit of work commits once"
        self._done = True
        self._store.drop(self._name)
