"""The facts in memory, one row each, and what changes to conversations do to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

from hitherto.core.facts.fact import (
    OTHER,
    Evidence,
    Fact,
    FactAction,
    FactEvent,
    FactState,
    LearnedFacts,
    NewFact,
    RepeatedFact,
    Subject,
    Visibility,
)
from hitherto.core.log.message import Logged, storable
from hitherto.core.log.ranges import Ranges, any_in
from hitherto.core.recall.terms import TermCounts, analyzed
from hitherto.core.scope import THE_USER, Scope
from hitherto.stores.in_memory.claims import Name


class FactSource(NamedTuple):
    """A message that says a fact; `ref` is the number of its conversation. A retracted message is not `live`, and so is
    no evidence. It is kept until it is erased, because erasing it also erases what rests on it."""

    ref: int
    evidence: Evidence
    live: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A fact with its owner and the columns that only the store uses. Its evidence is in `said`, not in `fact`."""

    owner: Scope
    fact: Fact
    fingerprint: str
    tokens: int
    terms: TermCounts
    said: tuple[FactSource, ...] = ()
    events: tuple[FactEvent, ...] = ()

    @property
    def current(self) -> bool:
        return self.fact.state is FactState.CURRENT

    @property
    def shown(self) -> Fact:
        """The fact as its owner sees it."""
        live = sorted((one for one in self.said if one.live), key=_time)
        return replace(self.fact, evidence=tuple(one.evidence for one in live))

    @property
    def live(self) -> bool:
        """Whether a message says it that was not retracted."""
        return any(one.live for one in self.said)

    @property
    def by_hand(self) -> bool:
        """Whether a person has added it."""
        return any(event.action is FactAction.ADDED for event in self.events)

    @property
    def unstated(self) -> bool:
        """Whether nothing supports it: no live message says it, and no person confirmed it."""
        return not self.fact.confirmed and not self.live

    def is_about(self, scope: Scope, subject: str) -> bool:
        """Whether it is one of the scope's current facts about the subject."""
        return self.owner == scope and self.fact.subject == subject and self.current

    def shared_with(self, scope: Scope, subject: Subject) -> bool:
        """Whether it belongs to another user, who shares it with the scope's user; `subject` is the one it is about."""
        others = self.owner != scope and self.owner == replace(scope, user=self.owner.user)
        members = {scope.user, self.owner.user} <= set(subject.members)
        shared = self.current and self.fact.subject != THE_USER and self.fact.visibility is Visibility.SHARED
        return others and members and shared

    def after(self, action: FactAction, at: datetime, by: str | None, **changes: object) -> FactRow:
        """The row with `changes` to its fact, and with what was done added to its history."""
        fact = replace(self.fact, updated_at=at, **changes)
        event = FactEvent(
            action=action,
            at=at,
            by=by,
            version=fact.version,
            category=fact.category,
            content=fact.content,
            visibility=fact.visibility,
        )
        return replace(self, fact=fact, events=(*self.events, event))

    def restored(self, at: datetime, by: str | None, **changes: object) -> FactRow:
        """The row, current again, private, and one version on."""
        again = {"state": FactState.CURRENT, "superseded_by": None, "ended_at": None}
        seen = {"visibility": Visibility.PRIVATE, "version": self.fact.version + 1}
        return self.after(FactAction.RESTORED, at, by, **again, **seen, **changes)

    def without_old_contents(self) -> FactRow:
        """The row without the contents in its history that differ from the present one."""
        now = self.fact.content
        events = (event if event.content == now else replace(event, content="") for event in self.events)
        return replace(self, events=tuple(events))


