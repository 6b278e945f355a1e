"""`hitherto worker`: a process that makes the digests of other processes."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated

import typer
from psycopg.pq import Ping

from hitherto import logs
from hitherto.addresses import shown_address
from hitherto.cli import options
from hitherto.engine.memory import Memory
from hitherto.errors import DatabaseUnavailable, InvalidInput
from hitherto.other_systems.settings_aliases import ignored_variables
from hitherto.ports.watch import Watch
from hitherto.settings import Settings
from hitherto.store.embedded.server import default_data_directory
from hitherto.store.schema import ping
from hitherto.watching import serving, watch_of
from hitherto.wiring import IN_MEMORY, open_with

log = logs.logger("hitherto.worker")


class LogFormat(StrEnum):
    """How the log is written to standard error."""

    TEXT = "text"
    JSON = "json"


def worker(
    database: options.Database = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Digests to make at once (HITHERTO_DIGEST_CONCURRENCY).")
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Time to finish digests when told to stop (HITHERTO_GRACE)."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics there; a port alone is on loopback."),
    ] = None,
    lines: Annotated[
        LogFormat, typer.Option("--log", help="Log in lines for people, or one JSON object a line.")
    ] = LogFormat.TEXT,
) -> None:
    """Make the digests that other processes request, until stopped.

    Any number of workers share the work of one database. On SIGTERM or Ctrl-C a worker finishes its digests within the
    grace, hands the rest back, and exits with 0; on a second signal it hands back at once.
    """
    settings = Settings.load(database=database, digest_concurrency=concurrency, grace=grace, worker=True)
    if settings.database == IN_MEMORY:
        raise InvalidInput(
            "the digests of memory: are made in the process that opens it; a worker needs a database that others use "
            "too"
        )
    (logs.json_lines if lines is LogFormat.JSON else logs.plain_lines)()
    warn_of_ignored_variables()
    asyncio.run(_work(settings, metrics))


def warn_of_ignored_variables(*, aliases: bool = False) -> None:
    """Log a warning for each variable of the environment that looks like a setting and is none. With `aliases`, the
    process knows the names of settings in other systems."""
    for one, advice in ignored_variables(aliases=aliases):
        log.warning("%s is no setting, and is ignored; %s", one, advice)


async def _work(settings: Settings, metrics: str | None) -> None:
    stopped = asyncio.Event()
    task = asyncio.current_task()
    assert task is not None

    def stop() -> None:
        if stopped.is_set():
            task.cancel()
        stopped.set()

    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # under `nohup`, SIGHUP stays ignored
                asyncio.get_running_loop().add_signal_handler(number, stop)
    watch = watch_of(settings)
    with ExitStack() as serves:
        if metrics is not None:
            served = serving(watch, metrics)
            serves.callback(served.close)
            log.info("Metrics are served at %s", served.address)
        try:
            async with await open_memory(settings, watch):
                log.info("Worker started: digests by %s, %s at once", settings.model, settings.digest_concurrency)
                await stopped.wait()
                log.info("Worker stopping: digests in progress get %s seconds", settings.grace)
        except asyncio.CancelledError:
            log.info("Worker stopped early: digests in progress were handed back")
            return
    log.info("Worker stopped")


async def open_memory(settings: Settings, watch: Watch) -> Memory:
    """The memory, open; which one is logged. A database that is starting up or recovers is waited for, however long
    that takes."""
    tried = False
    while True:
        try:
            memory = await open_with(settings, watch=watch)
            log.info("Database: %s", _database(settings))
            return memory
        except DatabaseUnavailable:
            match None if settings.database is None else await ping(settings.database):
                case Ping.REJECT:
                    tried = False
                    log.warning("The database is starting up; waiting for it")
                case Ping.OK if not tried:  # it may have started up since it refused
                    tried = True
                case _:
                    raise


def _database(settings: Settings) -> str:
    """Where everything is kept, in words and without a password."""
    match settings.database:
        case None:
            return f"Hitherto's own PostgreSQL, in {settings.data_dir or default_data_directory()}"
        case "memory:":
            return "a throw-away memory, gone when this process ends"
        case url:
            return shown_address(url)
