"""A memory on each store, open on the tests' loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import hitherto
from hitherto import Memory


@pytest.fixture(params=["inmemory", "postgres"])
async def memory(
    request: pytest.FixtureRequest, make_database: Callable[[], Coroutine[Any, Any, str]]
) -> AsyncIterator[Memory]:
    """An open memory whose digests quote sentences."""
    database = "memory:" if request.param == "inmemory" else await make_database()
    async with hitherto.open(database) as opened:
        yield opened
