"""The server of throw-away memories: it ends with the process that owns it, however that ends, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, TypeVar

import psutil
import pytest

import hitherto
from hitherto import Memory, user
from hitherto.errors import DatabaseUnavailable, EmbeddedServerError, StoreError
from hitherto.store.embedded import throwaway
from hitherto.store.embedded.throwaway import PREFIX
from tests.conftest import SCOPE
from tests.patience import PATIENCE

Seen = TypeVar("Seen")

OWNER = """
import asyncio, os, pwd, signal, sys
import hitherto
from hitherto import Scope, user
from hitherto.store.embedded import throwaway

memories = []

async def opened():
    memories.append(await hitherto.open("memory:", embedder="none"))
    chat = memories[-1].conversation("c", scope=Scope(tenant="acme", user="ada", agent="planner"))
    await chat.append(user("Hello."))
    return f"{len(await chat.messages())} {throwaway._server.folder}"

loop = asyncio.new_event_loop()
if account := os.environ.get("ACCOUNT"):
    # All that is imported is imported before, as the account may not read the files.
    loop.run_until_complete(opened())
    loop.run_until_complete(memories.pop().aclose())
    throwaway._server.let_go()
    entry = pwd.getpwnam(account)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
print("begun", flush=True)
for line in sys.stdin:
    match line.strip():
        case "open":
            print(loop.run_until_complete(opened()), flush=True)
        case "close":
            print(loop.run_until_complete(memories.pop().aclose()), flush=True)
        case "fork":
            if (child := os.fork()) == 0:
                signal.pause()
            print(child, flush=True)
        case "open in a fork":
            if os.fork() == 0:
                loop = asyncio.new_event_loop()
                print(os.getpid(), loop.run_until_complete(opened()), flush=True)
                signal.pause()
