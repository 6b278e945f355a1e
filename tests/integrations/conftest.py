"""A memory on each store, open on the tests' loop, and runs on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import hitherto
from hitherto import Memory
from tests.integrations.running import Agents


@pytest.fixture(params=["inmemory", "postgres"])
async def memory(
    request: pytest.FixtureRequest, make_database: Callable[[], Coroutine[Any, Any, str]]
) -> AsyncIterator[Memory]:
    """An open memory whose digests quote sentences."""
    database = "memory:" if request.param == "inmemory" else await make_database()
    async with hitherto.open(database) as opened:
        yield opened


@pytest.fixture
def agents(memory: Memory) -> Agents:
    return Agents(memory)
