"""Throw-away databases, of which each `memory:` is one, on an embedded PostgreSQL that ends with this process.

The server is started when the first is asked for. A shell beside it (`_SCRIPT`) reads from a pipe that this process
alone could write to: when this process ends, however that is, the shell ends the server and removes its folder:

    data/   the database cluster
    lock    locked, while they live, by this process and by the shell: who can lock it may remove the folder
    log     what initdb and the server have said
    ended   there once the server has ended

A child that is forked has no part in it, and starts a server of its own.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus, PGconn, abc

from hitherto.errors import EmbeddedServerError
from hitherto.store import schema
from hitherto.store.embedded import cluster, files, server
from hitherto.store.embedded.files import OTHERWISE, server_account
from hitherto.uninterrupted import uninterrupted

POOL_SIZE: Final = 4
"""With how many connections a throw-away database is used at most; `_CONNECTIONS` are for all of a process."""

PREFIX: Final = "hitherto-memory-"
"""How the names of the servers' folders begin."""

_CONNECTIONS: Final = 400
_ROOM: Final = 100
"""How many megabytes must be free. The server takes half of that before anything is in it."""
_ROOM_IN_MEMORY: Final = 1_000

_SETTINGS: Final = (
    # Nothing has to be there after a crash of the machine.
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "min_wal_size=4MB",
    "max_wal_size=64MB",
    "shared_buffers=16MB",
    f"max_connections={_CONNECTIONS}",
    # Fewer processes, and no file outside of the folder.
    "io_method=sync",
    "max_logical_replication_workers=0",
    "dynamic_shared_memory_type=mmap",
)

_SCRIPT: Final = """
cd "$1" || exit
exec 3<&0
(
    # Neither Ctrl-C in a terminal nor a signal to all processes of a service ends this shell before its time.
    trap '' HUP INT QUIT TERM
    {
        eval "$2" && eval "$3"
        : >ended
    } 3<&- </dev/null >log 2>&1 &
    read -r line <&3
    cd /
    # To all processes of this session, and no other's: the number of a process that has ended may be another's by now.
    # Again and again, as one that is just being started does not hear it.
    while kill -QUIT 0; kill -0 $!; do sleep 0.02; done
    # The lock goes last: what is left without one would stay for ever.
    rm -rf "$1/data"
    rm -rf "$1" || { sleep 1; rm -rf "$1"; }
) &
"""
"""Its standard input is the pipe, its standard output the lock, its arguments the folder and the commands that make the
cluster and run the server."""

_CREATE: Final = sql.SQL("create database {} template hitherto strategy file_copy owner hitherto")
_DROP: Final = sql.SQL("drop database if exists {} with (force)")
_TEMPLATE: Final = sql.SQL("alter database hitherto is_template true allow_connections false")

IS_FREE: Final = """
    do $$
    begin
        for _ in 1 .. 200 loop
            perform from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend';
            if not found then
                return;
            end if;
            perform pg_sleep(0.0005), pg_stat_clear_snapshot();
        end loop;
        raise 'others are connected';
    end $$;
"""
"""Fails where anybody else is connected. Connections that are being closed are waited for."""

DELETE_ALL: Final = """
    do $$
    declare one record;
    begin
        set local session_replication_role = replica;
        for one in
            select oid::regclass as name from pg_class
            where relnamespace = 'hitherto'::regnamespace and relkind = 'r' and relname <> 'alembic_version'
                and pg_relation_size(oid) > 0
        loop
            execute 'delete from ' || one.name;
        end loop;
        perform setval(seqrelid, seqstart, false) from pg_sequence where pg_sequence_last_value(seqrelid) is not null;
    end $$;
"""
"""Deletes all rows; ids begin again where they began."""

_IS_SMALL: Final = """
    select 1 / (max(pg_relation_size(oid)) < 4000000)::integer from pg_class
    where relnamespace = 'hitherto'::regnamespace and relkind = 'r'
"""
"""Fails where it would take longer to delete all rows than to drop the database."""

_SPARE: Final = 4
"""How many empty databases are kept for the next that are asked for. To make one takes ten times as long as to empty
it, and much longer where the file system is slow to make files."""

_CANNOT: Final = "no throw-away database (memory:) can be made"
_ADVICE: Final = f"Set TMPDIR to a folder with a short path and room, {OTHERWISE}"


