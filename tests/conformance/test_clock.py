"""The store in memory with a clock that jumps; what PostgreSQL's does is in `tests/postgres/test_jobs.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.ports.digests import DigestJob
from hitherto.stores.in_memory.store import InMemoryStore
from hitherto.testing.conformance.digests.samples import begun
from hitherto.testing.conformance.recall.samples import candidates, found, indexed, keys_of, search_data, taken
from hitherto.testing.conformance.samples import HOUR, SCOPE, claimed, dialogue, head_of, user, write

MINUTE = timedelta(minutes=1)


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> InMemoryStore:
    return InMemoryStore(clock=clock)


async def test_a_claim_ends_with_its_lease(store: InMemoryStore, clock: Clock) -> None:
    made = await begun(store)
    await claimed(store, made, lease=MINUTE)
    clock.now += MINUTE / 2
    assert await store.claim(SCOPE.tenant, made, lease=MINUTE) is None
    assert await store.due_digests() == []
    clock.now += MINUTE / 2
    assert [job.digest for job in await store.due_digests()] == [made]
    assert (await store.backlog()).lag_seconds == 60
    assert (await claimed(store, made)).digest.attempt == 2


async def test_what_was_put_off_is_due_after_its_wait(store: InMemoryStore, clock: Clock) -> None:
    work = await claimed(store, await begun(store))
    await store.put_off(work, wait=5 * HOUR)
    assert (await store.backlog()).put_off == 1
    clock.now += HOUR - MINUTE
    assert await store.claim(SCOPE.tenant, work.digest.id, lease=MINUTE) is None
    clock.now += MINUTE
    assert (await store.backlog()).due == 1
    await claimed(store, work.digest.id)


@pytest.mark.parametrize("in_hand", [False, True])
async def test_a_clock_that_was_put_back_keeps_nobody_waiting(
    store: InMemoryStore, clock: Clock, in_hand: bool
) -> None:
    """For longer than anything is set ahead: what lies beyond is over."""
    far = await begun(store, "far")
    if in_hand:
        await claimed(store, far, lease=MINUTE)
    clock.now -= 3 * HOUR
    later = await begun(store, "later")
    assert [job.digest for job in await store.due_digests()] == [later, far]
    jobs = [DigestJob(SCOPE.tenant, made) for made in (far, later)]
    assert await store.unsettled(jobs) == jobs
    assert (await store.backlog()).due == 2
    assert (await claimed(store, far)).digest.attempt == (2 if in_hand else 1)
    assert await store.claim(SCOPE.tenant, far, lease=HOUR) is None


async def test_what_is_fired_after_it_was_put_back_is_due_at_once(store: InMemoryStore, clock: Clock) -> None:
    """Though a conversation's own time never goes back."""
    await write(store, "c", *dialogue(1))
    clock.now -= HOUR
    made = await begun(store)
    assert (await head_of(store, "c")).now == clock.now + HOUR
    assert [job.digest for job in await store.due_digests()] == [made]
    await claimed(store, made)


async def test_rest_ends(store: InMemoryStore, clock: Clock) -> None:
    await write(store, "c", *dialogue(1), failures=2, resume_at=clock.now + MINUTE)
    assert ((await head_of(store, "c")).resting, (await store.backlog()).resting) == (True, 1)
    clock.now += MINUTE
    assert ((await head_of(store, "c")).resting, (await store.backlog()).resting) == (False, 0)


async def test_what_is_indexed_ends_with_its_time(store: InMemoryStore, clock: Clock) -> None:
    await write(store, "c", replace(user("tea"), expires_at=clock.now + MINUTE), user("milk"))
    await indexed(store)
    assert await found(store) == ["milk", "tea"]
    keys = keys_of(await search_data(store))
    clock.now += MINUTE
    assert [one.source.text for one in await candidates(store, keys=keys, around=1)] == ["milk"]
    assert await found(store) == ["milk"]


async def test_a_claim_on_an_index_ends_with_its_lease(store: InMemoryStore, clock: Clock) -> None:
    await write(store, "c", user("tea"))
    first = await taken(store.index, lease=HOUR)
    clock.now += HOUR - MINUTE
    assert await store.index.take(space=None, lease=HOUR, limit=9) is None
    clock.now += MINUTE
    assert (await taken(store.index, lease=HOUR)).attempt == first.attempt + 1
    clock.now -= 5 * HOUR
    again = await taken(store.index)
    assert again.attempt == first.attempt + 2, "what a clock that was put back leaves behind waits for nobody"