class FactRows:
    """All facts by their ids, ascending, and the subjects that were set. `clock` gives the time, with a zone.

    Whoever changes facts of a scope holds the scope's lock. One lock covers all its subjects, so that there is no
    second one to wait for.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._ids = count(1)
        self._locks = WeakValueDictionary[Scope, asyncio.Lock]()
        self.by_id: dict[int, FactRow] = {}
        self.subjects: dict[tuple[str, str], Subject] = {}

    def next_id(self) -> int:
        return next(self._ids)

    def lock(self, scope: Scope) -> asyncio.Lock:
        return self._locks.setdefault(scope, asyncio.Lock())

    def owners(self) -> list[tuple[str, str, str]]:
        """Tenant, user and agent of each current fact."""
        owners = [row.owner for row in self.by_id.values() if row.current]
        return [(owner.tenant, owner.user, owner.agent) for owner in owners]

    def subject(self, scope: Scope, subject: str) -> Subject:
        """The subject as the scope's user sees it. One that was never set has its id as its name; `THE_USER` has the
        user's name."""
        name = scope.user if subject == THE_USER else subject
        return self.subjects.get((scope.tenant, subject), Subject(id=subject, name=name)).seen_by(scope.user)

    def about(self, scope: Scope, subject: str) -> list[FactRow]:
        """The scope's current facts about a subject."""
        return [row for row in self.by_id.values() if row.is_about(scope, subject)]

    def same(self, scope: Scope, subject: str, fingerprint: str) -> FactRow | None:
        """The scope's current fact about the subject that has the fingerprint."""
        return next((row for row in self.about(scope, subject) if row.fingerprint == fingerprint), None)

    def put(self, row: FactRow) -> FactRow:
        """Write a row, replacing the one with its id."""
        self.by_id[row.fact.id] = row
        return row

    def write(
        self, scope: Scope, subject: str, new: NewFact, *, by: str | None, said: Iterable[FactSource] = ()
    ) -> FactRow:
        """Write a new fact: added by hand if there is a user `by`, extracted otherwise."""
        now, number = self._clock(), next(self._ids)
        fact = Fact(
            id=number,
            user=scope.user,
            agent=scope.agent,
            subject=subject,
            category=storable(new.category),
            content=storable(new.content),
            visibility=Visibility.PRIVATE,
            state=FactState.CURRENT,
            confidence=new.confidence if by is None else 1.0,
            confirmed=by is not None,
            repeated=0,
            version=1,
            metadata=new.metadata,
            extracted_at=now,
            updated_at=now,
        )
        row = FactRow(
            owner=scope,
            fact=fact,
            fingerprint=new.fingerprint,
            tokens=new.tokens,
            terms=analyzed(fact.content),
            said=tuple(said),
        )
        row = self.put(row.after(FactAction.EXTRACTED if by is None else FactAction.ADDED, now, by))
        if new.single_valued:
            self.supersede_category(row, by=by)
        return row

    def keep(self, row: FactRow, new: NewFact, *, by: str) -> None:
        """The user `by` adds by hand what `row` says already. A row that this does not change is not written."""
        fact = row.fact
        kept = {"category": fact.category, "metadata": fact.metadata}
        if new.category != OTHER:
            kept = {"category": storable(new.category), "metadata": new.metadata}
        if not (row.by_hand and fact.confirmed and replace(fact, **kept) == fact):
            sure = {"confirmed": True, "confidence": 1.0, "version": fact.version + 1}
            row = self.put(row.after(FactAction.ADDED, self._clock(), by, **kept, **sure))
        if new.single_valued:
            self.supersede_category(row, by=by)

    def replace(self, row: FactRow, ids: Iterable[int], *, by: str | None) -> None:
        """Supersede the facts `ids` by `row`: those of them that are current, its owner's and about the same
        subject."""
        ending, now = set(ids) - {row.fact.id}, self._clock()
        for old in self.about(row.owner, row.fact.subject):
            if old.fact.id in ending:
                ended = {"state": FactState.SUPERSEDED, "superseded_by": row.fact.id, "ended_at": now}
                self.put(old.after(FactAction.SUPERSEDED, now, by, **ended))

    def supersede_category(self, row: FactRow, *, by: str | None) -> None:
        """Supersede all other current facts of its category that are its owner's and about the same subject."""
        there = self.about(row.owner, row.fact.subject)
        self.replace(row, (old.fact.id for old in there if old.fact.category == row.fact.category), by=by)

    # What changes to conversations do to facts.

    def learn(self, name: Name, ref: int, learned: LearnedFacts, log: Sequence[Logged]) -> None:
        """Write the facts that a digest of the conversation has learned."""
        scope, conversation = name
        subject = learned.subject

        def said(seqs: Iterable[int]) -> tuple[FactSource, ...]:
            there = [seq for seq in sorted(set(seqs)) if 0 <= seq < len(log)]
            return tuple(FactSource(ref, Evidence(conversation, seq, log[seq].said_at)) for seq in there)

        for again in learned.repeated:
            row = self.by_id.get(again.fact)
            if row is not None and row.is_about(scope, subject):
                self._repeat(row, said(again.seqs), again)
        for new in learned.facts:
            row = self.same(scope, subject, new.fingerprint)
            if row is None:
                row = self.write(scope, subject, new, by=None, said=said(new.seqs))
            else:
                again = RepeatedFact(fact=row.fact.id, seqs=new.seqs, confidence=row.fact.confidence or 0.0)
                self._repeat(row, said(new.seqs), again)
            self.replace(row, new.supersedes, by=None)

    def retract(self, ref: int, seqs: Iterable[int]) -> None:
        """Messages of a conversation were retracted: withdraw the current facts that nothing supports any more, and
        restore those that these had superseded."""
        gone, now = set(seqs), self._clock()
        withdrawn: set[int] = set()
        for row in list(self.by_id.values()):
            said = tuple(one._replace(live=one.live and not _in(one, ref, gone)) for one in row.said)
            if said == row.said:
                continue
            left = replace(row, said=said)
            if left.unstated and left.current:
                left = left.after(FactAction.WITHDRAWN, now, None, state=FactState.WITHDRAWN, ended_at=now)
                withdrawn.add(left.fact.id)
            self.put(left)
        # After all withdrawals: a withdrawn fact may say the same as one to be restored. Of several that say the same,
        # only the newest is restored.
        for row in sorted(self._ended_by(withdrawn), key=lambda row: row.fact.id, reverse=True):
            if self.same(row.owner, row.fact.subject, row.fingerprint) is None:
                self.put(row.restored(now, None))

    def erase(self, ref: int, ranges: Ranges, *, forget: bool) -> None:
        """Messages of a conversation are erased: erase the facts that nothing supports any more (with `forget`, those
        that were not added by hand), and earlier contents of the others that no message says any more."""
        for row in list(self.by_id.values()):
            said = tuple(one for one in row.said if not _within(one, ref, ranges))
            if said != row.said:
                left = self.put(replace(row, said=said))
                if left.unstated or (forget and not left.live and not left.by_hand):
                    self.remove(left)
                elif not left.live:
                    self.put(left.without_old_contents())

    def leave(self, ref: int, *, facts: bool) -> None:
        """A conversation is deleted: its facts stay without that evidence. With `facts`, those that have no other
        evidence and were not added by hand are removed."""
        for row in list(self.by_id.values()):
            said = tuple(one for one in row.said if one.ref != ref)
            if said != row.said:
                left = self.put(replace(row, said=said))
                if facts and not left.live and not left.by_hand:
                    self.remove(left)

    def forget(self, tenant: str, user: str | None, before: datetime) -> None:
        """Remove the facts of a tenant, or of a user of it, that were there at `before`, the user from all subjects and
        from the history of others' facts, and the tenant's subjects."""
        mine = [row for row in self.by_id.values() if row.owner.tenant == tenant and user in (None, row.owner.user)]
        gone = [row for row in mine if row.fact.extracted_at <= before]
        for row in gone:
            self.remove(row)
        for row in list(self.by_id.values()):
            if row.owner.tenant == tenant:
                events = (replace(one, by=None) if one.by == user else one for one in row.events)
                self.put(replace(row, events=tuple(events)))
        for (owner, name), subject in list(self.subjects.items()):
            if owner == tenant and user is None:
                del self.subjects[owner, name]
            elif owner == tenant:
                members = tuple(one for one in subject.members if one != user)
                self.subjects[owner, name] = replace(subject, members=members)

    def remove(self, row: FactRow) -> None:
        del self.by_id[row.fact.id]
        for old in list(self.by_id.values()):
            if old.fact.superseded_by == row.fact.id:
                self.by_id[old.fact.id] = replace(old, fact=replace(old.fact, superseded_by=None))

    def _ended_by(self, withdrawn: set[int]) -> list[FactRow]:
        """The facts that the facts `withdrawn` had superseded. Of these, one whose messages are all retracted and that
        nobody confirmed is passed over for those that it had superseded itself."""
        found: list[FactRow] = []
        for row in self.by_id.values():
            if row.fact.state is FactState.SUPERSEDED and row.fact.superseded_by in withdrawn:
                taken_back = row.unstated and row.said
                found += self._ended_by({row.fact.id}) if taken_back else [row]
        return found

    def _repeat(self, row: FactRow, said: Sequence[FactSource], again: RepeatedFact) -> None:
        """A fact was said again. Nothing is written if it is known already that all these messages say it."""
        known = {(one.ref, one.evidence.seq) for one in row.said}
        more = [one for one in said if (one.ref, one.evidence.seq) not in known]
        if not more:
            return
        changes: dict[str, object] = {"repeated": (row.fact.repeated or 0) + 1, "confidence": again.confidence}
        category = row.fact.category if again.category is None else storable(again.category)
        if category != row.fact.category:
            changes |= {"category": category, "metadata": "{}", "version": row.fact.version + 1}
        after = row.after(FactAction.REPEATED, self._clock(), None, **changes)
        after = self.put(replace(after, said=(*row.said, *more)))
        if again.single_valued:
            self.supersede_category(after, by=None)


def _time(one: FactSource) -> tuple[datetime, int, int]:
    return one.evidence.said_at, one.ref, one.evidence.seq


def _in(one: FactSource, ref: int, seqs: Iterable[int]) -> bool:
    return one.ref == ref and one.evidence.seq in seqs


def _within(one: FactSource, ref: int, ranges: Ranges) -> bool:
    return one.ref == ref and any_in(ranges, one.evidence.seq, one.evidence.seq)
