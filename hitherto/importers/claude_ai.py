"""Claude.ai's data export: a list of conversations with `chat_messages`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from hitherto.core.log.message import ANTHROPIC, CHAT
from hitherto.importers.imported import (
    ImportedConversation,
    Node,
    Unreadable,
    UnreadableList,
    conversation_of,
    mapping_of,
    message_of,
    name_of_type,
    objects_of,
    text_of,
    time_of,
    try_message,
)

NAME = "Claude's export"

_ROOT = "00000000-0000-4000-8000-000000000000"
"""The parent of what begins a conversation."""

_ROLES = {"human": "user", "assistant": "assistant"}


def conversation(value: Mapping[str, Any]) -> ImportedConversation | Unreadable:
    """A conversation of the export. A message with results of tools in it becomes several, in their order."""
    unreadable = UnreadableList()
    title = value.get("name")
    nodes, last, current = list[Node](), dict[str, str](), text_of(value.get("current_leaf_message_uuid"))
    listed, where = value.get("chat_messages"), f"{title or 'a conversation'!a:.80}"
    if not isinstance(listed, list):
        return Unreadable(f"{where}: its chat_messages are {name_of_type(listed)}, and no list")
    messages: list[tuple[str, str, Mapping[str, Any], list[dict[str, Any]]]] = []
    for number, given in enumerate(cast("list[object]", listed), 1):
        if not isinstance(given, dict):
            unreadable.append(Unreadable(f"{where}, message {number}: it is {name_of_type(given)}, and no object"))
            continue
        message = cast("Mapping[str, Any]", given)
        uuid = text_of(message.get("uuid")) or f"message-{number}"
        place = f"{where}, message {number} ({uuid:.80})"
        messages.append((place, uuid, message, list(_items(message, uuid, partial(_tell, unreadable, place)))))
        last[uuid] = _part_id(uuid, max(len(messages[-1][-1]) - 1, 0))
    before: str | None = None
    for place, uuid, message, parts in messages:
        at = time_of(message.get("created_at")) or time_of(value.get("created_at"))
        parent = message.get("parent_message_uuid")
        parent = before if not isinstance(parent, str) else None if parent == _ROOT else last.get(parent, parent)
        for part, item in enumerate(parts or [None]):
            own = _part_id(uuid, part)
            wire = CHAT if item is None or isinstance(item["content"], str) else ANTHROPIC
            read_message = partial(message_of, item or {}, at, wire=wire, id=own)
            kept = None if item is None else try_message(read_message, place, unreadable)
            nodes.append(Node(own, parent, place, kept))
            parent = own
        before = parent
    end = last.get(current) or before
    return conversation_of(NAME, value.get("uuid"), nodes, title=title, current=end, unreadable=unreadable)


def _tell(unreadable: list[Unreadable], place: str, words: str) -> None:
    unreadable.append(Unreadable(f"{place}: {words}"))


def _part_id(id: str, part: int) -> str:
    return f"{id}#{part + 1}" if part else id


def _items(message: Mapping[str, Any], id: str, tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The items of a message: what it says and which tools it calls, what these gave, what it says then, and so on. A
    sender that is not known is its item's role, which cannot be read then. What has another shape is told."""
    sender = message.get("sender")
    role = _ROLES.get(text_of(sender), sender)
    blocks, results, calls = list[dict[str, Any]](), False, list[str]()
    for number, given in enumerate(_blocks(message, "content", tell), 1):
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
    for one in _blocks(message, "attachments", tell):
        name, words = text_of(one.get("file_name")) or "text", text_of(one.get("extracted_content"))
        blocks.append(_text(f"[attachment: {name}]" + (f"\n{words}" if words.strip() else "")))
    files = _blocks(message, "files", tell)
    blocks += [_text(f"[file: {name}]") for one in files if (name := one.get("file_name"))]
    if blocks:
        yield _item(role, blocks, results=results)


def _blocks(message: Mapping[str, Any], name: str, tell: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    """The objects in a list of the message; a text is a block of text."""
    given = message.get(name)
    if not isinstance(given, list | str | None):
        tell(f"its {name} is {name_of_type(given)}, and no list")
    for one in cast("list[object]", given) if isinstance(given, list) else [given or None]:
        if isinstance(one, dict):
            yield cast("Mapping[str, Any]", one)
        elif isinstance(one, str) and name == "content":
            yield _text(one)
        elif one is not None and (isinstance(given, list | str)):
            tell(f"what is in its {name} is {name_of_type(one)}, and no object")


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
            if words := text_of(given.get("text")).strip():
                return _text(words)
            return _text(f"[{kind}]") if isinstance(kind, str) and kind not in ("token_budget", "flag") else None


def _words(part: Mapping[str, Any]) -> str:
    words = [text_of(part.get(key)) for key in ("title", "url", "text")]
    return "\n".join(filter(None, words)) or f"[{text_of(part.get('type')) or 'part'}]"


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
