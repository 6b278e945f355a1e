"""`hitherto worker`: a process that makes digests for others."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated

import typer

import hitherto
from hitherto import logs
from hitherto.cli.app import DatabaseOption, app
from hitherto.errors import InvalidInput
from hitherto.settings import Settings
from hitherto.watching import serving, watch_of
from hitherto.wiring import IN_MEMORY

log = logs.logger("hitherto.worker")


class Lines(StrEnum):
    """How the log is written to standard error."""

    TEXT = "text"
    JSON = "json"


@app.command()
def worker(
    database: DatabaseOption = None,
    at_once: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Digests to make at once (HITHERTO_DIGESTS_AT_ONCE).")
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Time for what is in hand when told to stop (HITHERTO_GRACE)."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics there; a port alone: on loopback.")
    ] = None,
    lines: Annotated[Lines, typer.Option("--log", help="Lines for people, or one JSON object a line.")] = Lines.TEXT,
) -> None:
    """Make the digests that other processes set off, until it is told to stop.

    Any number of workers share the work of one database. On SIGTERM or Ctrl-C a worker finishes what it has in hand
    within the grace, gives the rest back, and exits with 0; told a second time, it gives back at once.
    """
    settings = Settings.load(database=database, digests_at_once=at_once, grace=grace, worker=True)
    if settings.database == IN_MEMORY:
        raise InvalidInput("a worker needs a database that others use too; memory: is this process's own")
    (logs.json_lines if lines is Lines.JSON else logs.plain_lines)()
    asyncio.run(_work(settings, metrics))


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
            if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it
                asyncio.get_running_loop().add_signal_handler(number, stop)
    watch = watch_of(settings)
    with ExitStack() as serves:
        if metrics is not None:
            served = serving(watch.metrics, metrics)
            serves.callback(served.close)
            log.info("Metrics are served at %s", served.address)
        try:
            async with hitherto.open(
                settings.database,
                watch=watch,
                digests_at_once=settings.digests_at_once,
                grace=settings.grace,
                worker=True,
            ):
                log.info("Worker started: digests by %s, %s at once", settings.model, settings.digests_at_once)
                await stopped.wait()
                log.info("Worker stopping: what is in hand gets %s seconds", settings.grace)
        except asyncio.CancelledError:
            log.info("Worker stopped at once: what was in hand was given back")
            return
    log.info("Worker stopped")
