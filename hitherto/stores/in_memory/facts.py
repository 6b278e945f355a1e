"""`FactStore` in memory, over the rows of `fact_rows`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from hitherto.core.facts.change import check_change, no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, KnownFact, NewFact, Subject, Visibility
from hitherto.core.log.message import storable
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.filter import EntryKind
from hitherto.core.recall.terms import analyzed
from hitherto.core.scope import Scope
from hitherto.ports.facts import AddedFact, CurrentFacts, FactChange, FactFilter, KnownFacts
from hitherto.ports.models.embedder import Space
from hitherto.stores.in_memory.fact_rows import FactRow, FactRows
from hitherto.stores.in_memory.recall.index import InMemoryIndex
from hitherto.stores.in_memory.recall.sources import SourceKey
from hitherto.stores.in_memory.unexpired import Unexpired


class InMemoryFacts:
    """`FactStore` over `rows`. `unexpired` decides which facts may be shown; their vectors are in the `index`. `clock`
    gives the time, with a zone."""

    def __init__(
        self, rows: FactRows, index: InMemoryIndex, unexpired: Unexpired, clock: Callable[[], datetime]
    ) -> None:
        self._rows = rows
        self._index = index
        self._unexpired = unexpired
        self._clock = clock

    async def subject(self, tenant: str, id: str) -> Subject | None:
        return self._rows.subjects.get((tenant, id))

    async def subjects(self, tenant: str) -> list[Subject]:
        mine = [subject for (owner, _), subject in self._rows.subjects.items() if owner == tenant]
        return sorted(mine, key=lambda subject: subject.id)

    async def set_subject(
        self, tenant: str, id: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Subject:
        now = self._rows.subjects.get((tenant, id), Subject(id=id, name=id))
        after = Subject(
            id=id,
            name=now.name if name is None else storable(name),
            members=now.members if members is None else tuple(members),
        )
        self._rows.subjects[(tenant, id)] = after
        return after

    async def current_facts(self, scope: Scope, subject: str) -> CurrentFacts:
        return CurrentFacts(
            subject=self._rows.subject(scope, subject),
            facts=tuple(_known(row) for row in filter(self._unexpired.facts(), self._rows.about(scope, subject))),
        )

    async def known(self, scope: Scope, subject: str, *, space: Space | None = None, facts: bool = True) -> KnownFacts:
        about = self._rows.subject(scope, subject)
        rows = [
            row
            for row in filter(self._unexpired.facts(), self._rows.by_id.values())
            if facts
            and (row.is_about(scope, subject) or (row.fact.subject == subject and row.shared_with(scope, about)))
        ]
        codes, coded = self._codes(rows, space)
        return KnownFacts(
            subject=about,
            ids=np.array([row.fact.id for row in rows], np.int64),
            versions=np.array([row.fact.version for row in rows], np.int32),
            own=np.array([row.owner == scope for row in rows], np.bool_),
            shared=np.array([row.fact.visibility is Visibility.SHARED for row in rows], np.bool_),
            tokens=np.array([row.tokens for row in rows], np.int32),
            categories=[row.fact.category for row in rows],
            contents=[row.fact.content for row in rows],
            sizes=np.array([len(row.terms.hashes) for row in rows], np.int32),
            lengths=np.array([row.terms.length for row in rows], np.int32),
            terms=np.concatenate([np.zeros(0, np.int64), *(row.terms.hashes for row in rows)]),
            counts=np.concatenate([np.zeros(0, np.uint8), *(row.terms.counts for row in rows)]),
            codes=codes,
            coded=coded,
        )

    async def facts(self, scope: Scope, criteria: FactFilter) -> list[Fact]:
        found = [
            fact
            for row in filter(self._unexpired.facts(), self._rows.by_id.values())
            if (fact := self._listed(scope, row, criteria)) is not None
            and fact.id > criteria.after
            and criteria.subject in (None, fact.subject)
            and criteria.category in (None, fact.category)
            and criteria.state in (None, fact.state)
            and criteria.conversation in (None, *(one.conversation for one in fact.evidence))
        ]
        return found[: max(criteria.limit, 0)]

    async def fact(self, scope: Scope, id: int, *, all_agents: bool = False) -> Fact | None:
        own = self._own(scope, id, all_agents=all_agents)
        if own is not None:
            return own.shown
        row = self._row(id)
        return row.fact if row is not None and self._shared(scope, row) else None

    async def history(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[FactEvent, ...]:
        own = self._own(scope, id, all_agents=all_agents)
        return () if own is None else own.events

    async def versions(self, scope: Scope, asked: Sequence[tuple[int, int]]) -> list[Fact | None]:
        return [self._version(scope, *one) for one in asked]

    def _version(self, scope: Scope, id: int, version: int) -> Fact | None:
        row = self._row(id)
        if row is None or row.fact.state is FactState.DELETED:
            return None
        event = next((event for event in reversed(row.events) if event.version == version), None)
        if event is None or event.content == "":
            return None
        if row.owner != scope and not (self._shared(scope, row) and event.visibility is Visibility.SHARED):
            return None
        return replace(
            row.fact, version=version, category=event.category, content=event.content, visibility=event.visibility
        )

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        async with self._rows.lock(scope):
            known = self._rows.same(scope, subject, fact.fingerprint)
            if known is None:
                return AddedFact(self._rows.write(scope, subject, fact, by=scope.user).fact.id, new=True)
            self._rows.keep(known, fact, by=scope.user)
            return AddedFact(known.fact.id, new=False)

    async def change(self, scope: Scope, id: int, change: FactChange, *, all_agents: bool = False) -> Fact:
        there = self._own(scope, id, all_agents=all_agents)
        async with self._rows.lock(scope if there is None else there.owner):
            row = self._own(scope, id, all_agents=all_agents)
            if row is None:
                raise no_such_fact(scope, id, all_agents=all_agents)
            fingerprint = change.fingerprint if change.action is FactAction.EDITED else row.fingerprint
            alike = self._rows.same(row.owner, row.fact.subject, fingerprint)
            check_change(
                change.action,
                id,
                state=row.fact.state,
                version=row.fact.version,
                expect=change.expect,
                alike=None if alike is None or alike.fact.id == id else alike.fact.id,
            )
            after = self._changed(row, change, scope.user)
            if after is not row:
                self._rows.put(after)
                if change.single_valued and change.action in (FactAction.EDITED, FactAction.RESTORED):
                    self._rows.supersede_category(after, by=scope.user)
                self._index.forget(row.owner)
            return after.shown

    def _changed(self, row: FactRow, change: FactChange, by: str) -> FactRow:
        """The row after a change; `row` itself if there is nothing to change."""
        now, next_version = self._clock(), {"version": row.fact.version + 1}
        sure = {"confirmed": True, "confidence": 1.0, **next_version}
        match change.action:
            case FactAction.EDITED:
                content = storable(change.content)
                row = replace(row, fingerprint=change.fingerprint, tokens=change.tokens, terms=analyzed(content))
                says = {"content": content, "category": storable(change.category), "metadata": change.metadata}
                return row.after(change.action, now, by, **says, **sure)
            case FactAction.CONFIRMED:
                return row.after(change.action, now, by, **sure)
            case FactAction.SHARED | FactAction.UNSHARED:
                to = Visibility.SHARED if change.action is FactAction.SHARED else Visibility.PRIVATE
                same = row.fact.visibility is to
                return row if same else row.after(change.action, now, by, visibility=to, **next_version)
            case FactAction.RESTORED:
                return row.restored(now, by, confirmed=True, confidence=1.0)
            case FactAction.DELETED:
                return _deleted(row, now, by)
            case (
                FactAction.EXTRACTED
                | FactAction.ADDED
                | FactAction.REPEATED
                | FactAction.SUPERSEDED
                | FactAction.WITHDRAWN
            ):
                raise AssertionError("check_change has refused it")

    def _row(self, id: int) -> FactRow | None:
        """The fact with the id, if it may be shown."""
        row = self._rows.by_id.get(id)
        return row if row is not None and self._unexpired.facts()(row) else None

    def _own(self, scope: Scope, id: int, *, all_agents: bool) -> FactRow | None:
        """The fact with the id, if it is the scope's own and may be shown. A fact is read in full (with its evidence
        and its history) or changed by its id only through here."""
        row = self._row(id)
        return row if row is not None and _is_own(scope, row, all_agents=all_agents) else None

    def _shared(self, scope: Scope, row: FactRow) -> bool:
        """Whether another user shares it with the scope's user: the only case in which a fact is shown outside its
        scope."""
        return row.shared_with(scope, self._rows.subject(scope, row.fact.subject))

    def _listed(self, scope: Scope, row: FactRow, criteria: FactFilter) -> Fact | None:
        """The fact as the scope's user is shown it; None if it is neither own nor shared, or the filter leaves out its
        kind."""
        if _is_own(scope, row, all_agents=criteria.all_agents):
            return row.shown if criteria.mine else None
        return row.fact if criteria.shared and self._shared(scope, row) else None

    def _codes(
        self, rows: Sequence[FactRow], space: Space | None
    ) -> tuple[NDArray[np.uint8] | None, NDArray[np.bool_] | None]:
        """The codes of the rows' vectors, and which rows have one; None for both if none has."""
        if space is None:
            return None, None
        vectors = [self._index.vector(row.owner, SourceKey(EntryKind.FACT, row.fact.id, 0), space) for row in rows]
        coded = np.array([vector is not None for vector in vectors], np.bool_)
        if not coded.any():
            return None, None
        nothing = np.zeros(space.dimensions, np.float32)
        return codes_of(np.stack([nothing if vector is None else vector for vector in vectors])), coded


