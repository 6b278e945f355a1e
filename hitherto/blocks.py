"""Async generators that no event loop ends: blocks of `async with`, and series for `async for`.

`loop.shutdown_asyncgens()` closes all generators that the loop has seen begin. The Agents SDK's `run_sync` calls it on
a loop that goes on: connections and turns would be given back while the task in the block was still using them, and a
series would end early, without an error.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
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


def series(function: Callable[P, AsyncGenerator[T]]) -> Callable[P, AsyncIterator[T]]:
    """An async generator function whose items come until it ends by itself."""

    @wraps(function)
    def begin(*given: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return _Series(function(*given, **named))

    return begin


class _Unlisted(Context[T]):
    def __aenter__(self) -> Awaitable[T]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _next(self.gen)


class _Series(AsyncIterator[T]):
    def __init__(self, generator: AsyncGenerator[T]) -> None:
        self._generator = generator

    def __anext__(self) -> Awaitable[T]:
        return _next(self._generator)


def _next(generator: AsyncGenerator[T]) -> Awaitable[T]:
    """`anext`, where the loop does not see the generator begin."""
    listed = sys.get_asyncgen_hooks().firstiter
    sys.set_asyncgen_hooks(firstiter=None)
    try:
        return anext(generator)
    finally:
        sys.set_asyncgen_hooks(firstiter=listed)
