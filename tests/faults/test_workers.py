"""Workers that are killed, stopped, told to stop, or that wait for a model for ever."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

import hitherto
from hitherto import assistant, user
from hitherto.providers.scripted import Scripted, items
from tests.conftest import SCOPE
from tests.faults.conftest import Api, Crew, lease
from tests.faults.promises import check
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until
from tests.providers.models.endpoint import said


async def test_kill_9_while_the_model_thinks(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """Another worker takes over, once."""
    model.hold()
    workers = await crew.workers(2)
    digest = await api.fire()
    held = await model.asked(1)
    model.answer_at_once()
    await workers.pop(held.key).kill()
    again = await model.asked(2)
    assert again.key in workers
    await tables.wait_for_digests([digest])
    row = await tables.digest(digest)
    assert (row.status, row.attempt, row.tries) == ("completed", 2, 2)
    await check(tables, api.acknowledged, model.calls, killed={held.key})


async def test_what_rests_is_read_for_facts_once(
    database: str, crew: Crew, model: ThinkingModel, tables: Tables
) -> None:
    """By two workers that look for it at the same time. What one was reading when it was killed, the other reads."""
    model.hold()
    names, no_facts = "abcdefgh", said(items(facts=[]))
    async with hitherto.open(database, model=Scripted(), worker=False, rest_after=0.01) as memory:
        for name in names:
            chat = memory.conversation(name, scope=SCOPE)
            await chat.append(user(f"{name}/1 asks"), assistant(f"{name}/1 answers"))
    workers = await crew.workers(2, digest_concurrency=1)
    killed, outlives = await model.asked(1), await model.asked(2)
    assert killed.key != outlives.key
    model.answer_at_once(*[no_facts] * len(names))
    await workers[killed.key].kill()
    outlives.release(no_facts)

    async def all_read() -> bool:
        return await tables.one("select count(*) from hitherto.digest where status = 'completed'") == len(names)

    await until(all_read, "all conversations are read")
    assert sorted(call.conversation or "" for call in model.of(outlives.key)) == [*names]
    assert model.of(killed.key) == [killed]
    assert await tables.all("select action, status, count(*) from hitherto.digest group by 1, 2") == [
        ("facts", "completed", len(names))
    ]
    assert await tables.one("select count(facts_due_at) from hitherto.conversation") == 0


async def test_a_worker_that_comes_back_late(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """It was only asleep; what it has made by then is another's work, and it cannot write."""
    model.hold()
    workers = await crew.workers(2)
    digest = await api.fire()
    late = await model.asked(1)
    first = workers.pop(late.key)
    first.send(signal.SIGSTOP)
    timely = await model.asked(2)
    assert timely.key in workers
    assert timely.seqs == late.seqs
    timely.release("It was in time.")
    await tables.wait_for_digests([digest])
    made = await tables.digest(digest)
    late.release("It was late.")
    first.send(signal.SIGCONT)

    async def noted() -> bool:
        return len(await tables.calls()) == 2

    await until(noted, "what the late one spent is in the ledger")
    assert await tables.digest(digest) == made
    assert (made.status, made.text, made.attempt) == ("completed", "It was in time.", 2)

    # It lives on, and makes the next one.
    await workers[timely.key].kill()
    model.answer_at_once()
    await tables.wait_for_digests([await api.fire()])
    assert model.calls[-1].key == late.key
    await check(tables, api.acknowledged, model.calls)


