"""The digests that one process works on, by themselves: how many, in which order, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.core.digests.digest import DigestJob
from hitherto.engine.digests.tasks import TaskQueue
from hitherto.store.store import Store
from tests.engine.digests.hand import Hand, job
from tests.patience import PATIENCE
from tests.store.digests.samples import begun
from tests.store.samples import AT_ONCE, HOUR, SCOPE, claimed, ending, write

ROOM = 2


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
async def queue(store: Store, hand: Hand) -> AsyncIterator[TaskQueue]:
    made = TaskQueue(store, concurrency=ROOM)
    made.start(hand)
    yield made
    await made.aclose(grace=0)


async def test_at_most_so_many_at_once(queue: TaskQueue, hand: Hand) -> None:
    """What there is no room for is news: it stays in its row, where it is found."""
    queue.submit(job(0))
    queue.submit(job(1))
    assert not queue.news.is_set()
    queue.submit(job(2))
    assert queue.news.is_set()
    assert not queue.take(job(3))
    await hand.holds(job(0), job(1))
    room = asyncio.create_task(queue.room())
    await asyncio.sleep(0)
    assert not room.done()
    hand.finish(job(0))
    await room
    assert queue.take(job(3))
    await hand.holds(job(1), job(3))
    assert (hand.begun, hand.most) == ([job(0), job(1), job(3)], ROOM)


async def test_a_tenant_is_busy_with_its_share_of_the_last_digests(queue: TaskQueue, hand: Hand) -> None:
    """None may be in progress when due digests are looked for, as with a fast model."""

    async def make(tenant: str, *numbers: int) -> None:
        for number in numbers:
            assert queue.take(DigestJob(tenant, number))
            await hand.holds(DigestJob(tenant, number))
            hand.finish(DigestJob(tenant, number))
            await queue.wait_for_digests()

    assert queue.busy_tenants() == []
    await make("acme", *range(10))
    assert queue.busy_tenants() == ["acme"]
    await make("globex", 10)
    assert queue.busy_tenants() == ["acme"]
    await make("initech", *range(11, 15))
    assert queue.busy_tenants() == ["acme", "initech"], "two that take turns are, however uneven these are"
    await make("globex", *range(21, 121))
    assert queue.busy_tenants() == ["globex"], "only the last hundred count"


def test_of_many_workers_each_has_a_turn_now_and_then(queue: TaskQueue) -> None:
    assert all(queue.has_turn() for _ in range(100))
    queue.workers = 10
    assert 200 < sum(queue.has_turn() for _ in range(4_000)) < 600


async def test_before_the_start_nothing_is_begun(store: Store) -> None:
    queue = TaskQueue(store)
    queue.submit(job(1))
    assert not queue.take(job(1))
    await queue.wait_for_digests()
    await queue.aclose(grace=1)


class TestWaiting:
    """The rows tell, whoever works on them."""

    @pytest.fixture
    def elsewhere(self, store: Store) -> TaskQueue:
        """A process that makes no digests."""
        return TaskQueue(store)

    async def test_others_do_the_work(self, store: Store, elsewhere: TaskQueue) -> None:
        made = await begun(store)
        elsewhere.submit(DigestJob(SCOPE.tenant, made))
        waiting = asyncio.create_task(elsewhere.wait_for_digests())
        async with asyncio.timeout(PATIENCE):
            await elsewhere.wait_for_digests("another tenant")
        await claimed(store, made)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await write(store, "c", outcomes=[ending("completed", made)])
        async with asyncio.timeout(PATIENCE):
            await waiting

    async def test_what_is_put_off_is_not_waited_for_and_what_is_given_back_is(
        self, store: Store, elsewhere: TaskQueue
    ) -> None:
        made = await begun(store)
        elsewhere.submit(DigestJob(SCOPE.tenant, made))
        await store.put_off(await claimed(store, made), wait=AT_ONCE)
        waiting = asyncio.create_task(elsewhere.wait_for_digests())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await store.put_off(await claimed(store, made), wait=HOUR / 2)
        async with asyncio.timeout(PATIENCE):
            await waiting

    async def test_work_here_is_waited_for_to_its_end(self, queue: TaskQueue, hand: Hand) -> None:
        """Its row may have ended before."""
        queue.submit(job(1))
        await hand.holds(job(1))
        async with asyncio.timeout(PATIENCE):
            await queue.wait_for_digests("another tenant")
        waiting = asyncio.create_task(queue.wait_for_digests("acme"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        hand.finish(job(1))
        async with asyncio.timeout(PATIENCE):
            await waiting


class TestClosing:
    async def test_what_is_in_hand_finishes_in_its_grace(self, queue: TaskQueue, hand: Hand) -> None:
        queue.submit(job(1))
        await hand.holds(job(1))
        closing = asyncio.create_task(queue.aclose(grace=60))
        await asyncio.sleep(0)
        assert not queue.take(job(2))
        queue.submit(job(2))
        hand.finish(job(1))
        async with asyncio.timeout(PATIENCE):
            await closing
        assert (hand.begun, hand.done, hand.cancelled) == ([job(1)], [job(1)], [])

    async def test_what_takes_longer_is_cancelled(self, queue: TaskQueue, hand: Hand) -> None:
        for number in range(ROOM + 2):
            queue.submit(job(number))
        await hand.holds(job(0), job(1))
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=0.05)
        assert sorted(hand.cancelled, key=lambda one: one.digest) == hand.begun == [job(0), job(1)]

    async def test_what_runs_is_cancelled_with_a_closing_that_waits_for_it(self, queue: TaskQueue, hand: Hand) -> None:
        queue.submit(job(1))
        await hand.holds(job(1))
        closing = asyncio.create_task(queue.aclose(grace=600))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        async with asyncio.timeout(PATIENCE):
            await queue.wait_for_digests()
        assert hand.cancelled == [job(1)]

    async def test_it_waits_for_those_that_tidy_up(self, queue: TaskQueue, hand: Hand) -> None:
        hand.tidies = 0.05
        queue.submit(job(1))
        await hand.holds(job(1))
        await queue.aclose(grace=0)
        assert hand.cancelled == [job(1)]

    async def test_a_second_time_without_grace(self, queue: TaskQueue, hand: Hand) -> None:
        """While the first still waits; both return when nothing is left."""
        queue.submit(job(1))
        await hand.holds(job(1))
        patient = asyncio.create_task(queue.aclose(grace=600))
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=0)
            await patient
        assert hand.cancelled == [job(1)]

    async def test_twice(self, queue: TaskQueue, hand: Hand) -> None:
        queue.submit(job(1))
        await hand.holds(job(1))
        await queue.aclose(grace=0)
        await queue.aclose(grace=60)
        await queue.wait_for_digests()
        assert hand.cancelled == [job(1)]
