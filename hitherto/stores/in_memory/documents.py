"""Documents in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from hitherto.core.digests.digest import Digest, Status
from hitherto.core.documents.checks import has
from hitherto.core.documents.document import ArchiveOrigin, Document, NewDocument, Passage
from hitherto.core.export.records import DocumentRecord
from hitherto.core.log.ranges import Ranges
from hitherto.core.scope import Scope
from hitherto.ports.documents import PREVIEW, KeptDocument
from hitherto.ports.log import Changes
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.unexpired import Unexpired


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document with its owner, its fingerprint and its passages."""

    tenant: str
    user: str
    fingerprint: str
    document: Document
    passages: tuple[Passage, ...]

    def within(self, scope: Scope, *, all_agents: bool) -> bool:
        """Whether it belongs to the scope, or, with `all_agents`, to any agent of the scope's user."""
        agents = (None, self.document.agent) if all_agents else (None, scope.agent)
        return (self.tenant, self.user) == (scope.tenant, scope.user) and self.document.agent in agents

    @property
    def origin(self) -> Name | None:
        """The conversation that it was archived from, if it was."""
        archived, agent = self.document.archived, self.document.agent
        if archived is None or agent is None:
            return None
        return Scope(tenant=self.tenant, user=self.user, agent=agent), archived.conversation


class InMemoryDocuments:
    """`DocumentStore` in this process's memory. `unexpired` decides which archived documents may be shown."""

    def __init__(self, unexpired: Unexpired, clock: Callable[[], datetime]) -> None:
        self._unexpired = unexpired
        self._clock = clock
        self._ids = count(1)
        self._shelved: dict[int, StoredDocument] = {}

    def shown(self) -> Iterator[tuple[int, StoredDocument]]:
        """Every document that may be shown, by its id, ascending."""
        for number, one in self._shelved.items():
            origin = one.origin
            if origin is None or self._unexpired.shows(origin):
                yield number, one

    def all(self) -> dict[int, StoredDocument]:
        """Every document by its id, ascending."""
        return dict(self._shelved)

    def restore(self, tenant: str, record: DocumentRecord) -> bool:
        """Write a document as it was, under an id of its own. Returns whether it is new; if not, its content was there,
        or its digest has one."""
        document = record.document
        made = StoredDocument(
            tenant=tenant, user=record.user, fingerprint=record.fingerprint, document=document, passages=record.passages
        )
        for one in self._shelved.values():
            owner = (one.tenant, one.user, one.document.agent, one.document.namespace, one.fingerprint)
            if owner == (tenant, record.user, document.agent, document.namespace, record.fingerprint):
                return False
        number = next(self._ids)
        self._shelved[number] = replace(made, document=replace(document, id=number))
        return True

    def owners(self) -> list[tuple[str, str, str | None]]:
        """Tenant, user and agent of each document."""
        return [(one.tenant, one.user, one.document.agent) for one in self._shelved.values()]

    async def keep(self, scope: Scope, document: NewDocument) -> KeptDocument:
        for number, there in self._shelved.items():
            own = there.document.agent is None and there.within(scope, all_agents=False)
            content = (there.document.namespace, there.fingerprint)
            if own and content == (document.namespace, document.fingerprint):
                return KeptDocument(number, new=False)
        return KeptDocument(self._insert(scope, document), new=True)

    async def documents(
        self,
        scope: Scope,
        *,
        all_agents: bool = False,
        namespace: str | None = None,
        doc_type: str | None = None,
        metadata: Mapping[str, object] | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Document]:
        found = [
            one.document
            for _, one in reversed([*self.shown()])
            if one.within(scope, all_agents=all_agents)
            and namespace in (None, one.document.namespace)
            and doc_type in (None, one.document.doc_type)
            and has(json.loads(one.document.metadata), metadata or {})
            and (before is None or one.document.id < before)
        ]
        return [replace(document, text=document.text[:PREVIEW]) for document in found[: max(limit, 0)]]

    async def document(self, scope: Scope, id: int, *, all_agents: bool = False) -> Document | None:
        found = self._found(scope, id, all_agents=all_agents)
        return None if found is None else found.document

    async def passages(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[Passage, ...]:
        found = self._found(scope, id, all_agents=all_agents)
        return () if found is None else found.passages

    async def discard(self, scope: Scope, id: int, *, all_agents: bool = False) -> bool:
        if self._found(scope, id, all_agents=all_agents) is None:
            return False
        del self._shelved[id]
        return True

    # What the store calls.

    def follow(self, name: Name, before: Iterable[Digest], changes: Changes, view_start: int) -> None:
        """Apply `changes` to the conversation's archived documents. `before` are its digests before the changes, and
        `view_start` is where its view began then."""
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
                origin = ArchiveOrigin(conversation=name[1], digest=row.id, start=start, end=row.end)
                self._insert(name[0], outcome.archive, origin)

    def forget(self, tenant: str, user: str | None, before: datetime) -> None:
        """Remove the documents of a tenant, or of a user of it, that were there at `before`."""
        gone = [
            number
            for number, one in self._shelved.items()
            if one.tenant == tenant and user in (None, one.user) and one.document.created_at <= before
        ]
        for number in gone:
            del self._shelved[number]

    def remove(self, name: Name, ranges: Ranges, digests: Iterable[int] = ()) -> None:
        """Remove the conversation's documents that stand for any message in `ranges`, or belong to one of `digests`."""
        gone = set(digests)
        for number, one in list(self._shelved.items()):
            archived = one.document.archived
            if archived is None or one.origin != name:
                continue
            touched = any(first <= archived.end and archived.start <= last for first, last in ranges)
            if touched or archived.digest in gone:
                del self._shelved[number]

    def _found(self, scope: Scope, id: int, *, all_agents: bool) -> StoredDocument | None:
        found = dict(self.shown()).get(id)
        return found if found is not None and found.within(scope, all_agents=all_agents) else None

    def _insert(self, scope: Scope, new: NewDocument, archived: ArchiveOrigin | None = None) -> int:
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
        self._shelved[number] = StoredDocument(
            tenant=scope.tenant,
            user=scope.user,
            fingerprint=new.fingerprint,
            document=document,
            passages=new.passages,
        )
        return number
