"""The queue of a single process, by itself: the contract of `DigestQueue` as far as one process can have it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.queues.tasks import TaskQueue
from tests.patience import PATIENCE
from tests.queues.hand import Hand, job

AT_ONCE = 2


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
async def queue(hand: Hand) -> AsyncIterator[TaskQueue]:
    made = TaskQueue(concurrency=AT_ONCE)
    await made.start(hand)
    yield made
    await made.aclose(grace=0)


async def test_at_most_so_many_at_once_in_order(queue: TaskQueue, hand: Hand) -> None:
    for number in range(5):
        queue.submit(job(number))
    await hand.holds(job(0), job(1))
    hand.finish(job(1))
    await hand.holds(job(0), job(2))
    hand.finish_all()
    await queue.wait_for_digests()
    assert hand.begun == [job(number) for number in range(5)]
    assert hand.most == AT_ONCE


async def test_submitted_for_later(queue: TaskQueue, hand: Hand) -> None:
    """It is begun then, and not waited for until then."""
    hand.finish_all()
    began = asyncio.get_running_loop().time()
    queue.submit(job(1), after=0.1)
    await queue.wait_for_digests()
    assert hand.begun == []
    await hand.has_done(job(1))
    assert asyncio.get_running_loop().time() - began >= 0.1


async def test_before_the_start_nothing_is_begun() -> None:
    queue = TaskQueue()
    queue.submit(job(1))
    assert not queue.take(job(1))
    await queue.wait_for_digests()
    await queue.aclose(grace=1)


async def test_take_only_with_room(queue: TaskQueue, hand: Hand) -> None:
    assert [queue.take(job(number)) for number in range(3)] == [True, True, False]
    await hand.holds(job(0), job(1))
    hand.finish(job(0))
    await hand.has_done(job(0))
    await hand.holds(job(1))
    assert queue.take(job(3))
    await hand.holds(job(1), job(3))
    assert hand.begun == [job(0), job(1), job(3)]
    hand.finish_all()


async def test_settled_for_one_tenant_waits_for_no_other(queue: TaskQueue, hand: Hand) -> None:
    queue.submit(job(1))
    await hand.holds(job(1))
    async with asyncio.timeout(PATIENCE):
        await queue.wait_for_digests("globex")
    wait_for_digests = asyncio.create_task(queue.wait_for_digests("acme"))
    await asyncio.sleep(0)
    assert not wait_for_digests.done()
    hand.finish(job(1))
    async with asyncio.timeout(PATIENCE):
        await wait_for_digests


async def test_settled_waits_for_what_is_submitted_meanwhile(queue: TaskQueue, hand: Hand) -> None:
    queue.submit(job(1))
    wait_for_digests = asyncio.create_task(queue.wait_for_digests())
    await hand.holds(job(1))
    queue.submit(job(2))
    hand.finish(job(1))
    await hand.holds(job(2))
    assert not wait_for_digests.done()
    hand.finish(job(2))
    async with asyncio.timeout(PATIENCE):
        await wait_for_digests


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
        """What waits for room is not even begun, what is due later never."""
        for number in range(AT_ONCE + 2):
            queue.submit(job(number))
        queue.submit(job(9), after=0.01)
        await hand.holds(job(0), job(1))
        async with asyncio.timeout(PATIENCE):
            await queue.aclose(grace=0.05)
        assert sorted(hand.cancelled, key=lambda one: one.digest) == hand.begun == [job(0), job(1)]
        await asyncio.sleep(0.02)
        assert job(9) not in hand.begun

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
