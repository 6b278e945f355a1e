"""The job queue in the store's own database, so that many processes share it: procrastinate.

The store puts a job into it in the transaction that writes the digest's row. Jobs are hints and never relied on: which
worker makes which digest stands in the digests' rows, and no lock of the queue is used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException, ProcrastinateException
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from hitherto.core.digests.digest import Needs
from hitherto.logs import logger
from hitherto.ports.queue import DigestJob, Work
from hitherto.queues.tasks import TaskQueue
from hitherto.uninterrupted import uninterrupted

QUEUE = "hitherto"
"""The queue of digests that any process can make. Those that need something are in a queue of their own, named after
that: "hitherto.model", "hitherto.compactor"."""

TASK = "hitherto.digest"

_POLL = 5.0
"""Seconds between two looks for jobs: a notification can be lost, and jobs that are due later have none."""

_HEARTBEAT = 10.0
_STALLED = 60.0
"""Seconds without a heartbeat after which a worker counts as dead, and its jobs in the queue are dropped."""

_FAREWELL = 2.0
"""Seconds that procrastinate's worker has to stop; after that it is cancelled again every `_AGAIN` seconds."""
_AGAIN = 0.2

_CONNECTED = 5.0
"""Seconds that opening a connection may take."""

_REMEMBERED = 10_000
_LOOK = 0.1
_FIRST_REST, _LONGEST_REST = 0.2, 10.0

_DROP_STALLED = """
delete from procrastinate_jobs j
where j.status = 'doing' and j.task_name = 'hitherto.digest' and not exists (
    select from procrastinate_workers w
    where w.id = j.worker_id and w.last_heartbeat > clock_timestamp() - make_interval(secs => %(stalled)s))
"""

log = logger("hitherto.queue")

Unsettled = Callable[[Sequence[DigestJob]], Awaitable[list[DigestJob]]]


class ProcrastinateQueue:
    """`DigestQueue` in the database at `url`; `unsettled` is the store's method of that name. It takes jobs for digests
    that need nothing, or one of what this process is `able` to do.

    Once started, it holds up to three connections: one for notifications, the others for jobs. It needs a session to
    the server: behind a pooler that gives every transaction another session, notifications are lost, and jobs are found
    only every few seconds. When the database is unavailable it tries again until it is back.
    """

    def __init__(
        self,
        url: str,
        *,
        unsettled: Unsettled,
        able: Collection[Needs] = tuple(Needs),
        concurrency: int = 4,
        prepared: bool = True,
    ) -> None:
        self._url = url
        self._queues = [QUEUE, *(f"{QUEUE}.{need}" for need in sorted(able))]
        self._prepared = prepared
        self._concurrency = concurrency
        self._unsettled = unsettled
        self._tasks = TaskQueue(concurrency=concurrency)
        self._submitted: dict[DigestJob, None] = {}
        self._changed = asyncio.Event()
        self._reason = ""
        self._running: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._closed = False

    async def start(self, work: Work) -> None:
        _filter_logs()

        async def noted(job: DigestJob) -> None:
            try:
                await work(job)
            finally:
                self._changed.set()

        await self._tasks.start(noted)
        self._running = asyncio.create_task(self._run(), name="digest jobs")

    def submit(self, job: DigestJob, *, after: float = 0) -> None:
        if after > 0:
            return
        self._submitted[job] = None
        if len(self._submitted) > _REMEMBERED:
            del self._submitted[next(iter(self._submitted))]

    def take(self, job: DigestJob) -> bool:
        return self._tasks.take(job)

    async def wait_for_digests(self, tenant: str | None = None) -> None:
        await self._tasks.wait_for_digests(tenant)
        while asked := [job for job in self._submitted if tenant in (None, job.tenant)]:
            self._changed.clear()
            # Only the rows tell: another process may have made it, or be making it; what was given back is due again.
            waiting = set(await self._unsettled(asked))
            for job in asked:
                if job not in waiting:
                    self._submitted.pop(job, None)
            if waiting:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._changed.wait()
            await self._tasks.wait_for_digests(tenant)

    async def aclose(self, *, grace: float) -> None:
        self._closed = True
        self._stop()
        await self._tasks.aclose(grace=grace)
        if self._running is None:
            return
        if self._worker is not None:
            await asyncio.wait({self._running}, timeout=_FAREWELL)
        while not self._running.done():  # to the library's worker the first cancellation is a graceful stop
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=_AGAIN)

    async def _run(self) -> None:
        """Run procrastinate's worker until this queue is closed; after a failure, start it again."""
        rest = _FIRST_REST
        while not self._closed:
            began = asyncio.get_running_loop().time()
            try:
                await self._work_on_jobs()
                if not self._closed:
                    self._say_why("the job listener ended", rest)
            except (ProcrastinateException, psycopg.Error, OSError) as error:
                self._say_why(_reason(error), rest)
            except asyncio.CancelledError:
                raise
            except Exception:  # the edge of a library's worker: whatever ends it must not end this loop
                log.exception("The worker of the job queue ended unexpectedly")
            if asyncio.get_running_loop().time() - began > _LONGEST_REST:
                rest = _FIRST_REST
            if not self._closed:
                await asyncio.sleep(rest)
                rest = min(2 * rest, _LONGEST_REST)

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def _say_why(self, reason: str, rest: float) -> None:
        """Log why no jobs are taken for now; a reason that was just logged, at debug level only."""
        say = log.debug if reason == self._reason else log.warning
        say("No digest jobs are taken for now: %s", reason, retry_in_seconds=rest)
        self._reason = reason

    async def _work_on_jobs(self) -> None:
        connector = _Connector(
            deaf=self._stop,
            conninfo=self._url,
            pool_factory=_Pool,
            configure=_configured,
            min_size=1,
            max_size=2,
            timeout=_CONNECTED,
            name="hitherto queue",
            kwargs={"application_name": "hitherto queue", "prepare_threshold": 5 if self._prepared else None},
        )
        app = App(connector=connector)

        @app.task(name=TASK, queue=QUEUE)
        async def make(tenant: str, digest: int) -> None:
            if self._closed:  # fetched just before closing; the next sweep finds its digest
                return
            # A running job outlives procrastinate's worker, which ends with its connection.
            await asyncio.shield(self._tasks.begin(DigestJob(tenant, digest)))

        try:
            await connector.open_async()
            await connector.execute_query_async(_DROP_STALLED, stalled=_STALLED)
            self._reason = ""  # connected again: the next reason is logged as a warning
            self._worker = Worker(
                app,
                queues=self._queues,
                name=QUEUE,
                concurrency=self._concurrency,
                fetch_job_polling_interval=_POLL,
                abort_job_polling_interval=86_400,
                shutdown_graceful_timeout=0.1,
                delete_jobs="always",
                install_signal_handlers=False,
                update_heartbeat_interval=_HEARTBEAT,
                stalled_worker_timeout=_STALLED,
            )
            await self._worker.run()
        finally:
            self._worker = None
            await uninterrupted(connector.close_async())  # a pool that has not come up has tasks too


