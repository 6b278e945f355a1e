"""Blocks of `async with` that no event loop ends.

Those of `contextlib.asynccontextmanager` are async generators, and `loop.shutdown_asyncgens()` closes all that the loop
has seen begin. The Agents SDK's `run_sync` calls it on a loop that goes on: connections and turns would be given back
while the task in the block was still using them.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import _AsyncGeneratorContextManager as Context  # pyright: ignore[reportPrivateUsage]
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def block(function: Callable[P, AsyncGenerator[T]]) -> Callable[P, Context[T]]:
    """As `asynccontextmanager`, for a block that only the task in it ends."""

    @wraps(function)
    def begin(*given: P.args, **named: P.kwargs) -> Context[T]:
        return _Unlisted(function, given, named)

    return begin


def unlisted(context: Context[T]) -> Context[T]:
    """The same for a block of another library that has not begun."""
    context.__class__ = _Unlisted
    return context


class _Unlisted(Context[T]):
    """A block whose generator the loop does not see begin."""

    def __aenter__(self) -> Awaitable[T]:  # pyright: ignore[reportIncompatibleMethodOverride]
        listed = sys.get_asyncgen_hooks().firstiter
        sys.set_asyncgen_hooks(firstiter=None)
        try:
            return anext(self.gen)
        finally:
            sys.set_asyncgen_hooks(firstiter=listed)
