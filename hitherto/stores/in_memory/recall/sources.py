"""The sources of the search index in memory: the messages, digests, passages and facts that can be found now."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from hitherto.core.digests.digest import Digest
from hitherto.core.documents.document import Document, Passage
from hitherto.core.facts.fact import Fact
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Kind, Logged
from hitherto.core.log.speaker import author_in
from hitherto.core.recall.filter import EntryKind
from hitherto.ports.recall import OF_NO_AGENT, Source
from hitherto.stores.in_memory.claims import Name
from hitherto.stores.in_memory.conversation import StoredConversation
from hitherto.stores.in_memory.documents import StoredDocument
from hitherto.stores.in_memory.fact_rows import FactRow

_KINDS = (Kind.TEXT, Kind.TOOL_CALL, Kind.TOOL_RESULT)


class SourceKey(NamedTuple):
    """Identifies a source: its kind, origin and place, as in `Source`."""

    kind: EntryKind
    origin: int
    place: int


@dataclass(frozen=True, slots=True)
class SearchableText:
    """Something that can be found: its text, and a function that makes the whole `Source`."""

    text: str
    source: Callable[[], Source]


def of_conversation(name: Name, kept: StoredConversation, now: datetime) -> Iterator[tuple[SourceKey, SearchableText]]:
    """The messages of a conversation that have text and that views can show at the time `now`; then its digests, unless
    it has expired messages that are not erased yet."""
    ref = kept.head.ref
    for seq in kept.live[bisect_left(kept.live, kept.head.view_start) :]:
        logged = kept.log[seq]
        message = logged.message
        if message.kind in _KINDS and not logged.expired(now) and message.text.strip():
            yield (
                SourceKey(EntryKind.MESSAGE, ref, seq),
                SearchableText(message.text, partial(_message, name, kept, logged)),
            )
    for digest in () if kept.expiring(now) else _digests(kept):
        yield (
            SourceKey(EntryKind.DIGEST, ref, digest.id),
            SearchableText(digest.text, partial(_digest, name, kept, digest)),
        )


def of_fact(row: FactRow) -> Iterator[tuple[SourceKey, SearchableText]]:
    """A fact, while it is current."""
    if row.current and row.fact.content.strip():
        yield SourceKey(EntryKind.FACT, row.fact.id, 0), SearchableText(row.fact.content, partial(_fact, row.fact))


def of_document(id: int, shelved: StoredDocument, subject: str | None) -> Iterator[tuple[SourceKey, SearchableText]]:
    """The passages of a document; `subject` is that of the conversation it was archived from."""
    for at, passage in enumerate(shelved.passages):
        source = partial(_passage, shelved.document, at, passage, subject)
        yield SourceKey(EntryKind.PASSAGE, id, at), SearchableText(passage.text, source)


def _digests(kept: StoredConversation) -> Iterator[Digest]:
    """The standing summary, and every chunk that views can show, if they have text."""
    standing = kept.standing()
    for digest in kept.digests:
        chunk = digest.action is DigestAction.CHUNK and digest.visible(kept.head.rev)
        shown = chunk and digest.end >= kept.head.view_start
        if (shown or digest is standing) and digest.text.strip():
            yield digest


def _message(name: Name, kept: StoredConversation, logged: Logged) -> Source:
    return Source(
        kind=EntryKind.MESSAGE,
        origin=kept.head.ref,
        place=logged.seq,
        text=logged.message.text,
        said_at=logged.said_at,
        conversation=name[1],
        start=logged.seq,
        end=logged.seq,
        role=logged.message.role.value,
        author=author_in(logged.message.role, logged.message.raw),
        agent=name[0].agent,
        subject=kept.head.subject,
    )


def _digest(name: Name, kept: StoredConversation, digest: Digest) -> Source:
    return Source(
        kind=EntryKind.DIGEST,
        origin=kept.head.ref,
        place=digest.id,
        text=digest.text,
        said_at=kept.log[digest.end].said_at,
        conversation=name[1],
        start=digest.start,
        end=digest.end,
        agent=name[0].agent,
        subject=kept.head.subject,
    )


def _fact(fact: Fact) -> Source:
    return Source(
        kind=EntryKind.FACT,
        origin=fact.id,
        place=0,
        text=fact.content,
        said_at=fact.extracted_at,
        agent=fact.agent,
        subject=fact.subject,
    )


def _passage(document: Document, at: int, passage: Passage, subject: str | None) -> Source:
    archived = document.archived
    return Source(
        kind=EntryKind.PASSAGE,
        origin=document.id,
        place=at,
        text=passage.text,
        said_at=document.said_at,
        conversation=None if archived is None else archived.conversation,
        start=None if archived is None else archived.start,
        end=None if archived is None else archived.end,
        agent=document.agent or OF_NO_AGENT,
        title=document.title,
        doc_type=document.doc_type,
        namespace=document.namespace,
        metadata=document.metadata,
        subject=subject,
    )
