"""One conversation's place: its parts, scope and name, and the reading of its head."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.fact import HIMSELF
from hitherto.core.head import Head, empty
from hitherto.core.manifest import PolicyFrom
from hitherto.core.policy import Policy
from hitherto.core.presets import none
from hitherto.core.scope import Scope
from hitherto.engine.expiry import erase_expired, is_due
from hitherto.engine.housekeeping import honoured
from hitherto.engine.parts import Parts
from hitherto.errors import NotFound
from hitherto.ports.embedder import Space
from hitherto.ports.facts import Known, KnownAsked
from hitherto.ports.store import Defaults


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation is kept, and the policy and the subject that its object was made with."""

    parts: Parts
    scope: Scope
    id: str
    policy: Policy | None = None
    subject: str | None = None

    async def head(self, at: int | None = None) -> Head:
        """The head now, or at a past revision; an empty one before the first append. Messages whose time has come are
        erased first. Raises NotFound for a revision that does not exist."""
        store = self.parts.store
        head = await store.head(self.scope, self.id, at=at)
        if head is not None and is_due(head):
            await erase_expired(store, self.scope, self.id, self.parts.canonical)
            head = await store.head(self.scope, self.id, at=at)
        return self._there(head, at)

    async def head_and_known(self, space: Space | None, at: int | None = None) -> tuple[Head, Known]:
        """The head, as `head` gives it, and what is known of the conversation's subject: one round trip, as a rule."""
        store, asked = self.parts.store, KnownAsked(subject=self.subject or HIMSELF, space=space)
        head, known = await store.head_and_known(self.scope, self.id, asked, at=at)
        mine = head is not None and is_due(head)
        if mine:
            await erase_expired(store, self.scope, self.id, self.parts.canonical)
        other = head is not None and known.subject.id != self.about(head)
        if known.due and (other or len(known.ids)):  # facts may rest on messages of other conversations
            await honoured(self.parts, self.scope.tenant)
        if mine or known.due:
            head, known = await store.head_and_known(self.scope, self.id, asked, at=at)
        if other and head is not None:  # this object names another subject, which is not stored yet
            known = await store.facts.known(self.scope, self.about(head), space=space)
        return self._there(head, at), known

    def about(self, head: Head) -> str:
        """What facts of the conversation are about: its object's subject, or else its own."""
        return head.subject if self.subject is None else self.subject

    def _there(self, head: Head | None, at: int | None) -> Head:
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