async def throwaway_database(opened: AsyncExitStack) -> str:
    """The URL of an empty database with the schema in it, as its owner. When `opened` ends, who is connected is thrown
    out, and what is in it is gone.

    The first of a process takes a second or two; those that are asked for meanwhile wait for it. Raises
    EmbeddedServerError.
    """

    def give_back_late(taken: asyncio.Future[Database]) -> None:
        if not taken.cancelled() and taken.exception() is None:
            threading.Thread(target=taken.result().give_back).start()

    taking = asyncio.get_running_loop().run_in_executor(None, take)
    try:
        database = await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(give_back_late)
        raise
    # No generator holds it: an event loop that is asked to close its generators would give it back before its time, as
    # `Runner.run_sync` of the Agents SDK asks.
    opened.push_async_callback(lambda: uninterrupted(asyncio.to_thread(database.give_back)))
    return database.url


def take() -> Database:
    """Returns an empty database, as `throwaway_database` gives one. Raises EmbeddedServerError."""
    return _server.take()


class Database:
    """A throw-away database, at `url` as the role `hitherto`, which owns it and is no superuser."""

    def __init__(self, server: ThrowawayServer, folder: Path, name: str) -> None:
        self.url = cluster.url("hitherto", folder, database=name)
        self.admin_url = cluster.url("postgres", folder, database=name)
        """Where to connect as the superuser, for tests."""
        self.folder, self.name = folder, name
        self._server = server
        self._admin: abc.PGconn | None = None

    def give_back(self) -> None:
        """The database is emptied for the next that is asked for. If it is still used, who is connected is thrown out
        and it is dropped: nobody comes back to it."""
        self._server.give_back(self)

    def empty(self) -> bool:
        """Deletes all rows. Returns False where others are connected, and where it failed or would take longer than to
        drop the database."""
        return self._execute(_IS_SMALL) and self._execute(IS_FREE + DELETE_ALL)

    def answers(self) -> bool:
        return self._execute("select")

    def _execute(self, statements: str) -> bool:
        self._admin = self._admin or PGconn.connect(self.admin_url.encode())
        return self._admin.exec_(statements.encode()).status in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class ThrowawayServer:
    """The server of this process. It is started when a database is asked for and there is none, or none any more."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._guard = threading.Lock()
        self._numbers = count(1)
        self._free = list[Database]()
        self._held = list[int]()
        """The lock and the pipe, as descriptors. When no process has them any more, the server ends."""

    def take(self) -> Database:
        """Returns an empty database. Raises EmbeddedServerError."""
        with self._guard, _ours():
            while self._free:
                database = self._free.pop()
                if database.answers():
                    return database
            for again in (True, False):
                folder = self.folder or self._start()
                try:
                    database = Database(self, folder, f"memory_{next(self._numbers)}")
                    _execute(folder, _CREATE, database.name)
                except psycopg.OperationalError:
                    # Perhaps one of its processes was killed, and it recovers; or it has ended.
                    if not again:
                        raise
                    try:
                        _wait_until_it_answers(folder)
                    except EmbeddedServerError:
                        self.let_go()
                else:
                    return database
            raise AssertionError("it returns or raises")

    def give_back(self, database: Database) -> None:
        """See `Database`."""
        with self._guard, suppress(psycopg.Error):
            if self.folder != database.folder:
                return  # it ended with its server
            if len(self._free) < _SPARE and database.empty():
                self._free.append(database)
            else:
                _execute(database.folder, _DROP, database.name)

    def let_go(self) -> None:
        """Closes what this process holds of the server, which ends if no other process holds it."""
        self.folder = None
        self._free.clear()
        while self._held:
            os.close(self._held.pop())

    def _start(self) -> Path:
        base = _choose_base()
        _remove_abandoned(base)
        try:
            with _forking:
                folder, lock = _make_folder(base)
                self._held.append(lock)
                reading, writing = os.pipe()
                self._held.append(writing)
            try:
                _run(folder, pipe=reading, lock=lock)
            finally:
                os.close(reading)
            _wait_until_it_answers(folder)
            _make_template(folder)
        except BaseException:
            self.let_go()
            raise
        self.folder = folder
        return folder


_server = ThrowawayServer()
_forking = threading.Lock()
"""Held while descriptors are made, so that a child that is forked knows all of them."""


def _forget() -> None:
    global _server  # noqa: PLW0603 (there is one of it in a process)
    _server.let_go()
    _server = ThrowawayServer()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_forget)


@contextmanager
def _ours() -> Generator[None]:
    """Raises what goes wrong inside as EmbeddedServerError."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise EmbeddedServerError(f"{_CANNOT}: {error.strerror or error}{where}. {_ADVICE}") from error
    except psycopg.Error as error:
        raise EmbeddedServerError(f"{_CANNOT}: PostgreSQL refuses: {str(error).strip()}. {_ADVICE}") from error


