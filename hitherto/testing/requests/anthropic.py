"""What Anthropic's Messages API refuses beyond the shape of a request.

Sources: the errors of the API, quoted where a rule follows from one; Anthropic's pages "Handle tool calls",
"Mid-conversation system messages", "Vision", "Prompt caching" and "Troubleshooting thinking"; the SDK's types. What
needs a beta header is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from hitherto.core.model_family import family_of
from hitherto.testing.requests.fields import Found, Path, Seals, check_count, check_name, mapping, objects

Block = tuple[Path, Mapping[str, Any]]
Turn = tuple[object, Sequence[Block]]
"""A role and what it says: messages of one role in a row are one turn to the API."""

_LARGEST_IMAGE: Final = 10 * 1024 * 1024
"""The most characters of a picture in base64. Source: "Vision"; clouds take half of it."""

_THOUGHTS: Final = ("thinking", "redacted_thinking")
_ROLES: Final = {
    **dict.fromkeys(("tool_use", "server_tool_use", *_THOUGHTS), "assistant"),
    "tool_result": "user",
}
"""Whose turn a block may be in: "`tool_result` blocks can only be in `user` messages"."""

_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")


def check(request: Mapping[str, Any], seals: Seals) -> Found:
    messages = objects(request.get("messages"), ("messages",))
    turns = [
        (role, [block for path, message in group for block in _blocks(path, message)])
        for role, group in groupby(messages, key=lambda one: one[1].get("role"))
    ]
    version = _version(seals.model)
    yield from _check_roles(messages, version)
    yield from _check_texts(request, messages)
    for role, blocks in turns:
        for path, block in blocks:
            yield from _check_block(path, block, role, seals)
        if role == "assistant" and blocks and blocks[-1][1].get("type") in _THOUGHTS:
            yield blocks[-1][0], "is thinking, which cannot be the last block of an assistant's turn"
    yield from _check_results(turns)
    yield from _check_server_tools(turns)
    yield from _check_end(request, turns, version)
    yield from _check_marks(request, turns, version)
    names: set[object] = set()
    for path, tool in objects(request.get("tools"), ("tools",)):
        # "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        yield from check_name(tool.get("name"), (*path, "name"), longest=128)
        if isinstance(tool.get("name"), str):
            if tool["name"] in names:
                yield (*path, "name"), "is the name of another tool"  # "tools: Tool names must be unique."
            names.add(tool["name"])


def _version(model: str | None) -> tuple[int, int] | None:
    """The version of a Claude: (4, 8) for claude-opus-4-8."""
    found = _VERSION.search(family_of(model)) if model else None
    return (int(found[1]), int(found[2] or 0)) if found else None


def _blocks(path: Path, message: Mapping[str, Any]) -> Sequence[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [((*path, "content"), {"type": "text", "text": content})] if content else []
    return objects(content, (*path, "content"))


def _nested(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, and those in results."""
    for path, block in blocks:
        yield path, block
        if block.get("type") == "tool_result":
            yield from objects(block.get("content"), (*path, "content"))


def _check_roles(messages: Sequence[Block], version: tuple[int, int] | None) -> Found:
    if not messages:
        yield ("messages",), "is empty"  # "messages: at least one message is required"
    elif messages[0][1].get("role") == "assistant":
        # "messages: first message must use the "user" role"
        yield messages[0][0], "is of the assistant; the first message must be of the user"
    before: object = None
    paused = False
    for path, message in messages:
        role = message.get("role")
        if role == "system":
            if version is not None and version < (4, 8):
                # "role 'system' is not supported on this model"
                yield path, "is a system message, which Claude takes among the messages from 4.8 on"
            elif before != "user" and not paused:
                yield path, "is a system message that does not follow a message of the user"
        elif role == "user" and before == "system":
            yield path, "is of the user and follows a system message; the assistant must be next"
        before = role
        kinds = [str(block.get("type")) for _, block in _blocks(path, message)]
        paused = role == "assistant" and bool(kinds) and kinds[-1].endswith(("server_tool_use", "_tool_result"))


def _check_texts(request: Mapping[str, Any], messages: Sequence[Block]) -> Found:
    """No text is empty: "all messages must have non-empty content except for the optional final assistant message",
    "text content blocks must be non-empty", "text content blocks must contain non-whitespace text"."""
    for place, (path, message) in enumerate(messages):
        last = place == len(messages) - 1 and message.get("role") == "assistant"
        if message.get("content") in ("", []) and not last:
            yield (*path, "content"), "is empty"
    said = [block for path, message in messages for block in _nested(_blocks(path, message))]
    for path, block in [*objects(request.get("system"), ("system",)), *said]:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and not text.strip():
            yield path, "is a text of nothing but white space" if text else "is an empty text"


