"""Waiting for what has to come to be, never for a time to pass."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

Seen = TypeVar("Seen")

_LOOK = 0.01


async def until(look: Callable[[], Awaitable[Seen] | Seen], what: str, *, within: float = 10.0) -> Seen:
    """What `look` sees, as soon as that is something; fails when `within` seconds have passed."""
    began = time.monotonic()
    while True:
        seen = look()
        found = cast("Seen", await seen if inspect.isawaitable(seen) else seen)
        if found:
            return found
        waited = time.monotonic() - began
        assert waited < within, f"not within {within:g} s: {what} (last seen: {found!r})"
        await asyncio.sleep(_LOOK)
