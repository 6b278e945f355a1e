"""Documents on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from psycopg import AsyncConnection

from hitherto.core.document import Archived, Document, NewDocument, Passage
from hitherto.core.scope import Scope
from hitherto.ports.library import PREVIEW, Kept
from hitherto.stores.postgres.index import Got
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.sql import SQL


class PostgresLibrary:
    """`Library` on the connections of a store."""

    def __init__(self, got: Got) -> None:
        self._got = got

    async def keep(self, scope: Scope, document: NewDocument) -> Kept:
        values = {"tenant": scope.tenant, "user": scope.user, **document_values(document)}

        async def put(connection: AsyncConnection[Any]) -> Kept:
            while True:
                made = await (await connection.execute(SQL["keep_document"], values)).fetchone()
                if made is not None:
                    return Kept(made[0], new=True)
                there = await (await connection.execute(SQL["kept_document"], values)).fetchone()
                if there is not None:  # else it was discarded in between
                    return Kept(there[0], new=False)

        async with self._got(put) as kept:
            return kept

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
        values = {
            **_walls(scope, every_agent=every_agent),
            "namespace": namespace,
            "doc_type": doc_type,
            "metadata": json.dumps(dict(metadata or {})),
            "limit": max(limit, 0),
            "text": PREVIEW,
        }
        return [_document_from(row) for row in await self._all("documents", values)]

    async def document(self, scope: Scope, id: int, *, every_agent: bool = False) -> Document | None:
        found = await self._all("document", {**_walls(scope, every_agent=every_agent), "id": id})
        return _document_from(found[0]) if found else None

    async def passages(self, scope: Scope, id: int, *, every_agent: bool = False) -> tuple[Passage, ...]:
        found = await self._all("passages", {**_walls(scope, every_agent=every_agent), "id": id})
        return tuple(Passage(text, start, tokens) for text, start, tokens in found)

    async def discard(self, scope: Scope, id: int, *, every_agent: bool = False) -> bool:
        values = {**_walls(scope, every_agent=every_agent), "id": id}

        async def discard(connection: AsyncConnection[Any]) -> list[Any]:
            # One transaction. What goes is looked for once its index is held: see `unindexing`.
            async with connection.pipeline():
                await connection.execute(SQL["hold_document"], values)
                await connection.execute(SQL["index_hold_scopes"], values)
                gone = await connection.execute(SQL["discard_document"], values)
            return await gone.fetchall()

        async with self._got(discard) as found:
            return bool(found)

    async def _all(self, name: str, values: dict[str, Any]) -> list[Row]:
        async def fetch(connection: AsyncConnection[Any]) -> list[Any]:
            return await (await connection.execute(SQL[name], values)).fetchall()

        async with self._got(fetch) as found:
            return found


def document_values(document: NewDocument) -> dict[str, Any]:
    """What `keep_document` and `archive_document` bind of the document and its passages."""
    return {
        "namespace": document.namespace,
        "doc_type": document.doc_type,
        "title": document.title,
        "content": document.text,
        "metadata": document.metadata,
        "fingerprint": document.fingerprint,
        "said_at": document.said_at,
        "texts": [passage.text for passage in document.passages],
        "starts": [passage.start for passage in document.passages],
        "tokens": [passage.tokens for passage in document.passages],
    }


def _walls(scope: Scope, *, every_agent: bool) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "every_agent": every_agent}


def _document_from(row: Row) -> Document:
    (number, namespace, doc_type, title, text, metadata, passages, created_at, said_at) = row[:9]
    (agent, conversation, digest, start, end) = row[9:14]
    archived = None
    if digest is not None:
        archived = Archived(conversation=conversation, digest=digest, start=start, end=end)
    return Document(
        id=number,
        namespace=namespace,
        doc_type=doc_type,
        title=title,
        text=text,
        metadata=metadata,
        passages=passages,
        created_at=created_at,
        said_at=said_at,
        agent=agent or None,
        archived=archived,
    )
