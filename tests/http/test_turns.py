"""A turn in one piece, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.engine.test_turn import *  # noqa: F403
from tests.http.serving import over_http
from tests.times import Clock


@pytest.fixture
def store() -> Store:
    return InMemoryStore(clock=Clock())


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with hitherto.open(store=store, worker=False) as opened, over_http(opened) as remote:
        yield remote
