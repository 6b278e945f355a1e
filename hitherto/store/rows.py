"""Messages and digests: from rows, and to the values that statements bind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from time import monotonic
from typing import Any, TypeVar

from psycopg import AsyncCursor
from psycopg.rows import namedtuple_row

from hitherto.core.digests.digest import (
    Digest,
    DigestOutcome,
    DigestWork,
    Item,
    Needs,
    NewDigest,
    RewrittenDigest,
    Status,
)
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Kind, Logged, Message, Role, Sums, id_hash, storable
from hitherto.core.log.probe import Mark
from hitherto.core.log.ranges import Ranges
from hitherto.core.log.time_zone import in_utc, offset_of, with_offset
from hitherto.core.page import PAGE_ENTRY, PAGE_SIZE
from hitherto.core.scope import Scope
from hitherto.frozen import build, change

Row = Sequence[Any]
T = TypeVar("T")

_AT_ONCE = 16
"""Rows that are read between two looks at the time: of long messages, each takes a millisecond."""

_SLICE = 0.001
"""Seconds for which rows are read before others go on."""

PAGE = {"size": PAGE_SIZE, "entry": PAGE_ENTRY}
"""What statements bind that read a page."""

_ROLES = {role.value: role for role in Role}
_KINDS = {kind.value: kind for kind in Kind}


def named(cursor: AsyncCursor[Any]) -> AsyncCursor[Any]:
    """The same cursor, whose rows have their columns by name too."""
    cursor.row_factory = namedtuple_row
    return cursor


def as_messages(cursor: AsyncCursor[Any]) -> AsyncCursor[Logged]:
    """The same cursor, of a statement that reads messages, whose rows are these."""
    cursor.row_factory = lambda _: logged_from
    return cursor


def as_messages_of_ranges(cursor: AsyncCursor[Any]) -> AsyncCursor[tuple[int, int, Logged]]:
    """The same cursor, of the statement `messages_of`, whose rows are the number of a range, where the view begins, and
    a message, which counts as erased when its time has come."""

    def made(row: Row) -> tuple[int, int, Logged]:
        nth, view_start, expired, *message = row
        logged = logged_from(message)
        return nth, view_start, change(logged, erased=True) if expired else logged

    cursor.row_factory = lambda _: made
    return cursor


async def fetched(cursor: AsyncCursor[T]) -> list[T]:
    """All rows of a result, read in parts, so that others go on in between."""
    begun, found = monotonic(), list[T]()
    while part := await cursor.fetchmany(_AT_ONCE):
        found += part
        if monotonic() - begun > _SLICE:
            await asyncio.sleep(0)
            begun = monotonic()
    return found


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple([field.name for field in fields(kind)])


def value_from(kind: type[T], row: Any, /, **others: Any) -> T:
    """A dataclass from a row of a `named` cursor: its fields are the columns of these names, but for `others`."""
    return kind(**{name: getattr(row, name) for name in _fields(kind) if name not in others}, **others)


def values_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, for a statement to bind."""
    return {name: getattr(value, name) for name in _fields(value.__class__)}


def scope_values(scope: Scope, conversation: str) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "conversation": conversation}


def id_values(names: dict[str, Any], ids: Iterable[str]) -> dict[str, Any]:
    """What `messages_by_id` binds; `names` are the scope's and the conversation's."""
    return {**names, "id_hashes": _texts(map(id_hash, ids))}


def multirange(ranges: Sequence[tuple[int, int]]) -> str:
    """Inclusive ranges as PostgreSQL's multirange."""
    return f"{{{','.join([f'[{first},{last}]' for first, last in ranges])}}}"


def integers(values: Iterable[int | None]) -> str:
    """Whole numbers as PostgreSQL's array. psycopg takes longer, and its type goes by the numbers' size, so that a
    statement would be prepared more than once."""
    return f"{{{','.join(['NULL' if one is None else str(one) for one in values])}}}"


def _texts(values: Iterable[str | None]) -> str:
    """Texts as PostgreSQL's array: for an array of such, whose arrays may have different lengths, and for one that may
    have nothing in it but null."""
    return "{" + ",".join(["NULL" if one is None else _quoted(one) for one in values]) + "}"


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def message_values(logged: Logged) -> dict[str, Any]:
    message = logged.message
    return {
        "seq": logged.seq,
        "wire": message.wire,
        "role": message.role.value,
        "kind": message.kind.value,
        "text": message.text,
        "payload": message.raw,
        "call_ids": list(message.calls),
        "result_ids": list(message.answers),
        "tool_names": list(message.tools),
        "metadata": message.raw_metadata,
        "tokens": logged.tokens,
        "sum_tokens": logged.sums.tokens,
        "sum_turns": logged.sums.turns,
        "sum_dialogue": logged.sums.dialogue,
        "sum_results": logged.sums.results,
        "rev": logged.rev,
        "created_at": logged.created_at,
        "expires_at": in_utc(message.expires_at),
        "said_at": in_utc(message.said_at),
        "said_offset": offset_of(message.said_at),
        "own_id": message.id,
        "id_hash": logged.id_hash if message.id is None else id_hash(message.id),
    }


_NUMBERS = ("said_offset", "seq", "tokens", "sum_tokens", "sum_turns", "sum_dialogue", "sum_results", "rev")
_NAMES = ("call_ids", "result_ids", "tool_names")
_IDS = ("own_id", "id_hash")