"""


class Owner:
    """A process that opens memories; `ask` sends it a line and returns its answer."""

    made: ClassVar[list[Owner]] = []

    def __init__(self, base: Path, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "HOME"}
        env = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(base), **environment}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", OWNER], env=env, stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.questions, self.answers = self.process.stdin, self.process.stdout
        self.made.append(self)
        assert self.answers.readline() == "begun\n"

    def ask(self, line: str) -> str:
        self.questions.write(line + "\n")
        self.questions.flush()
        return self.answers.readline().strip()

    def open(self) -> Path:
        """The folder of its server, after a memory was opened and used."""
        count, folder = self.ask("open").split()
        assert count == "1"
        return Path(folder)

    def end(self, number: signal.Signals | None = None) -> None:
        """Without a signal it comes to its end by itself."""
        if number is not None:
            self.process.send_signal(number)
        self.questions.close()
        self.process.wait(timeout=PATIENCE)  # a child may have its pipes
        self.answers.close()


@pytest.fixture(autouse=True)
def no_owner_is_left() -> Iterator[None]:
    yield
    while Owner.made:
        Owner.made.pop().end(signal.SIGKILL)


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder for temporary files, in memory where there is room; in the end there is nothing in it."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2**30
    made = Path(tempfile.mkdtemp(prefix="ht-", dir=memory if roomy else None))
    made.chmod(0o1777)
    yield made
    while Owner.made:
        Owner.made.pop().end(signal.SIGKILL)
    until(lambda: not any(made.iterdir()))
    until(lambda: not processes(made))  # the shell removes the folder, and then ends
    made.rmdir()


@pytest.fixture
def small_disk(base: Path) -> Iterator[Path]:
    mounted = base / "disk"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=128m,mode=1777", "tmpfs", mounted]
    if os.geteuid() != 0 or subprocess.run(command, check=False).returncode != 0:
        mounted.rmdir()
        pytest.skip("needs root, and the right to mount a file system")
    yield mounted
    until(lambda: not any(mounted.iterdir()))
    subprocess.run(["umount", mounted], check=True)
    mounted.rmdir()


def begin_to_open(base: Path, stage: str) -> Owner:
    """An owner that opens its first memory, and has come to where there is `stage` in its folder."""
    owner, before = Owner(base), set(base.iterdir())
    owner.questions.write("open\n")
    owner.questions.flush()
    until(lambda: any((folder / stage).exists() for folder in base.iterdir() if folder not in before))
    return owner


def until(look: Callable[[], Seen]) -> Seen:
    deadline = time.monotonic() + PATIENCE
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return seen


def processes(folder: Path) -> list[psutil.Process]:
    """The shells and the servers in a folder: what a server has begun ends with it."""
    return [one for one in psutil.process_iter() if str(folder) in " ".join(_words(one))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def watching_shells(folder: Path) -> list[psutil.Process]:
    return [one for one in processes(folder) if one.name() in {"sh", "dash", "bash"}]


def gone(folder: Path) -> bool:
    return not folder.exists() and not processes(folder)


class TestItEndsWithItsOwner:
    @pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT])
    def test_however_that_ends(self, base: Path, how: signal.Signals | None) -> None:
        owner = Owner(base)
        folder = owner.open()
        assert folder.parent == base
        owner.end(how)
        until(lambda: gone(folder))

    def test_killed_with_all_of_its_group(self, base: Path) -> None:
        """As a terminal, a service manager or a runner of tests does it; the shell is in a group of its own."""
        owner = Owner(base)
        folder = owner.open()
        for shell in watching_shells(folder):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                shell.send_signal(number)
        owner.end(signal.SIGKILL)
        until(lambda: gone(folder))

    def test_in_the_middle_of_the_first_open(self, base: Path) -> None:
        for stage, how in (("log", signal.SIGKILL), ("data", signal.SIGINT), ("data/postmaster.pid", signal.SIGKILL)):
            begin_to_open(base, stage).end(how)
            until(lambda: not any(base.iterdir()))

    def test_before_there_is_a_server_the_next_open_removes_what_is_left(self, base: Path) -> None:
        begin_to_open(base, "lock").end(signal.SIGKILL)
        begin_to_open(base, "").end(signal.SIGKILL)
        (base / f"{PREFIX}deadbeef").mkdir()  # as before the server's account owns it
        folder = Owner(base).open()
        until(lambda: list(base.iterdir()) == [folder])

    def test_when_all_are_killed_the_next_open_removes_what_is_left(self, base: Path) -> None:
        owner, other = Owner(base), Owner(base)
        folder, others = owner.open(), other.open()
        owner.process.send_signal(signal.SIGSTOP)  # so that it can do nothing for its server
        for shell in watching_shells(folder):
            shell.kill()
        owner.end(signal.SIGKILL)
        assert processes(folder)
        mine = [base / f"{PREFIX}deadbeef", base / f"{PREFIX}notes", base / "hitherto-0123456789"]
        for made in mine:
            made.mkdir()
            (made / "note").touch()
        third = Owner(base).open()
        assert gone(folder)
        assert other.open() == others, "it is not abandoned"
        assert sorted(base.iterdir()) == sorted([*mine, others, third])
        for made in mine:
            shutil.rmtree(made)


class TestForks:
    def test_a_child_has_no_part_in_it(self, base: Path) -> None:
        owner = Owner(base)
        folder = owner.open()
        child = psutil.Process(int(owner.ask("fork")))
        owner.end(signal.SIGKILL)
        until(lambda: gone(folder))
        assert child.is_running()
        child.kill()

    def test_a_child_has_a_server_of_its_own(self, base: Path) -> None:
        owner = Owner(base)
        folder = owner.open()
        pid, count, childs = owner.ask("open in a fork").split()
        assert count == "1"
        assert Path(childs) != folder
        psutil.Process(int(pid)).kill()
        until(lambda: gone(Path(childs)))
        assert owner.open() == folder


class TestWhere:
    def test_a_path_that_is_too_long_for_a_socket(self, base: Path) -> None:
        long = base / ("long" * 30)
        long.mkdir(mode=0o777)
        long.chmod(0o1777)
        folder = Owner(long).open()
        assert long not in folder.parents
        long.rmdir()

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
    def test_not_as_root(self, base: Path) -> None:
        owner = Owner(base, ACCOUNT="nobody")
        folder = owner.open()
        assert folder.parent == base
        assert folder.owner() == "nobody"
        owner.end(signal.SIGKILL)
        until(lambda: gone(folder))

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
    def test_root_goes_to_no_folder_of_others(self, base: Path) -> None:
        private = base / "private"
        private.mkdir(mode=0o700)
        assert private not in Owner(private).open().parents
        private.rmdir()

    def test_no_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(throwaway, "_ROOM", 2**40)
        monkeypatch.setattr(throwaway, "_ROOM_IN_MEMORY", 2**40)
        says = r"no throw-away database \(memory:\) can be made: .*/tmp has \d+ MB free, and \d+ are needed.*Set TMPDIR"
        with pytest.raises(EmbeddedServerError, match=says):
            throwaway.ThrowawayServer().take()

    def test_programs_that_do_not_run(self, monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
        monkeypatch.setenv("TMPDIR", str(base))
        monkeypatch.setattr(throwaway, "_SETTINGS", ("no_such_setting=on",))
        with pytest.raises(EmbeddedServerError, match=r"its PostgreSQL server ended, and said: .*no_such_setting"):
            throwaway.ThrowawayServer().take()

    async def test_a_disk_that_is_full(self, monkeypatch: pytest.MonkeyPatch, small_disk: Path) -> None:
        here = throwaway.ThrowawayServer()
        monkeypatch.setenv("TMPDIR", str(small_disk))
        monkeypatch.setattr(throwaway, "_server", here)
        async with hitherto.open("memory:", embedder="none") as memory:
            (small_disk / "filler").write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 2**20))
            with pytest.raises(StoreError, match="No space left on device"):
                await memory.conversation("c", scope=SCOPE).append(*(user(os.urandom(50_000).hex()) for _ in range(50)))
            with pytest.raises(EmbeddedServerError, match="No space left on device"):
                await hitherto.open("memory:", embedder="none")
            (small_disk / "filler").unlink()
            await memory.conversation("d", scope=SCOPE).append(user("There is room again."))
        here.let_go()


async def hello(memory: Memory) -> int:
    await memory.conversation("c", scope=SCOPE).append(user("Hello."))
    return len(await memory.conversation("c", scope=SCOPE).messages())


async def opened_and_closed() -> int:
    async with hitherto.open("memory:", embedder="none") as memory:
        return await hello(memory)


def servers_databases() -> list[str]:
    folder = throwaway._server.folder
    assert folder is not None
    with throwaway.psycopg.connect(throwaway.cluster.url("postgres", folder)) as connection:
        found = connection.execute("select datname from pg_database where datname like 'memory%'").fetchall()
    return [name for (name,) in found]


def in_use() -> int:
    return len(servers_databases()) - len(throwaway._server._free)


async def test_twenty_at_once_share_nothing() -> None:
    await opened_and_closed()
    before = in_use()  # others of this process may have some, or be about to give some back
    assert await asyncio.gather(*(opened_and_closed() for _ in range(20))) == [1] * 20
    until(lambda: in_use() <= before)
    assert len(throwaway._server._free) <= throwaway._SPARE


async def test_an_open_that_is_cancelled_leaves_no_database() -> None:
    await opened_and_closed()
    before = in_use()
    for turns in range(1, 30):
        opening = asyncio.ensure_future(opened_and_closed())
        for _ in range(turns):
            await asyncio.sleep(0.001)
        opening.cancel()
        await asyncio.wait([opening])
    until(lambda: in_use() == before)  # what was taken for one that had gone is given back in a thread
    assert len(throwaway._server._free) <= throwaway._SPARE


async def test_what_was_in_one_is_not_in_the_next() -> None:
    async with hitherto.open("memory:", embedder="none") as memory:
        await hello(memory)
        first = await memory.facts(SCOPE).add("Plays the cello.")
    async with hitherto.open("memory:", embedder="none") as memory:
        assert (await memory.conversations(tenant=SCOPE.tenant)).conversations == ()
        assert await memory.facts(SCOPE).list() == []
        again = await memory.facts(SCOPE).add("Plays the cello.")
        assert again.id == first.id, "numbers begin where they began"


async def test_after_the_end_of_the_server_the_next_open_has_another(
    monkeypatch: pytest.MonkeyPatch, base: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(base))
    here = throwaway.ThrowawayServer()
    monkeypatch.setattr(throwaway, "_server", here)
    async with hitherto.open("memory:", embedder="none", database_timeout=0.3) as memory:
        folder = here.folder
        assert folder is not None
        await hello(memory)
        await opened_and_closed()
        psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0])).kill()
        until((folder / "ended").exists)
        with pytest.raises(DatabaseUnavailable):
            await hello(memory)
        with pytest.raises(
            DatabaseUnavailable, match="its server has ended, and what was in it is gone; then open another"
        ):
            await hello(memory)
        assert await opened_and_closed() == 1
        assert here.folder != folder
    until(lambda: gone(folder))
    here.let_go()


async def test_a_process_of_the_server_that_is_killed(monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
    """The server recovers, and the memories go on. It is one of its own: it cuts off all who use it."""
    monkeypatch.setenv("TMPDIR", str(base))
    here = throwaway.ThrowawayServer()
    monkeypatch.setattr(throwaway, "_server", here)
    async with hitherto.open("memory:", embedder="none") as memory:
        await hello(memory)
        folder = here.folder
        assert folder is not None
        postmaster = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))
        victim = next(one for one in postmaster.children() if re.search(r"hitherto memory_\d+ ", one.cmdline()[0]))
        victim.kill()
        for use in (opened_and_closed, lambda: hello(memory)):
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(DatabaseUnavailable):  # it was cut off
                        await use()
                        break
        assert await hello(memory) == 3
    here.let_go()
