"""The queue of a single process: digests as asyncio tasks."""

from __future__ import annotations

import asyncio

from hitherto.ports.queue import DigestJob, Work


class TaskQueue:
    """`DigestQueue` in this process: at most `concurrency` jobs are worked on together, the others wait in order."""

    def __init__(self, *, concurrency: int = 4) -> None:
        self._concurrency = concurrency
        self._room = asyncio.Semaphore(concurrency)
        self._tasks: dict[asyncio.Task[None], DigestJob] = {}
        self._timers: set[asyncio.TimerHandle] = set()
        self._work: Work | None = None
        self._closed = False

    async def start(self, work: Work) -> None:
        self._work = work

    def submit(self, job: DigestJob, *, after: float = 0) -> None:
        if self._work is None or self._closed:
            return
        if after <= 0:
            self.begin(job)
            return

        def due() -> None:
            self._timers.discard(timer)
            self.submit(job)

        timer = asyncio.get_running_loop().call_later(after, due)
        self._timers.add(timer)

    def take(self, job: DigestJob) -> bool:
        if self._work is None or self._closed or len(self._tasks) >= self._concurrency:
            return False
        if job not in self._tasks.values():
            self.begin(job)
        return True

    def begin(self, job: DigestJob) -> asyncio.Task[None]:
        """Start the work on `job` as soon as there is room for it; the task ends with the work."""
        assert self._work is not None, "start() comes before begin()"
        task = asyncio.create_task(self._run(job, self._work), name=f"digest {job.digest} of {job.tenant}")
        self._tasks[task] = job
        task.add_done_callback(self._tasks.pop)
        return task

    async def wait_for_digests(self, tenant: str | None = None) -> None:
        while waiting := [task for task, job in self._tasks.items() if tenant in (None, job.tenant)]:
            await asyncio.wait(waiting)

    async def aclose(self, *, grace: float) -> None:
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        try:
            if self._tasks and grace > 0:
                await asyncio.wait(tuple(self._tasks), timeout=grace)
        finally:
            for task in tuple(self._tasks):
                task.cancel()
        await self.wait_for_digests()

    async def _run(self, job: DigestJob, work: Work) -> None:
        async with self._room:
            await work(job)
