"""A memory: an open store with a model and a queue, and the conversations in it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import date
from types import TracebackType
from typing import Self

from hitherto.core.ledger import Costs
from hitherto.core.presets import PolicyLike, one_of
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.conversation import Conversation
from hitherto.engine.housekeeping import tidy
from hitherto.engine.parts import Parts
from hitherto.engine.worker import Worker
from hitherto.errors import DatabaseReadOnly, StoreError
from hitherto.logs import logger
from hitherto.ports.store import By, Defaults, Listed, Load
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto")


class Memory:
    """Conversations on one store. Use it as an async context manager, or call `start` and `aclose`.

    Safe for any number of tasks. Its store is open; `opened` is closed last and gives back what was opened for
    it.
    """

    def __init__(self, parts: Parts, *, opened: AsyncExitStack | None = None) -> None:
        self._parts = parts
        self._opened = opened or AsyncExitStack()
        self._worker = Worker(parts) if parts.settings.worker else None
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> Self:
        """Take up work, and tidy what earlier processes left behind. If it is cancelled, the memory is closed."""
        try:
            if self._worker is not None:
                await self._worker.start()
            await self.tidy()
        except DatabaseReadOnly:
            log.debug("Nothing is tidied up: the database is read-only")
        except StoreError as error:
            log.warning("Tidying up was put off: %s", error)
        except BaseException:
            await uninterrupted(self.aclose())
            raise
        return self

    async def aclose(self) -> None:
        """Let digests in hand finish for the setting `grace`, give the others back, and close. Safe to call twice.
        Cancelled, it closes all the same, but gives back at once what is in hand."""
        self._closing = self._closing or asyncio.create_task(self._close(), name="closing a memory")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            await uninterrupted(self._close_at_once(self._closing))
            raise

    async def _close(self) -> None:
        try:
            if self._worker is not None:
                await self._worker.aclose()
        finally:
            await self._opened.aclose()

    async def _close_at_once(self, closing: asyncio.Task[None]) -> None:
        if self._worker is not None:
            await self._worker.hurry()
        await asyncio.wait([closing])

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def conversation(self, id: str, *, scope: Scope, policy: PolicyLike | None = None) -> Conversation:
        """The conversation `id` of `scope`, there already or not. A `policy` given here governs its contexts and is
        stored with its next append, and from then on the stored one counts; without one the stored policy counts, then
        its agent's, the memory's own, `none`.

        Raises InvalidScope for an unusable id, InvalidPolicy for an unusable policy.
        """
        return Conversation(self._parts, id, scope=scope, policy=policy)

    async def configure_agent(
        self,
        *,
        tenant: str,
        agent: str,
        policy: PolicyLike | None = None,
        injection: bool | None = None,
        memory_strategy: PolicyLike | None = None,
        memory_injection: bool | None = None,
    ) -> None:
        """Store what counts for the agent's conversations that say nothing of their own: a policy, and whether they
        want memory of the scope's earlier conversations.

        What is not given stays as it is. `memory_strategy` and
        `memory_injection` are seed 003's names for the same.

        Raises InvalidScope for an unusable name, InvalidPolicy for an unusable policy.
        """
        tenant, agent = checked_name(tenant, "tenant"), checked_name(agent, "agent")
        chosen = self._parts.usable(one_of(policy=policy, memory_strategy=memory_strategy))
        wants = one_of(injection=injection, memory_injection=memory_injection)
        any_user = Scope(tenant=tenant, user=agent, agent=agent)
        before = await self._parts.store.defaults(any_user)
        defaults = Defaults(
            policy=chosen or before.policy, injection=before.injection if wants is None else wants
        )  # fmt: skip
        await self._parts.store.set_defaults(tenant=tenant, agent=agent, defaults=defaults)

    async def conversations(self, scope: Scope, *, limit: int = 100) -> list[Listed]:
        """The scope's conversations, most recently written first."""
        return await self._parts.store.listed(Scope.checked(scope), limit=limit)

    async def settled(self) -> None:
        """Returns when of the digests that this process set off, none is due or being made any more, here or elsewhere.
        (Those that were put off for a later try are not waited for; of many set off for others to make, the latest
        10,000 are.)"""
        await self._parts.queue.settled()

    async def tidy(self) -> int:
        """Housekeeping over all tenants: erase messages whose time has come, drop receipts beyond their retention.
        Returns how many conversations were touched. Runs at each start, and every minute where digests are made."""
        return await tidy(self._parts)

    async def load(self) -> Load:
        """How the digests of all tenants stand: for operators, metrics and alerts."""
        return await self._parts.store.load()

    async def metrics(self) -> bytes:
        """What was counted in this process so far and how digests stand, in Prometheus's text format
        (`hitherto.watching.CONTENT_TYPE`)."""
        self._parts.watch.show(await self._parts.store.load())
        return self._parts.watch.exposition()

    async def costs(
        self, by: By = "day", *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """The ledger of model calls in sums, dearest first (by day: latest first), of one tenant or of all; `since` and
        `until` are days in UTC, both inclusive."""
        return await self._parts.store.costs(by, tenant=tenant, since=since, until=until)
