"""The PostgreSQL server that Hitherto runs for itself when it is given no address of one.

Its directory holds

    data/      the database cluster (see `cluster`)
    lock       locked while a process starts, adopts or stops the server
    clients    locked, shared, by every process that uses the server: one that can lock it alone is the last

Both locks are the kernel's (flock) and end with the process that holds them, however it ends.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs
import psycopg

from hitherto.errors import EmbeddedServerError, NotFound
from hitherto.logs import logger
from hitherto.store.embedded import cluster, files
from hitherto.store.embedded.cluster import PATIENCE
from hitherto.store.embedded.files import OTHERWISE

_HAS_ROLE_AND_DATABASE: Final = """
    SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hitherto'),
           EXISTS (SELECT FROM pg_roles WHERE rolname = 'hitherto_service'),
           EXISTS (SELECT FROM pg_database WHERE datname = 'hitherto')
"""
_CREATE_ROLE: Final = """
    CREATE ROLE hitherto LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
    ALTER ROLE hitherto SET search_path = public;
    ALTER ROLE hitherto SET hitherto.id_range = 0
"""
"""Its schema is not found without being named; and numbers that people type begin at 1."""
_CREATE_SERVICE: Final = "CREATE ROLE hitherto_service LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
_CREATE_DATABASE: Final = "CREATE DATABASE hitherto OWNER hitherto"

SERVICE: Final = "hitherto_service"

_REST: Final = 30.0
"""Seconds after a start that failed in which `start_again` tries no other: it returns at once."""

log = logger("hitherto.server")


def default_data_directory() -> Path:
    """Returns where the server's files are kept unless told otherwise: a folder of the user's data directory.

    For root without an XDG_DATA_HOME it is one below /var/lib, which everyone may pass; a folder below /root would
    have to be made passable (see `EmbeddedServer`).
    """
    if files.is_root() and not os.environ.get("XDG_DATA_HOME", "").strip():
        return Path("/var/lib/hitherto/postgres")
    return platformdirs.user_data_path("hitherto") / "postgres"


class EmbeddedServer:
    """One use of the PostgreSQL server of a directory by this process.

    Any number of processes may use one directory, and any number of `EmbeddedServer` in one process. The first
    starts the server, the others adopt it; the last living process to stop, or to end, stops it. After a
    `kill -9` of the last one the server stays up, and the next one adopts it. Whatever was killed, the next
    start recovers what was committed. Only processes of the same account, and root's, can connect.

    Run by root, the server runs as the system account `hitherto`, which is made if need be. No folder on the way to
    the directory may belong to another account. Those folders, and those of PostgreSQL's programs, that the server's
    account cannot pass become passable (o+x, not listable) for everyone, programs that it cannot read become readable,
    and nothing else changes. `default_data_directory` needs nothing of the kind.
    """

    def __init__(self, directory: Path) -> None:
        """For `start` only."""
        self.url: str = cluster.url("hitherto", directory)
        """Where to connect as the role `hitherto`, which owns the database `hitherto` and is no superuser."""
        self.service_url: str = cluster.url(SERVICE, directory, database="hitherto")
        """Where to connect as the role `SERVICE`, which owns nothing, so that row-level security holds for it."""
        self.admin_url: str = cluster.url("postgres", directory)
        """Where to connect as the superuser, for tests that make databases of their own."""
        self.directory: Path = directory
        self._stopped: bool = False
        self._starting: bool = False
        self._rests_until: float = 0.0

    @classmethod
    async def start(cls, directory: Path, *, create: bool = True) -> EmbeddedServer:
        """Returns once the server of `directory` answers and has the role and the database.

        Makes the directory and its parents; without `create`, raises NotFound where there is none. Takes a second or
        so; after a crash as long as the recovery does, at most a minute. If cancelled, the work goes on in its thread,
        and this process counts as a user until it ends. Raises EmbeddedServerError.
        """
        if not create and not await asyncio.to_thread(os.path.lexists, directory):
            raise NotFound(f"there is no database yet: {directory} does not exist; try hitherto demo, or name one")
        return cls(await asyncio.to_thread(_enter, directory))

    async def start_again(self) -> None:
        """Starts the server if it has died, for a caller that cannot connect; errors are logged.

        Returns at once if it is being started, if a start has failed less than `_REST` seconds ago, or if this use has
        ended. Leaves a server alone of which any process is left. If cancelled, as `start`.
        """
        if self._stopped or self._starting or time.monotonic() < self._rests_until:
            return
        self._starting = True
        try:
            if await asyncio.to_thread(_start_again, self.directory):
                log.warning("The embedded PostgreSQL in %s had stopped; it was started again", self.directory)
        except EmbeddedServerError as error:
            self._rests_until = time.monotonic() + _REST
            log.error(
                "The embedded PostgreSQL stopped and could not be started again: %s", error, retry_in_seconds=_REST
            )
        finally:
            self._starting = False

    async def stop(self) -> None:
        """Ends this use; if it was the last of all, returns when the server has stopped. Idempotent."""
        if not self._stopped:
            self._stopped = True
            await asyncio.to_thread(_leave, self.directory)


@dataclass
class _Use:
    """This process's lock on `clients`. After a fork it is still that of process `pid`, not of the child."""

    clients: int
    pid: int
    count: int = 0


