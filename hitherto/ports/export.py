"""The port for exports: reading everything that is kept, as it is at one moment, and writing it back as it was."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from hitherto.core.export.records import (
    AgentRecord,
    CallRecord,
    DocumentRecord,
    EventRecord,
    ExportScope,
    FactRecord,
    KeptConversation,
    LatestRecord,
    RunRecord,
)
from hitherto.core.facts.fact import Subject
from hitherto.core.log.message import Logged
from hitherto.core.run import RunEvent
from hitherto.core.scope import Scope
from hitherto.ports.log import ConversationInfo


class ExportReader(Protocol):
    """What is kept, as it is at one moment: nothing that is written meanwhile is seen. All methods raise what `Store`
    says."""

    async def conversations(self, whose: ExportScope, *, after: int, limit: int) -> list[ConversationInfo]:
        """At most `limit` conversations, ascending by `ref`; those after the ref `after`. They have no titles."""
        ...

    async def conversation(self, scope: Scope, conversation: str) -> KeptConversation | None:
        """The conversation; None where there is none."""
        ...

    async def messages(self, scope: Scope, conversation: str, *, start: int, limit: int) -> list[Logged]:
        """At most `limit` of its messages from seq `start` on, ascending."""
        ...

    async def documents(self, whose: ExportScope, *, after: int, limit: int) -> list[DocumentRecord]:
        """At most `limit` documents that users have added, ascending by id; those after the id `after`. None of an
        agent's: they belong to no agent."""
        ...

    async def facts(self, whose: ExportScope, *, after: int, limit: int) -> list[FactRecord]:
        """At most `limit` facts, in any state, ascending by id; those after the id `after`."""
        ...

    async def calls(self, whose: ExportScope, *, after: UUID, limit: int) -> list[CallRecord]:
        """At most `limit` calls of the ledger, ascending by key; those after the key `after`."""
        ...

    async def runs(self, whose: ExportScope, *, after: UUID, limit: int) -> list[RunRecord]:
        """At most `limit` runs of conversations that are there, ascending by id; those after the id `after`."""
        ...

    async def events(self, tenant: str, run: UUID, *, after: int, limit: int) -> list[EventRecord]:
        """At most `limit` events of a run in their order, those after number `after`."""
        ...

    async def subjects(self, *, tenant: str) -> list[Subject]:
        """The subjects that were set, by id."""
        ...

    async def agents(self, *, tenant: str) -> list[AgentRecord]:
        """What is set for agents of the tenant, and for all of them."""
        ...


class ExportStore(Protocol):
    """Exports. All methods raise what `Store` says."""

    def snapshot(self) -> AbstractAsyncContextManager[ExportReader]:
        """Everything that is kept, as it is now. Nobody waits for whoever reads it."""
        ...

    async def restore(self, tenant: str, kept: KeptConversation, messages: AsyncIterable[Sequence[Logged]]) -> int:
        """Write a conversation as it was, with its messages (ascending, all of them), but for `latest`. Its digests get
        ids of this store's, and its search index is made in the background. It is there whole, or not at all; of its
        archived documents those whose content is not there yet, of which it returns the number. Raises Conflict if
        there is a conversation of that name."""
        ...

    async def restore_latest(self, tenant: str, latest: LatestRecord) -> None:
        """Set the digest that was chosen for a conversation's instructions; nothing where that is not there."""
        ...

    async def restore_document(self, tenant: str, record: DocumentRecord) -> bool:
        """Write a document that a user added. Returns whether it is new; if not, the same content was there."""
        ...

    async def restore_facts(self, tenant: str, records: Sequence[FactRecord]) -> list[tuple[int, bool]]:
        """Write facts, but for what has replaced them; returns the id of each in this store, and whether it is new. One
        that is there is not written again: of the same owner and subject, and extracted at the same time, perhaps
        edited or deleted since, or with the same content and current, as it is."""
        ...

    async def restore_calls(self, tenant: str, records: Sequence[CallRecord]) -> None:
        """Write calls into the ledger, those whose keys are not there. What they were made for is named as far as it is
        there."""
        ...

    async def restore_run(self, tenant: str, record: RunRecord, events: AsyncIterable[Sequence[RunEvent]]) -> bool:
        """Write a run as it was, with its events (ascending, all of them): whole, or not at all. Returns whether it is
        new; if not, a run of that id was there, and stays as it is. Reads all of `events` in either case. To one that
        goes on, nothing that quotes is added later: whether a message of it was erased is not known any more."""
        ...

    async def restore_replaced(self, tenant: str, replaced: Sequence[tuple[int, int]]) -> None:
        """Set which fact has replaced which, by their ids in this store."""
        ...
