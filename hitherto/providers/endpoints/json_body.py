"""What stands in the body of an endpoint's answer, of which nothing can be taken for granted."""

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
    """Whether it is complete; line breaks in its strings, as some servers' grammars let them stand, do no harm."""
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def at(value: object, *path: str | int) -> object:
    """What stands at `path` in parsed JSON; None where there is no such place."""
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
    """A figure of an endpoint's usage, where it is one."""
    return value if type(value) is int and 0 <= value < 2**53 else None
