"""The digest worker: looks for due digests and claims them, renews its claims while a model works, and takes over what
dead workers left."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from hitherto.core.digests.digest import Claim, DigestJob, DigestWork
from hitherto.core.scope import Scope
from hitherto.engine.calls import Calls
from hitherto.engine.digests.attempt import Attempt, jitter
from hitherto.engine.digests.fire import read_rested, resumed
from hitherto.engine.log.erase_scope import resume_erasures
from hitherto.engine.purge import purge_expired
from hitherto.engine.services import Services
from hitherto.errors import DatabaseReadOnly, DatabaseUnavailable, HithertoError, InvalidPolicy, StoreError
from hitherto.logs import logger
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto.digest")

_SOONEST, _LATEST = 0.1, 2.0
"""Seconds between two looks for due digests: at least while there is news, at most while there is none."""

_BATCH = 100
"""Digests that one look finds."""

_FRESH = 1.0
"""Seconds for which what a look has found is good at most: then others may have taken it. Once there is news,
`_SOONEST`: it may be of a tenant that had fewer here."""

_FIRST_SWEEP, _SWEEP_EVERY, _TIDY_EVERY = 0.5, 10.0, 60.0
"""Seconds; sweeps come more often where `lease_timeout` is short."""

_REST_LONGER = timedelta(minutes=10)
"""How long a conversation rests that could not go on. One whose policy cannot be read here rests for this worker
alone."""


@dataclass(slots=True)
class _ActiveClaim:
    """The task that works on a claim: `writing` once there is a result, `lost` when another worker has the claim."""

    task: asyncio.Task[None]
    writing: bool = False
    lost: bool = False


class Worker:
    """Makes the digests that are due, whichever process started them.

    Each is claimed for half of the setting `lease_timeout`, and the claim is renewed while the work goes on. A dead
    worker's digests are due again within that time, and another finds them. No connection is held during a model call.
    A model's failure is written to the digest's row and never raised.
    """

    def __init__(self, services: Services, calls: Calls | None = None) -> None:
        self._services = services
        self._store = services.store
        self._calls = calls or Calls(services)
        self._in_hand: dict[Claim, _ActiveClaim] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._left_to_others: dict[tuple[Scope, str], float] = {}
        self._id = uuid4()
        self._lease = services.settings.lease_timeout / 2
        self._closing = self._read_only = self._blind = self._met_another = self._refused = False
        self._beat = services.settings.lease_timeout.total_seconds() / 6

    async def start(self) -> None:
        """Start to take digests, and start the loops that look for them, renew claims, sweep and purge."""
        queue = self._services.queue
        queue.start(self.work)
        self._loops = [
            asyncio.create_task(self._store.listen(queue.news.set), name="digest news"),
            asyncio.create_task(self._look(), name="digest looks"),
            asyncio.create_task(self._keep_claims(), name="digest claims"),
            asyncio.create_task(self._sweep(), name="digest sweep"),
            asyncio.create_task(self._purge(), name="purging"),
        ]

    async def aclose(self) -> None:
        """Stop. Digests in progress finish within the setting `grace` or are given back. Cancelling this, or `hurry`,
        ends the grace."""
        self._closing = True
        try:
            await self._services.queue.aclose(grace=self._services.settings.grace)
        finally:
            for loop in self._loops:
                loop.cancel()
            if self._loops:
                await asyncio.wait(self._loops)
                await self._forget()
            self._loops = []

    async def hurry(self) -> None:
        """Give the digests in progress back now."""
        await self._services.queue.aclose(grace=0)

    async def work(self, job: DigestJob) -> None:
        """Make the digest of `job`, if it is due and nobody else has it."""
        try:
            work = await self._claimed(job)
        except DatabaseReadOnly:
            self._cannot_write()
            return
        except StoreError as error:
            say = log.debug if self._refused else log.warning
            say("Digest %s could not be claimed, which will be tried again: %s", job.digest, error)
            self._refused = True
            return
        except Exception:  # a row that cannot be read must not end the loop over the others
            log.exception("Digest %s could not be claimed", job.digest)
            return
        self._refused = False
        if work is None:
            self._met_another = True
            return
        task = asyncio.current_task()
        assert task is not None, "a job is worked on in a task"
        hand = self._in_hand[work.claim] = _ActiveClaim(task)
        attempt = self._attempt(work)
        try:
            result = await attempt.result()
            hand.writing = True
            await uninterrupted(attempt.write(result))
        except asyncio.CancelledError:
            if hand.writing:
                raise
            hand.writing = True
            if not hand.lost:
                await uninterrupted(attempt.hand_back())
                raise
            await uninterrupted(attempt.lose())
        except Exception as error:  # the edge of a worker: the claim and the ledger must not be lost
            log.exception("The attempt at digest %s broke down", job.digest)
            hand.writing = True
            await uninterrupted(attempt.break_down(error))
        finally:
            self._in_hand.pop(work.claim, None)

    async def _claimed(self, job: DigestJob) -> DigestWork | None:
        """Claim a digest and read its input; None if it cannot be claimed. If cancelled meanwhile, it gives the claim
        back."""
        found: DigestWork | None = None

        async def claim() -> None:
            nonlocal found
            found = await self._store.claim(job.tenant, job.digest, lease=self._lease, able=self._services.able)

        try:
            await uninterrupted(claim())
            self._read_only = False
        except asyncio.CancelledError:
            if found is not None:
                await uninterrupted(self._attempt(found).hand_back())
            raise
        return found

    def _cannot_write(self) -> None:
        """Log once that the database is read-only, and sweep less often."""
        if not self._read_only:
            log.warning("The database is read-only: no digests are made here until it takes writes again")
        self._read_only = True

    def _attempt(self, work: DigestWork) -> Attempt:
        return Attempt(self._services, self._calls, work, impatient=lambda: self._closing)

    async def _look(self) -> None:
        """Take digests that are due, whoever set them off, the longest due first, but for tenants that had many of the
        last ones here: as soon as there is news, and by itself after longer and longer pauses."""
        queue, clock, pause = self._services.queue, asyncio.get_running_loop().time, _SOONEST
        while True:
            queue.news.clear()
            looked_at = clock()
            busy = queue.busy_tenants()
            found = deque(await self._due(busy))
            found_at = clock()
            many, took = len(found) == _BATCH, False
            if self._refused and found:  # one shows whether claims work again
                found = deque([random.choice(found)])  # noqa: S311 (no secret)
            while found:
                await queue.room()
                if clock() - found_at > (_SOONEST if queue.news.is_set() else _FRESH) or (took and self._refused):
                    break
                if self._met_another and len({job.tenant in busy for job in found}) == 1:
                    # It goes through the same digests, and is ahead. Those of busy tenants stay behind all others.
                    found.rotate(random.randrange(len(found)))  # noqa: S311 (no secret)
                    self._met_another = False
                took |= queue.take(found.popleft())
            if took and (found or many) and not self._refused:
                queue.news.set()
            pause = _SOONEST if took and not self._refused else min(2 * pause, _LATEST)
            await asyncio.sleep(looked_at + _SOONEST - clock())
            with suppress(TimeoutError):
                async with asyncio.timeout_at(looked_at + pause * (jitter() - 0.25)):
                    await queue.news.wait()
                    pause = _SOONEST

    async def _due(self, busy: list[str]) -> list[DigestJob]:
        """Digests that are due; none where the database cannot be asked, or takes no writes."""
        if self._read_only:
            return []
        try:
            found = await self._store.due_digests(limit=_BATCH, able=self._services.able, busy=busy)
        except StoreError as error:
            say = log.debug if self._blind else log.warning
            say("Due digests cannot be looked for, which will be tried again: %s", error)
            self._blind = True
            return []
        except Exception:  # the edge of a worker: the next look may do better
            log.exception("Due digests cannot be looked for")
            return []
        self._blind = False
        return found

    async def _keep_claims(self) -> None:
        """Renew the claims on digests in progress, and cancel the work on those that were lost."""
        while True:
            await asyncio.sleep(self._beat)
            if not self._in_hand:
                continue
            asked = dict(self._in_hand)
            try:
                held = await self._store.prolong(list(asked), lease=self._lease)
            except StoreError as error:
                log.warning("Claims could not be renewed: %s", error)
                continue
            except Exception:  # the edge of a worker: without this loop its claims would be lost one after another
                log.exception("Claims could not be renewed")
                continue
            for claim in asked.keys() - held:
                hand = self._in_hand.get(claim)
                if hand is not None and not hand.writing:  # a result that is being written is refused by the fence
                    hand.lost = True
                    hand.task.cancel()

    async def _sweep(self) -> None:
        """Begin digests of conversations that have rested after one failed, or since their last message, read the
        backlog, and show that this worker is there."""
        pause = _FIRST_SWEEP
        while True:
            await asyncio.sleep(pause * jitter())
            pause = _TIDY_EVERY if self._read_only else min(self._beat, _SWEEP_EVERY)
            try:
                load = await self._store.backlog()
                self._services.watch.show(load)
                self._services.queue.workers = max(load.workers, 1)
                if self._services.queue.has_turn():
                    await self._resume_rested()
                    if await self._read_rested():
                        pause = _SOONEST
                await self._store.show_worker(self._id)
                self._read_only = False
            except DatabaseReadOnly:
                self._cannot_write()
            except StoreError as error:
                log.warning("Looking for conversations that have rested failed and will be tried again: %s", error)
            except Exception:  # the edge of a worker: the next sweep may do better
                log.exception("Looking for conversations that have rested failed")

    async def _go_on(self, going: Coroutine[Any, Any, None], scope: Scope, conversation: str) -> None:
        """Go on with a conversation that has rested. One that cannot must not hold up the others, now or next time."""
        try:
            return await going
        except (DatabaseReadOnly, DatabaseUnavailable):
            raise
        except InvalidPolicy as error:
            log.warning("%s could not go on after a rest, which is left to other workers: %s", conversation, error)
            self._left_to_others[scope, conversation] = time.monotonic() + _REST_LONGER.total_seconds()
            return None
        except HithertoError as error:
            log.warning("%s could not go on after a rest, which is tried again later: %s", conversation, error)
        except Exception:  # the edge of a worker
            log.exception("%s could not go on after a rest, which is tried again later", conversation)
        await self._store.rest_longer(scope, conversation, wait=_REST_LONGER)
        return None

    async def _resume_rested(self) -> None:
        """Begin digests of conversations that have rested after one failed."""
        now = time.monotonic()
        self._left_to_others = {left: until for left, until in self._left_to_others.items() if until > now}
        limit = _BATCH + len(self._left_to_others)
        for failed in await self._store.rested(limit=limit, able=self._services.able):
            if (failed.scope, failed.conversation) not in self._left_to_others:
                await self._go_on(resumed(self._services, failed), failed.scope, failed.conversation)

    async def _read_rested(self) -> bool:
        """Begin to read conversations that rest for facts; returns whether there may be more of them."""
        if not self._services.finds_facts:
            return False
        found = await self._store.unread(limit=_BATCH + len(self._left_to_others))
        mine = [one for one in found if one not in self._left_to_others]
        for scope, conversation in mine:
            await self._go_on(read_rested(self._services, scope, conversation), scope, conversation)
        return len(mine) >= _BATCH

    async def _forget(self) -> None:
        """Record that this worker has stopped, unless the database is away; then it counts for half a minute more."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_SOONEST):
                await self._store.forget_worker(self._id)

    async def _purge(self) -> None:
        """Purge every minute, in a loop of its own: waiting for a conversation that is held must not delay anything
        else."""
        while True:
            await asyncio.sleep(_TIDY_EVERY * jitter())
            if not self._services.queue.has_turn():
                continue
            try:
                await purge_expired(self._services)
                await resume_erasures(self._store)
            except DatabaseReadOnly:
                self._cannot_write()
            except StoreError as error:
                log.warning("Purging expired messages failed and will be tried again: %s", error)
            except Exception:  # the edge of a worker: the next time may do better
                log.exception("Purging expired messages failed")
