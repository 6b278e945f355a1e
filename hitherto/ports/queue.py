"""The port to a job queue, which hands due digests to workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DigestJob:
    """A hint that a digest is due. The digest's row is the truth; a job may come twice, late or never."""

    tenant: str
    digest: int


Work = Callable[[DigestJob], Awaitable[None]]


class DigestQueue(Protocol):
    """Hands the jobs of committed digests to a worker, in this process or another.

    `start` begins to take jobs and to do `work` with each, at most so many at once as the queue was made for; `work`
    deals with its own errors. A process that never starts it makes no digests and only submits them.

    `submit` reports a committed digest that is due in `after` seconds. A queue in the store's own database already has
    the job from that transaction and only takes note of it. Returns at once and never raises.

    `take` does the work with a job that a sweep of the rows has found, unless it is being done here already. Returns
    False, and does nothing, where there is no room for another.

    `wait_for_digests` returns when none of the digests submitted here, of any tenant or of one, is due or in progress
    any more, in any process.

    `aclose` takes no new job, lets running ones finish for `grace` seconds, then cancels them, and returns when none is
    left. Safe to call twice.
    """

    async def start(self, work: Work) -> None: ...
    def submit(self, job: DigestJob, *, after: float = 0) -> None: ...
    def take(self, job: DigestJob) -> bool: ...
    async def wait_for_digests(self, tenant: str | None = None) -> None: ...
    async def aclose(self, *, grace: float) -> None: ...
