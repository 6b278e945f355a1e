"""Work that a test holds in its hand: each job goes on until the test says that it is finished."""

from __future__ import annotations

import asyncio

from hitherto.core.digests.digest import DigestJob
from tests.faults.waiting import until


def job(number: int) -> DigestJob:
    """The job of that number."""
    return DigestJob("acme", number)


class Hand:
    """`Work`. `begun`, `done` and `cancelled` are the jobs in the order in which that happened to them, `most` how many
    were held together; a cancelled one takes `tidies` seconds to end."""

    def __init__(self) -> None:
        self.begun: list[DigestJob] = []
        self.done: list[DigestJob] = []
        self.cancelled: list[DigestJob] = []
        self.most = 0
        self.tidies = 0.0
        self._held: dict[DigestJob, asyncio.Event] = {}
        self._open = False

    async def __call__(self, job: DigestJob) -> None:
        self.begun.append(job)
        finished = self._held[job] = asyncio.Event()
        self.most = max(self.most, len(self._held))
        try:
            if not self._open:
                await finished.wait()
            self.done.append(job)
        except asyncio.CancelledError:
            await asyncio.sleep(self.tidies)
            self.cancelled.append(job)
            raise
        finally:
            del self._held[job]

    def finish(self, job: DigestJob) -> None:
        self._held[job].set()

    async def holds(self, *jobs: DigestJob) -> None:
        """Returns once these are held, and no others."""
        await until(lambda: set(self._held) == set(jobs), f"{jobs} are in hand")
