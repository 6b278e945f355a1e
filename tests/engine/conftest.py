"""A memory without a worker, and a conversation in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Conversation, Memory
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, worker=False) as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE)
