"""The port to the documents of a store. Its docstrings are the contract; `hitherto.testing` checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hitherto.core.documents.document import Document, NewDocument, Passage
from hitherto.core.scope import Scope

PREVIEW = 1_000
"""Characters of a document's text in a listing."""


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """The result of keeping a document: its id, and whether it is new. If not, the same content was there before, and
    nothing was written."""

    id: int
    new: bool


class DocumentStore(Protocol):
    """Documents of users. All methods raise what `Store` says.

    A document belongs to its user; those that were archived from conversations name the agent too. Another tenant's or
    user's documents are never found, counted or named; another agent's are found only with `all_agents`. Archived
    documents are written with their digest (`DigestOutcome.archive`). They are removed with any message that they stand
    for, when it is erased, retracted or cleared, and with the whole conversation. As long as messages of their
    conversation wait to be erased, no method shows them.
    """

    async def keep(self, scope: Scope, document: NewDocument) -> KeptDocument:
        """Keep a document of the user's own (of no agent)."""
        ...

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
        """The documents, the last stored first, their texts cut after `PREVIEW` characters. `metadata`: only documents
        that have every entry of it, as an equal value or in a list; `before`: only those before that id."""
        ...

    async def document(self, scope: Scope, id: int, *, all_agents: bool = False) -> Document | None:
        """One document; None where there is none of that id in the scope."""
        ...

    async def passages(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[Passage, ...]:
        """A document's passages in their order; empty where there is no document of that id in the scope."""
        ...

    async def discard(self, scope: Scope, id: int, *, all_agents: bool = False) -> bool:
        """Delete a document, its passages and their entries in the index. Returns whether it existed."""
        ...
