"""Appends after the database was away: they work again soon, however long it was, and Hitherto's own is started."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import aclosing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg_pool.base import AttemptWithBackoff

import hitherto
from hitherto import user
from hitherto.core.log.message import Logged
from hitherto.errors import DatabaseUnavailable
from hitherto.store import schema
from hitherto.store.connections import silence
from hitherto.store.embedded import cluster
from hitherto.store.embedded.server import EmbeddedServer
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.faults.processes import Program
from tests.faults.server import FAST, Server
from tests.faults.waiting import until
from tests.patience import PATIENCE
from tests.store.samples import log_of, write

_numbers = count(1)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Where the server of these tests is kept, which each of them starts."""
    memory = Path("/dev/shm")  # to make a cluster and delete it is slow on some disks
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2**30
    folder = Path(tempfile.mkdtemp(prefix="ht-", dir=memory if roomy else None))
    yield folder / "pg"
    cluster.kill(folder / "pg")
    shutil.rmtree(folder)


@pytest.fixture
def name() -> str:
    """A conversation that is new."""
    return f"c{next(_numbers)}"


def texts(log: list[Logged]) -> list[str]:
    return [logged.message.text for logged in log]


class TestAServerThatIsBack:
    @pytest.fixture(autouse=True)
    def long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """psycopg's pool doubles its wait after each attempt that fails. Here its second wait is as long as it is after
        a minute and a half."""
        monkeypatch.setattr(AttemptWithBackoff, "DELAY_BACKOFF", 100.0)

    @pytest.fixture
    async def own_server(self, home: Path) -> AsyncIterator[Server]:
        server = await Server.start(home)
        yield server
        await server.end()

    @pytest.fixture(params=[1, 10])
    async def store(self, request: pytest.FixtureRequest, own_server: Server, name: str) -> AsyncIterator[Store]:
        made = Store(own_server.url, pool_size=request.param, patience=20)
        await made.open()
        await write(made, name, user("before"))
        yield made
        await made.aclose()

    async def test_serves_who_waits(self, own_server: Server, store: Store, name: str) -> None:
        await own_server.stop(FAST)
        writing = asyncio.create_task(write(store, name, user("meanwhile")))
        await attempts_fail(store)
        await own_server.start_again()
        await writing
        assert texts(await log_of(store, name)) == ["before", "meanwhile"]

    async def test_serves_who_comes_when_all_have_given_up(self, own_server: Server, store: Store, name: str) -> None:
        await own_server.stop(FAST)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(write(store, name, user("meanwhile")), timeout=0.1)
        await attempts_fail(store)
        await own_server.start_again()
        await write(store, name, user("after"))
        assert texts(await log_of(store, name)) == ["before", "after"]

    async def test_was_said_once_to_be_away(
        self, own_server: Server, store: Store, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(2):
            caplog.clear()
            await own_server.stop(FAST)
            writing = asyncio.create_task(write(store, name, user("meanwhile")))
            await attempts_fail(store)
            said = [one.getMessage() for one in caplog.records if one.msg.startswith("error connecting")]
            assert said
            assert len(said) == len(set(said))
            await own_server.start_again()
            await writing


async def attempts_fail(store: Store) -> None:
    """Returns when each of the pool's attempts to connect has failed twice; from then on it may wait for long."""
    pool = store._connections._pool
    before = pool.get_stats().get("connections_errors", 0)
    each = 2 if pool.max_size == 1 else 4
    await until(lambda: pool.get_stats().get("connections_errors", 0) >= before + each, "attempts fail")


async def test_a_server_that_recovers_is_waited_for(own_server: Server) -> None:
    """By who opens it, as long as it may take; by a worker, as long as it takes."""
    await own_server.stop(FAST)
    await own_server.start_closed()
    with pytest.raises(DatabaseUnavailable, match="cannot connect"):
        await Store(own_server.url, patience=0.5).open()
    worker = await Program.start("worker", "hitherto", "worker", database=own_server.url, database_timeout=0.5)
    try:
        await worker.said("The database is starting up; waiting for it")
        patient = Store(own_server.url, patience=PATIENCE)
        opening = asyncio.create_task(patient.open())
        await own_server.take_connections()
        async with aclosing(patient):
            await opening
        await worker.said("Worker started")
    finally:
        await worker.kill()


async def test_nothing_is_printed_where_logging_is_not_set_up(own_server: Server) -> None:
    program = (
        "import asyncio, sys, hitherto\n"
        "from hitherto.errors import DatabaseUnavailable\n"
        "async def main():\n"
        "    scope = hitherto.Scope(tenant='t', user='u', agent='a')\n"
        "    async with hitherto.open(sys.argv[1], database_timeout=2) as memory:\n"
        "        chat = memory.conversation('c', scope=scope)\n"
        "        await chat.append(hitherto.user('before'))\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.readline)\n"
        "        for _ in range(2):\n"
        "            try: await chat.append(hitherto.user('meanwhile'))\n"
        "            except DatabaseUnavailable: print('away', flush=True)\n"
        "asyncio.run(main())"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, own_server.url, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    await own_server.stop(FAST)
    assert await process.communicate(b"\n") == (b"away\naway\n", b"")


class TestHithertosOwnServer:
    @pytest.mark.parametrize("all_of_it", [True, False])
    async def test_that_was_killed_is_started_again(self, home: Path, name: str, all_of_it: bool) -> None:
        """By the next append, once, however many users there are; and what was acknowledged is there."""
        async with (
            hitherto.open(data_dir=home, database_timeout=30) as memory,
            hitherto.open(data_dir=home, database_timeout=30, worker=False) as other,
        ):
            chats = [one.conversation(name, scope=SCOPE) for one in (memory, other)]
            for number in range(5):
                for chat in chats:
                    await chat.append(user(f"before {number}"))
            before = postmaster(home)
            assert before is not None
            # The postmaster first: it starts anew what of it dies, and a new process for each new connection.
            before.kill()
            while before in (processes := cluster.server_processes(home)):
                time.sleep(0.01)  # noqa: ASYNC251 (so nobody starts the server again meanwhile)
            for process in processes if all_of_it else ():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            await until(lambda: not set(processes).intersection(cluster.server_processes(home)), "the server is gone")
            await asyncio.gather(*(chat.append(user(f"after {n}")) for chat in chats for n in range(5)))
            assert postmaster(home) != before
            log = texts(await chats[0].messages())
            assert log[:10] == [f"before {number}" for number in range(5) for _ in chats]
            assert sorted(log[10:]) == sorted(f"after {number}" for number in range(5) for _ in chats)
        assert not cluster.server_processes(home)

    async def test_that_cannot_be_started_is_left_alone_for_a_while(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        server = await EmbeddedServer.start(home)
        await kill(home)
        with broken(home):
            for _ in range(3):
                await server.start_again()
        (said,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert "stopped and could not be started again: PostgreSQL does not start in" in said.getMessage()
        await server.start_again()
        assert not cluster.answers(home)
        server._rests_until = 0
        await asyncio.gather(*(server.start_again() for _ in range(3)))
        assert cluster.answers(home)
        await server.stop()

    async def test_that_nobody_uses_any_more_stays_down(self, home: Path) -> None:
        server = await EmbeddedServer.start(home)
        await server.stop()
        await server.start_again()
        assert not cluster.server_processes(home)

    async def test_that_does_not_answer_is_not_disturbed(self, home: Path) -> None:
        """It may recover, or be busy."""
        server = await EmbeddedServer.start(home)
        running = postmaster(home)
        assert running is not None
        running.suspend()
        await server.start_again()
        assert postmaster(home) == running
        running.resume()
        await server.stop()


def postmaster(home: Path) -> psutil.Process | None:
    """The server's first process, if it is alive."""
    with suppress(OSError, psutil.NoSuchProcess):
        return psutil.Process(int((home / "data" / "postmaster.pid").read_text().split()[0]))
    return None


async def kill(home: Path) -> None:
    os.kill(int((home / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    await until(lambda: not cluster.server_processes(home), "the server is gone")


@contextmanager
def broken(home: Path) -> Generator[None]:
    """While it lasts, the server cannot be started."""
    (home / "data" / "global").rename(home / "global")
    try:
        yield
    finally:
        (home / "global").rename(home / "data" / "global")


async def test_a_server_that_has_just_started_is_tried_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refused the connection, and takes some by the time it is asked why."""
    connect, refused = silence.connect, [psycopg.OperationalError("not accepting connections")]

    async def connects(*words: Any, **given: Any) -> Any:
        if refused:
            raise refused.pop()
        return await connect(*words, **given)

    monkeypatch.setattr(silence, "connect", connects)
    await schema.ensure(database, patience=0)
    refused += [psycopg.OperationalError("wrong password"), psycopg.OperationalError("wrong password")]
    with pytest.raises(DatabaseUnavailable, match="wrong password"):
        await schema.ensure(database, patience=0)
