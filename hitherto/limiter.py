"""Limits how many tasks do something at once, fairly between the tenants and users whose requests they serve."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextvars import ContextVar

from hitherto.blocks import block

served_caller: ContextVar[tuple[str, str]] = ContextVar("served_caller", default=("", ""))
"""The tenant and the user for whom the current task works, which the service sets for each request; empty texts for the
process itself, which may have all turns."""


class FairLimiter:
    """At most `size` turns at once, and at most `most` of one tenant. A turn that is free goes to the tenants in
    rotation, and of each to its users in rotation. So those who send many requests at once wait behind their own alone.
    """

    def __init__(self, size: int, *, most: int) -> None:
        self._free, self._most = size, most
        self._held = Counter[str]()
        self._waiting: dict[str, dict[str, deque[asyncio.Future[None]]]] = {}
        """Of each tenant and user, in the order in which they come next."""

    @block
    async def turn(self) -> AsyncGenerator[None]:
        """A turn until the end of the block."""
        tenant = await self.acquire()
        try:
            yield
        finally:
            self.release(tenant)

    @block
    async def late_turn(self) -> AsyncGenerator[LateTurn]:
        """A turn that may be taken within the block, and is held until its end."""
        turn = LateTurn(self)
        try:
            yield turn
        finally:
            if turn.tenant is not None:
                self.release(turn.tenant)

    async def acquire(self) -> str:
        """Returns when it is the task's turn: the tenant, which `release` takes."""
        tenant, user = served_caller.get()
        if self._free and not self._waiting and self._has_room(tenant):
            self._free -= 1
            self._held[tenant] += 1
            return tenant
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, {}).setdefault(user, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(tenant)
            raise
        return tenant

    def release(self, tenant: str) -> None:
        """Give a turn back."""
        self._free += 1
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        if self._waiting:
            self._give()

    def _give(self) -> None:
        """Hand out the turns that are free. Those who were cancelled while they waited are passed over."""
        while self._free:
            tenant = next(filter(self._has_room, self._waiting), None)
            if tenant is None:
                return
            users = self._waiting.pop(tenant)
            user = next(iter(users))
            turns = users.pop(user)
            turn = turns.popleft()
            if turns:
                users[user] = turns
            if users:
                self._waiting[tenant] = users
            if not turn.cancelled():
                self._free -= 1
                self._held[tenant] += 1
                turn.set_result(None)

    def _has_room(self, tenant: str) -> bool:
        return not tenant or self._held[tenant] < self._most


class LateTurn:
    """A turn that is taken when it turns out to be needed, within the block of `late_turn`. `tenant` is the one that it
    counts for; None until it is taken."""

    def __init__(self, limiter: FairLimiter) -> None:
        self._limiter, self._taking = limiter, asyncio.Lock()
        self.tenant: str | None = None

    async def take(self) -> None:
        """Returns when it is the task's turn; at once where it was taken already."""
        async with self._taking:
            if self.tenant is None:
                self.tenant = await self._limiter.acquire()
