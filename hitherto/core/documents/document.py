"""Documents of the knowledge base and their passages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hitherto.core.log.message import JsonObject

CONVERSATION = "conversation"
"""The doc_type of an archived conversation; "conversations" matches it too."""

PREVIEW = 1_000
"""Characters of a document's text in a listing."""


def namespace_of(user: str) -> str:
    """The namespace of a user's archived conversations."""
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
    """A document to be stored. `metadata` is the JSON text of an object. `fingerprint` identifies its content: a user
    has at most one document of a fingerprint in a namespace. `said_at` is when its content was said; None: now."""

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
    """Where an archived document comes from: the digest with which it was made, and the messages `start` to `end`
    (inclusive) that it stands for."""

    conversation: str
    digest: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A stored document. `passages` is how many it has. `agent` is that of the conversation it came from, None for a
    document that the user added. `created_at` is when it was stored, `said_at` as in `NewDocument`."""

    id: int
    namespace: str
    doc_type: str
    title: str | None
    text: str
    metadata: JsonObject
    passages: int
    created_at: datetime
    said_at: datetime
    agent: str | None = None
    archived: ArchiveOrigin | None = None


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """The result of keeping a document: its id, and whether it is new. If not, the same content was there before, and
    nothing was written."""

    id: int
    new: bool