def _check_block(path: Path, block: Mapping[str, Any], role: object, seals: Seals) -> Found:
    kind = block.get("type")
    if isinstance(kind, str) and _ROLES.get(kind, role) != role:
        yield path, f"is a {kind} block, which can only be in messages of the {_ROLES[kind]}"
    match kind:
        case "tool_use":
            # "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield from check_name(block.get("id"), (*path, "id"))
            # "tool_use.name: String should have at most 200 characters"
            yield from check_name(block.get("name"), (*path, "name"), longest=200)
        case "tool_result":
            yield from check_name(block.get("tool_use_id"), (*path, "tool_use_id"))
            if block.get("is_error") and block.get("content") in (None, "", []):
                yield path, "is an error without content"  # "content cannot be empty if `is_error` is true"
        case "server_tool_use":
            if not re.fullmatch(r"srvtoolu_[a-zA-Z0-9_]+", str(block.get("id"))):
                yield (
                    (*path, "id"),
                    "does not begin with srvtoolu_",
                )  # "should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
        case "thinking":
            if block.get("signature") == "":
                yield (*path, "signature"), "is empty"  # "Invalid `signature` in `thinking` block"
            yield from seals.check(block.get("signature"), (*path, "signature"))
        case "redacted_thinking":
            yield from seals.check(block.get("data"), (*path, "data"))
        case _:
            pass


def _check_results(turns: Sequence[Turn]) -> Found:
    """Each call has an id of its own, and one result, at the front of the next turn: "`tool_use` ids must be unique",
    "`tool_use` ids were found without `tool_result` blocks immediately after", "unexpected `tool_use_id` found in
    `tool_result` blocks", "each tool_use must have a single result"."""
    waiting: dict[object, Path] = {}
    used: set[object] = set()
    for role, blocks in [*turns, ("user", ())]:
        if role == "user":
            answered: set[object] = set()
            first = True
            for path, block in blocks:
                call = block.get("tool_use_id")
                if block.get("type") != "tool_result" or not isinstance(call, str):
                    first = False
                elif call in answered:
                    yield path, "is the second result of its call"
                elif waiting.pop(call, None) is None:
                    yield path, "is the result of no call in the assistant's turn before it"
                else:
                    answered.add(call)
                    if not first:
                        yield path, "follows other content; results come first"
            for path in waiting.values():
                yield path, "has no result in the next message"
            waiting = {}
        for path, block in blocks:
            call = block.get("id")
            if role == "assistant" and block.get("type") == "tool_use" and isinstance(call, str):
                if call in used:
                    yield (*path, "id"), "is the id of another call"
                used.add(call)
                waiting[call] = path


def _check_server_tools(turns: Sequence[Turn]) -> Found:
    """Of the tools that the API runs itself: "Each `web_search_tool_result` block must have a corresponding
    `server_tool_use` block before it"."""
    used: set[object] = set()
    for path, block in (one for _, blocks in turns for one in blocks):
        kind = str(block.get("type"))
        if kind == "server_tool_use":
            used.add(str(block.get("id")))
        elif kind.endswith("_tool_result") and str(block.get("tool_use_id")) not in used:
            yield path, "is the result of no server_tool_use before it"


def _check_end(request: Mapping[str, Any], turns: Sequence[Turn], version: tuple[int, int] | None) -> Found:
    spoken = [blocks for role, blocks in turns if role == "assistant"]
    if mapping(request.get("thinking")).get("type") == "enabled" and spoken:
        kinds = [block.get("type") for _, block in spoken[-1]]
        if "tool_use" in kinds and kinds[0] not in _THOUGHTS:
            # "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
            yield spoken[-1][0][0], "does not begin with thinking, as the last calls must with thinking enabled"
    if not turns or turns[-1][0] != "assistant":
        return
    blocks = turns[-1][1]
    path, block = blocks[-1] if blocks else ((), {"type": "text"})
    if block.get("type") != "text":
        return
    if version is not None and version >= (4, 6):
        # "This model does not support assistant message prefill. The conversation must end with a user message."
        yield path or ("messages",), "ends the request with words of the assistant, which the model does not continue"
    elif (text := str(block.get("text"))) != text.rstrip():
        yield path, "ends in white space"  # "final assistant content cannot end with trailing whitespace"


def _check_marks(request: Mapping[str, Any], turns: Sequence[Turn], version: tuple[int, int] | None) -> Found:
    """Bounds of marks ("A maximum of 4 blocks with cache_control may be provided") and of pictures."""
    said = [one for _, blocks in turns for one in _nested(blocks)]
    marked = [*objects(request.get("tools"), ()), *objects(request.get("system"), ()), *said, ((), request)]
    marks = sum(block.get("cache_control") is not None for _, block in marked)
    if marks > 4:
        yield (), f"has {marks} blocks with cache_control; at most 4 are accepted"
    images = [(path, block) for path, block in said if block.get("type") == "image"]
    # "Vision": 100 for models with a window of 200,000 tokens, which those before 4.6 have.
    yield from check_count(len(images), (), most=600 if version is not None and version >= (4, 6) else 100)
    for path, image in images:
        data = mapping(image.get("source")).get("data")
        if isinstance(data, str) and len(data) > _LARGEST_IMAGE:
            yield (*path, "source", "data"), f"has {len(data)} characters; at most {_LARGEST_IMAGE} are accepted"
