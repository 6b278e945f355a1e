"""What a model has sealed in its answers for itself: encrypted reasoning, and thoughts with a signature."""

from __future__ import annotations

import dataclasses
from typing import Final, cast

from hitherto.core.log.message import ANTHROPIC, RESPONSES, Message, Payload, to_json

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
