"""Both stores keep the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.ports.store import Store
from hitherto.stores.inmemory import InMemoryStore
from hitherto.stores.postgres.embedded import EmbeddedServer
from hitherto.stores.postgres.store import PostgresStore
from hitherto.testing import StoreConformance
from hitherto.testing.material import SCOPE, log_of, talk, user, write

NAME = sql.Identifier("test_conformance")


@pytest.fixture(scope="module")
async def shared(server: EmbeddedServer) -> AsyncIterator[str]:
    """One database for all cases: making one for each would take most of the time."""
    async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as connection:
        await connection.execute(sql.SQL("create database {} template template_hitherto owner hitherto").format(NAME))
        yield make_conninfo(server.url, dbname="test_conformance")
        await connection.execute(sql.SQL("drop database {} with (force)").format(NAME))


class TestInMemoryStore(StoreConformance):
    @pytest.fixture
    async def store(self) -> Store:
        store = InMemoryStore()
        await store.open()
        return store


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    async def store(self, shared: str) -> AsyncIterator[Store]:
        async with await psycopg.AsyncConnection[Any].connect(shared, autocommit=True) as connection:
            await connection.execute("delete from hitherto.conversation; delete from hitherto.receipt")
        store = PostgresStore(shared)
        await store.open()
        yield store
        await store.aclose()

    async def test_processes_share_a_conversation(self, store: Store, shared: str) -> None:
        """Two stores know nothing of each other, as in two processes."""
        other = PostgresStore(shared)
        await other.open()
        await asyncio.gather(*(write(one, "c", *talk(1)) for one in (store, other) for _ in range(10)))
        assert [logged.seq for logged in await log_of(store, "c")] == list(range(40))
        async with store.write(SCOPE, "c"):
            waiting = asyncio.create_task(write(other, "c", user()))
            done, _ = await asyncio.wait([waiting], timeout=0.05)
            assert not done
        await waiting
        await other.aclose()

    async def test_processes_make_and_delete_a_conversation(self, store: Store, shared: str) -> None:
        """One may find it there, and gone again when it asks for it."""
        others = [PostgresStore(shared) for _ in range(3)]
        for other in others:
            await other.open()

        async def delete(one: Store) -> None:
            async with one.write(SCOPE, "c") as unit:
                await unit.delete()

        for _ in range(40):
            await asyncio.gather(
                write(store, "c", user()), *(delete(one) for one in others[:2]), write(others[2], "c", user())
            )
            head = await store.head(SCOPE, "c")
            assert head is None or [logged.seq for logged in await log_of(store, "c")] == list(range(head.next_seq))
        for other in others:
            await other.aclose()
