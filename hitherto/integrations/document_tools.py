"""Tools with which an agent searches its user's knowledge base, for any framework: two async functions, and their JSON
schemas in the format of OpenAI's function tools."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

from hitherto.core.documents import ALL, Document
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.engine.recall.recall import Hit
from hitherto.errors import InvalidInput

MOST = 50
"""Maximum entries that one call returns."""

_PREVIEW = 300
"""Characters of a document in a listing."""

_TYPE = "{what}: 'conversations' for archived conversations, any other type that documents have, or 'all'."
LIMIT: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST,
    "description": f"How many to give, at most {MOST}.",
}

SEARCH = (
    "Search the user's knowledge base: past conversations that were archived, and documents that the user added. Gives "
    "the passages that answer the query best, each with a score from 0 to 1 and where it is from."
)
LIST = "List the documents in the user's knowledge base, the newest first: archived conversations, and the user's own."

SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "search_knowledge_base",
            "description": SEARCH,
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for, in words or as a question."},
                    "search_type": {
                        "type": "string",
                        "default": ALL,
                        "description": _TYPE.format(what="Among what to search"),
                    },
                    "limit": {**LIMIT, "default": 5},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "list_documents",
            "description": LIST,
            "parameters": {
                "type": "object",
                "properties": {
                    "doc_type": {
                        "type": "string",
                        "default": ALL,
                        "description": _TYPE.format(what="Which documents to list"),
                    },
                    "limit": {**LIMIT, "default": 10},
                },
                "required": [],
                "additionalProperties": False,
            },
        },
    },
)


class DocumentTools:
    """The two tools on a memory, for the user of `scope`. The knowledge base belongs to the user: it has the archived
    conversations of every agent. Results can be serialized as JSON."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._memory = memory
        self._scope = Scope.checked(scope)

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """Both tools in OpenAI's format; a copy that the caller may change."""
        return copy.deepcopy(list(SCHEMAS))

    async def search_knowledge_base(self, query: str, search_type: str = ALL, limit: int = 5) -> list[dict[str, Any]]:
        """The passages that answer `query` best, the best first, each with its `score` from 0 to 1. Raises
        InvalidInput."""
        found = await self._memory.recall(
            asked(query),
            scope=self._scope,
            limit=limited(limit),
            kinds={"passage"},
            all_agents=True,
            doc_type=search_type,
        )
        return [_passage(hit) for hit in found.hits]

    async def list_documents(self, doc_type: str = ALL, limit: int = 10) -> list[dict[str, Any]]:
        """The user's documents, newest first, each with its first 300 characters. Raises InvalidInput."""
        documents = self._memory.documents(self._scope)
        return [_listed(one) for one in await documents.list(doc_type=doc_type, limit=limited(limit))]


def document_tools(memory: Memory, scope: Scope) -> DocumentTools:
    """The tools of a user's knowledge base. Raises InvalidScope."""
    return DocumentTools(memory, scope)


def _passage(hit: Hit) -> dict[str, Any]:
    return {
        "document_id": hit.document,
        "title": hit.title,
        "doc_type": hit.doc_type,
        "score": round(hit.score, 4),
        "content": hit.text,
        "said_at": iso(hit.said_at),
        "metadata": hit.metadata,
    }


def _listed(document: Document) -> dict[str, Any]:
    text = document.text
    return {
        "document_id": document.id,
        "title": document.title,
        "doc_type": document.doc_type,
        "namespace": document.namespace,
        "content": text if len(text) <= _PREVIEW else text[:_PREVIEW].rstrip() + "…",
        "created_at": iso(document.created_at),
        "said_at": iso(document.said_at),
        "metadata": document.metadata,
    }


def asked(query: object, name: str = "query") -> str:
    """A model's query. Raises InvalidInput for anything but a text."""
    if not isinstance(query, str):
        raise InvalidInput(f"{name} is {query!r}; give what to look for as text")
    return query


def limited(limit: object) -> int:
    """A model's number, within bounds. Raises InvalidInput for anything but a whole number."""
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise InvalidInput(f"limit is {limit!r}; give a whole number from 1 to {MOST}")
    return min(max(limit, 1), MOST)


def iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
