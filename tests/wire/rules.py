"""What the APIs demand of a request, and what a model hears in it.

Written from the APIs' own types and documentation, not from our codecs, so that a mistake has to be made twice to go
unseen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES, Payload

_SHAPES = {
    CHAT: TypeAdapter[Any](ChatCompletionMessageParam),
    RESPONSES: TypeAdapter[Any](ResponseInputItemParam),
}


@dataclass
class Heard:
    """Texts and images in order with who says them, calls and results by id."""

    texts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    images: list[str] = field(default_factory=list[str])
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict[str, tuple[str, Any]])
    results: dict[str, str] = field(default_factory=dict[str, str])

    def hear(self, role: str, part: Any) -> None:
        match part:
            case {"type": "text" | "input_text" | "output_text", "text": text}:
                self.texts.append((role, text))
            case {"type": "image_url", "image_url": {"url": url}} | {"type": "input_image", "image_url": url}:
                self.images.append(url)
            case {"type": "image", "source": {"type": "url", "url": url}}:
                self.images.append(url)
            case {"type": "image", "source": {"media_type": kind, "data": data}}:
                self.images.append(f"data:{kind};base64,{data}")
            case {"type": "tool_use", "id": call, "name": name, "input": given}:
                self.calls[call] = (name, given)
            case {"type": "tool_result", "tool_use_id": call}:
                self.results[call] = joined(part.get("content"))
            case _:
                raise AssertionError(part)


def joined(content: Any) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content or []
    return "\n".join(part["text"] for part in parts)


def blocks(content: Any) -> list[Payload]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def heard(items: Sequence[Payload]) -> Heard:
    found = Heard()
    for item in items:
        match item:
            case {"type": "function_call", "call_id": call, "name": name, "arguments": given}:
                found.calls[call] = (name, json.loads(given))
            case {"type": "custom_tool_call", "call_id": call, "name": name, "input": given}:
                found.calls[call] = (name, given)
            case {"type": "function_call_output" | "custom_tool_call_output", "call_id": call, "output": output}:
                found.results[call] = joined(output)
            case {"type": "reasoning"}:
                pass
            case {"role": "tool", "tool_call_id": call, "content": output}:
                found.results[call] = joined(output)
            case _:
                for part in blocks(item["content"]):
                    found.hear(item["role"], part)
                for call in item.get("tool_calls", []):
                    given = call[call["type"]]
                    written = given["input"] if call["type"] == "custom" else json.loads(given["arguments"])
                    found.calls[call["id"]] = (given["name"], written)
    return found


def assert_valid(wire: str, items: Sequence[Payload]) -> None:
    """Each item has the shape its API declares."""
    if wire in _SHAPES:
        for item in items:
            _SHAPES[wire].validate_python(item)
        return
    for item in items:
        assert set(item) == {"role", "content"}
        assert item["role"] in ("user", "assistant", "system")  # which is sent as a user's, between tags
        found = blocks(item["content"])
        assert found
        for block in found:
            assert block["type"] in ("text", "image", "tool_use", "tool_result")
            assert block["type"] != "text" or block["text"].strip()


def assert_paired(wire: str, items: Sequence[Payload]) -> None:
    """Every call has its results where the API demands them, and no result is without its call (promise 8)."""
    {CHAT: _paired_chat, RESPONSES: _paired_responses, ANTHROPIC: _paired_anthropic}[wire](items)


def _paired_chat(items: Sequence[Payload]) -> None:
    waiting: set[str] = set()
    for item in items:
        if item["role"] == "tool":
            assert item["tool_call_id"] in waiting
            waiting.remove(item["tool_call_id"])
        else:
            assert not waiting
            calls = cast("list[Payload]", item.get("tool_calls") or [])
            waiting = {call["id"] for call in calls}
            assert len(waiting) == len(calls)
    assert not waiting


def _paired_responses(items: Sequence[Payload]) -> None:
    waiting: dict[str, str] = {}
    for item in items:
        kind: str = item.get("type", "message")
        if kind.endswith("_output"):
            assert waiting.pop(item["call_id"]) == kind.removesuffix("_output")
        elif kind.endswith("_call") and "call_id" in item:
            waiting[item["call_id"]] = kind
    assert not waiting


def _paired_anthropic(items: Sequence[Payload]) -> None:
    waiting: list[str] = []
    for item in items:
        found = blocks(item["content"])
        results = [block["tool_use_id"] for block in found if block["type"] == "tool_result"]
        assert sorted(results) == sorted(waiting)
        assert all(block["type"] == "tool_result" for block in found[: len(results)])
        waiting = [block["id"] for block in found if block["type"] == "tool_use"]
        assert not results or item["role"] == "user"
        assert not waiting or item["role"] == "assistant"
    assert not waiting
