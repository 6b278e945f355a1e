"""Root with a directory of another user, who wants root to harm others. Nothing is changed that is not that user's."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from hitherto.errors import EmbeddedServerError
from hitherto.store.embedded import cluster
from hitherto.store.embedded.server import EmbeddedServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: for others, the kernel refuses all of this")

SECRET = "root:$6$rounds"


@pytest.fixture
def account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("needs an account without rights, named nobody")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of root's that everybody may pass."""
    made = Path(tempfile.mkdtemp(prefix="ht-"))
    made.chmod(0o711)
    yield made
    for directory in (made / "pg", made / "theirs" / "pg"):
        with suppress(EmbeddedServerError, OSError):
            cluster.kill(directory)
    shutil.rmtree(made)


@pytest.fixture
def theirs(folder: Path, account: pwd.struct_passwd) -> Path:
    """A folder that belongs to the account."""
    return given(folder / "theirs", account)


@pytest.fixture
def private(folder: Path) -> Path:
    """A folder of root's that nobody else may pass, with a file in it."""
    made = folder / "private"
    made.mkdir(mode=0o700)
    (made / "postmaster.pid").write_text(SECRET)
    (made / "postmaster.pid").chmod(0o600)
    return made


def given(path: Path, account: pwd.struct_passwd) -> Path:
    path.mkdir()
    os.chown(path, account.pw_uid, account.pw_gid)
    return path


def found(private: Path) -> dict[str, Any]:
    """Owner, permissions, number of names and content of all there is."""
    paths = [private, *sorted(private.iterdir())]
    status = {path.name: path.stat() for path in paths}
    kept = {name: (it.st_uid, it.st_gid, it.st_mode, it.st_nlink) for name, it in status.items()}
    return {**kept, "content": [path.read_text() for path in paths[1:]]}


@pytest.mark.parametrize("name", ["lock", "clients"])
@pytest.mark.parametrize("trap", ["symbolic link", "symbolic link to nothing", "hard link", "pipe", "file of another"])
async def test_a_lock_that_is_something_else(theirs: Path, private: Path, name: str, trap: str) -> None:
    secret, lock = private / "postmaster.pid", theirs / name
    expected = "is a symbolic link"
    match trap:
        case "symbolic link":
            lock.symlink_to(secret)
        case "symbolic link to nothing":
            lock.symlink_to(private / "new")
        case "hard link":
            lock.hardlink_to(secret)
            expected = "is one of 2 names of the same file"
        case "pipe":
            os.mkfifo(lock)
            expected = "is not a regular file"
        case _:
            lock.touch()
            os.chown(lock, 1, 1)
            expected = "belongs to uid 1, not to the owner of its folder"
    before = found(private), lock.lstat().st_uid
    with pytest.raises(EmbeddedServerError, match=rf"{lock} {expected}.*remove it and start again"):
        await EmbeddedServer.start(theirs)
    assert (found(private), lock.lstat().st_uid) == before


async def test_a_data_folder_that_is_a_link_to_that_of_another_server(theirs: Path, private: Path) -> None:
    """Root would delete the other server's postmaster.pid."""
    (theirs / "data").symlink_to(private)
    before = found(private)
    with pytest.raises(EmbeddedServerError, match="could put something else in the place of"):
        await EmbeddedServer.start(theirs)
    assert found(private) == before


async def test_a_data_folder_that_is_replaced_while_it_is_made(
    theirs: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the moment before root gives it to the account."""
    make = os.mkdir

    def replaced(path: str | Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        make(path, mode, dir_fd=dir_fd)
        if Path(path).name == "data.new":
            (theirs / "data.new").rmdir()
            (theirs / "data.new").symlink_to(private)

    monkeypatch.setattr(os, "mkdir", replaced)
    before = found(private)
    with pytest.raises(EmbeddedServerError, match=r"Not a directory.*Give a directory"):
        await EmbeddedServer.start(theirs)
    assert found(private) == before


@pytest.mark.parametrize("name", ["PG_VERSION", "log"])
@pytest.mark.parametrize("symbolic", [True, False])
async def test_a_file_whose_content_is_shown(
    theirs: Path, private: Path, account: pwd.struct_passwd, name: str, symbolic: bool
) -> None:
    """In the error of a start that fails."""
    data = given(theirs / "data", account)
    secret = private / "postmaster.pid"
    (data / name).symlink_to(secret) if symbolic else (data / name).hardlink_to(secret)
    if name == "log":
        (data / "PG_VERSION").write_text("18\n")
        os.chown(data / "PG_VERSION", account.pw_uid, account.pw_gid)
    with pytest.raises(EmbeddedServerError, match="is a symbolic link" if symbolic else "hard links") as raised:
        await EmbeddedServer.start(theirs)
    assert SECRET not in str(raised.value)


async def test_a_directory_that_is_a_link_of_another_user(theirs: Path, private: Path) -> None:
    """Root would let everybody pass the folders on the way, and write there."""
    (theirs / "pg").symlink_to(private / "new")
    before = found(private)
    with pytest.raises(EmbeddedServerError, match=rf"{theirs} belongs to uid \d+, who could put something else"):
        await EmbeddedServer.start(theirs / "pg")
    assert found(private) == before


async def test_a_directory_of_roots_that_another_user_can_replace(theirs: Path, account: pwd.struct_passwd) -> None:
    (theirs / "pg").mkdir()
    says = rf"{theirs} belongs to uid {account.pw_uid}.*Run as uid {account.pw_uid}.*chown -R"
    with pytest.raises(EmbeddedServerError, match=says):
        await EmbeddedServer.start(theirs / "pg")


async def test_a_new_directory_is_its_folders_owners(
    theirs: Path, account: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the server runs as that user, who can read its environment: root's is not in it."""
    monkeypatch.setenv("HITHERTO_MODEL_KEY", SECRET)
    directory = theirs / "new" / "pg"
    server = await EmbeddedServer.start(directory)
    try:
        assert {path.stat().st_uid for path in (directory, directory.parent, directory / "data")} == {account.pw_uid}
        processes = cluster.server_processes(directory)
        assert {process.uids().real for process in processes} == {account.pw_uid}
        assert all("HITHERTO_MODEL_KEY" not in process.environ() for process in processes)
    finally:
        await server.stop()


def test_a_process_of_another_account_that_looks_like_the_servers(folder: Path, account: pwd.struct_passwd) -> None:
    """It is neither waited for nor ended. What the server's processes show can be read by everybody."""
    directory = folder / "pg"
    directory.mkdir()
    identity = directory.stat()
    shell = shutil.copy("/bin/sh", folder / "postgres")
    words = ["sh", "-c", "read line", f"hitherto:{identity.st_dev:x}:{identity.st_ino:x}."]
    uid, gid = account.pw_uid, account.pw_gid
    with subprocess.Popen(words, executable=shell, stdin=subprocess.PIPE, user=uid, group=gid) as process:
        assert psutil.Process(process.pid).name() == "postgres"
        assert cluster.server_processes(directory) == []
        cluster.kill(directory)
        assert process.poll() is None
