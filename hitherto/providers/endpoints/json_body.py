"""Reads the JSON body of an endpoint's answer without relying on its shape."""

from __future__ import annotations

import json
from typing import cast


def parsed(body: str) -> object:
    """A body as JSON; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether `text` is complete JSON. Line breaks in strings are allowed, as some servers' grammars allow them."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def at(value: object, *path: str | int) -> object:
    """The value at `path` in parsed JSON; None if there is no such place."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = cast(dict[str, object], value).get(step)
        elif isinstance(value, list) and isinstance(step, int):
            listed = cast(list[object], value)
            value = listed[step] if step < len(listed) else None
        else:
            return None
    return value


def tokens(value: object) -> int | None:
    """`value` if it can be a count of tokens, else None."""
    return value if type(value) is int and 0 <= value < 2**53 else None
