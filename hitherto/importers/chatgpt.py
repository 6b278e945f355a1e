"""ChatGPT's data export: a list of conversations, each a `mapping` of nodes with their parents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

from hitherto.core.log.message import Message
from hitherto.errors import InvalidMessage
from hitherto.importers.imported import (
    REASONING,
    ImportedConversation,
    Node,
    Unreadable,
    UnreadableList,
    conversation_of,
    mapping_of,
    message_of,
    missing_parent,
    name_of_type,
    objects_of,
    reasoning_item,
    text_of,
    time_of,
    tool_call,
    try_message,
)

NAME = "ChatGPT's export"

_NOT_SAID = {"user_editable_context", "model_editable_context", "reasoning_recap"}
"""Kinds of content that nobody said in the conversation: the account's instructions, how long the model thought."""

_SAID = {
    "text",
    "multimodal_text",
    "code",
    "execution_output",
    "tether_quote",
    "tether_browsing_display",
    "system_error",
}
"""Kinds of content that may be empty."""


def conversation(value: Mapping[str, Any]) -> ImportedConversation | Unreadable:
    """A conversation of the export."""
    unreadable = UnreadableList()
    title, begun, given = value.get("title"), value.get("create_time"), value.get("mapping")
    if not isinstance(given, dict):
        return Unreadable(f"{title or 'a conversation'!a:.80}: its mapping is {name_of_type(given)}, and no object")
    mapping = cast("Mapping[str, object]", given)
    parents = {child: own for own, node in mapping.items() for child in _children(node)}
    calls: dict[str, str | None] = {}
    nodes: list[Node] = []
    for number, (own, node) in enumerate(mapping.items(), 1):
        place = f"{title or 'a conversation'!a:.80}, message {number} ({own:.80})"
        if not isinstance(node, dict):
            unreadable.append(Unreadable(f"{place}: it is {name_of_type(node)}, and no object"))
            continue
        fields = cast("Mapping[str, Any]", node)
        parent = text_of(fields.get("parent")) or None
        if parent is not None and not isinstance(mapping.get(parent), dict) and parent in parents:
            unreadable.append(missing_parent(place, parent, "it follows the nearest one before that"))
            parent = parents[parent]
        message = try_message(partial(_message, own, fields, begun, place, unreadable), place, unreadable)
        nodes.append(Node(own, parent, place, message))
    by_id = {node.id: node for node in nodes}
    nodes = [_answering(node, mapping_of(mapping[node.id]), by_id, calls, unreadable) for node in nodes]
    name, current = value.get("conversation_id") or value.get("id"), text_of(value.get("current_node"))
    return conversation_of(NAME, name, nodes, title=title, current=current, unreadable=unreadable)


def _children(node: object) -> list[str]:
    children = mapping_of(node).get("children")
    return [one for one in cast("list[object]", children) if isinstance(one, str)] if isinstance(children, list) else []


def _message(
    id: str, node: Mapping[str, Any], begun: object, place: str, unreadable: list[Unreadable]
) -> Message | None:
    """None for what is hidden or says nothing. A tool's result is read as if it answered a call of its own id. Raises
    InvalidMessage."""
    message, metadata = mapping_of(node.get("message")), mapping_of(mapping_of(node.get("message")).get("metadata"))
    given, role = message.get("content"), mapping_of(message.get("author")).get("role")
    for name, value, known in (("message", node.get("message"), dict), ("content", given, (dict, str))):
        if not isinstance(value, known) and value is not None:
            raise InvalidMessage(f"its {name} is {name_of_type(value)}, which has no place there")
    content: Mapping[str, Any] = {"parts": [given]} if isinstance(given, str) else mapping_of(given)
    kind = text_of(content.get("content_type"))
    if kind in _NOT_SAID or metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    at = time_of(message.get("create_time")) or time_of(begun)
    names = {text_of(one.get("id")): text_of(one.get("name")) for one in objects_of(metadata.get("attachments"))}
    if kind == "thoughts":
        words = "\n\n".join(_thoughts(content))
        if not words and content.get("thoughts"):
            raise InvalidMessage("it has thoughts, but no text in them that can be read")
        return message_of(reasoning_item(words), at, wire=REASONING, id=id) if words else None
    words = "\n".join(one for one in _texts(content, names, place, unreadable) if one)
    words += "".join(f"\n[attachment: {name}]" for name in names.values() if name and f": {name}]" not in words)
    words, recipient = words.strip("\n"), message.get("recipient")
    if not words.strip():
        if content and kind not in _SAID:
            raise InvalidMessage(f"its content is of the type {kind!a:.80}, and has no text that can be read")
        return None
    if role == "assistant" and isinstance(recipient, str) and recipient not in ("all", ""):
        return message_of(tool_call(recipient, _arguments(words), id), at, id=id)
    if role == "tool":
        return message_of({"role": "tool", "tool_call_id": id, "content": words}, at, id=id)
    return message_of({"role": role, "content": words}, at, id=id)


def _answering(
    node: Node,
    given: Mapping[str, Any],
    nodes: Mapping[str, Node],
    calls: dict[str, str | None],
    unreadable: list[Unreadable],
) -> Node:
    """A tool's result as the answer to the nearest call before it."""
    if node.message is None or not node.message.answers:
        return node
    way, at = list[str](), node.parent
    while at is not None and at in nodes and at not in calls and at not in way:
        before = nodes[at].message
        if before is not None and before.calls:
            calls[at] = before.calls[0]
            break
        way.append(at)
        at = nodes[at].parent
    call = calls.get(at or "")
    calls.update(dict.fromkeys(way, call))
    if call is None:
        return node
    message = node.message
    item = {**message.payload, "tool_call_id": call}
    answer = try_message(lambda: message_of(item, message.said_at, id=node.id), node.place, unreadable)
    return Node(node.id, node.parent, node.place, answer)


def _arguments(words: str) -> object:
    try:
        return cast("object", json.loads(words))
    except (ValueError, RecursionError):
        return words


def _texts(
    content: Mapping[str, Any], names: Mapping[str, str], place: str, unreadable: list[Unreadable]
) -> Iterator[str]:
    """What a content says; an image, a file and a sound by its name."""
    for key in ("title", "url", "name", "text", "result", "summary", "content"):
        if (words := text_of(content.get(key))) and words.strip():
            yield words
    parts = content.get("parts")
    if not isinstance(parts, list | None):
        unreadable.append(Unreadable(f"{place}: its parts are {name_of_type(parts)}, and no list"))
    for part in cast("list[object]", parts) if isinstance(parts, list) else []:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield _part(cast("Mapping[str, Any]", part), names)
        elif part is not None:
            unreadable.append(Unreadable(f"{place}: a part of it is {name_of_type(part)}"))


def _part(part: Mapping[str, Any], names: Mapping[str, str]) -> str:
    if words := text_of(part.get("text")):
        return words
    what = "image" if part.get("content_type") == "image_asset_pointer" else text_of(part.get("content_type")) or "part"
    pointer = text_of(part.get("asset_pointer")).rpartition("/")[2]
    return f"[{what}: {names.get(pointer) or pointer}]" if pointer else f"[{what}]"


def _thoughts(content: Mapping[str, Any]) -> Iterator[str]:
    for one in objects_of(content.get("thoughts")):
        if words := "\n".join(filter(None, (text_of(one.get("summary")), text_of(one.get("content"))))):
            yield words
