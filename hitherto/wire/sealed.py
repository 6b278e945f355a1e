"""A model's thoughts: what it has sealed in its answers for itself, and what must follow them."""

from __future__ import annotations

import dataclasses
from typing import Final, cast

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Message, Payload, to_json

THOUGHTS: Final = {"thinking", "redacted_thinking"}
_SEALED: Final = {"reasoning", "compaction"}
_MARKS: Final = {RESPONSES: '"encrypted_content"', ANTHROPIC: "thinking"}


def is_sealed(message: Message) -> bool:
    """Whether it has something that its model sealed."""
    mark = _MARKS.get(message.wire)
    if mark is None or mark not in message.raw:
        return False
    item = message.payload
    if message.wire == RESPONSES:
        return item.get("type") in _SEALED
    blocks = cast("list[Payload]", item["content"]) if isinstance(item["content"], list) else []
    return any(block["type"] in THOUGHTS for block in blocks)


def opened(message: Message) -> Message | None:
    """The message without what its model sealed, None where that is all; the same object where it has nothing sealed.

    The ids of Responses' items go too: with them the API asks for the reasoning that they came with."""
    item, kept = message.payload, None
    match message.wire:
        case "openai.responses":
            if item.get("type") in _SEALED:
                return None
            kept = {key: value for key, value in item.items() if key != "id"} if _own_id(item) else None
        case "anthropic" if isinstance(item["content"], list):
            blocks = cast("list[Payload]", item["content"])
            left = [one for one in blocks if one["type"] not in THOUGHTS]
            if not left and blocks:
                return None
            kept = {**item, "content": left} if len(left) < len(blocks) else None
        case _:
            pass
    return message if kept is None else dataclasses.replace(message, raw=to_json(kept, what="the message"))


def _own_id(item: Payload) -> bool:
    """Whether it has an id that the API can do without."""
    return "id" in item and item.get("type", "message") in ("message", "function_call", "custom_tool_call")


def kind_of(item: Payload) -> str:
    """The type of an item of Responses, which messages and references may leave out."""
    return str(item.get("type") or ("message" if "role" in item else "item_reference"))


def leading_on(items: list[Payload], wire: str) -> list[Payload]:
    """The items without thoughts that nothing of the assistant's follows."""
    if wire == CHAT or not any(_thinks(item, wire) for item in items):
        return items
    kept: list[Payload] = []
    for item in reversed(items):
        goes_on = bool(kept) and _is_assistants(kept[-1], wire)
        one = item if goes_on else _without_last_thoughts(item, wire)
        kept += [] if one is None else [one]
    return kept[::-1]


def _without_last_thoughts(item: Payload, wire: str) -> Payload | None:
    if not _thinks(item, wire):
        return item
    if wire == RESPONSES:
        return None
    blocks = cast("list[Payload]", item["content"])
    end = next((at for at in range(len(blocks), 0, -1) if blocks[at - 1]["type"] not in THOUGHTS), 0)
    return item if end == len(blocks) else {**item, "content": blocks[:end]} if end else None


def _thinks(item: Payload, wire: str) -> bool:
    """Whether an item is reasoning, or has some. What the Agents SDK encrypts is kept as reasoning with JSON in it."""
    if wire == RESPONSES:
        return item.get("type") == "reasoning" and not str(item.get("encrypted_content")).startswith("{")
    content = item["content"]
    return isinstance(content, list) and any(block["type"] in THOUGHTS for block in cast("list[Payload]", content))


def _is_assistants(item: Payload, wire: str) -> bool:
    kind = "message" if wire != RESPONSES else kind_of(item)
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")
