"""One conversation's place: its parts, scope and name, and the reading of its head."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.head import Head, empty
from hitherto.core.manifest import PolicyFrom
from hitherto.core.policy import Policy
from hitherto.core.presets import none
from hitherto.core.scope import Scope
from hitherto.engine.expiry import erase_expired, is_due
from hitherto.engine.parts import Parts
from hitherto.errors import NotFound
from hitherto.ports.store import Defaults


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation is kept, and the policy that its object was made with."""

    parts: Parts
    scope: Scope
    id: str
    policy: Policy | None = None

    async def head(self, at: int | None = None) -> Head:
        """The head now, or at a past revision; an empty one before the first append. Messages whose time has come are
        erased first. Raises NotFound for a revision that does not exist."""
        store = self.parts.store
        head = await store.head(self.scope, self.id, at=at)
        if head is not None and is_due(head):
            await erase_expired(store, self.scope, self.id, self.parts.canonical)
            head = await store.head(self.scope, self.id, at=at)
        if head is None:
            if at not in (None, 0):
                raise NotFound(f"{self.id!r} has no revision {at} in scope {self.scope}")
            return empty(self.parts.now())
        return head

    def governing(
        self, head: Head, request: Policy | None, defaults: Defaults | None = None
    ) -> tuple[Policy, PolicyFrom]:
        """The policy that counts, and whose it is: the request's, the conversation's, its agent's, the memory's, or
        nobody's, which is `none`."""
        agent = head.agent_policy if defaults is None else defaults.policy
        given: tuple[tuple[Policy | None, PolicyFrom], ...] = (
            (request, "request"),
            (self.policy or head.policy, "conversation"),
            (agent, "agent"),
            (self.parts.policy, "memory"),
        )
        for policy, whose in given:
            if policy is not None:
                return policy, whose
        return none(), "none"

    async def defaults(self, head: Head) -> Defaults:
        """What is set for the agent: a head knows it, once there is a conversation."""
        if head.rev:
            return Defaults(policy=head.agent_policy, injection=head.injection.agent_enabled)
        return await self.parts.store.defaults(self.scope)
