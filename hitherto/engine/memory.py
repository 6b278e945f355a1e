"""A memory: an open store with a model and a queue, and the conversations in it."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from hitherto.core.presets import PolicyLike, one_of
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.conversation import Conversation
from hitherto.engine.digester import Digester
from hitherto.engine.expiry import erase_expired
from hitherto.engine.parts import Parts
from hitherto.engine.stuck import given_up, stuck_digests
from hitherto.errors import DatabaseReadOnly, DatabaseUnreachable, HithertoError, StoreError
from hitherto.ports.store import Changes, Defaults, Due, Listed
from hitherto.uninterrupted import uninterrupted

log = logging.getLogger("hitherto")


class Memory:
    """Conversations on one store. Use it as an async context manager, or call `start` and `aclose`.

    Safe for any number of tasks. Its store is open; `opened` is closed last and gives back what was opened for
    it.
    """

    def __init__(self, parts: Parts, *, opened: AsyncExitStack | None = None) -> None:
        self._parts = parts
        self._opened = opened or AsyncExitStack()
        self._closed = False

    async def start(self) -> Self:
        """Take up work, and tidy what earlier processes left behind. If it is cancelled, the memory is closed."""
        digester = Digester(self._parts)
        self._parts.queue.start(digester.work, hand_back=digester.hand_back)
        try:
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
        """Let digests in hand finish for the setting `grace`, give up the others, and close. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await self._parts.queue.aclose(grace=self._parts.settings.grace)
        await self._opened.aclose()

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
        """Returns when all digests that this process set off so far have come to an end, good or bad."""
        await self._parts.queue.settled()

    async def tidy(self) -> int:
        """Housekeeping over all tenants: give up digests whose process died, erase messages whose time has come, drop
        receipts beyond their retention. Returns how many conversations were touched. Runs at each start; a process
        that lives long may call it now and then."""
        store, settings = self._parts.store, self._parts.settings
        due = await store.due(stuck_for=settings.stuck_after)
        for one in due:
            try:
                await erase_expired(store, one.scope, one.conversation, self._parts.canonical)
                await self._give_up(one)
            except (DatabaseReadOnly, DatabaseUnreachable):
                raise
            except HithertoError as error:  # one conversation that cannot be read must not keep the others waiting
                log.warning("%s of %s could not be tidied: %s", one.conversation, one.scope, error)
        await store.forget_receipts(older_than=settings.keep_receipts)
        return len(due)

    async def _give_up(self, due: Due) -> None:
        async with self._parts.store.write(due.scope, due.conversation) as unit:
            stuck = stuck_digests(unit.head, self._parts.settings.stuck_after)
            if stuck:
                await unit.commit(Changes(head=unit.head, outcomes=given_up(stuck)))
