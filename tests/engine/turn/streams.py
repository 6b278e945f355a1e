"""Streamed answers as OpenAI and Anthropic send them, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tests.providers.models.endpoint import Answer

STREAM = {"Content-Type": "text/event-stream"}


def events(found: Iterable[dict[str, Any]], *, named: bool, end: str = "") -> Answer:
    lines = [(f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in found]
    return Answer(body="".join(lines) + end, headers=STREAM)


def chat(*pieces: str, calls: Sequence[tuple[str, str, str]] = (), finish: str | None = "stop") -> Answer:
    """A chat completion in chunks: the text piece by piece, then calls (id, name, arguments), each in two pieces."""

    def chunk(delta: dict[str, Any], ended: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": ended}
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}

    found = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces)]
    for at, (call, name, arguments) in enumerate(calls):
        begins = {"index": at, "id": call, "type": "function", "function": {"name": name, "arguments": arguments[:3]}}
        found.append(chunk({"tool_calls": [begins]}))
        found.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": arguments[3:]}}]}))
    if finish is not None:
        found.append(chunk({}, "tool_calls" if calls else finish))
    return events(found, named=False, end="data: [DONE]\n\n" if finish is not None else "")


def response(*pieces: str, calls: Sequence[tuple[str, str, str]] = (), finish: bool = True) -> Answer:
    """A response of the Responses API in events."""
    text = "".join(pieces)
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    output: list[dict[str, Any]] = [message] if pieces else []
    output += [
        {"id": f"fc_{at}", "type": "function_call", "call_id": call, "name": name, "arguments": arguments,
         "status": "completed"}
        for at, (call, name, arguments) in enumerate(calls)
    ]  # fmt: skip
    whole = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "small", "output": [], "status": "in_progress",
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}, "error": None,
        "instructions": None, "incomplete_details": None, "temperature": 1.0, "top_p": 1.0,
    }  # fmt: skip
    deltas = [
        {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "delta": piece, "logprobs": []}
        for piece in pieces
    ]  # fmt: skip
    found = [{"type": "response.created", "response": whole}, *deltas]
    if finish:
        found.append({"type": "response.completed", "response": {**whole, "status": "completed", "output": output}})
    return events([{**one, "sequence_number": at} for at, one in enumerate(found)], named=True)


def message(*pieces: str, calls: Sequence[tuple[str, str, str]] = (), finish: bool = True) -> Answer:
    """A message of Anthropic's API in events."""
    usage = {"input_tokens": 9, "output_tokens": 1}
    begun = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "small", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    found: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    blocks = [("text", pieces, {"type": "text", "text": ""})] if pieces else []
    blocks += [
        ("input_json", (arguments[:3], arguments[3:]), {"type": "tool_use", "id": call, "name": name, "input": {}})
        for call, name, arguments in calls
    ]
    for at, (kind, grows, block) in enumerate(blocks):
        found.append({"type": "content_block_start", "index": at, "content_block": block})
        field = "text" if kind == "text" else "partial_json"
        found += [
            {"type": "content_block_delta", "index": at, "delta": {"type": f"{kind}_delta", field: piece}}
            for piece in grows
        ]
        if finish:
            found.append({"type": "content_block_stop", "index": at})
    if finish:
        reason = "tool_use" if calls else "end_turn"
        found.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
        found.append({"type": "message_stop"})
    return events(found, named=True)