def _is_own(scope: Scope, row: FactRow, *, all_agents: bool) -> bool:
    return row.owner == (replace(scope, agent=row.owner.agent) if all_agents else scope)


_CONFIRMING_ACTIONS = (FactAction.ADDED, FactAction.EDITED, FactAction.CONFIRMED, FactAction.RESTORED)
"""The actions by which a person says that a fact holds. Sharing it does not; and what a digest does counts by the times
of its messages, not by the time at which the digest ends."""


def _known(row: FactRow) -> KnownFact:
    fact = row.fact
    times = [one.evidence.said_at for one in row.said if one.live]
    if fact.confirmed:
        times += [event.at for event in row.events if event.by is not None and event.action in _CONFIRMING_ACTIONS]
    return KnownFact(
        id=fact.id,
        category=fact.category,
        content=fact.content,
        confidence=fact.confidence or 0.0,
        said_at=max(times, default=fact.extracted_at),
        confirmed=bool(fact.confirmed),
    )


def _deleted(row: FactRow, now: datetime, by: str) -> FactRow:
    """The row of a fact that a person deletes: without its contents, those in its history, and its evidence."""
    gone = row.after(
        FactAction.DELETED,
        now,
        by,
        version=row.fact.version + 1,
        state=FactState.DELETED,
        content="",
        metadata="{}",
        ended_at=row.fact.ended_at or now,
    )
    events = tuple(replace(event, content="") for event in gone.events)
    return replace(gone, fingerprint="", tokens=0, terms=analyzed(""), said=(), events=events)
