"""The embedded server, with real processes and real kill -9."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import ClassVar

import psutil
import psycopg
import pytest

from hitherto.errors import EmbeddedServerError
from hitherto.store.embedded import cluster, files
from hitherto.store.embedded.server import EmbeddedServer, default_data_directory
from tests.patience import PATIENCE

CLIENT = """
import asyncio, os, sys, time
from pathlib import Path
import psycopg
from hitherto.store.embedded.server import EmbeddedServer, _gate

server = asyncio.run(EmbeddedServer.start(Path(sys.argv[1])))
print("ready", flush=True)
for line in sys.stdin:
    match line.strip():
        case "stop":
            asyncio.run(server.stop())
            print("stopped", flush=True)
        case "fork":
            if os.fork() == 0:
                sys.exit()
            os.wait()
            print("forked", flush=True)
        case "enter the gate":
            with _gate(Path(sys.argv[1])):
                print("inside", flush=True)
                time.sleep(60)
        case sql:
            with psycopg.connect(server.url, autocommit=True) as connection:
                cursor = connection.execute(sql)
                print(cursor.fetchone()[0] if cursor.description else "done", flush=True)
"""


class Client:
    """Another process that uses the server of a directory; `ask` sends it a line and returns its answer."""

    made: ClassVar[list[Client]] = []

    def __init__(self, directory: Path, **environment: str) -> None:
        command = [sys.executable, "-W", "error", "-c", CLIENT, str(directory)]
        kept = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
        env = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.questions, self.answers = self.process.stdin, self.process.stdout
        self.made.append(self)

    def ready(self) -> Client:
        assert self.answers.readline() == "ready\n", self.process.communicate()[1]
        return self

    def ask(self, line: str) -> str:
        self.questions.write(line + "\n")
        self.questions.flush()
        return self.answers.readline().strip()

    def end(self) -> str:
        """Lets it run to its end without a stop; returns what it wrote to stderr."""
        return self.process.communicate(timeout=PATIENCE)[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(autouse=True)
def no_client_is_left() -> Iterator[None]:
    yield
    while Client.made:
        Client.made.pop().kill()


@pytest.fixture
def directory() -> Iterator[Path]:
    # In memory if there is room: on some file systems it takes longer to delete a cluster than to make one.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2**30
    root = Path(tempfile.mkdtemp(prefix="ht-", dir=memory if roomy else None))
    yield root / "pg"
    left: list[psutil.Process] = []
    for data in (*root.glob("*/data"), *root.glob("*/*/data")):
        left += cluster.server_processes(data.parent)
        cluster.kill(data.parent)
    shutil.rmtree(root)
    assert not left, "a test left a server behind"


def postmaster(directory: Path) -> psutil.Process:
    return psutil.Process(int((directory / "data" / "postmaster.pid").read_text().split()[0]))


def is_down(directory: Path) -> bool:
    return not cluster.server_processes(directory) and not (directory / "data" / "postmaster.pid").exists()


def query(url: str, sql: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


@contextlib.asynccontextmanager
async def served(directory: Path) -> AsyncGenerator[str]:
    """Gives the URL of a running server of which this test's process is the last user."""
    server = await EmbeddedServer.start(directory)
    yield server.url
    await server.stop()
    assert is_down(directory)


