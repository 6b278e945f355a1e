"""LangGraph's checkpoints in SQLite: the messages of each thread."""

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
    UnreadableList,
    conversation_of,
    mapping_of,
    message_of,
    objects_of,
    text_of,
    time_of,
    try_message,
)
from hitherto.importers.json_stream import MOST_VALUES, loads
from hitherto.importers.sqlite_file import Tables

NAME = "LangGraph"

TABLES = frozenset({"checkpoints", "writes"})
ROWS = frozenset({"checkpoints"})

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "developer": "system"}

_ANTHROPIC_ONLY = {"thinking", "redacted_thinking", "tool_use"}


def conversations(tables: Tables) -> Iterator[ImportedConversation | Unreadable]:
    """The threads of a file. A thread's subgraphs are left out."""
    for (thread,) in list(
        tables.rows("select distinct thread_id from checkpoints where checkpoint_ns = '' order by 1")
    ):
        rows = tables.rows(
            "select checkpoint_id, parent_checkpoint_id, type, checkpoint from checkpoints "
            "where thread_id = ? and checkpoint_ns = '' order by checkpoint_id",
            thread,
        )
        known = _ThreadMessages(f"thread {thread!a:.80}")
        for own, before, kind, data in rows:
            known.add(own, before, kind, data if isinstance(data, bytes) else b"")
        if known.states:
            nodes, current, told = known.nodes.values(), known.newest, known.unreadable
            yield conversation_of(NAME, thread, nodes, title=None, current=current, unreadable=told)
        else:
            yield from known.unreadable or [Unreadable(f"{known.place}: its state has no messages")]


class _ThreadMessages:
    """The messages of all checkpoints of a thread, which are added in the order of time. One that a later state has
    not any more is kept; where a state goes on otherwise, as it was edited, regenerated or forked, a branch begins."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.nodes = dict[str, Node]()
        self.newest: str | None = None
        self.states = dict[object, list[str]]()
        """The ids of the messages of each checkpoint."""
        self.unreadable = UnreadableList()
        self._by_content = dict[object, str]()
        self._by_message = dict[tuple[str, str | None], str]()
        self._contents = dict[str, object]()
        """The contents of messages without ids, by those that are made for them."""

    def add(self, checkpoint: object, before: object, kind: object, data: bytes) -> None:
        """Add the messages of a checkpoint; `before` is the one that it follows."""
        try:
            at, messages = _state(kind, data)
        except (ValueError, RecursionError) as error:
            told = Unreadable(f"{self.place}: its checkpoint {checkpoint!a:.80} cannot be read ({error})")
            self.unreadable.append(told)
            return
        if messages is None:
            return
        past, place, state = self.states.get(before, []), 0, list[str]()
        for number, value in enumerate(messages, 1):
            content = (
                cast("bytes", value.data) if isinstance(value, msgpack.ExtType) else json.dumps(value, default=repr)
            )
            own = self._by_content.get(content)
            if own is None:
                places = range(place, len(past))
                same = next((at for at in places if self._contents.get(past[at]) == content), None)
                if same is not None:
                    own, place = past[same], same + 1
                else:
                    parent = state[-1] if state else past[-1] if past else None
                    own = self._new(value, content, parent, at, f"{self.place}, message {number}")
            state.append(own)
        self.states[checkpoint] = state
        self.newest = state[-1] if state else self.newest

    def _new(self, value: object, content: object, parent: str | None, at: str, place: str) -> str:
        """The id of a message that was not there yet, or of the same one that was written otherwise."""
        try:
            fields = _fields(_plain(value))
        except (ValueError, RecursionError):
            fields = _fields(None)
        given = text_of(fields.get("id"))
        own = given or f"message-{len(self._contents) + 1}"
        message = try_message(partial(_message, fields, at, own), place, self.unreadable)
        if given:
            known = (given, None if message is None else message.raw)
            if known not in self._by_message:
                versions = sum(one.startswith(f"{given}#") for one in self.nodes) + 1 if given in self.nodes else 0
                own = self._by_message[known] = f"{given}#{versions + 1}" if versions else given
            own = self._by_content[content] = self._by_message[known]
        else:
            self._contents[own] = content
        if own not in self.nodes:
            self.nodes[own] = Node(own, parent, place, message and message.with_id(own))
        return own


def _state(kind: object, data: bytes) -> tuple[str, list[object] | None]:
    """When a checkpoint was made, and its messages; None where its state has no such channel. Raises ValueError."""
    if kind == "msgpack":
        value = _unpacked(data)
    elif kind == "json":
        value = loads(data)
    else:
        raise ValueError(f"it is written as {kind!r}; msgpack and json are read")
    checkpoint = mapping_of(value)
    messages: object = mapping_of(checkpoint.get("channel_values")).get("messages")
    return text_of(checkpoint.get("ts")), cast("list[object]", messages) if isinstance(messages, list) else None


def _unpacked(data: bytes) -> object:
    """The value that MessagePack's bytes stand for; what a program has added to the format is its number and its bytes.
    Raises ValueError."""
    values = 0

    def counted(value: Any) -> Any:
        nonlocal values
        values += 1 + len(value)
        if values > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values")
        return value

    try:
        hooks: dict[str, Any] = {"list_hook": counted, "object_hook": counted}
        most = {"max_array_len": MOST_VALUES, "max_map_len": MOST_VALUES}
        return cast("object", msgpack.unpackb(data, strict_map_key=False, unicode_errors="replace", **hooks, **most))
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
    function = {"name": call.get("name"), "arguments": json.dumps(call.get("args"), default=_text)}
    return {"id": call.get("id"), "type": "function", "function": function}


def _text(value: object) -> str:
    """What JSON has no form for, such as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
