"""Answers of the APIs as items for the log: whole responses, and streams of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from hitherto.core.log.message import Payload
from hitherto.wire.cost import compact

EMPTY = "[empty message]"
"""Stands in for a message of white space, or of nothing, which Anthropic's API refuses."""

_ENDED = {"completed", "incomplete", "failed", "cancelled"}

_SAYS_OR_CALLS = {"message", "function_call", "custom_tool_call"}


def chat_answer(response: Mapping[str, Any]) -> list[Payload] | None:
    """The message of a chat completion's first choice; None for anything else."""
    choices = _list(response.get("choices"))
    message = choices[0].get("message") if choices else None
    return [{"content": None, **_filled(cast("Payload", message))}] if isinstance(message, dict) else None


def responses_answer(response: Mapping[str, Any]) -> list[Payload] | None:
    """The output items of a response of the Responses API; None for anything else. Where the model said and called
    nothing, the last is a message without content."""
    output = response.get("output") if response.get("object", "response") == "response" else None
    if not isinstance(output, list):
        return None
    items = [_filled(item) for item in cast("list[Payload]", output)]
    ended = response.get("status", "completed") in ("completed", "incomplete")
    if ended and not any(item.get("type") in _SAYS_OR_CALLS or "call_id" in item for item in items):
        items.append({"type": "message", "role": "assistant", "content": []})
    return items


def anthropic_answer(response: Mapping[str, Any]) -> list[Payload] | None:
    """A message of Anthropic's API; None for anything else. After one of thoughts alone, one without content."""
    blocks = response.get("content") if response.get("type") == "message" else None
    return _anthropic_messages(cast("list[Payload]", blocks)) if isinstance(blocks, list) else None


def finish_reason(said: Mapping[str, Any]) -> str | None:
    """Why the model ended, in the API's word, by a whole answer or an event of any of the APIs: `finish_reason` of a
    chat completion, `stop_reason` of Anthropic's, the status of a response, or why it is incomplete. None where it does
    not say."""
    choices = _list(said.get("choices"))
    response = said.get("response", said)
    found: object = None
    if choices:
        found = choices[0].get("finish_reason")
    elif said.get("type") in ("message", "message_delta"):
        found = cast("Payload", said.get("delta") or said).get("stop_reason")
    elif isinstance(response, dict) and (response := cast("Payload", response)).get("status") in _ENDED:
        details: Payload = response.get("incomplete_details") or {}
        found = details.get("reason") or response["status"]
    return found if isinstance(found, str) else None


