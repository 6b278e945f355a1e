"""Work that would hold up the event loop is done in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

_LONG = 50_000
EACH = 1_000
"""What each of many objects counts for that are checked, or written as JSON."""


async def aside(size: int, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """The result of `work`: at once, or from a thread where it goes through so many characters (`size`) that others
    would have to wait for milliseconds."""
    return work(*given, **named) if size < _LONG else await asyncio.to_thread(work, *given, **named)
