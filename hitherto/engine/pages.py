"""Everything that comes in pages, item by item."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar

from hitherto.blocks import series

T = TypeVar("T")
K = TypeVar("K")


@series
async def in_pages(read: Callable[..., Awaitable[Sequence[T]]], place: Callable[[T], K], after: K) -> AsyncGenerator[T]:
    """What `read(after=…)` gives page by page, the first after `after`, each other after the `place` of the last one,
    until one is empty."""
    while found := await read(after=after):
        after = place(found[-1])
        for one in found:
            yield one
