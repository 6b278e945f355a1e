"""Requests in the three formats, in pieces."""

from __future__ import annotations

from typing import Any

Item = dict[str, Any]
Case = tuple[Item, str]
"""A request, and the reasons to refuse it, a line each."""

HI: Item = {"role": "user", "content": "Hi"}
OK: Item = {"role": "assistant", "content": "Hello"}
MB = 1024 * 1024


def call(id: str = "c1", name: str = "find", arguments: str = "{}") -> Item:
    """A chat message that makes a call."""
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str = "c1", content: object = "found") -> Item:
    return {"role": "tool", "tool_call_id": id, "content": content}


def function_call(call_id: str = "c1", **other: object) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "find", "arguments": "{}", **other}


def function_output(call_id: str = "c1", **other: object) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "found", **other}


def reasoning(**other: object) -> Item:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **other}


def said(*blocks: Item) -> Item:
    return {"role": "user", "content": list(blocks)}


def answered(*blocks: Item) -> Item:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str = "Hi", /, **other: object) -> Item:
    return {"type": "text", "text": words, **other}


def tool_use(id: str = "t1", name: str = "find", **other: object) -> Item:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **other}


def tool_result(id: str = "t1", **other: object) -> Item:
    return {"type": "tool_result", "tool_use_id": id, "content": "found", **other}


def thinking(signature: str = "s1") -> Item:
    return {"type": "thinking", "thinking": "Hm.", "signature": signature}


def image(data: str = "AAAA") -> Item:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def picture(url: str = "data:image/png;base64,AAAA") -> Item:
    return {"type": "image_url", "image_url": {"url": url}}


def chat(*messages: Item, **other: object) -> Item:
    return {"messages": [HI, *messages], **other}


def responses(*items: Item, **other: object) -> Item:
    return {"input": [{"role": "user", "content": "Hi"}, *items], **other}


def anthropic(*messages: Item, **other: object) -> Item:
    return {"messages": [HI, *messages], **other}


NO_FIELD = "is not a field that the API takes here"
CHARACTERS = "only letters, digits, _ and - are accepted"
NOT_ANSWERED = "has no tool message right after its message"
UNANSWERED = "has no result after it"
NO_CALL = "is the result of no call before it"
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