_uses: dict[Path, _Use] = {}
"""By resolved directory. An entry changes only inside its directory's gate."""


def _enter(directory: Path) -> Path:
    """Makes this process a user of `directory`, with its server running; returns the directory resolved."""
    if sys.platform == "win32":
        raise EmbeddedServerError(f"the embedded PostgreSQL does not run on Windows; use WSL, {OTHERWISE}")
    with _ours(directory):
        cluster.check_length(directory.resolve())
        directory = files.make(directory)
        cluster.check(directory)
        with _gate(directory):
            use = _own_use(directory)
            use.count += 1
            try:
                cluster.ensure_data(directory)
                cluster.ensure_running(directory)
                try:
                    ensure_role_and_database(directory)
                except psycopg.OperationalError:
                    # Perhaps the server was killed just now.
                    cluster.ensure_running(directory)
                    ensure_role_and_database(directory)
            except BaseException:
                _release(directory, use)
                raise
    return directory


@contextlib.contextmanager
def _ours(directory: Path) -> Generator[None]:
    """Raises what goes wrong inside as EmbeddedServerError."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise EmbeddedServerError(
            f"PostgreSQL cannot be kept in {directory}: {error.strerror or error}{where}. Give a directory on "
            f"a local disk that has room and that this user may write to, {OTHERWISE}"
        ) from error
    except psycopg.Error as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL in {directory} runs but refuses: {str(error).strip()}. "
            f"See {cluster.log(directory)}; give another directory, {OTHERWISE}"
        ) from error


def _start_again(directory: Path) -> bool:
    """Starts the server that this process uses if nothing of it is left; returns whether it did."""
    with _ours(directory), _gate(directory):
        use = _uses.get(directory)
        # While a process of it is left, the server starts, recovers or stops, or has no connection to spare.
        if use is None or use.pid != os.getpid() or cluster.server_processes(directory):
            return False
        cluster.ensure_running(directory)
        return True


def _leave(directory: Path) -> None:
    use = _uses.get(directory)
    if use is None or use.pid != os.getpid():
        return
    # If the directory is gone by now, so is its gate; a server that misses its files ends by itself.
    with contextlib.suppress(OSError), _gate(directory):
        _release(directory, use)


@atexit.register
def _leave_all() -> None:
    for directory, use in list(_uses.items()):
        use.count = 1
        with contextlib.suppress(EmbeddedServerError):
            _leave(directory)


def _own_use(directory: Path) -> _Use:
    use = _uses.get(directory)
    if use is not None and use.pid != os.getpid():
        os.close(use.clients)  # the parent has it still; here it would only look like one more client
        use = None
    if use is None:
        use = _uses[directory] = _Use(files.open_lock(directory / "clients"), os.getpid())
        files.try_lock(use.clients, shared=True)
    return use


def _release(directory: Path, use: _Use) -> None:
    use.count -= 1
    if use.count > 0:
        return
    del _uses[directory]
    alone = files.try_lock(use.clients)
    os.close(use.clients)
    # A server that does not answer is recovering or dying: to stop it would only make the next recovery start again.
    if alone and cluster.answers(directory):
        cluster.shut_down(directory)


@contextlib.contextmanager
def _gate(directory: Path) -> Generator[None]:
    """Lets in one thread of one process at a time: the one that starts, adopts or stops the server."""
    lock = files.open_lock(directory / "lock")
    deadline = time.monotonic() + 2 * PATIENCE
    try:
        while not files.try_lock(lock):
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"another process has been starting or stopping the server in {directory} for "
                    f"{2 * PATIENCE:.0f} seconds. End the one that has {directory / 'lock'} open, {OTHERWISE}"
                )
            time.sleep(0.02)
        yield
    finally:
        files.unlock(lock)


def ensure_role_and_database(directory: Path) -> None:
    """Makes the roles and the database that the running server of a directory lacks. Raises psycopg's errors."""
    with psycopg.connect(cluster.url("postgres", directory), autocommit=True) as connection:
        role, service, database = connection.execute(_HAS_ROLE_AND_DATABASE).fetchone() or (False, False, False)
        if not role:
            connection.execute(_CREATE_ROLE)
        if not service:
            connection.execute(_CREATE_SERVICE)
        if not database:
            connection.execute(_CREATE_DATABASE)
