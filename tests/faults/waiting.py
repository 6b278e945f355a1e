"""Waiting for what has to come to be, never for a time to pass."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from tests.patience import PATIENCE

T = TypeVar("T")

_LOOK = 0.01


async def until(look: Callable[[], Awaitable[T] | T], what: str) -> T:
    """What `look` sees, as soon as that is something. Raises AssertionError after `PATIENCE`."""
    began = time.monotonic()
    while True:
        seen = look()
        found = cast("T", await seen if inspect.isawaitable(seen) else seen)
        if found:
            return found
        waited = time.monotonic() - began
        assert waited < PATIENCE, f"not within {PATIENCE:g} s: {what} (last seen: {found!r})"
        await asyncio.sleep(_LOOK)
