"""A unit of work in memory."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from hitherto.core.digests.digest import Digest
from hitherto.core.log.head import Head
from hitherto.core.log.message import Logged
from hitherto.core.log.probe import AnyProbe, Freeable, Mark
from hitherto.core.log.ranges import Ranges
from hitherto.ports.facts import CurrentFacts
from hitherto.ports.log import Changes, Receipt
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation

if TYPE_CHECKING:
    from hitherto.stores.in_memory.store import InMemoryStore


class InMemoryUnit:
    """`Unit` on a conversation that the store has locked. The locks that the unit takes itself are released with
    `held`."""

    def __init__(self, store: InMemoryStore, name: Name, key: str | None, held: AsyncExitStack) -> None:
        self._store, self._name, self._held = store, name, held
        self._head, self._receipt = store.begin(name, key)
        self._done = False
        self._facts_held = False

    @property
    def head(self) -> Head:
        return self._head

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt

    @property
    def _kept(self) -> StoredConversation:
        """The conversation, or an empty one in its place."""
        return self._store.kept(self._name) or StoredConversation(self._head, self._head.now)

    async def probe(self, probe: AnyProbe) -> Mark | Freeable | None:
        return self._kept.probe(probe)

    async def tail(self, n: int) -> list[Logged]:
        return self._kept.tail(n)

    async def next_digest(self) -> int:
        return self._store.next_digest()

    async def expired(self) -> tuple[Ranges, datetime | None]:
        return self._kept.expired(self._head.clock)

    async def digests(self) -> list[Digest]:
        return list(self._kept.digests)

    async def current_facts(self, subject: str) -> CurrentFacts:
        await self._hold_facts()
        return await self._store.facts.current_facts(self._name[0], subject)

    async def commit(self, changes: Changes) -> tuple[int, ...]:
        assert not self._done, "a unit of work commits once"
        self._done = True
        if changes.learned or changes.erase or changes.retract:
            await self._hold_facts()
        return self._store.apply(self._name, changes, self._head.now)

    async def delete(self, *, facts: bool = False) -> None:
        assert not self._done, "a unit of work commits once"
        self._done = True
        await self._hold_facts()
        self._store.drop(self._name, facts=facts)

    async def _hold_facts(self) -> None:
        """Lock the scope's facts until the unit ends."""
        if not self._facts_held:
            await self._held.enter_async_context(self._store.facts_lock(self._name[0]))
            self._facts_held = True
