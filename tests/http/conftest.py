"""The service runs here as a deployed one does: on PostgreSQL, its role owns nothing, and row-level security holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import Memory
from hitherto.ports.store import Store
from tests.databases import Databases, service_url


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


@pytest.fixture
async def store(databases: Databases) -> Store:
    """An open and empty store, as the service's role."""
    return await databases.store(row_security=True)


@pytest.fixture
async def memory(database: str) -> AsyncIterator[Memory]:
    """The memory of a service, in its process."""
    async with hitherto.open(database, keep_contexts=10, row_security=True) as opened:
        yield opened