def message_arrays(some: Sequence[Logged]) -> dict[str, Any]:
    """What `insert_messages` binds: an array a column."""
    values = [message_values(one) for one in some]
    columns: dict[str, Any] = {name: [one[name] for one in values] for name in (values[0] if values else ())}
    columns |= {name: integers(columns[name]) for name in _NUMBERS}
    columns |= {name: [_texts(one) for one in columns[name]] for name in _NAMES}
    columns |= {name: _texts(columns[name]) for name in _IDS}
    return {
        **columns,
        "erased": [one.erased for one in some],
        "retracted_rev": integers([one.retracted_rev for one in some]),
    }


def logged_from(row: Row) -> Logged:
    """A message from a row of the statements that read messages, with its columns in this order. It is fast because
    whole histories are read: columns by position, no call of an enum, no `__init__`."""
    (
        seq, raw, wire, role, kind, text, calls, answers, tools, metadata, expires_at, said_at, said_offset, tokens,
        sum_tokens, sum_turns, sum_dialogue, sum_results, rev, created_at, erased, retracted_rev, own_id,
    ) = row  # fmt: skip
    message = build(
        Message,
        raw=raw,
        wire=wire,
        role=_ROLES[role],
        kind=_KINDS[kind],
        text=text,
        calls=() if calls is None else tuple(calls),
        answers=() if answers is None else tuple(answers),
        tools=() if tools is None else tuple(tools),
        raw_metadata=metadata,
        expires_at=expires_at,
        said_at=said_at if said_offset is None else with_offset(said_at, said_offset),
        id=None if erased else own_id,
    )
    return build(
        Logged,
        seq=seq,
        message=message,
        tokens=tokens,
        sums=Sums(sum_tokens, sum_turns, sum_dialogue, sum_results),
        rev=rev,
        created_at=created_at,
        erased=erased,
        retracted_rev=retracted_rev,
        id_hash=own_id if erased else None,
    )


def mark_from(row: Row) -> Mark:
    seq, sum_tokens, sum_turns, sum_dialogue, sum_results, tokens, opens_turn = row
    return Mark(seq, Sums(sum_tokens, sum_turns, sum_dialogue, sum_results), tokens, opens_turn)


def items_json(items: Sequence[Item]) -> str:
    return json.dumps(
        [
            {"text": item.text, "sources": item.sources} | ({"earlier": item.earlier} if item.earlier else {})
            for item in items
        ]
    )


def items_from(text: str) -> tuple[Item, ...]:
    return _items(json.loads(text))


def chained_items(text: str) -> tuple[Item, ...]:
    """The items of several digests, in the order of these."""
    return tuple(item for items in json.loads(text) for item in _items(items))


def _items(found: list[dict[str, Any]]) -> tuple[Item, ...]:
    return tuple(Item(one["text"], _ranges(one["sources"]), _ranges(one.get("earlier", ()))) for one in found)


def _ranges(found: Sequence[Sequence[int]]) -> Ranges:
    return tuple((first, last) for first, last in found)


def digest_from(row: Any) -> Digest:
    """A digest from a row with its columns by name."""
    columns: dict[str, Any] = {name: getattr(row, _DIGEST_COLUMNS.get(name, name)) for name in _fields(Digest)}
    columns |= {"action": DigestAction(row.action), "status": Status(row.status), "items": items_from(row.items)}
    columns["needs"] = None if row.needs is None else Needs(row.needs)
    return Digest(**columns)


_DIGEST_COLUMNS = {"start": "start_seq", "end": "end_seq", "base": "base_id"}
"""The columns of a digest that are not named like its fields."""


def work_from(tenant: str, row: Any, messages: Sequence[Row]) -> DigestWork:
    """What is needed to make a digest, from the row of the statement `claim`, with its columns by name."""
    return DigestWork(
        scope=Scope(tenant=tenant, user=row.user_id, agent=row.agent),
        conversation=row.conversation,
        digest=digest_from(row),
        base=() if row.base_items is None else chained_items(row.base_items),
        opaque=row.base_opaque,
        messages=tuple(logged_from(message) for message in messages),
        expiring=row.expiring,
    )


def fire_values(fire: NewDigest, rev: int) -> dict[str, Any]:
    """What `insert_digest` binds of a new digest, without the time: the caller adds it as `now`."""
    status = Status.COMPLETED if fire.completed else Status.PROCESSING
    return {**values_of(fire), "status": status.value, "rev": rev}


def outcome_values(outcome: DigestOutcome, rev: int) -> dict[str, Any]:
    """What `end_digest` binds of an outcome, without the time: the caller adds it as `now`."""
    status = Status.COMPLETED if outcome.error is None else Status.FAILED
    if outcome.superseded:
        status = Status.SUPERSEDED
    return {
        **values_of(outcome),
        "status": status.value,
        "items": items_json(outcome.items),
        "text": storable(outcome.text),
        "error": None if outcome.error is None else storable(outcome.error),
        "visible_rev": rev if status is Status.COMPLETED else None,
    }


def rewritten_values(digest: RewrittenDigest) -> dict[str, Any]:
    return {
        **values_of(digest),
        "items": items_json(digest.items),
        "text": storable(digest.text),
        "status": (Status.SUPERSEDED if digest.superseded else Status.COMPLETED).value,
    }
