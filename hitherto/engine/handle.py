"""A handle on one conversation: its scope and name, the services, and the methods that read its head and settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from hitherto.core.context.manifest import PolicyFrom
from hitherto.core.cross_session import CrossSession, cross_session_of
from hitherto.core.digests.digest import Digest
from hitherto.core.facts.queries import KnownFacts, KnownFactsQuery
from hitherto.core.log.conversations import AgentDefaults
from hitherto.core.log.head import H, Head, HeadWithCalls, empty
from hitherto.core.log.time_zone import zone_named
from hitherto.core.policy.policy import Policy, stored
from hitherto.core.policy.presets import DEFAULT
from hitherto.core.recall.vectors import Space
from hitherto.core.scope import THE_USER, Scope
from hitherto.engine.log.erase import erase_expired, is_due
from hitherto.engine.purge import purge
from hitherto.engine.services import Services
from hitherto.errors import ConcurrentWrite, InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class Handle:
    """A conversation's address, with what its `Conversation` object was created with (the policy, the subject, whether
    to `remember` it), and the `budget` of the contexts that messages are appended for (None: the setting)."""

    services: Services
    scope: Scope
    id: str
    policy: Policy | None = None
    subject: str | None = None
    remember: bool | None = None
    budget: int | None = None

    async def head(self, at: int | None = None) -> Head:
        """The head now, or at a past revision; an empty one before the first append. Expired messages are erased first.
        Raises NotFound for a revision that does not exist."""
        store = self.services.store
        head = await store.head(self.scope, self.id, at=at)
        if head is not None and is_due(head):
            await erase_expired(store, self.scope, self.id, self.services.canonical)
            head = await store.head(self.scope, self.id, at=at)
        return self._there(head, at)

    async def ending_at(self, upto: int, at: int | None) -> int:
        """The revision, `at` or the newest, of which the conversation is to be seen as far as message `upto`. Raises
        NotFound for a revision that does not exist, InvalidInput where the conversation cannot end there."""
        head = await self.head(at)
        check_end(head, upto, "upto", self.id)
        return head.rev

    async def head_and_known(
        self,
        space: Space | None,
        at: int | None = None,
        *,
        upto: int | None = None,
        facts: bool = True,
        calls: Collection[str] = (),
    ) -> tuple[HeadWithCalls, KnownFacts, bool]:
        """The head, as `head` gives it, the known facts about the conversation's subject, and whether there is more in
        the scope: usually one round trip. Expired messages are erased first, those of the tenant's other conversations
        too, because facts may rest on them. Without `facts`, no facts are read. Of `calls`, the head has those that are
        open."""
        store, asked = self.services.store, KnownFactsQuery(subject=self.subject or THE_USER, space=space, facts=facts)
        head, known, others = await store.head_and_known(self.scope, self.id, asked, at=at, upto=upto, calls=calls)
        if head is not None and is_due(head):
            await erase_expired(store, self.scope, self.id, self.services.canonical)
        if known.due:
            await purge(self.services, self.scope.tenant)
            head, known, others = await store.head_and_known(self.scope, self.id, asked, at=at, upto=upto, calls=calls)
        if (
            facts and head is not None and known.subject.id != self.about(head)
        ):  # this object names another subject, which is not stored yet
            known = await store.facts.known(self.scope, self.about(head), space=space)
        return self._there(head, at), known, others

    def beside(self, conversation: str, agent: str | None = None) -> Handle:
        """A handle on another conversation of the scope's user and of `agent`, by default the scope's own."""
        return Handle(self.services, replace(self.scope, agent=agent or self.scope.agent), conversation)

    def about(self, head: Head) -> str:
        """The id of what the conversation's facts are about: the subject its object was created with, else the stored
        one."""
        return head.subject if self.subject is None else self.subject

    def private(self, head: Head) -> bool:
        """Whether the conversation reads nothing of others, and they find nothing of it: as its object was created,
        else as it is stored."""
        return head.private if self.remember is None else not self.remember

    def _there(self, head: H | None, at: int | None) -> H | HeadWithCalls:
        if head is None:
            if at not in (None, 0):
                raise NotFound(f"{self.id!r} has no revision {at} in scope {self.scope}")
            return empty(datetime.now(UTC))
        return head

    def governing(
        self, head: Head, request: Policy | None, defaults: AgentDefaults | None = None
    ) -> tuple[Policy, PolicyFrom]:
        """The policy that applies, and where it comes from: the request, the conversation, its agent, or the memory,
        the first that has one. Without any it is `balanced`."""
        agent = head.agent_policy if defaults is None else defaults.policy
        given: tuple[tuple[Policy | None, PolicyFrom], ...] = (
            (request, "request"),
            (self.policy or _stored(head.policy), "conversation"),
            (_stored(agent), "agent"),
            (self.services.policy, "memory"),
        )
        for policy, whose in given:
            if policy is not None:
                return policy, whose
        return DEFAULT, "default"

    def resuming(self, head: Head, digest: Digest) -> Policy:
        """The policy that applies when `digest` ends: the conversation's or its agent's, else the one it fired
        under."""
        policy, whose = self.governing(head, None)
        return policy if digest.policy is None or whose in ("conversation", "agent") else stored(digest.policy)

    def crossing(
        self, head: Head, request: CrossSession | None = None, defaults: AgentDefaults | None = None
    ) -> CrossSession:
        """How other conversations are shown: as the request says, else the conversation, its agent, the settings. Not
        at all in a private one."""
        agent = head.agent_cross_session if defaults is None else defaults.cross_session
        settings = self.services.settings
        otherwise = replace(
            cross_session_of(settings.cross_session),
            search_triggers=settings.search_triggers,
            relevance_threshold=settings.relevance_threshold,
            recall=settings.recall,
        )
        stored = head.cross_session.over(agent).over(otherwise)
        asked = stored if request is None else request.over(stored)
        return replace(asked, latest=False, triggers=False, always=False) if self.private(head) else asked

    async def zone(self, head: Head) -> tzinfo:
        """The zone of days: the user's, else the agent's, else that of the settings."""
        name = head.time_zone if head.rev else await self.services.store.zone(self.scope)
        return self.services.zone if name is None else zone_named(name)

    async def defaults(self, head: Head) -> AgentDefaults:
        """The agent's defaults: from the head if the conversation exists, else from the store."""
        if head.rev:
            return AgentDefaults(policy=head.agent_policy, cross_session=head.agent_cross_session)
        return await self.services.store.defaults(tenant=self.scope.tenant, agent=self.scope.agent)


def check_unchanged(head: Head, since: int | None, conversation: str) -> None:
    """Raises ConcurrentWrite where messages came, went, were hidden or erased after the revision `since`."""
    if since is not None and not head.messages_rev <= since <= head.rev:
        raise ConcurrentWrite(
            f"the messages of {conversation!r} changed since revision {since}, at revision {head.messages_rev}: read "
            "them and decide again",
            actual=head.rev,
        )


def check_end(head: Head, seq: int, name: str, conversation: str) -> None:
    """Raises InvalidInput where message `seq`, given as `name`, cannot be the last one that is shown."""
    if not head.view_start - 1 <= seq < head.next_seq:
        there = f"from {head.view_start - 1} to {head.last_seq}" if head.next_seq else "-1, as it is empty"
        raise InvalidInput(
            f"{name} is {seq}, but {conversation!r} can end {there}: give the seq of the last message that stays, "
            f"{head.view_start - 1} for none"
        )


def _stored(policy: str | None) -> Policy | None:
    return None if policy is None else stored(policy)