class ChatStream:
    """The chunks of a streamed chat completion; of several choices, the first. They add up by concatenation: OpenAI,
    "Streaming API responses", the object chat.completion.chunk."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, Payload] = {}
        self._ended = False

    @property
    def text(self) -> str:
        return "".join(self._content) or "".join(self._refusal)

    @property
    def complete(self) -> bool:
        return self._ended

    def take(self, event: Mapping[str, Any]) -> None:
        for choice in _list(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            delta: Payload = choice.get("delta") or {}
            self._content += [delta["content"]] if isinstance(delta.get("content"), str) else []
            self._refusal += [delta["refusal"]] if isinstance(delta.get("refusal"), str) else []
            for place, call in enumerate(_list(cast("object", delta.get("tool_calls")))):
                self._take_call(call, call.get("index", place))
            self._ended = self._ended or choice.get("finish_reason") is not None

    def items(self) -> list[Payload]:
        content, refusal = "".join(self._content), "".join(self._refusal)
        item: Payload = {"role": "assistant", "content": content or None}
        if refusal:
            item["refusal"] = refusal
        if self._calls:
            item["tool_calls"] = [self._calls[at] for at in sorted(self._calls)]
        elif not content and not refusal:
            item["content"] = ""
        return [item]

    def _take_call(self, delta: Payload, at: int) -> None:
        kind = delta.get("type") or self._calls.get(at, {}).get("type") or "function"
        if kind not in ("function", "custom") and delta.get("function") is None:  # a kind that no SDK knows yet
            self._calls[at] = {**self._calls.get(at, {}), **_filled({**delta, "index": None})}
            return
        kind = "custom" if kind == "custom" or delta.get("custom") else "function"
        field = "input" if kind == "custom" else "arguments"
        call = self._calls.setdefault(at, {"id": "", "type": kind, kind: {"name": "", field: ""}})
        said: Payload = delta.get(call["type"]) or {}
        call["id"] = call["id"] or delta.get("id") or ""
        for name in call[call["type"]]:
            piece = said.get(name) or ""
            call[call["type"]][name] += piece if isinstance(piece, str) else compact(piece)


class ResponsesStream:
    """The events of a streamed response: its items come whole with `response.completed`, its text in pieces before
    (OpenAI, "Streaming API responses", events of responses)."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._items: list[Payload] | None = None

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def complete(self) -> bool:
        return self._items is not None

    def take(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                self._pieces.append(str(event.get("delta") or ""))
            case "response.completed" | "response.incomplete":
                self._items = responses_answer(cast("Payload", event.get("response") or {})) or []
            case _:
                pass

    def items(self) -> list[Payload]:
        return self._items or []


class AnthropicStream:
    """The events of a streamed message of Anthropic's API (Anthropic, "Streaming messages"): blocks that begin, grow
    and end."""

    def __init__(self) -> None:
        self._blocks: dict[int, Payload] = {}
        self._inputs: dict[int, str] = {}
        self._ended = False

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self._blocks.values() if block.get("type") == "text")

    @property
    def complete(self) -> bool:
        return self._ended

    def take(self, event: Mapping[str, Any]) -> None:
        at = event.get("index", 0)
        match event.get("type"):
            case "content_block_start":
                self._blocks[at] = dict(cast("Payload", event.get("content_block") or {}))
            case "content_block_delta" if at in self._blocks:
                self._grow(at, cast("Payload", event.get("delta") or {}))
            case "message_stop":
                self._ended = True
            case _:
                pass

    def items(self) -> list[Payload]:
        for at, text in self._inputs.items():
            try:
                self._blocks[at]["input"] = json.loads(text) if text.strip() else {}
            except ValueError:
                self._blocks[at]["input"] = {"arguments": text}
        return _anthropic_messages([self._blocks[at] for at in sorted(self._blocks)])

    def _grow(self, at: int, delta: Payload) -> None:
        block = self._blocks[at]
        match delta.get("type"):
            case "text_delta":
                block["text"] = block.get("text", "") + str(delta.get("text") or "")
            case "thinking_delta":
                block["thinking"] = block.get("thinking", "") + str(delta.get("thinking") or "")
            case "signature_delta":
                block["signature"] = delta.get("signature") or ""
            case "input_json_delta":
                self._inputs[at] = self._inputs.get(at, "") + str(delta.get("partial_json") or "")
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            case _:
                pass


def _anthropic_messages(blocks: list[Payload]) -> list[Payload]:
    """Its blocks without empty texts, which the API sends and does not take back."""
    said = [_filled(block) for block in blocks if block.get("type") != "text" or str(block.get("text", "")).strip()]
    thoughts = said and all(block.get("type") in ("thinking", "redacted_thinking") for block in said)
    nothing: Payload = {"role": "assistant", "content": []}
    return [{"role": "assistant", "content": said}, nothing] if thoughts else [{**nothing, "content": said}]


def _filled(item: Payload) -> Payload:
    """The item without fields that are null: SDKs give them, and APIs refuse some of them."""
    return {name: value for name, value in item.items() if value is not None or name == "content"}


def _list(value: object) -> list[Payload]:
    return [one for one in cast("list[Any]", value) if isinstance(one, dict)] if isinstance(value, list) else []