async def test_a_first_start_makes_a_role_and_a_database_and_opens_no_folder(directory: Path) -> None:
    server = await EmbeddedServer.start(directory)
    flags = "SELECT array[rolsuper, rolcreatedb, rolcreaterole] FROM pg_roles WHERE rolname = current_user"
    assert query(server.url, flags) == [False, False, False]
    assert query(server.url, "SELECT current_user || '@' || current_database()") == "hitherto@hitherto"
    query(server.url, "CREATE SCHEMA hitherto CREATE TABLE kept (text text)")
    assert query(server.admin_url, "SELECT usesuper FROM pg_user WHERE usename = current_user") is True
    assert query(server.admin_url, "SHOW fsync") == "on"
    await server.stop()
    assert is_down(directory)
    assert stat.S_IMODE((directory / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.parent.stat().st_mode) == (0o701 if os.geteuid() == 0 else 0o700)


async def test_uses_in_one_process_are_counted_and_outlive_the_server(directory: Path) -> None:
    first, second, *others = await asyncio.gather(*(EmbeddedServer.start(directory) for _ in range(4)))
    query(first.url, "CREATE TABLE t AS SELECT 42 AS n")
    postmaster(directory).kill()
    others.append(await EmbeddedServer.start(directory))
    await first.stop()
    await asyncio.gather(first.stop(), *(other.stop() for other in others))
    assert query(second.url, "SELECT n FROM t") == 42
    await second.stop()
    assert is_down(directory)


def test_a_folder_that_several_make_at_once(directory: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(30):
            path, together = directory / str(number) / "pg", Barrier(8)

            def made(path: Path = path, together: Barrier = together) -> Path:
                together.wait()
                return files.make(path)

            assert {future.result() for future in [threads.submit(made) for _ in range(8)]} == {path.resolve()}


async def test_two_processes_start_at_once_and_a_killed_one_does_not_matter(directory: Path) -> None:
    both = Client(directory), Client(directory)
    first, second = (client.ready() for client in both)
    assert first.ask("CREATE TABLE t AS SELECT 41 AS n") == "done"
    first.kill()
    assert second.ask("SELECT n + 1 FROM t") == "42"
    async with served(directory) as url:
        assert query(url, "SELECT n FROM t") == 41
        assert second.ask("stop") == "stopped"
        assert query(url, "SELECT n FROM t") == 41


async def test_the_last_process_to_end_stops_the_server(directory: Path) -> None:
    """Without a call of stop(), a forked child that ends before, and without a word to the user."""
    first, second = Client(directory).ready(), Client(directory).ready()
    assert first.end() == ""
    assert second.ask("fork") == "forked"
    assert second.ask("SELECT 1") == "1"
    assert second.end() == ""
    assert is_down(directory)


async def test_after_a_kill_of_the_only_client_the_next_adopts(directory: Path) -> None:
    Client(directory).ready().kill()
    running = postmaster(directory)
    async with served(directory) as url:
        assert postmaster(directory) == running
        assert query(url, "SELECT 1") == 1


@pytest.mark.parametrize("victims", ["postmaster", "all"])
async def test_what_was_committed_survives_a_kill_of(victims: str, directory: Path) -> None:
    client = Client(directory).ready()
    client.ask("CREATE TABLE t AS SELECT 42 AS n")
    if victims == "all":
        client.kill()
    for process in cluster.server_processes(directory) if victims == "all" else [postmaster(directory)]:
        with contextlib.suppress(psutil.NoSuchProcess):  # the one that served the killed client ends by itself
            process.kill()
    async with served(directory) as url:
        assert query(url, "SELECT n FROM t") == 42
        if victims == "postmaster":
            assert client.ask("SELECT n FROM t") == "42"
            assert client.end() == ""


@pytest.mark.parametrize("pid_of", ["this process", "a process of the server's account"])
async def test_a_pid_that_is_somebody_elses_by_now(pid_of: str, directory: Path) -> None:
    Client(directory).ready().kill()
    data = directory / "data"
    kept = {path: path.read_text() for path in (data / "postmaster.pid", data / ".s.PGSQL.5432.lock")}
    old = postmaster(directory).pid
    cluster.kill(directory)
    owner = data.stat()
    with subprocess.Popen(["sleep", "60"], user=owner.st_uid, group=owner.st_gid) as sleeper:  # noqa: ASYNC220
        pid = os.getpid() if pid_of == "this process" else sleeper.pid
        for path, text in kept.items():
            path.write_text(text.replace(str(old), str(pid), 1))
            os.chown(path, owner.st_uid, owner.st_gid)
        async with served(directory) as url:
            assert query(url, "SELECT 1") == 1
        assert sleeper.poll() is None
        sleeper.kill()


async def test_a_torn_pid_file(directory: Path) -> None:
    async with served(directory):
        pass
    for torn in (b"", b"12", b"-1\n", b"\xff\xfe\x00", b"4711\n/nowhere\n17"):
        (directory / "data" / "postmaster.pid").write_bytes(torn)
        async with served(directory) as url:
            assert query(url, "SELECT 1") == 1


async def test_an_interrupted_first_start_is_started_again(directory: Path) -> None:
    interrupted = Client(directory)
    while not (directory / "data.new" / "PG_VERSION").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.002)
    interrupted.kill()
    async with served(directory) as url:
        assert query(url, "SELECT 1") == 1
    assert not (directory / "data.new").exists()


async def test_a_process_killed_inside_the_gate_holds_up_nobody(directory: Path) -> None:
    holder = Client(directory).ready()
    assert holder.ask("enter the gate") == "inside"
    waiting = asyncio.create_task(EmbeddedServer.start(directory))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    assert not done
    holder.kill()
    await (await waiting).stop()
    assert is_down(directory)


async def test_a_hostile_environment_and_path(directory: Path) -> None:
    where = directory / 'a "b" $HOME; %2F'
    client = Client(where, PGPORT="1", PGDATA="/nowhere", PGUSER="nobody", LC_ALL="xx_XX.ISO-8859-1").ready()
    assert client.ask("SELECT current_user") == "hitherto"
    assert client.end() == ""
    assert is_down(where)


async def test_a_start_that_cannot_succeed_says_why_and_what_to_do(directory: Path) -> None:
    root = directory.parent
    for folder in ("foreign", "old/data", "broken/data", "locked"):
        (root / folder).mkdir(parents=True)
    (root / "locked").chmod(0o500)
    (root / "file").touch()
    (root / "foreign" / "PG_VERSION").write_text("15\n")
    (root / "old" / "data" / "PG_VERSION").write_text("16\n")
    cases = {
        root / "file": "File exists",
        root / "file" / "below": "Not a directory",
        root / "foreign": "is the data directory of another PostgreSQL server",
        root / "old": "holds data of PostgreSQL 16",
        root / "broken": "does not start",
        root / ("long" * 30): "bytes too long",
        Path("/proc/hitherto") if os.geteuid() == 0 else root / "locked" / "pg": "Give a directory on a local disk",
    }
    for where, why in cases.items():
        with pytest.raises(EmbeddedServerError, match=why) as raised:
            await EmbeddedServer.start(where)
        assert str(where) in str(raised.value)
        assert "or give the address of a PostgreSQL server" in str(raised.value)


def test_the_default_directory_needs_no_private_folder_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/home/ada/data")
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert default_data_directory().name == "postgres"
    if sys.platform == "linux":
        assert default_data_directory() == Path("/home/ada/data/hitherto/postgres")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    if sys.platform == "linux":
        assert default_data_directory() == Path("/home/ada/data/hitherto/postgres"), "root says so"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data_directory() == Path("/var/lib/hitherto/postgres")


async def test_windows_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(EmbeddedServerError, match="does not run on Windows"):
        await EmbeddedServer.start(directory)
