"""Claude.ai's data export: a list of conversations with `chat_messages`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hitherto.core.log.message import ANTHROPIC, CHAT
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

NAME = "Claude's export"

_ROLES = {"human": "user", "assistant": "assistant"}


def conversation(value: Mapping[str, Any]) -> ImportedConversation | Unreadable:
    """A conversation of the export. A message with results of tools in it becomes several, in their order."""
    unreadable: list[Unreadable] = []
    title = value.get("name")
    nodes, last, current = list[Node](), dict[str, str](), text_of(value.get("current_leaf_message_uuid"))
    messages = list(objects_of(value.get("chat_messages")))
    ids = [text_of(message.get("uuid")) or f"message-{number}" for number, message in enumerate(messages, 1)]
    items = [list(_items(message, uuid)) for uuid, message in zip(ids, messages, strict=True)]
    for uuid, parts in zip(ids, items, strict=True):
        last[uuid] = _part_id(uuid, max(len(parts) - 1, 0))
    before: str | None = None
    for number, (uuid, message, parts) in enumerate(zip(ids, messages, items, strict=True), 1):
        place = f"{title or 'a conversation'!a:.80}, message {number} ({uuid:.80})"
        at = time_of(message.get("created_at")) or time_of(value.get("created_at"))
        parent = message.get("parent_message_uuid")
        parent = last.get(parent) if isinstance(parent, str) else before
        for part, item in enumerate(parts or [None]):
            own = _part_id(uuid, part)
            wire = CHAT if item is None or isinstance(item["content"], str) else ANTHROPIC
            made_of = partial(message_of, item or {}, at, wire=wire, id=own)
            kept = None if item is None else try_message(made_of, place, unreadable)
            nodes.append(Node(own, parent, place, kept))
            parent = own
        before = parent
    end = last.get(current) or before
    return conversation_of(NAME, value.get("uuid"), nodes, title=title, current=end, unreadable=unreadable)


def _part_id(id: str, part: int) -> str:
    return f"{id}#{part + 1}" if part else id


def _items(message: Mapping[str, Any], id: str) -> Iterator[dict[str, Any]]:
    """The items of a message: what it says and which tools it calls, what these gave, what it says then, and so on. A
    sender that is not known is its item's role, which cannot be read then."""
    sender = message.get("sender")
    role = _ROLES.get(text_of(sender), sender)
    blocks, results, calls = list[dict[str, Any]](), False, list[str]()
    for number, given in enumerate(objects_of(message.get("content")), 1):
        block = _block(given, calls, f"{id}-{number}")
        if block is None:
            continue
        is_result = block["type"] == "tool_result"
        if blocks and is_result != results:
            yield _item(role, blocks, results=results)
            blocks = []
        results = is_result
        blocks.append(block)
    if not blocks and (words := text_of(message.get("text"))).strip():
        blocks, results = [_text(words)], False
    for one in objects_of(message.get("attachments")):
        name, words = text_of(one.get("file_name")) or "text", text_of(one.get("extracted_content"))
        blocks.append(_text(f"[attachment: {name}]" + (f"\n{words}" if words.strip() else "")))
    blocks += [_text(f"[file: {name}]") for one in objects_of(message.get("files")) if (name := one.get("file_name"))]
    if blocks:
        yield _item(role, blocks, results=results)


def _item(role: object, blocks: list[dict[str, Any]], *, results: bool) -> dict[str, Any]:
    if all(block["type"] == "text" for block in blocks):
        return {"role": role, "content": "\n\n".join(block["text"] for block in blocks)}
    return {"role": "user" if results else role, "content": blocks}


def _block(given: Mapping[str, Any], calls: list[str], made_id: str) -> dict[str, Any] | None:
    """A block as Anthropic's API has it; None for one that says nothing. `calls` are the ids that wait for a result:
    older exports have none."""
    match given.get("type"):
        case "text":
            return _text(words) if (words := text_of(given.get("text"))).strip() else None
        case "thinking":
            words = text_of(given.get("thinking"))
            return {"type": "thinking", "thinking": words} if words.strip() else None
        case "tool_use":
            calls.append(text_of(given.get("id")) or made_id)
            name, arguments = text_of(given.get("name")) or "tool", mapping_of(given.get("input"))
            return {"type": "tool_use", "id": calls[-1], "name": name, "input": dict(arguments)}
        case "tool_result":
            call = text_of(given.get("tool_use_id")) or (calls[0] if calls else made_id)
            if call in calls:
                calls.remove(call)
            content = given.get("content")
            texts = [content] if isinstance(content, str) else [*map(_words, objects_of(content))]
            told = {"is_error": True} if given.get("is_error") is True else {}
            parts = [_text(words) for words in texts if words.strip()]
            return {"type": "tool_result", "tool_use_id": call, "content": parts or "", **told}
        case kind:
            return _text(f"[{kind}]") if isinstance(kind, str) and kind not in ("token_budget", "flag") else None


def _words(part: Mapping[str, Any]) -> str:
    words = [text_of(part.get(key)) for key in ("title", "url", "text")]
    return "\n".join(filter(None, words)) or f"[{text_of(part.get('type')) or 'part'}]"


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
