"""The queue of a single process: digests as asyncio tasks."""

from __future__ import annotations

import asyncio

from hitherto.ports.queue import DigestJob, Work


class TaskQueue:
    """`DigestQueue` in this process: at most `at_once` jobs are worked on together, the others wait in order."""

    def __init__(self, *, at_once: int = 4) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], DigestJob] = {}
        self._work: Work | None = None
        self._hand_back: Work | None = None
        self._closed = False

    def start(self, work: Work, *, hand_back: Work) -> None:
        self._work, self._hand_back = work, hand_back

    def submit(self, job: DigestJob) -> None:
        if self._closed:
            return
        task = asyncio.create_task(self._run(job), name=f"digest {job.digest} of {job.conversation}")
        self._tasks.add(task)
        self._waiting[task] = job
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def aclose(self, *, grace: float) -> None:
        self._closed = True
        if self._tasks and grace > 0:
            await asyncio.wait(tuple(self._tasks), timeout=grace)
        not_begun = list(self._waiting.values())
        for task in tuple(self._tasks):
            task.cancel()
        await self.settled()
        for job in not_begun:
            assert self._hand_back is not None
            await self._hand_back(job)

    async def _run(self, job: DigestJob) -> None:
        assert self._work is not None, "start() comes before submit()"
        async with self._room:
            task = asyncio.current_task()
            assert task is not None
            del self._waiting[task]
            await self._work(job)