def _choose_base() -> Path:
    """Returns the folder for temporary files in which the server can have its own: the one of the environment; or one
    that is memory, which makes files fast; or the system's. Raises EmbeddedServerError if none will do."""
    named = [(Path(given), _ROOM) for name in ("TMPDIR", "TEMP", "TMP") if (given := os.environ.get(name))]
    named += [(Path("/dev/shm"), _ROOM_IN_MEMORY), (Path("/tmp"), _ROOM), (Path("/var/tmp"), _ROOM)]  # noqa: S108
    problems = dict[Path, str]()
    for base, room in named:
        problems[base] = _problem_of(base.resolve(), room)
        if not problems[base]:
            return base.resolve()
    raise EmbeddedServerError(f"{_CANNOT}: {'; '.join(f'{base} {why}' for base, why in problems.items())}. {_ADVICE}")


def _problem_of(base: Path, room: int) -> str:
    """Why no server can have its folder in `base`, or ''."""
    if not os.access(base, os.W_OK | os.X_OK):
        return "is not there, or not to be written to"
    if files.is_root():
        # The server's account must be able to reach its folder, and to remove it.
        for_all = base.stat().st_mode & 0o1777 == 0o1777
        if not for_all or any(folder.stat().st_uid != 0 for folder in (base, *base.parents)):
            return "is not root's folder for all users"
    try:
        cluster.check_length(base / f"{PREFIX}01234567")
    except EmbeddedServerError:
        return "has a path that is too long for a socket in it"
    free = shutil.disk_usage(base).free >> 20
    return f"has {free} MB free, and {room} are needed" if free < room else ""


def _make_folder(base: Path) -> tuple[Path, int]:
    """Makes the folder for a server; returns it, and its lock, which is held."""
    while True:
        # Before it has a lock that is held, others may take it for abandoned, and remove it.
        with suppress(FileExistsError, FileNotFoundError):
            folder = base / (PREFIX + secrets.token_hex(4))
            files.make_for_account(folder)
            lock = files.open_lock(folder / "lock")
            if files.try_lock(lock) and os.fstat(lock).st_nlink > 0:
                return folder, lock
            os.close(lock)


def _remove_abandoned(base: Path) -> None:
    """Removes the folders of servers in `base` that no process holds, after an end to the servers."""
    account = server_account()
    # Until it is given to the account, a folder is this user's.
    owners = (os.geteuid(), account[0]) if account else (os.geteuid(),)
    for path in base.glob(PREFIX + "[0-9a-f]" * 8):
        with suppress(OSError, EmbeddedServerError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid in owners:
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    if not (path / "lock").exists():
        path.rmdir()  # if there is something in it, it is not ours
        return
    lock = os.open(path / "lock", os.O_RDWR | os.O_NOFOLLOW)
    try:
        if files.try_lock(lock):
            cluster.shut_down(path)
            cluster.kill(path)
            # The lock goes last: what is left without one would stay for ever.
            shutil.rmtree(path / "data", ignore_errors=True)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        files.unlock(lock)


def _run(folder: Path, *, pipe: int, lock: int) -> None:
    """Begins to make the cluster and to run the server."""
    programs = cluster.programs()
    named = ("-c", f"cluster_name={cluster.mark(folder)}")
    initdb = [programs / "initdb", *cluster.INITDB, "--no-sync", "--no-data-checksums", "--wal-segsize=1", *named]
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    postgres = [programs / "postgres", "-D", folder / "data", *cluster.ADDRESS, *cluster.QUIET, *named, *settings]
    commands = [shlex.join(map(str, command)) for command in (initdb, postgres)]
    subprocess.run(  # noqa: S603 (our own words)
        ["/bin/sh", "-c", _SCRIPT, "sh", folder, *commands],
        **cluster.as_account(folder),
        stdin=pipe,
        stdout=lock,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )


def _wait_until_it_answers(folder: Path) -> None:
    """Raises EmbeddedServerError if the server ends instead, or takes too long."""
    deadline = time.monotonic() + cluster.PATIENCE
    while not cluster.answers(folder):
        ended = (folder / "ended").exists()
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"has not answered for {cluster.PATIENCE:.0f} seconds"
            said = " / ".join(files.end_of(folder / "log").splitlines()[-3:])
            raise EmbeddedServerError(f"{_CANNOT}: its PostgreSQL server {what}, and said: {said}. {_ADVICE}")
        time.sleep(0.01)


def _make_template(folder: Path) -> None:
    server.ensure_role_and_database(folder)
    with psycopg.connect(cluster.url("hitherto", folder)) as connection:
        connection.execute("create schema hitherto")
        for statements in schema.from_nothing():
            connection.execute(statements.encode())
    _execute(folder, _TEMPLATE)


def _execute(folder: Path, statement: sql.SQL, *names: str) -> None:
    with psycopg.connect(cluster.url("postgres", folder), autocommit=True) as connection:
        connection.execute(statement.format(*map(sql.Identifier, names)))
