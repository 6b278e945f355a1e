"""A memory for the tools."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Memory
from hitherto.store.store import Store
from tests.memories import open_on


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    """An open memory."""
    async with open_on(store) as opened:
        yield opened
