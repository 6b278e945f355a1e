"""The digests that one process works on, as asyncio tasks, and those that it has set off."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hitherto.core.digests.digest import DigestJob

if TYPE_CHECKING:
    from hitherto.store.store import Store

Work = Callable[[DigestJob], Coroutine[Any, Any, None]]

_REMEMBERED = 10_000

_LATEST = 100
"""How many digests that were taken last tell which tenants are busy."""

_LOOK = 0.1
"""Seconds after which rows that another process works on are looked at again."""


class TaskQueue:
    """Works on at most `concurrency` digests of `store` together. `news` is set when a digest became due that nobody
    here took.

    The digests' rows are the queue: what is lost here is found there. A process that never calls `start` makes no
    digests, and tells the workers of others.

    `workers` is how many processes are known to make digests, this one among them.
    """

    def __init__(self, store: Store, *, concurrency: int = 4) -> None:
        self.news = asyncio.Event()
        self.workers = 1
        self._store = store
        self._concurrency = concurrency
        self._tasks: dict[asyncio.Task[None], DigestJob] = {}
        self._latest = deque[str](maxlen=_LATEST)
        self._ended = asyncio.Event()
        self._submitted: dict[DigestJob, None] = {}
        self._work: Work | None = None
        self._closed = False
        self._waits = WeakValueDictionary[str | None, asyncio.Lock]()

    def start(self, work: Work) -> None:
        """Begin to take digests and to do `work` with each; it deals with its own errors."""
        self._work = work

    def submit(self, job: DigestJob) -> None:
        """Report a digest that is committed and due: it is worked on here, or the workers of other processes are told.
        Returns at once and never raises."""
        self._submitted[job] = None
        if len(self._submitted) > _REMEMBERED:
            del self._submitted[next(iter(self._submitted))]
        if not self.take(job):
            self.news.set()
            self._store.wake_workers()

    def take(self, job: DigestJob) -> bool:
        """Begin to work on a digest; False if there is no room for another."""
        if self._work is None or self._closed or len(self._tasks) >= self._concurrency:
            return False
        task = asyncio.create_task(self._work(job), name=f"digest {job.digest} of {job.tenant}")
        self._tasks[task] = job
        self._latest.append(job.tenant)
        task.add_done_callback(self._drop)
        return True

    def has_turn(self) -> bool:
        """Whether this process is the one to look over all tenants this time: of n workers each is, at every n-th time
        or so, so that many look no more often together than one does alone."""
        return random.random() * self.workers < 1  # noqa: S311 (no secret)

    def busy_tenants(self) -> list[str]:
        """Tenants that have half of their share or more of the digests that were taken last here; with n tenants the
        share is an n-th. With half of it, two that take turns are busy together, however uneven their turns are."""
        taken = Counter(self._latest)
        return [tenant for tenant, count in taken.items() if 2 * count * len(taken) >= len(self._latest)]

    async def room(self) -> None:
        """Returns when there is room for another digest."""
        while len(self._tasks) >= self._concurrency:
            self._ended.clear()
            await self._ended.wait()

    async def wait_for_digests(self, tenant: str | None = None) -> None:
        """Returns when none of the digests submitted here (the latest 10,000), of any tenant or of one, is due or in
        progress any more, in any process. Of many that wait at once for the same, one asks the database."""
        async with self._waits.setdefault(tenant, asyncio.Lock()):
            await self._settled(tenant)

    async def _settled(self, tenant: str | None) -> None:
        while asked := [job for job in self._submitted if tenant in (None, job.tenant)]:
            self._ended.clear()
            # Only the rows tell: another process may have made it, or be making it; what was given back is due again.
            waiting = set(await self._store.unsettled(asked))
            for job in asked:
                if job not in waiting:
                    self._submitted.pop(job, None)
            if waiting:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await self._ended.wait()
        while tasks := [task for task, job in self._tasks.items() if tenant in (None, job.tenant)]:
            await asyncio.wait(tasks)

    async def aclose(self, *, grace: float) -> None:
        """Take nothing new, let what is in progress end for `grace` seconds, then cancel it; returns when nothing is
        left. Safe to call twice."""
        self._closed = True
        try:
            if self._tasks and grace > 0:
                await asyncio.wait(tuple(self._tasks), timeout=grace)
        finally:
            for task in tuple(self._tasks):
                task.cancel()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _drop(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._ended.set()
