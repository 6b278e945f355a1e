"""Blocks that hold a connection. No event loop ends them.

The blocks of `contextlib.asynccontextmanager` are async generators, and `loop.shutdown_asyncgens()` closes all that the
loop has seen begin. The Agents SDK's `run_sync` calls it on a loop that goes on: a connection was given back, and its
pipeline ended, while the task in the block was still using it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import _AsyncGeneratorContextManager as Context  # pyright: ignore[reportPrivateUsage]
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def block(function: Callable[P, AsyncGenerator[T]]) -> Callable[P, Context[T]]:
    """As `asynccontextmanager`, for a block that only the task in it ends."""

    @wraps(function)
    def begin(*given: P.args, **named: P.kwargs) -> Context[T]:
        return unlisted(asynccontextmanager(function)(*given, **named))

    return begin


def unlisted(context: Context[T]) -> Context[T]:
    """The same for a block that has not begun."""
    context.gen = _Unlisted(context.gen)
    return context


class _Unlisted(AsyncGenerator[T]):
    """A generator that the loop does not see begin."""

    def __init__(self, generator: AsyncGenerator[T]) -> None:
        self._generator = generator

    def asend(self, value: None) -> Coroutine[Any, Any, T]:
        listed = sys.get_asyncgen_hooks().firstiter
        sys.set_asyncgen_hooks(firstiter=None)
        try:
            return self._generator.asend(value)
        finally:
            sys.set_asyncgen_hooks(firstiter=listed)

    def athrow(self, *error: Any) -> Coroutine[Any, Any, T]:
        return self._generator.athrow(*error)