class _Connector(PsycopgConnector):
    """Calls `deaf` when it can no longer listen for notifications: the library's worker does not notice that it gets
    none."""

    def __init__(self, *, deaf: Callable[[], None], **options: Any) -> None:
        super().__init__(**options)
        self._deaf = deaf

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        try:
            await super().listen_notify(on_notification, channels)
        except ConnectorException:
            self._deaf()
            raise


class _Pool(AsyncConnectionPool[psycopg.AsyncConnection[Any]]):
    """A pool without the check of each connection that is taken, a round trip each: a dead connection ends the worker,
    and the next worker begins with new ones."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "check": None})

    async def open(self, wait: bool = False, timeout: float | None = None) -> None:
        await super().open(wait=wait, timeout=_CONNECTED if timeout is None else timeout)


async def _configured(connection: psycopg.AsyncConnection[Any]) -> None:
    if not connection.autocommit:
        await connection.set_autocommit(True)
    await connection.execute("set search_path = hitherto, pg_temp")
    await connection.execute("set default_transaction_isolation = 'read committed'")
    # Jobs are hints, and may be lost. But behind a pooler that gives every transaction another session, the store may
    # get this session next, and what the store acknowledges must not be lost.
    await connection.execute(
        "select set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), "
        "false)"
    )


def _reason(error: BaseException) -> str:
    """The first line of the message of an error's root cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _not_told_here(record: logging.LogRecord) -> bool:
    """A log filter: False for lines about a lost connection. `_run` logs that in one line, the library with a traceback
    for each of its tasks."""
    told = record.exc_info  # asyncio says False for none
    lost = isinstance(told, tuple) and isinstance(told[1], ConnectorException)
    return not lost or (record.name == "asyncio" and TASK not in record.getMessage())


def _filter_logs() -> None:
    for name in (f"procrastinate.worker.{QUEUE}", "procrastinate.utils", "asyncio"):
        logging.getLogger(name).addFilter(_not_told_here)  # once, however often it is added
