"""The port that carries digests to whoever makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from hitherto.core.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestJob:
    """A hint that a digest is waiting to be made. The digest's row is the truth; a job may come twice or never."""

    scope: Scope
    conversation: str
    digest: int
    attempt: int
    start: int
    end: int


Work = Callable[[DigestJob], Awaitable[None]]


class DigestQueue(Protocol):
    """Hands jobs to a worker in the background.

    `start` says what to do with a job, and how to hand back one that will not be begun; both deal with their own
    errors. `submit` returns at once and never
    raises for a job that fails later. `settled` returns when every job submitted here so far has been worked on.
    `aclose` lets jobs finish for `grace` seconds, then cancels those in hand and hands back the others; it returns when
    none is left.
    """

    def start(self, work: Work, *, hand_back: Work) -> None: ...
    def submit(self, job: DigestJob) -> None: ...
    async def settled(self) -> None: ...
    async def aclose(self, *, grace: float) -> None: ...
