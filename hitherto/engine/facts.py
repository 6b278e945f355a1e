"""The review of facts: what is known, whose it is and where it comes from, and putting it right."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast

from hitherto.core.fact import (
    HIMSELF,
    LONGEST_FACT,
    Did,
    Fact,
    FactEvent,
    FactState,
    NewFact,
    Visibility,
    category_of,
)
from hitherto.core.knowing import plain
from hitherto.core.message import Logged, storable
from hitherto.core.repetition import fingerprint_of_fact
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.housekeeping import honoured
from hitherto.engine.parts import Parts
from hitherto.errors import InvalidFact, InvalidInput, NotFound
from hitherto.ports.facts import AddedFact, FactChange, FactStore, FactsWanted
from hitherto.ports.store import Reading

Listing = list[Fact]

MOST = 1_000
"""The most facts of one page."""


class Facts:
    """The facts of a scope's user, and those that others share with him, about one `subject` or (None) any.

    Only its owner can change a fact or see where it comes from; a fact of somebody else's is not found, as if it were
    not there. Of what others share, `confidence` and `repeated` say nothing, and `updated_at` is when it was learnt.
    `every_agent`: those that the user's other agents have learnt too.
    """

    def __init__(self, parts: Parts, scope: Scope, subject: str | None = None, *, every_agent: bool = False) -> None:
        self._parts = parts
        self._scope = Scope.checked(scope)
        self._subject = subject if not subject else checked_name(subject, "subject")
        self._every_agent = every_agent

    async def list(
        self,
        *,
        mine: bool = True,
        shared: bool = True,
        category: str | None = None,
        conversation: str | None = None,
        state: FactState | str | None = FactState.CURRENT,
        after: int = 0,
        limit: int = 100,
    ) -> Listing:
        """Facts in the order in which they were learnt: the user's own (`mine`), and those that others share with him
        (`shared`).

        `category` is that which they are kept under; `conversation` leaves those that a message of it says; `state` is
        "current", "superseded", "withdrawn" or "deleted", None for all. A page has at most `limit` (1 to 1,000); the
        next one begins `after` the id of its last. Raises InvalidFact.
        """
        await honoured(self._parts, self._scope.tenant)
        found = await self._store.facts(
            self._scope,
            FactsWanted(
                subject=self._subject,
                mine=mine,
                shared=shared,
                every_agent=self._every_agent,
                category=None if category is None else self._kept_category(category),
                conversation=None if conversation is None else checked_name(conversation, "conversation"),
                state=_state(state),
                after=_number(after, "after"),
                limit=_limit(limit),
            ),
        )
        return [self._seen(fact) for fact in found]

    async def get(self, id: int) -> Fact | None:
        """One fact in any state, or one that is shared with the user; None where there is none of that id."""
        await honoured(self._parts, self._scope.tenant)
        found = await self._store.fact(self._scope, _number(id, "id"), every_agent=self._every_agent)
        return None if found is None else self._seen(found)

    async def add(self, content: str, *, category: str = "other") -> AddedFact:
        """Keep a fact about the subject by hand: it is confirmed, and private. The same statement again is the same
        fact. In a category that holds one value at a time, it ends the one before. Raises InvalidFact."""
        subject = self._subject or HIMSELF
        content = checked_content(content)
        kept, metadata = self._category(category)
        fact = NewFact(
            category=kept,
            content=content,
            fingerprint=fingerprint_of_fact(content),
            tokens=self._parts.canonical.count(content),
            confidence=1.0,
            metadata=metadata,
            alone=kept in self._parts.settings.single_fact_categories,
        )
        added = await self._store.add(self._scope, subject, fact)
        if added.new:
            self._parts.appended.set()
        return added

    async def edit(
        self, id: int, *, content: str | None = None, category: str | None = None, expect: int | None = None
    ) -> Fact:
        """Put a fact's content or category right; it is confirmed with that. `expect` is the version that was reviewed.

        Raises NotFound where it is none of the user's own, Outdated when somebody else changed it meanwhile,
        InvalidFact for an unusable content, one that another fact has already, and a fact that is not current.
        """
        if content is None and category is None:
            raise InvalidFact("there is nothing to edit; give the fact a content or a category")
        wanted = None if content is None else checked_content(content)
        before = await self.get(id)
        if before is None:
            raise _not_there(id)
        if expect is None:
            expect = before.version  # what is not given stays as it was read
        kept, metadata = (before.category, before.metadata) if category is None else self._category(category)
        said = before.content if wanted is None else wanted
        return await self._changed(
            id,
            FactChange(
                did=Did.EDITED,
                expect=expect,
                content=said,
                fingerprint=fingerprint_of_fact(said),
                tokens=self._parts.canonical.count(said),
                category=kept,
                metadata=metadata,
                alone=kept in self._parts.settings.single_fact_categories,
            ),
        )

    async def restore(self, id: int, *, expect: int | None = None) -> Fact:
        """Let a fact that was superseded or withdrawn hold again; it is confirmed and private with that. Where its
        category holds one value at a time, it ends the one that holds now. Raises as `edit`, and InvalidFact for one
        that is current.
        """
        fact = await self.get(id)
        single = fact is not None and fact.category in self._parts.settings.single_fact_categories
        return await self._changed(id, FactChange(did=Did.RESTORED, expect=expect, alone=single))

    async def confirm(self, id: int, *, expect: int | None = None) -> Fact:
        """Say that a fact is right. Raises as `edit`."""
        return await self._changed(id, FactChange(did=Did.CONFIRMED, expect=expect))

    async def share(self, id: int, *, expect: int | None = None) -> Fact:
        """Show a fact to all members of its subject, from their next context on. Raises as `edit`; InvalidFact for a
        fact about the user himself, and where the user is no member."""
        fact = await self.get(id)
        if fact is not None and fact.user == self._scope.user:
            await self._check_shareable(fact)
        return await self._changed(id, FactChange(did=Did.SHARED, expect=expect))

    async def unshare(self, id: int, *, expect: int | None = None) -> Fact:
        """Show it to nobody else any more, from their next context on. Raises as `edit`."""
        return await self._changed(id, FactChange(did=Did.UNSHARED, expect=expect))

    async def set_visibility(self, id: int, visibility: Visibility | str, *, expect: int | None = None) -> Fact:
        """`share` or `unshare`, by the seed's words "shared" and "private". Raises InvalidFact for any other."""
        try:
            wanted = Visibility(visibility)
        except ValueError:
            raise InvalidFact(f"visibility is {visibility!r}; a fact is 'private' or 'shared'") from None
        match wanted:
            case Visibility.SHARED:
                return await self.share(id, expect=expect)
            case Visibility.PRIVATE:
                return await self.unshare(id, expect=expect)

    async def delete(self, id: int, *, expect: int | None = None) -> None:
        """Delete a fact: what it said is gone, from its history too, and it is not extracted from the same messages
        again. Raises NotFound where it is none of the user's own, Outdated."""
        await self._changed(id, FactChange(did=Did.DELETED, expect=expect))

    async def history(self, id: int) -> Sequence[FactEvent]:
        """What happened to a fact of the user's own, oldest first. Raises NotFound for any other."""
        await honoured(self._parts, self._scope.tenant)
        found = await self._store.history(self._scope, _number(id, "id"), every_agent=self._every_agent)
        if not found:
            raise _not_there(id)
        return found

    async def sources(self, id: int) -> Sequence[tuple[str, Logged]]:
        """The messages that say a fact of the user's own, oldest first, each with the name of its conversation; none
        for one that was added by hand, or whose conversation was deleted. Raises NotFound for any other fact."""
        fact = await self.get(id)
        if fact is None or fact.user != self._scope.user or fact.state is FactState.DELETED:
            raise _not_there(id)
        scope = replace(self._scope, agent=fact.agent)
        found: list[tuple[str, Logged]] = []
        for one in fact.evidence:
            head = await self._parts.store.head(scope, one.conversation)
            if head is None:
                continue
            reading = Reading(start=one.seq, stop=one.seq + 1)
            logged = await self._parts.store.messages(scope, one.conversation, head.ref, reading)
            found += [(one.conversation, message) for message in logged if _is_there(message, head.now)]
        return found

    def _seen(self, fact: Fact) -> Fact:
        """A fact as the user may see it: of what another shares the statement, and nothing of how often and how surely
        it was said, or when last."""
        if fact.user == self._scope.user:
            return fact
        return replace(fact, confidence=1.0, confirmed=False, repeated=0, metadata="{}", updated_at=fact.extracted_at)

    async def _changed(self, id: int, change: FactChange) -> Fact:
        expect = None if change.expect is None else _number(change.expect, "expect")
        change = replace(change, expect=expect)
        fact = await self._store.change(self._scope, _number(id, "id"), change, every_agent=self._every_agent)
        if change.did in (Did.EDITED, Did.RESTORED):
            self._parts.appended.set()
        return fact

    async def _check_shareable(self, fact: Fact) -> None:
        if fact.subject == HIMSELF:
            raise InvalidFact(
                f"fact {fact.id} is about {fact.user!r} himself, and nobody else's; only facts about a subject with "
                "members can be shared"
            )
        subject = await self._store.subject(self._scope.tenant, fact.subject)
        if subject is None or fact.user not in subject.members:
            raise InvalidFact(
                f"{fact.user!r} is no member of the subject {fact.subject!r}; name its members first: "
                f"memory.configure_subject(tenant=…, subject={fact.subject!r}, members=[…]), or: "
                f"hitherto facts subject {fact.subject} --member {fact.user} --member …"
            )

    def _category(self, given: object) -> tuple[str, str]:
        if not isinstance(given, str) or not given.strip():
            raise InvalidFact(f"the category is {given!r}; give one of {self._categories}, or leave it out")
        kept, told = category_of(storable(plain(given)), self._parts.settings.fact_categories)
        return kept, json.dumps(dict(told), ensure_ascii=False)

    def _kept_category(self, given: object) -> str:
        """The defined category that is meant; one that is not defined may have been, when facts were kept under it."""
        kept, metadata = self._category(given)
        return kept if metadata == "{}" else storable(plain(str(given)))

    @property
    def _categories(self) -> str:
        return ", ".join(self._parts.settings.fact_categories)

    @property
    def _store(self) -> FactStore:
        if self._parts.facts is None:
            raise InvalidInput("this memory's store keeps no facts; open it on PostgreSQL, or as 'memory:'")
        return self._parts.facts


