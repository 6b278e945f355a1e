"""Replaces tool payloads in a message. Types, tool names and call ids stay, so that its API still accepts the item;
only a call of an unknown kind gets the type of a function's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, cast

from hitherto.core.log.message import ANTHROPIC, CHAT, Message, Payload, storable, to_json
from hitherto.wire import cost
from hitherto.wire.neutral import NO_SCREENSHOT, ToolCall, ToolResult, readable, reader

Replace = Callable[[str, str], str | None]
"""Takes a tool's name and the readable text of its arguments or result. Returns the text to put there instead, or None
to leave it as it is."""

NAMELESS = "tool"
"""The name for a tool that neither the message nor its item names."""

REMOVED = "removed"
"""The key of the replacement, if a call's arguments were an object."""

_KNOWN = {"computer_call", "program", "shell_call", "local_shell_call", "apply_patch_call", "tool_search_call"}
"""Calls of Responses' own tools. What the API checks in one stays."""


def is_unknown_result(kind: str) -> bool:
    """Whether a type in Responses is that of the result of a call that no SDK knows yet."""
    return kind.endswith("_call_output") and kind.removesuffix("_output") not in _KNOWN


def redacted(message: Message, replace: Replace, *, calls: bool) -> Message:
    """`message` with each tool result replaced by what `replace` returns; with `calls`, each call's arguments too.

    The message stays in its own wire format. What has no room for a text stays as it is: a result without content, the
    tools that a search loaded, a program (its fingerprint covers it), a computer's actions; a screenshot becomes a
    single pixel. A call of an unknown kind becomes a function's: nobody knows where it has room. A message in which
    nothing changes is returned as the same object.
    """
    if not message.answers and not (calls and message.calls):
        return message
    read, item = reader(message.wire), message.payload
    says = read(item)
    parts = says.results or says.calls
    names = message.tools if len(message.tools) == len(parts) else [_name(item, part) for part in parts]
    texts = [_asked(replace, name, part) for name, part in zip(names, parts, strict=True)]
    if message.wire == CHAT:
        _put_in_chat(item, texts)
    elif message.wire == ANTHROPIC:
        _put_in_blocks(item, texts)
    elif texts[0] is not None:
        item |= (_result_of if says.results else _arguments_of)(item, texts[0])
    raw = to_json(item, what="the redacted message")
    return message if raw == message.raw else dataclasses.replace(message, raw=raw, text=read(item).text)


def _name(item: Payload, part: ToolCall | ToolResult) -> str:
    return storable(part.name) if isinstance(part, ToolCall) else _name_in(item)


def _name_in(item: Payload) -> str:
    """The tool that the item names. Items of the API's built-in tools have the name in their type."""
    name, kind = item.get("name"), item.get("type")
    if isinstance(name, str) and name:
        return storable(name)
    if not isinstance(kind, str) or kind in ("function_call_output", "custom_tool_call_output"):
        return NAMELESS
    return storable(kind.removesuffix("_output").removesuffix("_call")) or NAMELESS


def _asked(replace: Replace, name: str, part: ToolCall | ToolResult) -> str | None:
    if isinstance(part, ToolResult) and not part.parts:
        return None
    own = part.arguments if isinstance(part, ToolCall) else readable(dataclasses.replace(part, is_error=False))
    return replace(name, storable(own))


def _json_text(text: str) -> str:
    """Arguments as OpenAI's APIs have them: the text of a JSON object."""
    return cost.compact({REMOVED: text})


def _put_in_chat(item: Payload, texts: Sequence[str | None]) -> None:
    if item["role"] != "assistant":
        item.update({} if texts[0] is None else {"content": texts[0]})
        return
    calls = list(item.get("tool_calls") or [])
    if item.get("function_call") is not None:
        calls.append({"function": item["function_call"]})
    for call, text in zip(calls, texts, strict=True):
        if text is None:
            continue
        if call.get("type") == "custom":
            call["custom"]["input"] = text
        elif call.get("function") is not None:
            call["function"]["arguments"] = _json_text(text)
        else:
            own = {key: call[key] for key in ("id", "index") if key in call}
            function = {"name": call["type"] or NAMELESS, "arguments": _json_text(text)}
            call.clear()
            call.update(own | {"type": "function", "function": function})


def _put_in_blocks(item: Payload, texts: Sequence[str | None]) -> None:
    blocks = [block for block in item["content"] if block["type"] in ("tool_result", "tool_use")]
    for block, text in zip(blocks, texts, strict=True):
        if text is not None:
            block.update({"input": {REMOVED: text}} if block["type"] == "tool_use" else {"content": text})


def _result_of(item: Payload, text: str) -> Payload:
    """The field of a Responses item's result, with `text` in it; empty if the type has no room for a text."""
    change: Payload = {}
    match item:
        case {"type": "function_call_output" | "custom_tool_call_output"}:
            change = {"output": text}
        case {"type": str(kind)} if is_unknown_result(kind):
            for key in [key for key in item if key not in ("type", "id", "call_id", "status", "output")]:
                del item[key]
            change = {"output": text}
        case {"type": "computer_call_output"}:
            change = {"output": {"type": "computer_screenshot", "image_url": NO_SCREENSHOT}}
        case {"type": "shell_call_output", "output": list()}:
            change = {"output": [{"stdout": text, "stderr": "", "outcome": _outcome(item["output"])}]}
        case {"output": str()}:
            change = {"output": text}
        case {"result": str()} if item.get("output") is None:
            change = {"result": text}
        case _:
            pass
    return change


def _arguments_of(item: Payload, text: str) -> Payload:
    """The field of a Responses item's arguments, with `text` in it; empty if the API checks the arguments."""
    change: Payload = {}
    match item:
        case {"type": "function_call"}:
            change = {"arguments": _json_text(text)}
        case {"type": "custom_tool_call"}:
            change = {"input": text}
        case {"type": "shell_call", "action": {"commands": list()} as action}:
            change = {"action": {**action, "commands": [text]}}
        case {"type": "local_shell_call", "action": {"command": list()} as action}:
            change = {"action": {**action, "command": [text], "env": {}}}
        case {"type": "apply_patch_call", "operation": {"diff": str()} as operation}:
            change = {"operation": {**operation, "diff": text}}
        case {"type": "tool_search_call", "arguments": dict()}:
            change = {"arguments": {REMOVED: text}}
        case {"type": str(kind), "call_id": call} if kind not in _KNOWN:
            name = _name_in(item)
            item.clear()
            change = {"type": "function_call", "call_id": call, "name": name, "arguments": _json_text(text)}
        case _:
            pass
    return change


def _outcome(chunks: list[Any]) -> object:
    """How the last of several shell commands ended. This takes few tokens and tells more than the output."""
    last: object = chunks[-1] if chunks else None
    ended = cast("Payload", last).get("outcome") if isinstance(last, dict) else None
    return cast("object", ended) if isinstance(ended, dict) else {"type": "exit", "exit_code": 0}
