"""What items cost in tokens, before they are sent.

For a chat message of plain text this is OpenAI's own formula, so it is exact where the counter is (source:
OpenAI Cookbook, "How to count tokens with tiktoken", part 6: 3 tokens a message, the tokens of role, content and
name, 1 more for a name, and 3 for the start of the reply). How the APIs put anything structured before a model is
not published. There the figure is an upper bound: the item's JSON, whose keys, quotes and ids cost more than what
stands for them. An image costs what the counter charges for one, never the length of its base64 text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from hitherto.core.context.budget import TokenCounter
from hitherto.core.log.message import Payload, containers

PER_ITEM = 3
PER_NAME = 1
REPLY = 3
PER_TOOL = 10
TOOLS = 12
PER_CHOICE = 3
"""The most that the Cookbook's figures (same page, part 7) charge for a function, for having any, and for a value
of an enum, beside the words in it: small schemas would otherwise cost more than their JSON."""

_NOTHING: tuple[object, ...] = (None, "", [], {})
_FREE = frozenset({"type", "text", "logprobs", "cache_control", "prompt_cache_breakpoint"})


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def structured(value: object, counter: TokenCounter) -> int:
    """A bound for any JSON value: its compact text."""
    return counter.count(compact(value))


def message_tokens(item: Payload, counter: TokenCounter, free: Collection[str] = ()) -> int:
    """The cost of an item with a role and content. `free` are fields that no model is shown."""
    total = PER_ITEM
    for key, value in item.items():
        if key == "content":
            total += counter.count(value) if isinstance(value, str) else content(value, counter)
        elif key in ("role", "name") and isinstance(value, str):
            total += counter.count(value) + (PER_NAME if key == "name" else 0)
        elif value not in _NOTHING and key not in free:
            total += structured({key: value}, counter)
    return total


def content(value: object, counter: TokenCounter) -> int:
    """The cost of an item's content or a tool's result: a text, a list of parts, or one part."""
    if isinstance(value, str):
        return counter.count(value)
    if isinstance(value, list):
        return sum(content(part, counter) for part in cast("list[object]", value))
    if isinstance(value, dict):
        return _part(cast("Payload", value), counter)
    return 0 if value is None else structured(value, counter)


def _part(part: Payload, counter: TokenCounter) -> int:
    kind, words, inner = part.get("type"), part.get("text"), part.get("content")
    if kind in ("image_url", "input_image", "computer_screenshot") or (kind == "image" and "source" in part):
        return _image(part, counter)
    if kind in ("text", "input_text", "output_text") and isinstance(words, str):
        rest = {key: value for key, value in part.items() if key not in _FREE and value not in _NOTHING}
        return counter.count(words) + (structured(rest, counter) if rest else 0)
    if kind == "tool_result" and isinstance(inner, list):
        return structured({**part, "content": None}, counter) + content(cast("list[object]", inner), counter)
    return structured(part, counter)


def _image(part: Payload, counter: TokenCounter) -> int:
    inner = part.get("image_url")
    nested = cast("Payload", inner).get("detail") if isinstance(inner, dict) else None
    low = "low" in (part.get("detail"), nested)
    return counter.low_image_tokens if low else counter.image_tokens


def system_text(text: str, counter: TokenCounter) -> int:
    """The cost of a system text sent as a separate message. If several are sent as one, the sum is an upper bound: the
    blank line between two costs less than the frame of a message."""
    return PER_ITEM + counter.count("system") + counter.count(text)


def openai_tools(tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
    """A bound for tool schemas: their JSON, and the most that OpenAI's published figures add to it."""
    if not tools:
        return 0
    schemas = structured(list(tools), counter)
    choices = sum(_choices(container) for container, _ in containers(list(tools)))
    return schemas + TOOLS + PER_TOOL * len(tools) + PER_CHOICE * choices


def _choices(container: object) -> int:
    values = cast("Payload", container).get("enum") if isinstance(container, dict) else None
    return len(cast("list[object]", values)) if isinstance(values, list) else 0
