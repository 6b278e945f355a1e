"""Facts: list, add, edit, share and delete a user's facts, and see their history and sources."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from hitherto.core.facts.change import deleted_fact, no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, Visibility, fingerprint_of_fact
from hitherto.core.facts.queries import AddedFact, FactChange, FactFilter
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Logged
from hitherto.core.page import PAGE_ENTRY, PAGE_SIZE
from hitherto.core.scope import THE_USER, Scope, checked_name
from hitherto.engine.arguments import checked_switch
from hitherto.engine.facts import arguments
from hitherto.engine.purge import purge
from hitherto.engine.services import Services
from hitherto.errors import InvalidFact, NotFound

if TYPE_CHECKING:
    from hitherto.store.facts.facts import FactStore

FactList = list[Fact]


class Facts:
    """The facts of a scope's user, and those that others share with this user, about one `subject` or (None) any.

    Only its owner can change a fact or see where it comes from; for anyone else, those methods raise NotFound. In facts
    that others share, `confidence`, `confirmed` and `repeated` are None, `evidence` and `metadata` are empty, and
    `updated_at` is when the fact was learned. `all_agents` adds the facts that the user's other agents have learned.
    """

    def __init__(
        self, services: Services, scope: Scope, subject: str | None = None, *, all_agents: bool = False
    ) -> None:
        self._services = services
        self._scope = Scope.checked(scope)
        self._subject = subject if not subject else checked_name(subject, "subject")
        self._all_agents = all_agents

    async def list(
        self,
        *,
        mine: bool = True,
        shared: bool = True,
        category: str | None = None,
        conversation: str | None = None,
        state: FactState | Literal["current", "superseded", "withdrawn", "deleted"] | None = FactState.CURRENT,
        confirmed: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> FactList:
        """Facts in the order in which they were learned: the user's own (`mine`), and those that others share with the
        user (`shared`).

        `category`: only facts kept under it. `conversation`: only facts that a message of it says. `state`: "current",
        "superseded", "withdrawn" or "deleted"; None for all. `confirmed`: only those of the user's own that are
        confirmed, or (False) are not. A page has at most `limit` facts (1 to 1,000); the next page begins `after` the
        id of the last one. Raises InvalidFact and InvalidInput.
        """
        if not mine and not shared:
            raise InvalidFact("mine and shared are both False, so that no fact could be listed; leave one of them True")
        await purge(self._services, self._scope.tenant)
        found = await self._store.facts(
            self._scope,
            FactFilter(
                subject=self._subject,
                mine=mine,
                shared=shared and confirmed is None,
                all_agents=self._all_agents,
                category=None if category is None else arguments.category_listed(category, self._defined),
                conversation=None if conversation is None else checked_name(conversation, "conversation"),
                state=arguments.state_of(state),
                confirmed=None if confirmed is None else checked_switch(confirmed, "confirmed"),
                after=arguments.number_before(after),
                limit=arguments.limit_of(limit),
            ),
        )
        return [self._seen(fact) for fact in found]

    async def get(self, id: int) -> Fact | None:
        """One fact in any state, or one that is shared with the user; None where there is none of that id."""
        await purge(self._services, self._scope.tenant)
        found = await self._store.fact(self._scope, arguments.number_of(id), all_agents=self._all_agents)
        return None if found is None else self._seen(found)

    async def add(self, content: str, *, category: str | None = None) -> AddedFact:
        """Add a fact about the subject (without one, about the user) by hand: it is confirmed and private; the default
        category is "other".

        If the same statement is current already, that fact is kept: it is confirmed, counts as added by hand from then
        on, and takes the given category unless that is "other". In a category that holds one value at a time (the
        setting `single_fact_categories`), the new value supersedes the one before. Raises InvalidFact.
        """
        subject = self._subject or THE_USER
        fact = arguments.new_fact(self._services, content, category, confidence=1.0)
        added = await self._store.add(self._scope, subject, fact)
        self._services.appended.set()
        return added

    async def edit(
        self, id: int, *, content: str | None = None, category: str | None = None, expect: int | None = None
    ) -> Fact:
        """Correct a fact's content or category, which also confirms it. `expect` is the version that was reviewed.

        Raises NotFound for a fact that is not the user's own, StaleVersion when it was changed meanwhile, InvalidFact
        for an unusable content, one that another fact has already, a category that is neither defined nor the one it
        has, and a fact that is not current.
        """
        if content is None and category is None:
            raise InvalidFact("there is nothing to edit; give the fact a content or a category")
        chosen = None if content is None else arguments.content_of(content)
        before = await self._own(id)
        if expect is None:
            expect = before.version  # what is not given stays as it was read
        kept = before.category if category is None else arguments.category_of_known(category, before, self._defined)
        said = before.content if chosen is None else chosen
        return await self._changed(
            id,
            FactChange(
                action=FactAction.EDITED,
                expect=expect,
                content=said,
                fingerprint=fingerprint_of_fact(said),
                tokens=self._services.canonical.count(said),
                category=kept,
                metadata=before.metadata if category is None else {},
                single_valued=self._single(kept),
            ),
        )

    async def restore(self, id: int, *, expect: int | None = None) -> Fact:
        """Make a superseded or withdrawn fact current again; it is then confirmed and private. Where its category holds
        one value at a time, it supersedes the value that is current now. Raises as `edit`, and InvalidFact for a fact
        that is current."""
        fact = await self._own(id)
        change = FactChange(action=FactAction.RESTORED, expect=expect, single_valued=self._single(fact.category))
        return await self._changed(id, change)

    async def confirm(self, id: int, *, expect: int | None = None) -> Fact:
        """Confirm that a fact is right. Raises as `edit`."""
        return await self._changed(id, FactChange(action=FactAction.CONFIRMED, expect=expect))

    async def share(self, id: int, *, expect: int | None = None) -> Fact:
        """Show a fact to all members of its subject, from their next context on. Raises as `edit`; InvalidFact for a
        fact about the user, and where the user is not a member."""
        await self._check_shareable(await self._own(id))
        return await self._changed(id, FactChange(action=FactAction.SHARED, expect=expect))

    async def unshare(self, id: int, *, expect: int | None = None) -> Fact:
        """Stop sharing a fact, from the other members' next context on. Raises as `edit`."""
        return await self._changed(id, FactChange(action=FactAction.UNSHARED, expect=expect))

    async def set_visibility(
        self, id: int, visibility: Visibility | Literal["private", "shared"], *, expect: int | None = None
    ) -> Fact:
        """Calls `share` for "shared" and `unshare` for "private". Raises InvalidFact for any other value."""
        try:
            chosen = Visibility(visibility)
        except ValueError:
            raise InvalidFact(f"visibility is {visibility!r}; a fact is 'private' or 'shared'") from None
        match chosen:
            case Visibility.SHARED:
                return await self.share(id, expect=expect)
            case Visibility.PRIVATE:
                return await self.unshare(id, expect=expect)

    async def delete(self, id: int, *, expect: int | None = None) -> None:
        """Delete a fact: its content is gone, from its history too, and it is not extracted from the same messages
        again. Raises NotFound for a fact that is not the user's own, StaleVersion."""
        await self._changed(id, FactChange(action=FactAction.DELETED, expect=expect))

    async def history(self, id: int, *, after: int = 0, limit: int = 1_000) -> Sequence[FactEvent]:
        """What happened to a fact of the user's own, oldest first: at most `limit` events (1 to 1,000), without the
        first `after`. Raises NotFound for any other fact, InvalidFact."""
        await purge(self._services, self._scope.tenant)
        whose, number = {"all_agents": self._all_agents}, arguments.number_of(id)
        after, limit = arguments.number_before(after), arguments.limit_of(limit)
        found = await self._store.history(self._scope, number, **whose, after=after, limit=limit)
        if not found and not (after and await self._store.history(self._scope, number, **whose, limit=1)):
            raise self._not_there(id, await self.get(id))
        return found

    async def sources(self, id: int) -> Sequence[tuple[str, Logged]]:
        """The messages that say one of the user's own facts, oldest first, each with the name of its conversation;
        empty for a fact that was added by hand, or whose conversation was deleted. Where they are large or many, they
        are the first of them. Raises NotFound for any other fact."""
        fact = await self._own(id)
        scope = replace(self._scope, agent=fact.agent)
        found: list[tuple[str, Logged]] = []
        size = 0
        for one in fact.evidence:
            if size > PAGE_SIZE:
                break
            head = await self._services.store.head(scope, one.conversation)
            if head is None:
                continue
            reading = MessageRange(start=one.seq, stop=one.seq + 1)
            logged = await self._services.store.messages(scope, one.conversation, head.ref, reading)
            found += [(one.conversation, message) for message in logged if _is_there(message, head.clock)]
            size += PAGE_ENTRY + sum(len(message.message.raw) for message in logged)
        return found

    async def replaced(self, id: int, *, limit: int = 100) -> FactList:
        """The facts whose place one of the user's own took, whatever their category: the last `limit` (1 to 1,000), the
        latest last. Raises NotFound for any other fact, InvalidFact."""
        fact = await self._own(id)
        return await self._store.replaced(replace(self._scope, agent=fact.agent), id, limit=arguments.limit_of(limit))

    def _seen(self, fact: Fact) -> Fact:
        """A fact as the user may see it: of one that another user shares, not how often or how surely it was said, or
        when last."""
        if fact.user == self._scope.user:
            return fact
        return replace(fact, confidence=None, confirmed=None, repeated=None, metadata={}, updated_at=fact.extracted_at)

    async def _own(self, id: int) -> Fact:
        """A fact that can be changed. Raises NotFound for any other."""
        fact = await self.get(id)
        if fact is None or fact.user != self._scope.user or fact.state is FactState.DELETED:
            raise self._not_there(id, fact)
        return fact

    def _not_there(self, id: int, fact: Fact | None) -> NotFound:
        """The error for a fact that is not the user's own; `fact` is what the user may see of it."""
        if fact is None:
            return no_such_fact(self._scope, id, all_agents=self._all_agents)
        if fact.user != self._scope.user:
            return NotFound(
                f"fact {id} is none of user {self._scope.user}'s own; {fact.user}, who shares it, can change it and "
                "see where it comes from"
            )
        return deleted_fact(id)

    async def _changed(self, id: int, change: FactChange) -> Fact:
        number = arguments.number_of(id)
        change = replace(change, expect=arguments.version_of(change.expect))
        try:
            fact = await self._store.change(self._scope, number, change, all_agents=self._all_agents)
        except NotFound:
            raise self._not_there(id, await self.get(id)) from None
        if change.action in (FactAction.EDITED, FactAction.RESTORED):
            self._services.appended.set()
        return fact

    async def _check_shareable(self, fact: Fact) -> None:
        if fact.subject == THE_USER:
            raise InvalidFact(
                f"fact {fact.id} is about the user {fact.user!r} alone; only facts about a subject with members can "
                "be shared"
            )
        subject = await self._store.subject(self._scope.tenant, fact.subject)
        if subject is None or fact.user not in subject.members:
            raise _no_member(fact, self._scope.tenant)

    def _single(self, category: str) -> bool:
        """Whether the category holds one value at a time."""
        return category in self._services.settings.single_fact_categories

    @property
    def _defined(self) -> tuple[str, ...]:
        return self._services.settings.fact_categories

    @property
    def _store(self) -> FactStore:
        return self._services.store.facts


def _is_there(logged: Logged, now: datetime) -> bool:
    expires = logged.message.expires_at
    return not logged.erased and (expires is None or expires > now)


def _no_member(fact: Fact, tenant: str) -> InvalidFact:
    """The error for a user who is not a member. It does not say who is, or whether anybody is."""
    about = f"tenant={tenant!r}, subject={fact.subject!r}"
    command = f"hitherto facts subject {shlex.quote(fact.subject)} --tenant {shlex.quote(tenant)}"
    return InvalidFact(
        f"{fact.user!r} is no member of the subject {fact.subject!r}; an operator names all of its members: "
        f"memory.configure_subject({about}, members=[…]), or: {command} --member …, which without --member shows those "
        "that there are"
    )
