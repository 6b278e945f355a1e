"""A conversation without a worker, and each API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Conversation, Memory
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.turn.asking import APIS, Api
from tests.memories import open_on


@pytest.fixture(params=APIS, ids=[one.wire for one in APIS])
def api(request: pytest.FixtureRequest) -> Api:
    return request.param


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, worker=False) as opened:
        yield opened


@pytest.fixture
def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE)