async def test_it_wakes_while_the_other_thinks(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """Its claim is not prolonged, the other's is."""
    model.hold()
    workers = await crew.workers(2)
    digest = await api.fire()
    late = await model.asked(1)
    workers[late.key].send(signal.SIGSTOP)
    timely = await model.asked(2)
    late.release("It was late.")
    workers[late.key].send(signal.SIGCONT)

    async def noted() -> bool:
        return len(await tables.calls()) == 1

    await until(noted, "what the late one spent is in the ledger")
    row = await tables.digest(digest)
    assert (row.status, row.claimed, row.attempt) == ("processing", True, 2)
    timely.release("It was in time.")
    await tables.wait_for_digests([digest])
    assert (await tables.digest(digest)).text == "It was in time."
    assert len(model.calls) == 2
    await check(tables, api.acknowledged, model.calls)


async def test_a_model_that_hangs(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """Its call ends at the timeout, beyond the time of a take-over: until then the worker keeps its claim, and appends
    and contexts go on. Then the digest is put off, and a healthy model makes it."""
    timeout = 1.5 * lease()
    model.hold()
    await crew.workers(2, model_timeout=timeout, model_max_attempts=1)
    digest = await api.fire()
    hanging = await model.asked(1)
    model.answer_at_once()
    while True:
        appended = await api.append()
        await api.conversation("c").context(user("?"), budget=4_000)
        await asyncio.sleep(0.05)
        row = await tables.digest(digest)
        if time.monotonic() - hanging.at > 0.8 * timeout:
            break
        assert appended.digest is None
        assert (row.status, row.claimed, row.attempt, len(model.calls)) == ("processing", True, 1, 1)
    again = await model.asked(2)
    assert again.at - hanging.at > 0.8 * timeout
    await tables.wait_for_digests([digest])
    row = await tables.digest(digest)
    assert (row.status, row.tries) == ("completed", 2)
    assert [cause for _, cause in await tables.calls()] == ["unreachable", None]
    await check(tables, api.acknowledged, model.calls)


class TestSigterm:
    async def test_what_is_in_hand_is_finished(
        self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables
    ) -> None:
        model.hold()
        worker = await crew.worker(grace=10)
        digest = await api.fire()
        call = await model.asked(1)
        worker.send(signal.SIGTERM)
        await worker.said("Worker stopping")
        call.release("It was finished.")
        assert await worker.ended() == 0
        row = await tables.digest(digest)
        assert (row.status, row.text, row.attempt) == ("completed", "It was finished.", 1)
        await self._nobody_is_left(tables)
        await check(tables, api.acknowledged, model.calls)

    @pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
    async def test_what_is_not_finished_is_handed_over(
        self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables, again: bool
    ) -> None:
        """Another begins with it at once, however long a dead worker's would have to wait. Told a second time, it does
        not wait for its grace."""
        model.hold()
        workers = await crew.workers(2, grace=600 if again else 0.2, lease_timeout=600)
        digest = await api.fire()
        first = workers.pop((await model.asked(1)).key)
        model.answer_at_once()
        first.send(signal.SIGTERM)
        if again:
            await first.said("Worker stopping")
            first.send(signal.SIGTERM)
        taken = await model.asked(2)
        assert taken.key in workers
        assert await first.ended() == 0, first.err
        await tables.wait_for_digests([digest])
        row = await tables.digest(digest)
        assert (row.status, row.tries) == ("completed", 1)
        assert [cause for _, cause in await tables.calls()] == ["lost", None]
        await check(tables, api.acknowledged, model.calls)

    async def test_nothing_stays_claimed(self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
        """Alone and with more than it can do at once, it gives everything back; the next worker does it all."""
        model.hold()
        first = await crew.worker(grace=0, digest_concurrency=2, lease_timeout=600)
        digests = [await api.fire(name) for name in "abcd"]
        await model.asked(2)
        first.send(signal.SIGTERM)
        assert await first.ended() == 0, first.err
        rows = await tables.digests()
        assert [(row.status, row.claimed, row.tries) for row in rows] == [("processing", False, 0)] * 4
        await self._nobody_is_left(tables)
        model.answer_at_once()
        await crew.worker(lease_timeout=600)
        await tables.wait_for_digests(digests)
        await check(tables, api.acknowledged, model.calls)

    async def test_idle_workers_end_at_once(self, crew: Crew) -> None:
        workers = (await crew.workers(2, grace=600)).values()
        for worker, number in zip(workers, (signal.SIGTERM, signal.SIGINT), strict=True):
            worker.send(number)
        assert [await worker.ended() for worker in workers] == [0, 0]

    async def _nobody_is_left(self, tables: Tables) -> None:
        assert await tables.one("select count(*) from hitherto.worker") == 0
