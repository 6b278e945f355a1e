"""The database away or too busy: 503 and when to come back, nothing lost, and the client goes on by itself."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

import hitherto
from hitherto import Memory, user
from hitherto.errors import StoreError
from hitherto.http.operations import AGENT, IDEMPOTENCY_KEY, PREFIX, USER
from hitherto.http.server import gate
from tests.conftest import SCOPE
from tests.faults.server import FAST, KILL, Server
from tests.faults.waiting import until
from tests.http.conftest import REQUEST
from tests.http.serving import serving
from tests.patience import PATIENCE

HERE = f"{PREFIX}/conversations/c/messages"


@pytest.fixture
async def own_server() -> AsyncIterator[Server]:
    """A server of the test's own, to be stopped."""
    folder = Path(tempfile.mkdtemp(prefix="hitherto-"))
    server = await Server.start(folder / "pg")
    yield server
    await server.end()
    shutil.rmtree(folder, ignore_errors=True)


async def headers_of(memory: Memory) -> dict[str, str]:
    made = await memory.keys(SCOPE.tenant).create("tests")
    return {"Authorization": f"Bearer {made.secret}", USER: SCOPE.user, AGENT: SCOPE.agent}


async def texts(memory: Memory) -> list[str]:
    return [one.message.text for one in await memory.conversation("c", scope=SCOPE).messages()]


async def test_a_database_that_is_away_and_comes_back(own_server: Server) -> None:
    async with hitherto.open(own_server.service_url, database_timeout=0.5) as memory:
        headers = await headers_of(memory)
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:

            async def append(number: int) -> httpx.Response:
                body = {"messages": [{"role": "user", "content": f"message {number}"}]}
                return await client.post(HERE, headers={**headers, IDEMPOTENCY_KEY: f"k-{number}"}, json=body)

            async def ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            written = list[int]()
            appending = True

            async def go_on() -> None:
                """As clients do: the same request until it is done."""
                number = 0
                while appending or number not in written:
                    found = await append(number)
                    assert found.status_code in (200, 503), found.text
                    if found.status_code == 503:
                        assert int(found.headers["Retry-After"]) >= 1
                        await asyncio.sleep(0.05)
                        continue
                    written.append(number)
                    number += appending

            going = asyncio.create_task(go_on())
            await until(lambda: len(written) > 3, "some are written")
            await own_server.stop(KILL)
            away = await append(1_000)
            assert "HITHERTO_DATABASE" not in away.text
            assert (away.status_code, away.headers["Content-Type"]) == (503, "application/problem+json")
            assert own_server.service_url not in away.text
            assert (await client.get("/healthz")).status_code == 200
            found = await client.get("/readyz")
            assert (found.status_code, "Retry-After" in found.headers) == (503, True)
            assert (await client.get("/metrics", headers=headers)).status_code == 503
            await own_server.start_again()
            await until(ready, "it is ready again")
            before = len(written)
            await until(lambda: len(written) > before, "it is written again")
            appending = False
            await going
            assert await texts(memory) == [f"message {number}" for number in written]


async def test_the_client_waits_and_goes_on(own_server: Server) -> None:
    async with hitherto.open(own_server.service_url, database_timeout=0.3) as memory:
        secret = (await headers_of(memory))["Authorization"].removeprefix("Bearer ")
        async with serving(memory) as url, hitherto.connect(url, key=secret) as remote:
            chat = remote.conversation("c", scope=SCOPE)
            await chat.append(user("before"))
            await own_server.stop(FAST)
            appending = asyncio.create_task(chat.append(user("meanwhile")))
            reading = asyncio.create_task(chat.messages())
            await asyncio.sleep(1)
            assert not appending.done()
            assert not reading.done()
            await own_server.start_again()
            await appending
            await reading
            assert await texts(memory) == ["before", "meanwhile"]
            await own_server.stop(FAST)
            with pytest.raises(StoreError):
                async with hitherto.connect(url, key=secret, timeout=0.2):
                    pass
            await own_server.start_again()


async def test_exports_that_nobody_reads(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold no connection of the pool, and end."""
    monkeypatch.setattr(gate, "_PATIENCE", 2.0)
    async with hitherto.open(database, pool_size=2, worker=False) as memory:
        chat = memory.conversation("c", scope=SCOPE, policy=hitherto.none())
        for _ in range(20):
            await chat.append(*(user("x" * 100_000) for _ in range(10)))
        made = await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])
        headers = {"Authorization": f"Bearer {made.secret}", USER: SCOPE.user, AGENT: SCOPE.agent}
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE, headers=headers) as client:
            address = urlsplit(url)
            lines = (f"GET {PREFIX}/export HTTP/1.1", "Host: localhost", *(f"{k}: {v}" for k, v in headers.items()))
            opened = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
            for _ in range(4):
                reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1_000)
                writer.write("\r\n".join([*lines, "", ""]).encode())
                opened.append((reader, writer))

            async def free() -> bool:
                return (await client.get("/readyz")).status_code == 200 and not in_use(memory)

            await until(free, "the exports are read out of the database")
            assert (await client.get(f"{PREFIX}/conversations")).status_code == 200
            await until(lambda: not under_way(), "the exports have ended")
            for reader, writer in opened:
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await reader.readexactly(20_000_000)
                writer.close()


def under_way() -> bool:
    """Whether a request is."""
    return any(getattr(task.get_coro(), "cr_code", None) is REQUEST for task in asyncio.all_tasks())


def in_use(memory: Memory) -> bool:
    """Whether connections of the pool are in use."""
    pool = memory._services.store._connections._pool
    assert pool is not None
    stats = pool.get_stats()
    return stats["pool_available"] < stats["pool_size"]


async def test_a_full_pool(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """Who waits too long for a connection comes back later; others are served as before."""
    async with hitherto.open(database, pool_size=1, database_timeout=0.2, worker=False) as memory:
        headers = await headers_of(memory)
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            body = {"messages": [{"role": "user", "content": "hello"}]}
            store = memory._services.store
            async with store._connections.borrowed():
                found = await client.post(HERE, headers={**headers, IDEMPOTENCY_KEY: "k"}, json=body)
                assert (found.status_code, found.headers["Retry-After"]) == (503, "1")
                assert "pool_size" in caplog.text
                assert (await client.get("/healthz")).status_code == 200
                assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/readyz")).status_code == 200
            assert await texts(memory) == []
            assert (await client.post(HERE, headers={**headers, IDEMPOTENCY_KEY: "k"}, json=body)).status_code == 200
            assert await texts(memory) == ["hello"]


async def test_all_who_ask_for_readiness_at_once_get_one_answer(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, goes_on, asked = memory._services.store.keys, asyncio.Event(), 0

    async def waits(_: str) -> None:
        nonlocal asked
        asked += 1
        await goes_on.wait()

    monkeypatch.setattr(keys, "find", waits)
    async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        leaves = asyncio.create_task(client.get("/readyz"))
        await until(lambda: asked, "the database is asked")
        leaves.cancel()
        waiting = [asyncio.create_task(client.get("/readyz")) for _ in range(20)]
        await client.get("/healthz")
        goes_on.set()
        assert [(await one).status_code for one in waiting] == [200] * 20
    assert asked <= 3, "the first look, and one for those that came after it"
