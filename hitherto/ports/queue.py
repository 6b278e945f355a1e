"""The port that carries digests to whoever makes them."""

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
    """Carries hints from whoever commits a digest to whoever makes it.

    `start` begins to take jobs and to do `work` with each, at most so many at once as the queue was made for; `work`
    deals with its own errors. A process that never starts it makes no digests and only sets them off. Raises
    DatabaseUnavailable.

    `submit` says that a digest was committed that is due in `after` seconds. A queue in the store's own database got
    the job in that very transaction and only takes note of it. Returns at once and never raises.

    `take` does the work with a job that was found otherwise, by looking at the rows, unless it is in hand here; it
    returns whether there was room for another.

    `wait_for_digests` returns when of the digests submitted here, none is due or in hand any more, here or elsewhere.

    `aclose` takes nothing new, lets what is in hand finish for `grace` seconds, then cancels it, and returns when
    nothing is left. Safe to call twice.
    """

    async def start(self, work: Work) -> None: ...
    def submit(self, job: DigestJob, *, after: float = 0) -> None: ...
    def take(self, job: DigestJob) -> bool: ...
    async def wait_for_digests(self) -> None: ...
    async def aclose(self, *, grace: float) -> None: ...
