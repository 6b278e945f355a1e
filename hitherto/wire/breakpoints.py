"""Cache breakpoints: marks in a request that tell the provider's prompt cache where what stays the same ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Final, cast

from hitherto.core.log.message import Payload

_ANTHROPIC: Final[Payload] = {"cache_control": {"type": "ephemeral"}}
_OPENAI: Final[Payload] = {"prompt_cache_breakpoint": {"mode": "explicit"}}
"""A breakpoint of each provider, as a field of the part that it stands behind."""

_FIELDS = (_ANTHROPIC | _OPENAI).keys()
_CONTENT = ("content", "output")
_INNER = {*_CONTENT, "source"}
"""Where an item or a part has parts: a document of Anthropic's has them in its source."""

Mark = Callable[[Payload], Payload | None]
"""Gives an item with a breakpoint in the last of its parts that can carry one; None where none can."""


def has_breakpoints(values: Iterable[Mapping[str, object]]) -> bool:
    """Whether there is a breakpoint in an item, a part of one, or a tool schema."""
    return any(map(_count, values))


def newest_breakpoints(items: Sequence[Payload], tools: Sequence[Payload], *, most: int) -> list[Payload]:
    """`items` without their oldest breakpoints, so that `tools` and they have at most `most`."""
    return cast("list[Payload]", _without_oldest(list(items), _count([*tools, *items]) - most)[0])


def _count(value: object) -> int:
    match value:
        case list():
            return sum(map(_count, cast("list[object]", value)))
        case dict():
            fields = cast("Payload", value)
            own = any(fields.get(field) is not None for field in _FIELDS)
            return own + sum(_count(fields.get(field)) for field in _INNER)
        case _:
            return 0


def _without_oldest(value: object, over: int) -> tuple[object, int]:
    """The value without the first `over` of its breakpoints, and how many are left to leave out."""
    match value:
        case list() if over > 0:
            parts: list[object] = []
            for one in cast("list[object]", value):
                part, over = _without_oldest(one, over)
                parts.append(part)
            return parts, over
        case dict() if over > 0:
            fields = dict(cast("Payload", value))
            for field in _INNER & fields.keys():
                fields[field], over = _without_oldest(fields[field], over)
            for field in _FIELDS & fields.keys() if over > 0 else ():
                over -= fields.pop(field) is not None
            return fields, over
        case _:
            return value, over


def with_breakpoints(
    items: Sequence[Payload], stable: int, mark: Mark, *, is_user: Callable[[Payload], bool]
) -> list[Payload]:
    """`items` with a breakpoint behind the first `stable` of them, and one where the newest turn among these begins.
    Where an item can carry none, the one before it does.

    Where that turn begins, the stable part of the request before ended, if it was made for that turn's message.
    Anthropic looks only 20 blocks back from a breakpoint for what it has in its cache, and a turn with tools may be
    longer.
    """
    turn = next((at for at in reversed(range(stable)) if is_user(items[at])), 0)
    found = list(items)
    for end in (turn, stable):
        for at in reversed(range(end)):
            if (marked := mark(items[at])) is not None:
                found[at] = marked
                break
    return found


def anthropic(item: Payload) -> Payload | None:
    """A `Mark`: not in thinking, nor in an empty text, where the API refuses it."""

    def carries(block: Payload) -> bool:
        match block.get("type"):
            case "text":
                return _says(block, "text")
            case "tool_result":
                return _says(block, "content")
            case kind:
                return kind in ("image", "document", "search_result", "tool_use")

    return _marked(item, "content", _ANTHROPIC, carries)


def anthropic_system(texts: Sequence[str], stable: int) -> list[Payload]:
    """The system texts as blocks that add up to the same text, with a breakpoint behind the first `stable`; empty where
    there is none of these, or one without words, which the API refuses as a block."""
    if not stable or not all(text.strip() for text in texts):
        return []
    blocks: list[Payload] = [
        {"type": "text", "text": text if at == 0 else f"\n\n{text}"} for at, text in enumerate(texts)
    ]
    blocks[stable - 1] |= deepcopy(_ANTHROPIC)
    return blocks


def chat(item: Payload) -> Payload | None:
    """A `Mark`: not in what an assistant says, where it is not known that the API takes it."""

    def carries(part: Payload) -> bool:
        kind = part.get("type")
        return _says(part, "text") if kind == "text" else kind in ("image_url", "input_audio", "file")

    given = item.get("role") in ("system", "developer", "user", "tool")
    return _marked(item, "content", _OPENAI, carries) if given else None


def responses(item: Payload) -> Payload | None:
    """A `Mark`: in messages that are not an assistant's, and in the outputs of tools; the API has no others."""

    def carries(part: Payload) -> bool:
        kind = part.get("type")
        return _says(part, "text") if kind == "input_text" else kind in ("input_image", "input_file")

    match item:
        case {"type": "function_call_output" | "custom_tool_call_output"}:
            return _marked(item, "output", _OPENAI, carries, text="input_text")
        case {"role": "system" | "developer" | "user"} if item.get("type") in (None, "message"):
            return _marked(item, "content", _OPENAI, carries, text="input_text")
        case _:
            return None


def _marked(
    item: Payload, field: str, breakpoint: Payload, carries: Callable[[Payload], bool], *, text: str = "text"
) -> Payload | None:
    """See `Mark`. A text in `field` becomes a part of the type `text`, which the APIs take for the same."""
    value = item.get(field)
    parts = [{"type": text, "text": value}] if isinstance(value, str) else value
    if not isinstance(parts, list):
        return None
    listed = cast("list[Payload]", parts)
    for at in reversed(range(len(listed))):
        if carries(listed[at]):
            return {**item, field: [*listed[:at], listed[at] | deepcopy(breakpoint), *listed[at + 1 :]]}
    return None


def _says(part: Payload, field: str) -> bool:
    """Whether there is more than white space."""
    value = part.get(field)
    return bool(value.strip() if isinstance(value, str) else value)


def without_breakpoints(item: Payload) -> Payload:
    """The item without breakpoints, and a single part that is nothing but text as that text: what is left is the same
    for items that the APIs take for the same."""
    bare = cast("Payload", _without_oldest(item, sys.maxsize)[0])
    return {key: _plain(value) if key in _CONTENT else value for key, value in bare.items()}


def _plain(parts: object) -> object:
    match parts:
        case [{"type": "text" | "input_text", "text": str(words)}] if len(cast("list[Payload]", parts)[0]) == 2:
            return words
        case _:
            return parts
