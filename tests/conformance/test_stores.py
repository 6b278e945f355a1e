"""Both stores keep the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from hitherto.core.log.append import extended
from hitherto.core.log.head import Head
from hitherto.errors import StoreError
from hitherto.ports.log import Changes
from hitherto.ports.store import Store
from hitherto.stores.in_memory.store import InMemoryStore
from hitherto.stores.postgres.store import PostgresStore
from hitherto.testing import StoreConformance
from hitherto.testing.conformance.ledger.ledger import FIRST
from hitherto.testing.conformance.samples import SCOPE, dialogue, log_of, user, write
from tests.databases import Databases, OpenStore


def test_no_case_hides_another() -> None:
    """The suite is made of many classes: of two cases of one name, only one would run."""
    cases = [name for part in StoreConformance.__mro__ for name in vars(part) if name.startswith("test_")]
    assert len(cases) > 100
    assert sorted(cases) == sorted(set(cases))


async def test_postgres_may_be_closed_twice(database: str) -> None:
    """The store of the others stays open between them."""
    store = PostgresStore(database)
    await store.open()
    await StoreConformance().test_closing_twice_is_allowed(store)


class TestInMemoryStore(StoreConformance):
    @pytest.fixture
    async def store(self) -> Store:
        store = InMemoryStore()
        await store.open()
        return store


class TestRowSecurityStore(StoreConformance):
    """As the role of a service: row-level security holds, and nothing is different."""

    @pytest.fixture
    async def store(self, databases: Databases) -> OpenStore:
        return await databases.store(row_security=True)

    async def test_all_tenants_are_counted_where_none_is_named(self, store: Store) -> None:
        with pytest.raises(StoreError, match="name the tenant"):
            await store.costs("tenant")

    async def test_tenants_by_name(self, store: Store) -> None:
        with pytest.raises(StoreError, match="name the tenant"):
            await store.scopes("tenant", limit=9)

    async def test_by_each(self, store: Store) -> None:
        """All tenants, which this role does not see; `test_by_each_of_a_tenant` is about one."""

    async def test_a_call_that_ends_after_a_tenant_is_gone_names_nobody(self, store: Store) -> None:
        await store.end_erasure(await store.begin_erasure(tenant="another", user=None))
        await store.note_calls(replace(SCOPE, tenant="another"), None, [FIRST])
        assert await store.costs("tenant", tenant="another") == []


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    async def store(self, databases: Databases) -> OpenStore:
        return await databases.store()

    @pytest.fixture
    async def others(self, store: OpenStore) -> AsyncIterator[list[Store]]:
        """More stores on the same database: as in other processes, none knows of another."""
        stores = [PostgresStore(store.url, pool_size=2) for _ in range(7)]
        for one in stores:
            await one.open()
        yield list(stores)
        for one in stores:
            await one.aclose()

    async def test_processes_share_a_conversation(self, store: Store, others: list[Store]) -> None:
        await asyncio.gather(*(write(one, "c", *dialogue(1)) for one in [store, *others] for _ in range(5)))
        assert [logged.seq for logged in await log_of(store, "c")] == list(range(80))

    async def test_processes_wait_for_each_other(self, store: Store, others: list[Store]) -> None:
        async def second() -> Head:
            async with others[0].write(SCOPE, "c") as unit:
                return unit.head

        async with store.write(SCOPE, "c") as unit:
            waiting = asyncio.create_task(second())
            done, _ = await asyncio.wait([waiting], timeout=0.05)
            assert not done
            logged, head = extended(unit.head, dialogue(1), [1, 1])
            await unit.commit(Changes(head=head, messages=logged))
        found = await waiting
        assert found.next_seq == 2
        assert found.now >= unit.head.now + timedelta(seconds=0.045), "read after the conversation is held"

    async def test_processes_make_and_delete_a_conversation(self, store: Store, others: list[Store]) -> None:
        """One may find it there, and gone again when its turn comes, and there again when it looks."""

        async def delete(one: Store) -> None:
            async with one.write(SCOPE, "c") as unit:
                await unit.delete()

        for _ in range(40):
            deleting = [delete(one) for one in others[::2]]
            await asyncio.gather(*deleting, *(write(one, "c", user()) for one in [store, *others]))
            await write(store, "c", user())
            log = await log_of(store, "c")
            assert [logged.seq for logged in log] == list(range(len(log)))
            assert [logged.rev for logged in log] == list(range(1, len(log) + 1))
