"""Root with directories of other users, and the account that the server runs as."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from hitherto.errors import EmbeddedServerError
from hitherto.store.embedded import cluster
from hitherto.store.embedded.server import EmbeddedServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: for others, the kernel refuses all of this")

SECRET = "root:$6$rounds"
NOBODYS = 54_321
"""A uid of no account, as what comes into a container from outside may have."""


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
    with suppress(OSError):
        cluster.kill(made / "pg")
    shutil.rmtree(made)


@pytest.fixture
def theirs(folder: Path, account: pwd.struct_passwd) -> Path:
    """A folder that belongs to the account."""
    made = folder / "theirs"
    made.mkdir()
    os.chown(made, account.pw_uid, account.pw_gid)
    return made


@pytest.mark.parametrize("where", ["theirs", "theirs/new", "theirs/roots", "theirs/link", "over"])
def test_a_directory_that_another_user_can_replace(folder: Path, theirs: Path, where: str) -> None:
    """Root would follow that user's links, and give away, read or delete what they lead to."""
    (theirs / "roots").mkdir()
    (theirs / "link").symlink_to(folder / "private")
    (folder / "over").symlink_to("theirs/link")
    before = sorted(folder.rglob("*"))
    with pytest.raises(EmbeddedServerError, match=rf"{theirs} belongs to uid (\d+), who.*Run as uid \1"):
        asyncio.run(EmbeddedServer.start(folder / where))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["link", "link/pg"])
def test_a_link_that_another_user_has_made(folder: Path, account: pwd.struct_passwd, name: str) -> None:
    """As in a folder for all users."""
    (folder / "private").mkdir()
    (folder / "link").symlink_to("private")
    os.chown(folder / "link", account.pw_uid, account.pw_gid, follow_symlinks=False)
    with pytest.raises(EmbeddedServerError, match=rf"{folder}/link belongs to uid {account.pw_uid}"):
        asyncio.run(EmbeddedServer.start(folder / name))
    assert list((folder / "private").iterdir()) == []


async def test_a_directory_from_outside_of_a_container(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's account can read its environment: root's is not in it."""
    monkeypatch.setenv("HITHERTO_MODEL_KEY", SECRET)
    directory = folder / "pg"
    directory.mkdir()
    os.chown(directory, NOBODYS, NOBODYS)
    server = await EmbeddedServer.start(directory)
    try:
        processes = cluster.server_processes(directory)
        assert {process.uids().real for process in processes} == {pwd.getpwnam("hitherto").pw_uid}
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
