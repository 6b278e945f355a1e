"""A user's documents: what was archived, and what the user adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hitherto.aside import in_thread
from hitherto.core.documents import (
    Document,
    KeptDocument,
    NewDocument,
    Passage,
    checked_namespace,
    checked_text,
    checked_title,
    checked_type,
    fingerprint_of,
    heading_of,
    is_markdown,
    metadata_json,
    passages_in_parts,
    type_of,
    without_inner,
)
from hitherto.core.log.message import storable
from hitherto.core.scope import Scope
from hitherto.engine.arguments import checked_limit, checked_words
from hitherto.engine.purge import purge
from hitherto.engine.services import Services
from hitherto.errors import InvalidDocument

if TYPE_CHECKING:
    from hitherto.store.documents import DocumentStore

DocumentList = list[Document]


def own_namespace(user: str) -> str:
    """The default namespace of the documents that a user adds."""
    return f"documents:{user}"


class Documents:
    """The documents of a scope's user: those that the user added, and archived conversations of every agent (without
    `all_agents`, of the scope's agent alone).

    A document that is added can be found by `Memory.recall` at once by its words, and by its meaning once it is
    indexed.
    """

    def __init__(self, services: Services, scope: Scope, *, all_agents: bool = True) -> None:
        self._services = services
        self._scope = Scope.checked(scope)
        self._all_agents = all_agents

    async def add(
        self,
        text: str,
        *,
        title: str | None = None,
        doc_type: str = "document",
        metadata: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        markdown: bool | None = None,
    ) -> KeptDocument:
        """Add a document of the user. The same text in the same namespace is the same document: nothing is written
        then.

        The default `title` is the heading that the text begins with; the default `namespace` is `documents:` and the
        user. With `markdown` the text is cut into passages at its headings; by default, the text itself tells whether
        it has any. Raises InvalidDocument.
        """

        def made() -> tuple[NewDocument, bool]:
            checked = checked_text(text)
            marked = is_markdown(checked) if markdown is None else markdown
            # All of it is checked before the text is cut, which may take its time.
            document = NewDocument(
                namespace=own_namespace(self._scope.user) if namespace is None else checked_namespace(namespace),
                doc_type=checked_type(doc_type),
                title=checked_title(title) or (heading_of(checked) if marked else None),
                text=checked,
                metadata=metadata_json(metadata),
                fingerprint=fingerprint_of(checked),
                passages=(),
            )
            return document, marked

        document, marked = await in_thread(made)
        passages = await self._cut(text, markdown=marked)
        kept = await self._documents.keep(self._scope, replace(document, passages=passages))
        if kept.new:
            self._services.appended.set()
        return kept

    async def _cut(self, text: str, *, markdown: bool) -> tuple[Passage, ...]:
        """The passages of a text that may be very long. Each part of it has a thread's turn of its own: others get
        theirs in between, and a task that is cancelled waits for one part."""
        settings = self._services.settings
        parts = passages_in_parts(
            text,
            limit=settings.passage_tokens,
            overlap=settings.passage_overlap,
            count=self._services.canonical.count,
            markdown=markdown,
        )
        found = list[Passage]()
        while (part := await in_thread(next, parts, None)) is not None:
            found += part
        return await in_thread(without_inner, found)

    async def get(self, id: int) -> Document | None:
        """One document in full; None where there is none of that id."""
        await purge(self._services, self._scope.tenant)
        return await self._documents.document(self._scope, _number(id), all_agents=self._all_agents)

    async def remove(self, id: int) -> bool:
        """Delete a document, so that it is no longer found. Returns whether it existed."""
        return await self._documents.discard(self._scope, _number(id), all_agents=self._all_agents)

    async def list(
        self,
        *,
        doc_type: str | None = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> DocumentList:
        """The documents, the last stored first, with their texts cut to 1,000 characters; at most `limit` (1,000), and
        those stored before the one with the id `before`. Where their metadata is large, they are fewer, but at least
        one: the next page is that before the last one's id, until one is empty. `doc_type` is one type
        ("conversations" is "conversation"), or "all". `metadata`: only documents that have every entry of it, as an
        equal value or in a list. Archives of private conversations are not listed. Raises InvalidDocument, InvalidInput
        for an unusable `limit`."""
        await purge(self._services, self._scope.tenant)
        return await self._documents.documents(
            self._scope,
            all_agents=self._all_agents,
            namespace=None if namespace is None else storable(checked_words(namespace, "namespace") or ""),
            doc_type=type_of(doc_type),
            metadata=json.loads(metadata_json(metadata)),
            before=None if before is None else _number(before),
            limit=checked_limit(limit, minimum=0),
        )

    @property
    def _documents(self) -> DocumentStore:
        return self._services.store.documents


def _number(id: object) -> int:
    if not isinstance(id, int) or isinstance(id, bool):
        raise InvalidDocument(f"the document's id is {id!r}; give its number, as `add` and `list` do")
    return id if -(2**63) <= id < 2**63 else -1
