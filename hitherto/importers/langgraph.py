"""LangGraph's checkpoints in SQLite: the messages of each thread's newest one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import msgpack

from hitherto.core.log.message import ANTHROPIC, CHAT, Message
from hitherto.errors import InvalidMessage
from hitherto.importers.imported import (
    ImportedConversation,
    Node,
    Unreadable,
    conversation_of,
    mapping_of,
    message_of,
    objects_of,
    text_of,
    time_of,
    try_message,
)
from hitherto.importers.sqlite_file import Tables

NAME = "LangGraph"

TABLES = {"checkpoints", "writes"}

_DATED = 2**26
"""Bytes of a thread's older checkpoints that are read to date its messages by the first that has them."""

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "developer": "system"}

_ANTHROPIC_ONLY = {"thinking", "redacted_thinking", "tool_use"}


def conversations(tables: Tables) -> Iterator[ImportedConversation | Unreadable]:
    """The threads of a file. A thread's subgraphs are left out."""
    for (thread,) in tables.rows("select distinct thread_id from checkpoints where checkpoint_ns = '' order by 1"):
        rows = tables.rows(
            "select type, checkpoint from checkpoints where thread_id = ? and checkpoint_ns = '' "
            "order by checkpoint_id desc",
            thread,
        )
        size, kept = 0, list[tuple[object, bytes]]()
        for kind, given in rows:
            data = given if isinstance(given, bytes) else b""
            size += len(data)
            if kept and size > _DATED:
                break
            kept.append((kind, data))
        place = f"thread {thread!a:.80}"
        try:
            at, messages = _messages(*kept[0])
        except (ValueError, RecursionError) as error:
            yield Unreadable(f"{place}: its newest checkpoint cannot be read ({error})")
            continue
        if messages is None:
            yield Unreadable(f"{place}: its state has no messages")
            continue
        dates = _dates(kept)
        unreadable: list[Unreadable] = []
        nodes, before = list[Node](), None
        for number, message in enumerate(messages, 1):
            own = text_of(message.get("id")) or f"message-{number}"
            where = f"{place}, message {number}"
            made_of = partial(_message, message, dates.get(own, at), own)
            nodes.append(Node(own, before, where, try_message(made_of, where, unreadable)))
            before = own
        yield conversation_of(NAME, thread, nodes, title=None, current=before, unreadable=unreadable)


def _dates(checkpoints: list[tuple[object, bytes]]) -> dict[str, str]:
    """When the first checkpoint was made that has a message, by its id."""
    found: dict[str, str] = {}
    for kind, data in checkpoints:
        try:
            at, messages = _messages(kind, data)
        except (ValueError, RecursionError):
            continue
        for number, message in enumerate(messages or [], 1):
            found[text_of(message.get("id")) or f"message-{number}"] = at
    return found


def _messages(kind: object, data: bytes) -> tuple[str, list[Mapping[str, Any]] | None]:
    """When a checkpoint was made, and its messages; None where its state has no such channel. Raises ValueError."""
    if kind == "msgpack":
        value = _plain(_unpacked(data))
    elif kind == "json":
        value = cast("object", json.loads(data))
    else:
        raise ValueError(f"it is written as {kind!r}; msgpack and json are read")
    checkpoint = mapping_of(value)
    found = mapping_of(checkpoint.get("channel_values")).get("messages")
    messages = [_fields(one) for one in cast("list[object]", found)] if isinstance(found, list) else None
    return text_of(checkpoint.get("ts")), messages


def _unpacked(data: bytes) -> object:
    """The value that MessagePack's bytes stand for; what a program has added to the format is its number and its bytes.
    Raises ValueError."""
    try:
        return cast("object", msgpack.unpackb(data, strict_map_key=False, unicode_errors="replace"))
    except TypeError as error:  # a key is a list
        raise ValueError(str(error)) from None


def _plain(value: object) -> object:
    """The value with the fields of an object in its place: an extension is a list of its module, its class and these,
    none of which is imported."""
    if isinstance(value, msgpack.ExtType):
        inner = _unpacked(cast("bytes", value.data))
        fields = cast("list[object]", inner)[2:3] if isinstance(inner, list) else []
        return _plain(fields[0]) if fields else None
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in cast("dict[object, object]", value).items()}
    return value


def _fields(message: object) -> Mapping[str, Any]:
    """A message's fields. In JSON its constructor has them."""
    found = mapping_of(message)
    return mapping_of(found.get("kwargs")) if found.get("type") == "constructor" else found


def _message(fields: Mapping[str, Any], at: str, id: str) -> Message:
    kind = text_of(fields.get("type")) or text_of(fields.get("role"))
    kind = kind.removesuffix("MessageChunk").lower()
    role, content, time = _ROLES.get(kind, kind), fields.get("content"), time_of(at)
    blocks = list(objects_of(content))
    if role == "assistant" and any(text_of(block.get("type")) in _ANTHROPIC_ONLY for block in blocks):
        kept = [{key: one for key, one in block.items() if key != "index"} for block in blocks]
        return message_of({"role": role, "content": kept}, time, wire=ANTHROPIC, id=id)
    item: dict[str, Any] = {"role": role, "content": content if isinstance(content, str) else _parts(content)}
    if isinstance(name := fields.get("name"), str) and role != "tool":
        item["name"] = name
    if role == "tool":
        item["tool_call_id"] = fields.get("tool_call_id")
    if calls := [_call(call) for call in objects_of(fields.get("tool_calls"))]:
        item |= {"tool_calls": calls, "content": item["content"] or None}
    reasoning = mapping_of(fields.get("additional_kwargs")).get("reasoning_content")
    if role == "assistant" and isinstance(reasoning, str) and reasoning:
        item["reasoning_content"] = reasoning
    return message_of(item, time, wire=CHAT, id=id)


def _parts(content: object) -> str | list[dict[str, Any]]:
    """The parts of a content as chat completions have them; of others, what they are called."""
    if not isinstance(content, list):
        raise InvalidMessage(f"its content is {type(content).__name__}; a text or a list of parts is read")
    parts: list[dict[str, Any]] = []
    for one in cast("list[object]", content):
        part = mapping_of(one)
        if isinstance(one, str) or part.get("type") == "text":
            parts.append({"type": "text", "text": one if isinstance(one, str) else text_of(part.get("text"))})
        elif part.get("type") == "image_url":
            parts.append(dict(part))
        elif part.get("type") == "image" and (url := _url(part)):
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            parts.append({"type": "text", "text": f"[{text_of(part.get('type')) or 'part'}]"})
    return parts or ""


def _url(part: Mapping[str, Any]) -> str:
    data = text_of(part.get("base64")) or text_of(part.get("data"))
    return f"data:{part.get('mime_type')};base64,{data}" if data else text_of(part.get("url"))


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call.get("name"), "arguments": json.dumps(call.get("args"))}
    return {"id": call.get("id"), "type": "function", "function": function}