def checked_content(content: object) -> str:
    """A fact's content as it is kept: one line. Raises InvalidFact for what is no text, says nothing or is too long."""
    if not isinstance(content, str):
        raise InvalidFact(f"the fact is {type(content).__name__}; give its content as text")
    if len(content) > 10 * LONGEST_FACT:
        raise _too_long(len(content))
    kept = plain(storable(content))
    if not any(unicodedata.category(character) in _TELLING for character in kept.replace("\ufffd", "")):
        raise InvalidFact("the fact says nothing: there is no letter or digit in it; give one sentence")
    if len(kept) > LONGEST_FACT:
        raise _too_long(len(kept))
    return kept


_TELLING = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So"})
"""Letters, digits, and signs such as emoji."""


def _too_long(length: int) -> InvalidFact:
    return InvalidFact(
        f"the fact has {length:,} characters; at most {LONGEST_FACT} are kept: give one sentence, and longer texts to "
        "memory.knowledge(scope).add"
    )


def _is_there(logged: Logged, now: datetime) -> bool:
    expires = logged.message.expires_at
    return not logged.erased and (expires is None or expires > now)


def _state(state: object) -> FactState | None:
    if state is None or state == "all":
        return None
    try:
        return FactState(cast(str, state))
    except ValueError:
        raise InvalidFact(f"state is {state!r}; a fact is {', '.join(FactState)} (None: any)") from None


def _number(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidFact(f"{name} is {value!r}; give a whole number, as `list` and `add` do")
    return value


def _limit(limit: object) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST:
        raise InvalidFact(f"limit is {limit!r}; give a whole number from 1 to {MOST}")
    return limit


def _not_there(id: object) -> NotFound:
    return NotFound(f"the user has no fact {id}; list those there are (`hitherto facts list`)")
