"""Checks of imported records: a file may say anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from functools import singledispatch
from typing import Any, cast, get_args

from hitherto.core.digests.digest import Digest
from hitherto.core.documents import plain_metadata
from hitherto.core.export import (
    AgentRecord,
    CallRecord,
    ConversationRecord,
    DocumentRecord,
    EventRecord,
    FactRecord,
    LatestRecord,
    ReceiptRecord,
    Record,
    RunRecord,
    UserRecord,
)
from hitherto.core.facts.fact import Subject
from hitherto.core.log.append import checked_time_zone, checked_ttl
from hitherto.core.log.message import DEPTH, Logged, Wire, too_deep
from hitherto.core.log.ranges import joined
from hitherto.core.log.title import checked_title
from hitherto.core.policy.policy import stored
from hitherto.core.run import RunStatus
from hitherto.core.scope import checked_name
from hitherto.errors import InvalidExport, InvalidInput

_HASH = re.compile("[0-9a-f]{64}")


def checked(record: Record, now: datetime) -> Record:
    """The record, if it can be written. What was made after `now`, by a clock that was ahead, was made now. Raises
    InvalidExport."""
    try:
        for time in _times(record):
            if time.utcoffset() is None or not 2 <= time.year <= 9998:
                raise InvalidExport(f"it has the time {time}; times have a zone, and years from 2 to 9998")
        return _checked(record, now)
    except InvalidExport:
        raise
    except (InvalidInput, ValueError, RecursionError) as error:
        raise InvalidExport(str(error)) from None


@singledispatch
def _checked(record: Record, now: datetime) -> Record:
    return record


@_checked.register
def _agent(record: AgentRecord, now: datetime) -> Record:
    _names(*([] if record.agent is None else [record.agent]))
    _policy(record.policy)
    checked_ttl(record.ttl)
    if record.time_zone is not None:
        checked_time_zone(record.time_zone)
    return record


@_checked.register
def _user(record: UserRecord, now: datetime) -> Record:
    _names(record.user)
    checked_time_zone(record.time_zone)
    return record


@_checked.register
def _subject(record: Subject, now: datetime) -> Record:
    _names(record.id, record.name, *record.members)
    return record


@_checked.register
def _digest(record: Digest, now: datetime) -> Record:
    _ranges([(record.start, record.end), *(pair for item in record.items for pair in item.rests)])
    _json(record.spec, record.opaque)
    _policy(record.policy)
    made, completed = min(record.created_at, now), _past(record.completed_at, now)
    return replace(record, created_at=made, completed_at=completed)


@_checked.register
def _receipt(record: ReceiptRecord, now: datetime) -> Record:
    if not _HASH.fullmatch(record.key_hash):
        raise InvalidExport(f"key_hash is {record.key_hash[:80]!r}; it should be 64 hexadecimal digits")
    _ranges([(record.start, record.end)])
    return replace(record, created_at=min(record.created_at, now))


@_checked.register
def _latest(record: LatestRecord, now: datetime) -> Record:
    _names(record.user, record.agent, record.conversation, record.of)
    _order(1, record.digest)
    return record


@_checked.register
def _conversation(record: ConversationRecord, now: datetime) -> Record:
    head = record.head
    _names(record.user, record.agent, record.conversation, *([head.subject] if head.subject else []))
    _names(*([record.fork.source] if record.fork and record.fork.source else []))
    checked_title(record.title)
    checked_ttl(record.ttl)
    _policy(head.policy)
    _order(head.view_start, head.next_seq)
    _ranges([*head.erased, *head.extracted])
    head = replace(head, erased=joined(head.erased), extracted=joined(head.extracted))
    made, updated = min(record.created_at, now), min(record.updated_at, now)
    _ranges([(one, one) for turn, seq, _ in record.forgettings for one in (turn, seq)])
    _ranges([part for start, behind in record.branches for part in ((behind, start), (start + 1, head.next_seq))])
    for first, last, gone, back in record.absences:
        _ranges([(first, last), (last + 1, head.next_seq), (gone, back)])
    if (fork := record.fork) is not None:
        _ranges([(fork.messages, head.next_seq), (fork.rev, head.rev)])
    forgettings = tuple([(turn, seq, min(at, now)) for turn, seq, at in record.forgettings])
    metadata = plain_metadata(record.metadata)
    return replace(record, head=head, metadata=metadata, created_at=made, updated_at=updated, forgettings=forgettings)


@_checked.register
def _message(record: Logged, now: datetime) -> Record:
    message = record.message
    if message.wire not in get_args(Wire):
        raise InvalidExport(f"its format is {message.wire[:80]!r}, which is none of {', '.join(get_args(Wire))}")
    _object(message.raw)
    gone = record.id_hash
    if (message.id if record.erased else gone) is not None or not (gone is None or _HASH.fullmatch(gone)):
        raise InvalidExport("an erased message has an id_hash of 64 hexadecimal digits, or none, and others have an id")
    message.with_id(message.id)
    return replace(record, created_at=min(record.created_at, now))


@_checked.register
def _document(record: DocumentRecord, now: datetime) -> Record:
    document = record.document
    _names(record.user, *([] if document.agent is None else [document.agent]))
    _ranges([] if document.archived is None else [(document.archived.start, document.archived.end)])
    made, metadata = min(document.created_at, now), plain_metadata(document.metadata)
    return replace(record, document=replace(document, created_at=made, metadata=metadata))


@_checked.register
def _fact(record: FactRecord, now: datetime) -> Record:
    fact = record.fact
    _names(fact.user, fact.agent, *([fact.subject] if fact.subject else []))
    if fact.confidence is None or not 0 <= fact.confidence <= 1 or fact.confirmed is None or fact.repeated is None:
        raise InvalidExport(
            "a fact has a confidence from 0 to 1, and says whether it is confirmed and how often repeated"
        )
    _order(1, fact.version)
    made, updated = min(fact.extracted_at, now), min(fact.updated_at, now)
    ended = _past(fact.ended_at, now)
    metadata = plain_metadata(fact.metadata)
    fact = replace(fact, metadata=metadata, extracted_at=made, updated_at=updated, ended_at=ended)
    return replace(record, fact=fact)


@_checked.register
def _call(record: CallRecord, now: datetime) -> Record:
    _names(*(name for name in (record.user, record.agent, record.conversation) if name))
    if record.cost is not None and not (math.isfinite(record.cost) and record.cost >= 0):
        raise InvalidExport(f"its cost is {record.cost}; it should be a number of dollars")
    return replace(record, created_at=min(record.created_at, now))


@_checked.register
def _run(record: RunRecord, now: datetime) -> Record:
    run = record.run
    _names(record.user, record.agent, run.conversation)
    if run.status is RunStatus.RUNNING and run.end is not None:
        raise InvalidExport("a run that goes on has no end")
    started, ended = min(run.started_at, now), _past(run.ended_at, now)
    return replace(record, run=replace(run, started_at=started, ended_at=ended))


@_checked.register
def _event(record: EventRecord, now: datetime) -> Record:
    if record.event.raw is not None:
        _shallow(json.loads(record.event.raw))
    return replace(record, event=replace(record.event, created_at=min(record.event.created_at, now)))


def _names(*names: str) -> None:
    for name in names:
        checked_name(name, "a name")


def _order(first: int, last: int) -> None:
    if last < first:
        raise InvalidExport(f"it has the number {last}, where none below {first} can be")


def _ranges(ranges: Iterable[tuple[int, int]]) -> None:
    for first, last in ranges:
        _order(first, last)


def _policy(text: str | None) -> None:
    if text is not None:
        _object(text)
        stored(text)


def _json(*texts: str | None) -> None:
    for text in texts:
        if text is not None:
            json.loads(text)


def _shallow(value: object) -> None:
    if too_deep(value):
        raise InvalidExport(f"it has a value that is nested deeper than {DEPTH} levels")


def _object(text: str) -> None:
    _shallow(value := json.loads(text))
    if not isinstance(value, dict):
        raise InvalidExport(f"it has {text[:80]!r}, where a JSON object should be")


def _times(value: Any) -> Iterator[datetime]:
    """All times in a record."""
    match value:
        case datetime():
            yield value
        case tuple():
            for part in cast("tuple[object, ...]", value):
                yield from _times(part)
        case dict():
            yield from _times(tuple(cast("dict[str, object]", value).values()))
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _times(getattr(value, field.name))
        case _:
            pass


def _past(time: datetime | None, now: datetime) -> datetime | None:
    return None if time is None else min(time, now)
