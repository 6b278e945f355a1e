"""Documents in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from hitherto.core.admission import has
from hitherto.core.digest import Digest, Ranges, Status
from hitherto.core.document import Archived, Document, NewDocument, Passage
from hitherto.core.scope import Scope
from hitherto.ports.library import PREVIEW, Kept
from hitherto.ports.store import Changes
from hitherto.stores.inmemory_claims import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """A document, whose it is, and its passages."""

    tenant: str
    user: str
    fingerprint: str
    document: Document
    passages: tuple[Passage, ...]

    def within(self, scope: Scope, *, every_agent: bool) -> bool:
        """Whether it is inside the walls of the scope."""
        agents = (None, self.document.agent) if every_agent else (None, scope.agent)
        return (self.tenant, self.user) == (scope.tenant, scope.user) and self.document.agent in agents

    def is_of(self, name: Name) -> bool:
        """Whether it was archived from that conversation."""
        archived, scope = self.document.archived, name[0]
        owner = (self.tenant, self.user, self.document.agent)
        return (
            archived is not None
            and archived.conversation == name[1]
            and owner == (scope.tenant, scope.user, scope.agent)
        )


class InMemoryLibrary:
    """`Library` in this process's memory: `shelved` has all documents by their ids, ascending."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._ids = count(1)
        self.shelved: dict[int, Shelved] = {}

    async def keep(self, scope: Scope, document: NewDocument) -> Kept:
        for number, there in self.shelved.items():
            own = there.document.agent is None and there.within(scope, every_agent=False)
            content = (there.document.namespace, there.fingerprint)
            if own and content == (document.namespace, document.fingerprint):
                return Kept(number, new=False)
        return Kept(self._shelve(scope, document), new=True)

    async def documents(
        self,
        scope: Scope,
        *,
        every_agent: bool = False,
        namespace: str | None = None,
        doc_type: str | None = None,
        metadata: Mapping[str, object] | None = None,
        limit: int = 100,
    ) -> list[Document]:
        found = [
            one.document
            for one in reversed(self.shelved.values())
            if one.within(scope, every_agent=every_agent)
            and namespace in (None, one.document.namespace)
            and doc_type in (None, one.document.doc_type)
            and has(json.loads(one.document.metadata), metadata or {})
        ]
        return [replace(document, text=document.text[:PREVIEW]) for document in found[: max(limit, 0)]]

    async def document(self, scope: Scope, id: int, *, every_agent: bool = False) -> Document | None:
        found = self._found(scope, id, every_agent=every_agent)
        return None if found is None else found.document

    async def passages(self, scope: Scope, id: int, *, every_agent: bool = False) -> tuple[Passage, ...]:
        found = self._found(scope, id, every_agent=every_agent)
        return () if found is None else found.passages

    async def discard(self, scope: Scope, id: int, *, every_agent: bool = False) -> bool:
        if self._found(scope, id, every_agent=every_agent) is None:
            return False
        del self.shelved[id]
        return True

    # What the store tells it of.

    def follow(self, name: Name, before: Iterable[Digest], changes: Changes, view_start: int) -> None:
        """Do to the conversation's documents what `changes` ask for; `before` are its digests as they were, and
        `view_start` where its view began."""
        digests = [*changes.supersede, *(one.digest for one in changes.rewritten if one.superseded)]
        cleared = changes.head.view_start - 1 if changes.head.view_start > view_start else -1
        self.remove(name, (*changes.erase, *((seq, seq) for seq in changes.retract), (0, cleared)), digests)
        rows = {row.id: row for row in before}
        for outcome in changes.outcomes:
            row = rows.get(outcome.digest)
            completed = outcome.error is None and not outcome.superseded
            if outcome.archive is not None and completed and row is not None and row.status is Status.PROCESSING:
                base = None if row.base is None else rows.get(row.base)
                start = row.start if base is None else max(row.start, base.end + 1)
                origin = Archived(conversation=name[1], digest=row.id, start=start, end=row.end)
                self._shelve(name[0], outcome.archive, origin)

    def remove(self, name: Name, ranges: Ranges, digests: Iterable[int] = ()) -> None:
        """The conversation's documents go that stand for any message in `ranges`, or belong to one of `digests`."""
        gone = set(digests)
        for number, one in list(self.shelved.items()):
            archived = one.document.archived
            if archived is None or not one.is_of(name):
                continue
            touched = any(first <= archived.end and archived.start <= last for first, last in ranges)
            if touched or archived.digest in gone:
                del self.shelved[number]

    def _found(self, scope: Scope, id: int, *, every_agent: bool) -> Shelved | None:
        found = self.shelved.get(id)
        return found if found is not None and found.within(scope, every_agent=every_agent) else None

    def _shelve(self, scope: Scope, new: NewDocument, archived: Archived | None = None) -> int:
        number, now = next(self._ids), self._clock()
        document = Document(
            id=number,
            namespace=new.namespace,
            doc_type=new.doc_type,
            title=new.title,
            text=new.text,
            metadata=new.metadata,
            passages=len(new.passages),
            created_at=now,
            said_at=new.said_at or now,
            agent=None if archived is None else scope.agent,
            archived=archived,
        )
        self.shelved[number] = Shelved(
            tenant=scope.tenant,
            user=scope.user,
            fingerprint=new.fingerprint,
            document=document,
            passages=new.passages,
        )
        return number
