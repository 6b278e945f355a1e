"""Shared parts of the tests: one real PostgreSQL for the whole run, a fresh database for whoever asks."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hitherto.core.scope import Scope
from hitherto.ports.store import Store
from hitherto.stores.inmemory import InMemoryStore
from hitherto.stores.postgres import schema
from hitherto.stores.postgres.embedded import EmbeddedServer
from hitherto.stores.postgres.store import PostgresStore

SCOPE = Scope(tenant="acme", user="u-17", agent="planner")
SHARED = Path(__file__).resolve().parents[2] / "shared"
LOCOMO = SHARED / "data" / "locomo" / "locomo10.json"

_numbers = count(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell leaves it to what it runs in the background; the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def locomo() -> Path:
    """The LoCoMo file beside the project; the tests that need it say so when it is not there."""
    if not LOCOMO.exists():
        pytest.skip("needs ../shared/data/locomo/locomo10.json beside the project")
    return LOCOMO


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[EmbeddedServer]:
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    running = await EmbeddedServer.start(folder / "pg")
    async with await psycopg.AsyncConnection[Any].connect(running.admin_url, autocommit=True) as connection:
        await connection.execute("create database template_hitherto owner hitherto")
    await schema.ensure(make_conninfo(running.url, dbname="template_hitherto"), patience=10)
    yield running
    await running.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def make_database(server: EmbeddedServer) -> AsyncIterator[Callable[[], Coroutine[Any, Any, str]]]:
    """Makes a database with the schema in it and gives its URL."""
    made: list[str] = []

    async def make() -> str:
        name = f"test_{next(_numbers)}"
        async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as connection:
            await connection.execute(
                sql.SQL("create database {} template template_hitherto owner hitherto").format(sql.Identifier(name))
            )
        made.append(name)
        return make_conninfo(server.url, dbname=name)

    yield make
    async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as connection:
        for name in made:
            await connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
async def database(make_database: Callable[[], Coroutine[Any, Any, str]]) -> str:
    """The URL of a fresh database with the schema in it."""
    return await make_database()


@pytest.fixture(params=["inmemory", "postgres"])
async def store(
    request: pytest.FixtureRequest, make_database: Callable[[], Coroutine[Any, Any, str]]
) -> AsyncIterator[Store]:
    """Each kind of store, open and empty."""
    made: Store = InMemoryStore() if request.param == "inmemory" else PostgresStore(await make_database())
    await made.open()
    yield made
    await made.aclose()
