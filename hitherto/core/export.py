"""Exports: everything that is kept of a scope, a user or a tenant, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, cast
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import Digest
from hitherto.core.documents import Document, Passage
from hitherto.core.facts.fact import Fact, FactEvent, Subject
from hitherto.core.ledger import FailureCause, Purpose
from hitherto.core.log.head import HeadWithCalls, LatestDigest
from hitherto.core.log.message import Logged, Sums
from hitherto.core.run import Run, RunEvent
from hitherto.errors import InvalidExport

VERSION = 1
"""The version of the format. A reader refuses a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """What is exported: a tenant, a user of it, or that user with one agent."""

    tenant: str
    user: str | None
    agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHeader:
    """The first record: whose export it is, and when it was made. Without a `user` it is a whole tenant's; without an
    `agent`, that of a user with all agents."""

    version: int
    tenant: str
    user: str | None
    agent: str | None
    exported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """What is set for an agent of the tenant (None: for all): see `Memory.configure_agent`. `policy` is JSON text."""

    agent: str | None
    policy: str | None
    cross_session: CrossSession
    ttl: timedelta | None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """What is set for a user: see `Memory.configure_user`."""

    user: str
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRecord:
    """A conversation has its first `messages` in common with `source` (None: with none that is there), as one of both
    was forked. `rev` was its first revision."""

    source: str | None
    messages: int
    rev: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRecord:
    """A conversation. Its digests, archived documents, receipts and messages follow.

    `head` is its state; whatever in it follows from other records is left out. Ids of digests, here and in the records
    that follow, number the conversation's own digests, from 1. `title` is None unless it was set. `forgettings` are
    turns in which its agent was asked to forget something, with the message that opens each, and when. `branches` are
    messages that do not follow the one with the seq before theirs, each with the seq behind that which they follow (0:
    none); `absences` are the first and the last of messages that were taken back at a revision and came back at
    another. `fork`: it begins as another one does."""

    user: str
    agent: str
    conversation: str
    title: str | None
    metadata: dict[str, Any]
    ttl: timedelta | None
    created_at: datetime
    updated_at: datetime
    head: HeadWithCalls
    forgettings: tuple[tuple[int, int, datetime], ...] = ()
    branches: tuple[tuple[int, int], ...] = ()
    absences: tuple[tuple[int, int, int, int], ...] = ()
    fork: ForkRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRecord:
    """What an idempotency key answered: see `core.log.append.key_hash` (here in hexadecimal) and `Receipt`."""

    key_hash: str
    start: int
    end: int
    rev: int
    fingerprint: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """A document of a user, or one that was archived with a digest of the conversation before it, with its passages.
    See `NewDocument` for the fingerprint."""

    user: str
    document: Document
    fingerprint: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """A message that says a fact; `retracted`: it did, but it was taken back. `mention`: it does not, but may mention a
    fact that is to be forgotten."""

    conversation: str
    seq: int
    said_at: datetime
    retracted: bool
    mention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRecord:
    """A fact with its sources (`sources`, in place of its `evidence`) and its history. Ids are those of the export."""

    fact: Fact
    fingerprint: str
    tokens: int
    sources: tuple[SourceRecord, ...]
    events: tuple[FactEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """A model call in the ledger: see `ModelCall`. `digest` is the number of a digest of its `conversation`. Names that
    were erased are empty."""

    key: UUID
    user: str
    agent: str
    conversation: str | None
    digest: int | None
    purpose: Purpose
    model: str
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    latency_ms: int
    cost: float | None
    cause: FailureCause | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run of a conversation that is exported. Its events follow."""

    user: str
    agent: str
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """An event of the run `run`, which comes before it."""

    run: UUID
    event: RunEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRecord:
    """The digest that was chosen for a conversation's instructions: number `digest` of another conversation, `of`."""

    user: str
    agent: str
    conversation: str
    of: str
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConversation:
    """A conversation without its messages. No digest is claimed. `sources` are conversations that a fork may be one of,
    each with how many messages they may have in common."""

    record: ConversationRecord
    digests: tuple[Digest, ...] = ()
    archived: tuple[DocumentRecord, ...] = ()
    receipts: tuple[ReceiptRecord, ...] = ()
    sources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnd:
    """The last record; an export without it was cut off. `records` counts those before it."""

    records: int


Record = (
    ExportHeader
    | AgentRecord
    | UserRecord
    | Subject
    | ConversationRecord
    | Digest
    | ReceiptRecord
    | Logged
    | DocumentRecord
    | FactRecord
    | CallRecord
    | RunRecord
    | EventRecord
    | LatestRecord
    | ExportEnd
)

KINDS: dict[str, type[Record]] = {
    "export": ExportHeader,
    "agent": AgentRecord,
    "user": UserRecord,
    "subject": Subject,
    "conversation": ConversationRecord,
    "digest": Digest,
    "receipt": ReceiptRecord,
    "message": Logged,
    "document": DocumentRecord,
    "fact": FactRecord,
    "call": CallRecord,
    "run": RunRecord,
    "event": EventRecord,
    "latest": LatestRecord,
    "end": ExportEnd,
}
"""The records by their names."""

_NAMES = {kind: name for name, kind in KINDS.items()}


@cache
def _adapter(kind: type[Record]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def line_of(record: Record) -> bytes:
    """The record as a line, in UTF-8, with its end. Fields that have their default value are left out."""
    adapter = _adapter(type(record))
    bare = isinstance(record, Logged) and record.message.raw_metadata == "{}"
    exclude: Any = {"message": {"metadata"}} if bare else None
    try:
        value = adapter.dump_json(record, exclude_defaults=True, exclude=exclude)
    except PydanticSerializationError:  # metadata with half a character, which UTF-8 does not have
        value = json.dumps(adapter.dump_python(record, mode="json", exclude_defaults=True)).encode()
    return b'{"%s":%s}\n' % (_NAMES[type(record)].encode(), value)


def _check_values(value: object) -> None:
    """Numbers of records are counts, seqs and ids, and texts can be stored; what is in metadata is the application's.
    Raises ValueError."""
    if isinstance(value, str):
        if "\0" in value:
            raise InvalidExport("it has a NUL, which no text can have")
        value.encode()  # raises for half a character
    elif isinstance(value, int):
        if not 0 <= value < 2**62:
            raise InvalidExport(f"it has the number {value}, which nothing in an export can have")
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            _check_values(one)
    elif isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        _check_values("".join(fields))
        for name, one in fields.items():
            if name != "metadata":
                _check_values(one)


def record_of(line: bytes) -> Record:
    """The record of a line. Raises InvalidExport."""
    line = line.removeprefix(b"\xef\xbb\xbf")  # an editor's mark of UTF-8, at the beginning of a file
    try:
        found: object = json.loads(line)
        _check_values(found)
    except InvalidExport:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidExport(f"it is not JSON ({error})") from None
    if not isinstance(found, dict) or len(cast("dict[str, object]", found)) != 1:
        raise InvalidExport("it is no record of an export: a JSON object with one field")
    ((name, value),) = cast("dict[str, object]", found).items()
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidExport(f"{name[:80]!r} is no kind of record")
    if kind is ExportHeader and isinstance(value, dict):
        version = cast("dict[str, object]", value).get("version")
        if version != VERSION:
            raise InvalidExport(
                f"it is of version {version!r} of the format, and this Hitherto reads version {VERSION}; upgrade "
                "Hitherto"
            )
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise InvalidExport(f"{where}: {first['msg']}") from None


def renumbered(kept: KeptConversation, ids: Sequence[int] = ()) -> KeptConversation:
    """The conversation with `ids` for its digests, ascending, as many as there are; by default 1, 2, 3 …. Raises
    KeyError for a digest that is named and not there."""
    there = sorted(one.id for one in kept.digests)
    numbers = dict(zip(there, ids or range(1, len(there) + 1), strict=True))
    digests = (renumbered_digest(one, numbers) for one in kept.digests)
    return replace(
        kept,
        record=renumbered_conversation(kept.record, numbers),
        digests=tuple(sorted(digests, key=lambda one: one.id)),
        archived=tuple(renumbered_document(one, numbers) for one in kept.archived),
    )


def renumbered_conversation(record: ConversationRecord, numbers: Mapping[int, int]) -> ConversationRecord:
    """The conversation with these numbers for its digests' ids. What a store derives from other rows is left out of the
    head."""
    frontiers = {
        stage: replace(one, digest=None if one.digest is None else numbers[one.digest])
        for stage, one in record.head.frontiers.items()
    }
    head = replace(_own(record.head), frontiers=frontiers, now=record.updated_at, clock=record.updated_at)
    return replace(record, head=head)


def renumbered_digest(digest: Digest, numbers: Mapping[int, int]) -> Digest:
    base = None if digest.base is None else numbers[digest.base]
    return replace(digest, id=numbers[digest.id], base=base, claimed=False, due_at=None)


def renumbered_document(record: DocumentRecord, numbers: Mapping[int, int]) -> DocumentRecord:
    document = record.document
    archived = document.archived and replace(document.archived, digest=numbers[document.archived.digest])
    return replace(record, document=replace(document, id=0, archived=archived))


def _own(head: HeadWithCalls) -> HeadWithCalls:
    """What a conversation's own row has of a head."""
    return replace(
        head,
        ref=0,
        digest=None,
        digest_sums=Sums(),
        agent_policy=None,
        agent_cross_session=CrossSession(),
        latest=LatestDigest(),
        running=(),
        retracted=(),
        retractions=0,
        ttl=None,
        time_zone=None,
    )
