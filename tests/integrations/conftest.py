"""A memory on each store, open on the tests' loop, and runs on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Memory
from hitherto.store.store import Store
from tests.integrations.running import Agents
from tests.memories import open_on


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    """An open memory whose digests quote sentences."""
    async with open_on(store) as opened:
        yield opened


@pytest.fixture
def agents(memory: Memory) -> Agents:
    return Agents(memory)
