"""Wire formats: how messages are read from the items of an API, and written for the same API or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Call, Message
from hitherto.errors import InvalidInput
from hitherto.wire.anthropic import AnthropicFormat
from hitherto.wire.chat import ChatFormat, assistant, system, tool_result, user
from hitherto.wire.fields import own_id, shown
from hitherto.wire.neutral import message_from
from hitherto.wire.responses import ResponsesFormat

__all__ = [
    "CODECS",
    "AnthropicFormat",
    "Call",
    "ChatFormat",
    "ResponsesFormat",
    "assistant",
    "codec",
    "read",
    "system",
    "tool_result",
    "user",
]

CODECS: Final[dict[str, WireFormat]] = {CHAT: ChatFormat(), RESPONSES: ResponsesFormat(), ANTHROPIC: AnthropicFormat()}

_ANTHROPIC_BLOCKS = {
    *("tool_use", "tool_result", "thinking", "redacted_thinking", "document", "search_result"),
    *("server_tool_use", "mcp_tool_use", "mcp_tool_result"),
}
_ANTHROPIC_FIELDS = (("image", "source"), ("text", "citations"))
_RESPONSES_PARTS = {"input_text", "output_text", "input_image", "input_file"}


def codec(name: str) -> WireFormat:
    """The codec of a wire format. Raises InvalidInput for an unknown name."""
    found = CODECS.get(name) if isinstance(cast(object, name), str) else None
    if found is None:
        raise InvalidInput(f"the wire format is {shown(name)}; it must be one of {', '.join(CODECS)}")
    return found


def read(payload: Message | Mapping[str, Any], wire: str | None = None, *, take_id: bool = True) -> Message:
    """A message as it is, or one read from an API's item.

    Without `wire` the format is detected by what only one format has: the types of Responses items, the block
    types of Anthropic and their `citations`; anything else is chat. The message has the item's `id`; with
    `take_id=False` it has none, whatever the item's is. Raises InvalidMessage for what that API would not send or
    accept, and for an id that cannot be kept; InvalidInput for a wire format that is not known.
    """
    if isinstance(payload, Message):
        return payload
    message = message_from(payload, detected(payload) if wire is None else codec(wire).name)
    return message.with_id(own_id(payload, message.wire)) if take_id and "id" in payload else message


def detected(payload: object) -> str:
    """The format that an item's shape tells; chat completions where nothing does."""
    if not isinstance(payload, Mapping):
        return CHAT
    item = cast("Mapping[object, object]", payload)
    content = item.get("content")
    if "stop_reason" in item and item.get("role") == "assistant":
        return ANTHROPIC
    if isinstance(content, list):
        listed = cast("list[object]", content)
        parts = [cast("Mapping[object, object]", part) for part in listed if isinstance(part, Mapping)]
        types = {kind for part in parts if isinstance(kind := part.get("type"), str)}
        fields = any(part.get("type") == kind and key in part for part in parts for kind, key in _ANTHROPIC_FIELDS)
        if fields or types & _ANTHROPIC_BLOCKS:
            return ANTHROPIC
        if types & _RESPONSES_PARTS:
            return RESPONSES
    return RESPONSES if "type" in item else CHAT
