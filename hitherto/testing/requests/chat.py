"""What OpenAI chat completions, and the servers that speak it, refuse beyond the shape of a request.

Sources: the errors of the API, quoted where a rule follows from one; the SDK's types and docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hitherto.testing.requests.fields import (
    MOST_IMAGES,
    Found,
    Path,
    check_arguments,
    check_cache_key,
    check_count,
    check_length,
    check_name,
    mapping,
    objects,
    shown,
)

_MOST: Final = 128

_NOT_IN_NAMES: Final = re.compile(r"[\s<|\\/>]")
"""Source: "Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'"."""


def check(request: Mapping[str, Any], *, alternate: bool) -> Found:
    messages = objects(request.get("messages"), ("messages",))
    for key in ("messages", "tools"):
        if request.get(key) == []:
            yield (key,), "is an empty list"  # "empty array. Expected an array with minimum length 1"
    images = 0
    for path, message in messages:
        yield from _check_message(path, message)
        images += sum(part.get("type") == "image_url" for _, part in objects(message.get("content"), ()))
    yield from _check_results(messages)
    yield from check_count(images, (), most=MOST_IMAGES)
    yield from check_cache_key(request)
    yield from _check_calls(request.get("tools"), ("tools",))
    for path, tool in objects(request.get("tools"), ("tools",)):
        for kind in ("function", "custom"):
            yield from check_name(mapping(tool.get(kind)).get("name"), (*path, kind, "name"), longest=64)
    if alternate:
        yield from _check_alternation(messages)


def _check_message(path: Path, message: Mapping[str, Any]) -> Found:
    for key in ("content", "tool_calls"):
        if message.get(key) == []:
            yield (*path, key), "is an empty list"  # "empty array. Expected an array with minimum length 1"
    if message.get("role") == "function":
        yield from check_name(message.get("name"), (*path, "name"), longest=64)
    elif "name" in message:
        yield from check_length(message["name"], (*path, "name"), longest=64)
        if isinstance(name := message["name"], str) and _NOT_IN_NAMES.search(name):
            yield (*path, "name"), f"is {shown(name)}; no white space and none of < | \\ / > is accepted"
    if message.get("role") == "tool":
        yield from check_length(message.get("tool_call_id"), (*path, "tool_call_id"), longest=40)
    if message.get("role") != "assistant":
        return
    if all(message.get(key) is None for key in ("content", "tool_calls", "function_call", "audio", "refusal")):
        # "Invalid value for 'content': expected a string, got null"
        yield (*path, "content"), "is missing, and the message has no tool_calls in place of it"
    legacy = mapping(message.get("function_call"))
    # "does not match '^[a-zA-Z0-9_-]{1,64}$' - 'messages.1.function_call.name'"
    yield from check_name(legacy.get("name"), (*path, "function_call", "name"), longest=64)
    yield from check_arguments(legacy.get("arguments"), (*path, "function_call", "arguments"))
    yield from _check_calls(message.get("tool_calls"), (*path, "tool_calls"))
    ids: set[object] = set()
    for place, call in objects(message.get("tool_calls"), (*path, "tool_calls")):
        # "string too long. Expected a string with maximum length 40"
        yield from check_length(call.get("id"), (*place, "id"), longest=40)
        if isinstance(call.get("id"), str):
            if call["id"] in ids:
                yield (*place, "id"), "is the id of another call of the message"
            ids.add(call["id"])
        for kind in ("function", "custom"):
            called = mapping(call.get(kind))
            # "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"
            yield from check_name(called.get("name"), (*place, kind, "name"), longest=64)
            yield from check_arguments(called.get("arguments"), (*place, kind, "arguments"))


def _check_calls(listed: object, path: Path) -> Found:
    """Calls of a message, and tools: "array too long. Expected an array with maximum length 128"."""
    if (count := len(objects(listed, path))) > _MOST:
        yield path, f"has {count} elements; at most {_MOST} are accepted"


def _check_results(messages: Sequence[tuple[Path, Mapping[str, Any]]]) -> Found:
    """Each call has one result, right after the message that made it: "An assistant message with 'tool_calls' must be
    followed by tool messages responding to each 'tool_call_id'", "messages with role 'tool' must be a response to a
    preceeding message with 'tool_calls'", "Duplicate value for 'tool_call_id'". A later message may use an id again."""
    waiting: dict[object, Path] = {}
    answered: set[object] = set()
    for path, message in messages:
        if message.get("role") == "tool":
            called = message.get("tool_call_id")
            if not isinstance(called, str):
                continue
            if called in answered:
                yield path, "is the second result of its call"
            elif waiting.pop(called, None) is None:
                yield path, "is the result of no call in the assistant message before it"
            else:
                answered.add(called)
            continue
        for place in waiting.values():
            yield place, "has no tool message right after its message"
        calls = objects(message.get("tool_calls"), (*path, "tool_calls"))
        waiting = {call["id"]: place for place, call in calls if isinstance(call.get("id"), str)}
        answered = set()
    for place in waiting.values():
        yield place, "has no tool message right after its message"


def _check_alternation(messages: Sequence[tuple[Path, Mapping[str, Any]]]) -> Found:
    """Mistral's template: "After the optional system message, conversation roles must alternate user and assistant
    roles except for tool calls and results". Gemma's and Llama's are the same without tools."""
    expected = "user"
    for place, (path, message) in enumerate(messages):
        role = message.get("role")
        if role == "tool" or message.get("tool_calls") or (place == 0 and role == "system"):
            continue
        if role not in ("user", "assistant"):
            yield path, f"has the role {role!r}; templates know no other system message than the first message"
            continue
        if role != expected:
            yield path, f"is of the {role} where one of the {expected} is due"
        expected = "assistant" if role == "user" else "user"
