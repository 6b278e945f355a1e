"""What OpenAI Responses, and the servers that speak it, refuse beyond the shape of a request.

Sources: the errors of the API, quoted where a rule follows from one; OpenAI's published description of the API for the
lengths of ids and names; the SDK's types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hitherto.testing.requests.fields import (
    MOST_IMAGES,
    Found,
    Path,
    Seals,
    check_arguments,
    check_cache_key,
    check_count,
    check_length,
    check_name,
    objects,
)

_OUTPUTS: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Calls that the caller answers, and their results."""

_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
}
"""How ids of items begin: "Expected an ID that begins with 'rs'"."""


def check(request: Mapping[str, Any], seals: Seals) -> Found:
    items = objects(request.get("input"), ("input",))
    continues = any(request.get(key) for key in ("previous_response_id", "conversation"))
    if not request.get("input") and not continues and not request.get("prompt"):
        yield ("input",), "is empty"  # "One of "input" or "previous_response_id" … must be provided"
    images = 0
    for path, item in items:
        yield from _check_item(path, item, seals)
        output = item.get("output")
        shown = [*objects(item.get("content"), ()), *objects(output, ()), *objects([output], ())]
        images += sum(part.get("type") in ("input_image", "computer_screenshot") for _, part in shown)
    yield from _check_ids(items)
    yield from _check_results(items, continues=continues)
    yield from _check_reasoning(items)
    yield from check_count(images, (), most=MOST_IMAGES)
    yield from check_cache_key(request)
    for path, tool in objects(request.get("tools"), ("tools",)):
        if tool.get("type") in ("function", "custom"):
            yield from check_name(tool.get("name"), (*path, "name"), longest=128)


def _kind(item: Mapping[str, Any]) -> object:
    return item.get("type") or ("message" if "role" in item else "item_reference")


def _check_item(path: Path, item: Mapping[str, Any], seals: Seals) -> Found:
    kind = _kind(item)
    own = item.get("id")
    if isinstance(own, str):
        # "Expected an ID that contains letters, numbers, underscores, or dashes"
        yield from check_name(own, (*path, "id"), longest=64)
        prefix = _PREFIXES.get(str(kind), "")
        if not own.startswith(prefix):
            yield (*path, "id"), f"is {own!r}; the id of a {kind} begins with {prefix}"
    if "call_id" in item:
        # "string too long. Expected a string with maximum length 64"
        yield from check_length(item["call_id"], (*path, "call_id"), longest=64)
    match kind:
        case "function_call" | "custom_tool_call":
            yield from check_name(item.get("name"), (*path, "name"), longest=128)
            yield from check_arguments(item.get("arguments"), (*path, "arguments"))
        case "message" if item.get("role") == "assistant":
            for place, part in objects(item.get("content"), (*path, "content")):
                if str(part.get("type")).startswith("input_"):
                    # "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'"
                    yield (*place, "type"), f"is {part['type']!r}; an assistant's parts are output_text and refusal"
        case "reasoning":
            if item.get("content"):
                # "Invalid 'input[0].content': array too long. Expected an array with maximum length 0"
                yield (*path, "content"), "is not empty; reasoning goes back as encrypted_content"
            yield from seals.check(item.get("encrypted_content"), (*path, "encrypted_content"))
        case "compaction":
            yield from seals.check(item.get("encrypted_content"), (*path, "encrypted_content"))
        case _:
            pass


def _check_ids(items: Sequence[tuple[Path, Mapping[str, Any]]]) -> Found:
    """Each item has an id of its own: "Duplicate item found with id …"."""
    seen: set[str] = set()
    for path, item in items:
        own = item.get("id")
        if isinstance(own, str) and _kind(item) not in ("item_reference", "local_shell_call_output"):
            if own in seen:
                yield (*path, "id"), "is the id of another item"
            seen.add(own)


def _check_results(items: Sequence[tuple[Path, Mapping[str, Any]]], *, continues: bool) -> Found:
    """Each call has an id of its own and one result, somewhere after it: "Duplicate 'call_id'", "No tool output found
    for function call …", "No tool call found for function call output with call_id …", "Duplicate function_call_output
    for call_id". A request that continues a stored response may have results of its calls."""
    waiting: dict[tuple[str, str], Path] = {}
    called: set[str] = set()
    answered: set[tuple[str, str]] = set()
    for path, item in items:
        kind = str(_kind(item))
        # This one result names its call by `id`.
        call = item.get("id" if kind == "local_shell_call_output" else "call_id")
        if not isinstance(call, str):
            continue
        if kind in _OUTPUTS:
            if call in called:
                yield (*path, "call_id"), "is the call_id of another call"
            called.add(call)
            answered.discard((_OUTPUTS[kind], call))
            waiting[_OUTPUTS[kind], call] = path
        elif kind in _OUTPUTS.values():
            if (kind, call) in answered:
                yield path, "is the second result of its call"
            elif waiting.pop((kind, call), None) is None and not continues:
                yield path, "is the result of no call before it"
            answered.add((kind, call))
    for path in waiting.values():
        yield path, "has no result after it"


def _check_reasoning(items: Sequence[tuple[Path, Mapping[str, Any]]]) -> Found:
    """What the model made after its reasoning follows it: "Item … of type 'reasoning' was provided without its required
    following item"."""
    for place, (path, item) in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        after = items[place + 1][1] if place + 1 < len(items) else None
        kind = str(_kind(after)) if after else ""
        if not after or kind.endswith("_output") or (kind == "message" and after.get("role") != "assistant"):
            yield path, "is reasoning without the message or call that it led to right after it"
