"""A memory without a worker, and what a test looks at in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Memory
from hitherto.store.store import Store
from tests.memories import open_on


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, worker=False) as opened:
        yield opened
