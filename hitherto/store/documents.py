"""Documents of users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection, AsyncCursor

from hitherto.core.documents import PREVIEW, ArchiveOrigin, Document, KeptDocument, NewDocument, Passage
from hitherto.core.log.time_zone import in_utc, with_offset
from hitherto.core.page import PAGE_ENTRY, PAGE_SIZE
from hitherto.core.scope import Scope
from hitherto.store import rows
from hitherto.store.connections.part import Part
from hitherto.store.sql import SQL

_OWN = {"agent": "", "ref": None, "digest": None, "start": None, "end": None, "created_at": None}
"""What `keep_document` binds for a document of a user's own, which is kept now."""


class DocumentStore(Part):
    """Documents of users. All methods raise what `Store` says.

    A document belongs to its user; those that were archived from conversations name the agent too. Another tenant's or
    user's documents are never found, counted or named; another agent's are found only with `all_agents`. Archived
    documents are written with their digest (`DigestOutcome.archive`). They are removed with any message that they stand
    for, when it is erased, retracted or cleared, and with the whole conversation. As long as messages of their
    conversation wait to be erased, no method shows them.
    """

    async def keep(self, scope: Scope, document: NewDocument) -> KeptDocument:
        """Keep a document of the user's own (of no agent)."""
        values = {"tenant": scope.tenant, "user": scope.user, **document_values(document), **_OWN}

        async def put(connection: AsyncConnection[Any]) -> KeptDocument:
            while True:
                async with connection.pipeline():  # one transaction
                    kept = await keep(connection, values)
                made = await kept.fetchone()
                if made is not None:
                    return KeptDocument(made[0], new=True)
                there = await (await connection.execute(SQL["kept_document"], values)).fetchone()
                if there is not None:  # else it was discarded in between
                    return KeptDocument(there[0], new=False)

        async with self._with_connection(put, once=True) as kept:
            return kept

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
        """A page of the documents, the last stored first, their texts cut after `PREVIEW` characters. `metadata`: only
        documents that have every entry of it, as an equal value or in a list; `before`: only those before that id."""
        values = {
            **_scope_filter(scope, all_agents=all_agents),
            "namespace": namespace,
            "doc_type": doc_type,
            "metadata": json.dumps(dict(metadata or {})),
            "before": before,
            "limit": min(max(limit, 0), PAGE_SIZE // PAGE_ENTRY),
            "text": PREVIEW,
            **rows.PAGE,
        }
        return [_document_from(row) for row in await self._all(SQL["documents"], values, of=rows.named)]

    async def document(self, scope: Scope, id: int, *, all_agents: bool = False) -> Document | None:
        """One document; None where there is none of that id in the scope."""
        found = await self._all(
            SQL["document"], {**_scope_filter(scope, all_agents=all_agents), "id": id}, of=rows.named
        )
        return _document_from(found[0]) if found else None

    async def passages(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[Passage, ...]:
        """A document's passages in their order; empty where there is no document of that id in the scope."""
        found = await self._all(SQL["passages"], {**_scope_filter(scope, all_agents=all_agents), "id": id})
        return tuple(Passage(text, start, tokens) for text, start, tokens in found)

    async def discard(self, scope: Scope, id: int, *, all_agents: bool = False) -> bool:
        """Delete a document, its passages and their entries in the index. Returns whether it existed."""
        values = {**_scope_filter(scope, all_agents=all_agents), "id": id}

        async def discard(connection: AsyncConnection[Any]) -> list[Any]:
            # One transaction. What is deleted is looked up once the index is locked: see `removal.hold`.
            async with connection.pipeline():
                await connection.execute(SQL["hold_document"], values)
                await connection.execute(SQL["index_hold_scopes"], values)
                gone = await connection.execute(SQL["discard_document"], values)
            return await gone.fetchall()

        async with self._with_connection(discard, once=True) as found:
            return bool(found)


async def keep(connection: AsyncConnection[Any], values: dict[str, Any]) -> AsyncCursor[Any]:
    """Insert a document with its passages, in the caller's transaction. The cursor has its id; no row if its content is
    there."""
    kept = await connection.execute(SQL["keep_document"], values)
    await connection.execute(SQL["keep_passages"], values)
    return kept


def document_values(document: NewDocument) -> dict[str, Any]:
    """What `keep_document` and `archive_document` bind of the document and its passages."""
    return {
        "namespace": document.namespace,
        "doc_type": document.doc_type,
        "title": document.title,
        "content": document.text,
        "metadata": document.metadata,
        "fingerprint": document.fingerprint,
        "said_at": in_utc(document.said_at),
        "texts": [passage.text for passage in document.passages],
        "starts": [passage.start for passage in document.passages],
        "tokens": [passage.tokens for passage in document.passages],
    }


def _scope_filter(scope: Scope, *, all_agents: bool) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "all_agents": all_agents}


def _document_from(row: Any) -> Document:
    archived = None if row.digest is None else rows.value_from(ArchiveOrigin, row)
    said_at = row.said_at if row.said_offset is None else with_offset(row.said_at, row.said_offset)
    return rows.value_from(
        Document, row, agent=row.agent or None, archived=archived, said_at=said_at, metadata=json.loads(row.metadata)
    )
