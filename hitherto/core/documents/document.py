"""Documents of the knowledge base and their passages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

CONVERSATION = "conversation"
"""The doc_type of an archived conversation; "conversations" matches it too."""


def namespace_of(user: str) -> str:
    """Where a user's archived conversations are kept."""
    return f"conversations:{user}"


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that is found by itself. `start` is where it begins in the document's text (in
    characters), `tokens` its canonical tokens (o200k_base)."""

    text: str
    start: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to be kept. `metadata` is JSON text of an object. `fingerprint` tells its content: of documents with
    the same one, a user has one in a namespace. `said_at`: when what it tells was said, None for now."""

    namespace: str
    doc_type: str
    title: str | None
    text: str
    metadata: str
    fingerprint: str
    passages: tuple[Passage, ...]
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOrigin:
    """Where an archived document comes from: the digest that set it off and the messages it stands for."""

    conversation: str
    digest: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it is kept. `agent` is that of the conversation it came from, None for one that the user added.
    `created_at` is when it was kept, `said_at` as in `NewDocument`."""

    id: int
    namespace: str
    doc_type: str
    title: str | None
    text: str
    metadata: str
    passages: int
    created_at: datetime
    said_at: datetime
    agent: str | None = None
    archived: ArchiveOrigin | None = None
