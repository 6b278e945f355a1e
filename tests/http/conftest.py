"""The service runs here as a deployed one does: on PostgreSQL, its role owns nothing, and row-level security holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from tests.databases import Databases, service_url
from tests.times import Clock


@pytest.fixture
async def make_database(
    make_database: Callable[[], Coroutine[Any, Any, str]],
) -> Callable[[], Coroutine[Any, Any, str]]:
    """As elsewhere, but as the service's role."""

    async def make() -> str:
        return await service_url(await make_database())

    return make


@pytest.fixture
def owners_database(database: str) -> str:
    """The URL of `database` as the owner of its tables."""
    return make_conninfo(database, user="hitherto")


@pytest.fixture(params=["inmemory", "postgres"])
async def store(request: pytest.FixtureRequest, databases: Databases) -> AsyncIterator[Store]:
    """Each kind of store, open and empty; on PostgreSQL, as the service's role."""
    if request.param == "postgres":
        yield await databases.store(row_security=True)
        return
    made = InMemoryStore(clock=Clock())
    await made.open()
    yield made
    await made.aclose()


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    """The memory of a service, in its process."""
    async with hitherto.open(database, keep_contexts=10, row_security=True) as opened:
        yield opened
