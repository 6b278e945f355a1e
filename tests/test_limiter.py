"""The limiter: nobody waits behind what another tenant asks for."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hitherto.aside import aside, in_thread
from hitherto.limiter import FairLimiter, served_caller
from tests.faults.waiting import until
from tests.patience import PATIENCE

TENANTS, USERS = "abc", "xy"
User = tuple[str, str]
"""Of a tenant."""

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(TENANTS), st.sampled_from(USERS)),
        st.tuples(st.sampled_from(["end", "cancel"]), st.integers(0, 30)),
    ),
    max_size=60,
)


async def idle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def run(size: int, most: int, steps: Sequence[tuple[str, str, str] | tuple[str, int]]) -> None:
    """Ask for turns, end some, cancel some; what is promised holds after each step."""
    turns, running, tasks = (
        FairLimiter(size, most=most),
        dict[asyncio.Task[None], User](),
        dict[asyncio.Task[None], User](),
    )

    async def work(whose: User) -> None:
        served_caller.set(whose)
        task = asyncio.current_task()
        assert task is not None
        async with turns.turn():
            running[task] = whose
            try:
                await asyncio.Event().wait()
            finally:
                del running[task]

    def waiting() -> list[User]:
        return [whose for task, whose in tasks.items() if task not in running]

    for step in steps:
        before = Counter(tenant for tenant, _ in running.values())
        if step[0] == "ask":
            whose = (str(step[1]), str(step[-1]))
            tasks[asyncio.create_task(work(whose))] = whose
        elif chosen := [task for task in tasks if (task in running) == (step[0] == "end")]:
            task = chosen[int(step[1]) % len(chosen)]
            before -= Counter([tasks[task][0]] if task in running else [])
            task.cancel()
            del tasks[task]
        served = set(running)
        await idle()
        held = Counter(tenant for tenant, _ in running.values())
        assert len(running) <= size
        assert max(held.values(), default=0) <= most
        assert len(running) == size or not [one for one in waiting() if held[one[0]] < most], "a free turn is used"
        for tenant in {tasks[task][0] for task in set(running) - served}:
            turns_of = Counter(tasks[task][0] for task in set(running) - served)
            others = [one for one, _ in waiting() if one != tenant and held[one] < most]
            assert not others or turns_of[tenant] <= 1, "tenants get turns in rotation"
    for task in tasks:
        task.cancel()
    await idle()
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*(turns.acquire() for _ in range(size))) == [""] * size, "none is lost"


@given(size=st.integers(1, 4), most=st.integers(1, 4), steps=STEPS)
def test_whatever_is_asked_ended_and_cancelled(
    size: int, most: int, steps: Sequence[tuple[str, str, str] | tuple[str, int]]
) -> None:
    asyncio.run(run(size, min(size, most), steps))


async def test_users_of_a_tenant_in_rotation() -> None:
    turns, order = FairLimiter(1, most=1), list[str]()

    async def work(user: str) -> None:
        served_caller.set(("acme", user))
        async with turns.turn():
            order.append(user)
            await idle()

    await asyncio.gather(*(work(user) for user in ["ann"] * 5 + ["bob"] * 2 + ["eve"]))
    assert order == ["ann", "ann", "bob", "eve", "ann", "bob", "ann", "ann"]


async def test_work_in_a_thread_keeps_its_turn_until_it_has_ended() -> None:
    """Though the task is cancelled: a thread cannot be stopped."""
    turns, begun, go_on = FairLimiter(1, most=1), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait()

    async def in_turn() -> None:
        async with turns.turn():
            await aside(10**6, work)

    task = asyncio.create_task(in_turn())
    await asyncio.to_thread(begun.wait)
    task.cancel()
    following = asyncio.create_task(turns.acquire())
    await idle()
    assert not following.done()
    go_on.set()
    await following


async def test_two_threads_of_a_tenant_work_at_once() -> None:
    begun, go_on = Counter[str](), threading.Event()

    def work(tenant: str) -> None:
        begun[tenant] += 1
        go_on.wait()

    async def in_turn(tenant: str) -> None:
        served_caller.set((tenant, ""))
        await in_thread(work, tenant)

    tasks = [asyncio.create_task(in_turn(tenant)) for tenant in ["acme"] * 4 + ["globex"] * 4]
    await until(lambda: begun.total() == 4, "four have begun")
    await idle()
    assert begun == {"acme": 2, "globex": 2}
    go_on.set()
    await asyncio.gather(*tasks)
