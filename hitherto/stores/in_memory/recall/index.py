"""The search index in memory, written to be read.

There is no record of what was removed or is still to be indexed. Each access compares entries and sources: an entry is
removed once its source is gone or reads differently, and a source without an entry waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from operator import attrgetter

import numpy as np

from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.scope import Scope
from hitherto.ports.models.embedder import Space, Vector, Vectors
from hitherto.ports.recall import (
    OF_NO_AGENT,
    TEXT,
    Candidate,
    IndexBacklog,
    IndexedPassage,
    IndexEntry,
    IndexWork,
    Key,
    SearchData,
    Source,
    Unembedded,
    matching,
)
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import MAX_AHEAD, StoredConversation
from hitherto.stores.in_memory.documents import InMemoryDocuments, StoredDocument
from hitherto.stores.in_memory.fact_rows import FactRow
from hitherto.stores.in_memory.recall.scope_index import Entry, Owner, ScopeIndex
from hitherto.stores.in_memory.recall.sources import SearchableText, SourceKey, of_conversation, of_document, of_fact
from hitherto.stores.in_memory.unexpired import Unexpired

_Found = dict[Owner, dict[SourceKey, SearchableText]]
_age = attrgetter("said_at", "origin", "place")


class InMemoryIndex:
    """`SearchIndex` over `conversations` by name, `documents`, and `facts` by id. `unexpired` decides which of them may
    be shown. `clock` gives the time, with a zone."""

    def __init__(
        self,
        conversations: Mapping[Name, StoredConversation],
        documents: InMemoryDocuments,
        facts: Mapping[int, FactRow],
        unexpired: Unexpired,
        clock: Callable[[], datetime],
    ) -> None:
        self._conversations = conversations
        self._documents = documents
        self._facts = facts
        self._unexpired = unexpired
        self._clock = clock
        self._scopes: dict[Owner, ScopeIndex] = {}
        self._refs = count(1)
        self._taken = count(1)
        self._changes: dict[Name, int] = {}
        self._known: dict[Name, tuple[int, dict[SourceKey, SearchableText]]] = {}
        self._swept: dict[Owner, tuple[object, ...]] = {}

    async def search_data(
        self, criteria: SearchFilter, *, terms: Sequence[int], spaces: Sequence[Space], limit: int
    ) -> SearchData:
        found = self._found(lambda owner: owner.within(criteria))
        mine = [scope for owner, scope in self._scopes.items() if owner.within(criteria)]
        waiting = sorted((one for owner in found for one in self._waiting(owner, found, criteria.kinds)), key=_age)
        entries = sum(len(scope.by_no) for scope in mine)
        embedded = {space: sum(scope.embedded(space) for scope in mine) for space in spaces}
        # The space with the most vectors, and of several the first: one in which every entry has a vector has the most.
        space = max(spaces, key=lambda one: embedded[one], default=None)
        if space is not None and embedded[space] == 0:
            space = None
        return SearchData(
            blocks=tuple(
                block for scope in mine for block in scope.blocks(terms, space, told=criteria.needs_origin_columns)
            ),
            waiting=tuple(waiting[max(len(waiting) - max(limit, 0), 0) :]),
            space=space,
            entries=entries,
            embedded=0 if space is None else embedded[space],
            refs=self._numbers(criteria),
            about=self._about(criteria),
            due=self._unexpired.due(criteria.scope.tenant),
        )

    async def candidates(
        self, criteria: SearchFilter, keys: Sequence[Key], *, space: Space | None, around: int
    ) -> list[Candidate]:
        found = self._found(lambda owner: owner.within(criteria))
        mine = {scope.ref: scope for owner, scope in self._scopes.items() if owner.within(criteria)}
        told: dict[tuple[int, SourceKey], Candidate] = {}
        for ref, no in keys:
            scope = mine.get(ref)
            if scope is None or no not in scope.by_no:
                continue
            place = scope.by_no[no].place
            reach = around if place.kind is EntryKind.MESSAGE else 0
            for seq in range(place.place - reach, place.place + reach + 1):
                near = place._replace(place=seq)
                if near in scope.by_place:
                    told[ref, near] = _candidate(scope, near, found[scope.owner][near].source(), space)
        return matching(told.values(), criteria, keys, around=around)

    async def take(
        self, *, space: Space | None, lease: timedelta, limit: int, tenant: str | None = None
    ) -> IndexWork | None:
        found, now = self._found(lambda _: True), self._clock()
        for owner in found:
            if owner not in self._scopes:
                self._scopes[owner] = ScopeIndex(next(self._refs), owner)
        # The scope that was claimed longest ago comes first, so that one whose work always fails cannot keep the others
        # waiting.
        for scope in sorted(self._scopes.values(), key=lambda one: one.taken):
            work = self._work(scope, found, space, limit)
            if tenant in (None, scope.owner.tenant) and not work.done and not _claimed(scope, now):
                scope.attempt += 1
                scope.taken = next(self._taken)
                scope.claimed_until = now + lease
                return replace(work, attempt=scope.attempt)
        return None

    async def more(self, work: IndexWork, *, space: Space | None, lease: timedelta, limit: int) -> IndexWork | None:
        scope = self._held(work)
        if scope is None:
            return None
        scope.claimed_until = self._clock() + lease
        return self._work(scope, self._found(lambda owner: owner == scope.owner), space, limit)

    async def prolong(self, work: IndexWork, *, lease: timedelta) -> bool:
        scope = self._held(work)
        if scope is not None:
            scope.claimed_until = self._clock() + lease
        return scope is not None

    async def add(self, work: IndexWork, entries: Sequence[Sequence[IndexEntry]]) -> bool:
        scope = self._held(work)
        if scope is None:
            return False
        found = self._found(lambda owner: owner == scope.owner).get(scope.owner, {})
        for source, passages in zip(work.sources, entries, strict=True):
            place = SourceKey(source.kind, source.origin, source.place)
            there = found.get(place)
            if there is not None and there.text == source.text and place not in scope.by_place:
                scope.add(place, source.text, source.said_at.timestamp(), passages)
        return True

    async def embed(self, work: IndexWork, space: Space, vectors: Vectors) -> bool:
        scope = self._held(work)
        if scope is None:
            return False
        for entry, vector in zip(work.unembedded, vectors, strict=True):
            # In half precision, as other stores keep them: so all give the same scores.
            scope.embed(entry.no, space, vector.astype(np.float16).astype(np.float32))
        return True

    async def compact_index(self, work: IndexWork) -> bool:
        return self._held(work) is not None

    async def release(self, work: IndexWork) -> None:
        scope = self._held(work)
        if scope is not None:
            scope.claimed_until = None

    async def backlog(self, space: Space | None, *, tenant: str | None = None) -> IndexBacklog:
        found = self._found(lambda owner: tenant in (None, owner.tenant))
        scopes = [scope for owner, scope in self._scopes.items() if tenant in (None, owner.tenant)]
        return IndexBacklog(
            waiting=sum(any(True for _ in self._waiting(owner, found)) for owner in found),
            unembedded=0 if space is None else sum(scope.embedded(space) < len(scope.by_no) for scope in scopes),
        )

    def changed(self, name: Name) -> None:
        """The conversation was written to: what can be found in it has to be looked up anew."""
        self._changes[name] = self._changes.get(name, 0) + 1

    def _of(self, name: Name, kept: StoredConversation, now: datetime) -> dict[SourceKey, SearchableText]:
        """What can be found in a conversation. Cached until the conversation changes, and not cached while messages of
        it can expire."""
        changes = self._changes.get(name, 0)
        known = self._known.get(name)
        if known is None or known[0] != changes or kept.head.next_expiry is not None:
            known = (changes, dict(of_conversation(name, kept, now)))
            self._known[name] = known
        return known[1]

    def vector(self, scope: Scope, place: SourceKey, space: Space) -> Vector | None:
        """The vector in the space of the source with the key `place`, if it has one."""
        entries = self._scopes.get(Owner.of(scope))
        if entries is None or place not in entries.by_place:
            return None
        return entries.vectors.get(space, {}).get(entries.by_place[place].start)

    def forget(self, scope: Scope) -> None:
        """Something of the scope was erased: remove its entries now, not only at the next search."""
        if (mine := Owner.of(scope)) in self._scopes:
            self._found(lambda owner: owner == mine)

    def forget_all(self) -> None:
        """Something of many scopes was erased: remove what is gone from all of them."""
        self._found(lambda _: True)

    def _found(self, mine: Callable[[Owner], bool]) -> _Found:
        """What can be found now in the indexes for which `mine` is true. Removes all other entries from these."""
        now = self._clock()
        found: _Found = {}
        seen: dict[Owner, list[object]] = {}
        for name, kept in self._conversations.items():
            owner = Owner.of(name[0])
            if mine(owner):
                found.setdefault(owner, {}).update(known := self._of(name, kept, now))
                seen.setdefault(owner, []).append((name, self._changes.get(name, 0), len(known)))
        for document, shelved in self._documents.shown():
            owner = Owner(shelved.tenant, shelved.user, shelved.document.agent or OF_NO_AGENT)
            if mine(owner):
                found.setdefault(owner, {}).update(of_document(document, shelved, self._subject(owner, shelved)))
                seen.setdefault(owner, []).append(document)
        shown = self._unexpired.facts()
        for number, row in self._facts.items():
            owner = Owner.of(row.owner)
            if mine(owner) and shown(row):
                found.setdefault(owner, {}).update(of_fact(row))
                seen.setdefault(owner, []).append((number, row.fact.state, row.fact.version))
        for owner, scope in self._scopes.items():
            state = (scope.next_no, *seen.get(owner, ()))
            if mine(owner) and self._swept.get(owner) != state:
                scope.sweep(found.get(owner, {}))
                self._swept[owner] = state
        return found

    def _waiting(
        self, owner: Owner, found: _Found, kinds: Iterable[EntryKind] = frozenset(EntryKind)
    ) -> Iterable[Source]:
        """The sources of these kinds that have no entry."""
        scope = self._scopes.get(owner)
        for place, one in found.get(owner, {}).items():
            if place.kind in kinds and (scope is None or place not in scope.by_place):
                yield one.source()

    def _work(self, scope: ScopeIndex, found: _Found, space: Space | None, limit: int) -> IndexWork:
        left = [] if space is None else scope.unembedded(space)
        now = left[: max(limit, 0)]
        texts = found.get(scope.owner, {})
        return IndexWork(
            tenant=scope.owner.tenant,
            user=scope.owner.user,
            agent=scope.owner.agent,
            ref=scope.ref,
            attempt=scope.attempt,
            sources=tuple(sorted(self._waiting(scope.owner, found), key=_age)[: max(limit, 0)]),
            unembedded=tuple(Unembedded(no=no, text=_passage(scope.by_no[no], texts)) for no in now),
            embedded_to=left[len(now)] if len(left) > len(now) else scope.next_no,
        )

    def _held(self, work: IndexWork) -> ScopeIndex | None:
        """The scope, if the claim on it still holds."""
        mine = (scope for scope in self._scopes.values() if (scope.owner.tenant, scope.ref) == (work.tenant, work.ref))
        scope = next(mine, None)
        return None if scope is None or scope.claimed_until is None or scope.attempt != work.attempt else scope

    def _numbers(self, criteria: SearchFilter) -> dict[str, int]:
        """The numbers of the conversations that the filter names, by name; they are those of the scope's own agent."""
        found = {name: self._conversations.get((criteria.scope, name)) for name in criteria.names}
        return {name: kept.head.ref for name, kept in found.items() if kept is not None}

    def _about(self, criteria: SearchFilter) -> tuple[int, ...] | None:
        """The numbers of the conversations about the filter's subject, ascending; None if it has none."""
        if criteria.subject is None:
            return None
        mine = [kept.head for name, kept in self._conversations.items() if Owner.of(name[0]).within(criteria)]
        return tuple(sorted(head.ref for head in mine if head.subject == criteria.subject))

    def _subject(self, owner: Owner, shelved: StoredDocument) -> str | None:
        """The subject of the conversation that a document was archived from, if there is one."""
        archived = shelved.document.archived
        if archived is None:
            return None
        kept = self._conversations.get((owner.scope, archived.conversation))
        return None if kept is None else kept.head.subject


def _claimed(scope: ScopeIndex, now: datetime) -> bool:
    return scope.claimed_until is not None and now < scope.claimed_until <= now + MAX_AHEAD


def _passage(entry: Entry, texts: Mapping[SourceKey, SearchableText]) -> str:
    return texts[entry.place].text[entry.start : entry.end]


def _candidate(scope: ScopeIndex, place: SourceKey, source: Source, space: Space | None) -> Candidate:
    vectors = {} if space is None else scope.vectors.get(space, {})
    entries = [(no, scope.by_no[no]) for no in scope.by_place[place]]
    return Candidate(
        scope=scope.ref,
        source=source if len(source.text) <= TEXT else replace(source, text=source.text[:TEXT]),
        passages=tuple(
            IndexedPassage(no=no, start=one.start, end=one.end, vector=vectors.get(no)) for no, one in entries
        ),
    )
