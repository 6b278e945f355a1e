"""The `logs.db` of simonw/llm: its threads, and the conversations of versions before them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, cast

from hitherto.core.log.message import Message
from hitherto.importers.imported import (
    ImportedConversation,
    Node,
    Unreadable,
    UnreadableList,
    conversation_of,
    mapping_of,
    message_of,
    objects_of,
    text_of,
    time_of,
    tool_call,
    try_message,
)
from hitherto.importers.sqlite_file import Tables

NAME = "llm"

TABLES = frozenset({"conversations", "responses"})
ROWS = TABLES | {"threads", "turns", "messages", "parts", "tool_calls", "tool_results"}

_RESULTS = "select id, name, output, tool_call_id, exception from tool_results where response_id = ? order by id"
_RESULTS_BEFORE = "select id, name, output, tool_call_id, null from tool_results where response_id = ? order by id"
_CALLS = "select id, name, arguments, tool_call_id from tool_calls where response_id = ? order by id"

_KNOWN = ("text", "attachment", "reasoning", "tool_call", "tool_result")
"""Types of parts that may be empty."""

Item = dict[str, Any]


def conversations(tables: Tables) -> Iterator[ImportedConversation | Unreadable]:
    """The threads of a file, and its older conversations."""
    if tables.names >= {"threads", "turns", "messages", "parts"}:
        for own, name, tip in tables.rows("select id, name, tip_message_hash from threads order by datetime_utc, id"):
            unreadable = UnreadableList()
            nodes, current = _thread(tables, own, tip, unreadable)
            yield conversation_of(NAME, own, nodes, title=name, current=current, unreadable=unreadable)
    query = "select coalesce(conversation_id, id) as of, min(id) from responses group by of order by 2"
    for own, _first in tables.rows(query):
        unreadable = UnreadableList()
        (name,) = next(iter(tables.rows("select name from conversations where id = ?", own)), (None,))
        nodes = list(_responses(tables, own, unreadable))
        current = nodes[-1].id if nodes else None
        yield conversation_of(NAME, own, nodes, title=name, current=current, unreadable=unreadable)


def _thread(
    tables: Tables, thread: str, tip: str | None, unreadable: list[Unreadable]
) -> tuple[list[Node], str | None]:
    """The messages of a thread, from what its turns end with to the beginning: each turn that nothing follows is a
    branch. Ids are their hashes, dates those of the turns."""
    turns = "select tip_message_hash, datetime_utc from turns where thread_id = ? order by datetime_utc, id"
    ways = [*tables.rows(turns, thread), (tip, None)]
    nodes, last = dict[str, list[Node]](), dict[str, str]()
    for end, at in ways:
        way, at_hash = dict[str, tuple[str | None, str]](), cast("str | None", end)
        while at_hash is not None and at_hash not in nodes and at_hash not in way:
            row = next(iter(tables.rows("select parent_hash, role from messages where hash = ?", at_hash)), None)
            if row is None or not isinstance(at_hash, str):
                if not way:
                    words = f"thread {thread!a:.80}: its message {at_hash!a:.80} is not in the file"
                    unreadable.append(Unreadable(words))
                break
            way[at_hash] = row
            at_hash = row[0]
        for own, (parent, role) in reversed(way.items()):
            place = f"thread {thread!a:.80}, message {own!a:.80}"
            parts = list(_parts(tables, own))
            items = _items(role, parts)
            if not items and any(part["type"] not in _KNOWN or part.get("text_ref") for part in parts):
                unreadable.append(Unreadable(f"{place}: it has no text that can be read"))
            nodes[own] = list(
                _chain(own, last.get(parent or "", parent), items, time_of(at), place, unreadable=unreadable)
            )
            last[own] = nodes[own][-1].id
    return [node for one in nodes.values() for node in one], last.get(tip or "")


def _chain(
    id: str,
    parent: str | None,
    items: list[Item],
    at: datetime | None,
    place: str,
    *,
    unreadable: list[Unreadable],
) -> Iterator[Node]:
    """A node for each of the items, one behind the other; without items one without a message."""
    read_message: Callable[[], Message]
    for number, item in enumerate(items):
        own = f"{id}#{number + 1}" if number else id
        read_message = partial(message_of, item, at, id=own)
        yield Node(own, parent, place, try_message(read_message, place, unreadable))
        parent = own
    if not items:
        yield Node(id, parent, place)


def _parts(tables: Tables, hash: str) -> Iterator[Item]:
    """The parts of a message: each with its type, its text, and the fields of its payload."""
    rows = tables.rows("select id, type, text, payload from parts where message_hash = ? order by position", hash)
    for part, kind, text, payload in rows:
        try:
            fields = dict(mapping_of(json.loads(payload))) if payload else {}
        except (ValueError, RecursionError, TypeError):
            fields = {}
        referred = "".join(_referred(tables, one) for one in objects_of(fields.get("text_ref")))
        attachments = tables.rows(
            "select a.id, a.type, a.path, a.url from part_attachments p "
            'join attachments a on a.id = p.attachment_id where p.part_id = ? order by p."order"',
            part,
        )
        names = [_attachment(*row) for row in attachments]
        yield {**fields, "type": kind, "text": text_of(text) or referred, "names": names}


def _referred(tables: Tables, piece: Mapping[str, Any]) -> str:
    if "literal" in piece:
        return text_of(piece["literal"])
    found = tables.rows("select content from fragments where id = ?", piece.get("fragment"))
    return text_of(next(iter(found), ("",))[0])


def _attachment(id: object, kind: object, path: object, url: object) -> str:
    what = "image" if text_of(kind).startswith("image/") else "attachment"
    return f"[{what}: {text_of(path) or text_of(url) or id}]"


def _items(role: object, parts: list[Item]) -> list[Item]:
    """The items of a message. Each result of a tool is one of its own."""
    texts = [one["text"] for one in parts if one["type"] == "text"]
    texts += [name for one in parts if one["type"] == "attachment" for name in one["names"]]
    words = "\n".join(filter(None, texts))
    if role == "tool":
        results = [one for one in parts if one["type"] == "tool_result"]
        return [
            _result(one.get("tool_call_id"), one.get("output"), one.get("exception"), one["names"]) for one in results
        ]
    calls = [one for one in parts if one["type"] == "tool_call"]
    item: Item = {"role": role, "content": words}
    if calls:
        item = _calling([(one.get("name"), one.get("arguments"), one.get("tool_call_id")) for one in calls], words)
    if thoughts := "\n".join(one["text"] for one in parts if one["type"] == "reasoning" and one["text"]):
        item["reasoning_content"] = thoughts
    return [item] if words or calls or thoughts else []


def _calling(calls: list[tuple[Any, object, Any]], words: str) -> Item:
    items = [tool_call(name, arguments, own, words) for name, arguments, own in calls]
    return {**items[0], "tool_calls": [call for item in items for call in item["tool_calls"]]}


def _result(call: object, output: object, exception: object, names: list[str]) -> Item:
    said = [text_of(output), f"[error] {exception}" if exception else "", *names]
    return {"role": "tool", "tool_call_id": call, "content": "\n".join(filter(None, said))}


def _responses(tables: Tables, conversation: str, unreadable: list[Unreadable]) -> Iterator[Node]:
    """The messages of a conversation in the older tables: of each response the instructions where they are others, the
    results that it was given, the prompt and the answer."""
    rows = tables.rows(
        "select id, system, prompt, response, datetime_utc from responses where coalesce(conversation_id, id) = ? "
        "order by datetime_utc, id",
        conversation,
    )
    instructions, before, open_calls = "", cast("str | None", None), list[tuple[str, str]]()
    with_tools = {"tool_calls", "tool_results"} <= tables.names
    results = _RESULTS if "exception" in tables.columns("tool_results") else _RESULTS_BEFORE
    for response, system, prompt, answer, at in rows:
        if not isinstance(response, str):
            words = f"conversation {conversation!a:.80}: the id of a response is {response!a:.80}, and no text"
            unreadable.append(Unreadable(words))
            continue
        items: list[tuple[str, Item]] = []
        if text_of(system) and system != instructions:
            instructions = system
            items.append((f"{response}-system", {"role": "system", "content": system}))
        for row, name, output, given, exception in tables.rows(results, response) if with_tools else ():
            waiting = [one for one, of in open_calls if of == name]
            call = given or (waiting[0] if waiting else None)
            open_calls = [one for one in open_calls if one[0] != call]
            items.append((f"{response}-result-{row}", _result(call, output, exception, [])))
        if words := "\n".join(filter(None, [*_given(tables, response), text_of(prompt)])):
            items.append((f"{response}-prompt", {"role": "user", "content": words}))
        calls = [
            (name, _loaded(arguments), call or f"call-{row}")
            for row, name, arguments, call in (tables.rows(_CALLS, response) if with_tools else ())
        ]
        open_calls += [(call, name) for name, _, call in calls]
        if calls:
            items.append((response, _calling(calls, text_of(answer))))
        elif text_of(answer):
            items.append((response, {"role": "assistant", "content": answer}))
        for own, item in items:
            place = f"conversation {conversation!a:.80}, {own!a:.80}"
            read_message = partial(message_of, item, time_of(at), id=own)
            yield Node(own, before, place, try_message(read_message, place, unreadable))
            before = own


def _given(tables: Tables, response: str) -> Iterator[str]:
    """The fragments and the names of attachments of a prompt."""
    if "prompt_fragments" in tables.names:
        yield from (
            text_of(content)
            for (content,) in tables.rows(
                "select f.content from prompt_fragments p join fragments f on f.id = p.fragment_id "
                'where p.response_id = ? order by p."order"',
                response,
            )
        )
    if "prompt_attachments" in tables.names:
        rows = tables.rows(
            "select a.id, a.type, a.path, a.url from prompt_attachments p join attachments a on a.id = p.attachment_id "
            'where p.response_id = ? order by p."order"',
            response,
        )
        yield from (_attachment(*row) for row in rows)


def _loaded(arguments: object) -> object:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else {}
    except (ValueError, RecursionError):
        return arguments
