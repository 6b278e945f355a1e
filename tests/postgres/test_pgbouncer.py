"""Behind PgBouncer in transaction mode, nothing is different, and no transaction has another one's tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import hitherto
from hitherto import assistant, user
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.postgres.pooler import PGBOUNCER, pooled
from tests.store.facts import test_tenancy as fact_tenancy
from tests.store.log import test_tenancy as tenancy
from tests.store.log import test_units as units
from tests.store.recall import test_tenancy as search_tenancy

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer (a package of the system)")


@pytest.fixture(scope="module")
async def pooled_database(databases: Databases) -> AsyncIterator[tuple[str, str]]:
    """A database's name, and its address behind PgBouncer."""
    name = await databases.take_granted()
    with pooled(databases.url(name, granted=True)) as address:
        yield name, address
    await databases.give_back(name)


@pytest.fixture
async def address(databases: Databases, pooled_database: tuple[str, str]) -> str:
    name, address = pooled_database
    await databases.empty(name)
    return address


class TestPooledStore(tenancy.TestScope, units.TestUnit, fact_tenancy.TestFactScope, search_tenancy.TestSearchScope):
    @pytest.fixture
    async def store(self, address: str) -> AsyncIterator[Store]:
        store = Store(address, prepared=False)
        await store.open()
        assert store.row_security
        yield store
        await store.aclose()


async def test_many_tenants_at_once_see_their_own(address: str) -> None:
    """Twenty at a time, over two connections to the server."""
    async with hitherto.open(address, prepared_statements=False, worker=False, row_security=True) as memory:

        async def talk(number: int) -> None:
            scope = replace(SCOPE, tenant=f"tenant {number}")
            chat = memory.conversation("c", scope=scope)
            for round_ in range(5):
                await chat.append(user(f"{number}: {round_}"), assistant("Yes."))
                found = [one.message.text for one in await chat.messages()]
                assert found[::2] == [f"{number}: {n}" for n in range(round_ + 1)]
                context = await chat.context("What?", budget=1_000, recall=True)
                assert all(f"{number}: " in one["content"] for one in context.messages[:-1:2])
            assert [one.name for one in (await memory.scopes("tenant", tenant=scope.tenant)).scopes] == [scope.tenant]

        await asyncio.gather(*(talk(number) for number in range(20)))
