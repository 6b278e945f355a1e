"""The queue in the store's own database, so that a fleet shares it: procrastinate, as a bearer of hints.

A job is put into it by the store, in the transaction that writes the digest's row. What is kept there is never relied
on: who is at work on what stands in the digests' rows, and no lock of the queue is used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException, ProcrastinateException
from procrastinate.worker import Worker
from psycopg_pool import AsyncConnectionPool

from hitherto.logs import logger
from hitherto.ports.queue import DigestJob, Work
from hitherto.queues.tasks import TaskQueue
from hitherto.uninterrupted import uninterrupted

QUEUE = "hitherto"
TASK = "hitherto.digest"

_POLL = 5.0
"""Seconds after which a worker looks for jobs though no notification came: one can be lost, and those that are due
later have none."""

_HEARTBEAT = 10.0
_STALLED = 60.0
"""Seconds after which a worker that showed no sign of life counts as dead, and what it held in the queue is dropped."""

_FAREWELL = 2.0
"""Seconds that the queue's worker gets to sign off; after that it is told every so often that it need not."""
_AGAIN = 0.2

_CONNECTED = 5.0
"""Seconds that a connection may take."""

_REMEMBERED = 10_000
_LOOK = 0.1
_FIRST_REST, _LONGEST_REST = 0.2, 10.0

_DROP_STALLED = """
delete from procrastinate_jobs j
where j.status = 'doing' and j.queue_name = 'hitherto' and not exists (
    select from procrastinate_workers w
    where w.id = j.worker_id and w.last_heartbeat > clock_timestamp() - make_interval(secs => %(stalled)s))
"""

log = logger("hitherto.queue")

Unsettled = Callable[[Sequence[DigestJob]], Awaitable[list[DigestJob]]]


class ProcrastinateQueue:
    """`DigestQueue` in the database at `url`; `unsettled` is the store's verb of that name.

    Once started, it holds up to three connections of its own: one to be notified on, the others for jobs. It needs a
    session to the server: where a pooler stands between that gives every transaction another one, notifications are
    lost, and jobs are found only every few seconds. When the database is gone it tries again until it is back.
    """

    def __init__(self, url: str, *, unsettled: Unsettled, concurrency: int = 4, prepared: bool = True) -> None:
        self._url = url
        self._prepared = prepared
        self._at_once = concurrency
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

    async def wait_for_digests(self) -> None:
        await self._tasks.wait_for_digests()
        while asked := list(self._submitted):
            self._changed.clear()
            # Only the rows tell: others may have done it, or have it in hand; what was given back is due again.
            waiting = set(await self._unsettled(asked))
            for job in asked:
                if job not in waiting:
                    self._submitted.pop(job, None)
            if self._submitted:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._changed.wait()
            await self._tasks.wait_for_digests()

    async def aclose(self, *, grace: float) -> None:
        self._closed = True
        self._stop()
        await self._tasks.aclose(grace=grace)
        if self._running is None:
            return
        if self._worker is not None:
            await asyncio.wait({self._running}, timeout=_FAREWELL)
        while not self._running.done():  # the library's worker takes the first cancellation for a wish
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=_AGAIN)

    async def _run(self) -> None:
        """Works on jobs until it is closed; whatever goes wrong with the database, it begins anew."""
        rest = _FIRST_REST
        while not self._closed:
            began = asyncio.get_running_loop().time()
            try:
                await self._work_on_jobs()
                if not self._closed:
                    self._say_why("nobody listens for them", rest)
            except (ProcrastinateException, psycopg.Error, OSError) as error:
                self._say_why(_reason(error), rest)
            except asyncio.CancelledError:
                raise
            except Exception:  # the edge of a library's worker: what it dies of must not end ours
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
        """Why no jobs are taken for now; the same again is for who wants to know it all."""
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
            if self._closed:  # fetched just before; whoever sweeps next finds it
                return
            # What is in hand outlives the queue's own worker, which ends with its connection.
            await asyncio.shield(self._tasks.begin(DigestJob(tenant, digest)))

        try:
            await connector.open_async()
            await connector.execute_query_async(_DROP_STALLED, stalled=_STALLED)
            self._reason = ""  # it is back: what happens from now on is news
            self._worker = Worker(
                app,
                queues=[QUEUE],
                name=QUEUE,
                concurrency=self._at_once,
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
    """Calls `deaf` when it cannot listen any more: the library's worker does not notice, and would hear of no job."""

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
    """Without the check of every connection that is taken, a round trip each: a dead one ends the worker, and the next
    one begins with new connections."""

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
    # get this one next, and what it acknowledges must not.
    await connection.execute(
        "select set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), "
        "false)"
    )


def _reason(error: BaseException) -> str:
    """The first line of what went wrong, down to its cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _not_told_here(record: logging.LogRecord) -> bool:
    """Whether a line is not about a connection that was lost: that, `_run` says in one line, the library with a
    traceback for each of its tasks."""
    told = record.exc_info  # asyncio says False for none
    lost = isinstance(told, tuple) and isinstance(told[1], ConnectorException)
    return not lost or (record.name == "asyncio" and TASK not in record.getMessage())


def _filter_logs() -> None:
    for name in (f"procrastinate.worker.{QUEUE}", "procrastinate.utils", "asyncio"):
        logging.getLogger(name).addFilter(_not_told_here)  # once, however often it is added
