"""A clock that jumps, the database's or a worker's own: the work goes on all the same, and not a day later.

The database's clock cannot be moved here. To the code it is the same when all times in the tables move the other way.
"""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta

import pytest

from tests.faults.conftest import PATIENT, Api, Crew
from tests.faults.promises import check
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until
from tests.patience import PATIENCE
from tests.providers.models.endpoint import refused

DAY = timedelta(days=1)
BACKOFF = 0.4

both_ways = pytest.mark.parametrize("by", [DAY, -DAY], ids=["back", "forward"])
"""The tables' times go one way, which is as if the clock had gone the other."""


@both_ways
async def test_the_database(api: Api, crew: Crew, model: ThinkingModel, tables: Tables, by: timedelta) -> None:
    """It jumps while one digest is in hand, one is put off for a later try, and one waits for room."""
    model.answer_at_once(refused(503, "Overloaded."))
    worker = await crew.worker(digest_concurrency=1, model_max_attempts=1, backoff=BACKOFF)
    digests = [await api.fire("put-off")]

    async def put_off() -> bool:
        row = await tables.digest(digests[0])
        return not row.claimed and row.error is not None

    await until(put_off, "the first is put off")
    model.hold()
    digests += [await api.fire(name) for name in ("in-hand", "waiting")]
    await model.asked(2)
    await tables.moved(by)
    model.answer_at_once()
    for call in model.calls[1:]:
        call.release()
    await tables.wait_for_digests(digests)

    # And from now on: what an append sets off, it sets off and gets.
    digests += [await api.fire(name) for name in ("put-off", "in-hand", "new")]
    await tables.wait_for_digests(digests)
    assert {(await tables.digest(digest)).status for digest in digests} == {"completed"}
    assert worker.running
    await check(tables, api.acknowledged, model.calls)


@both_ways
async def test_what_a_dead_worker_held(
    api: Api, crew: Crew, model: ThinkingModel, tables: Tables, by: timedelta
) -> None:
    """Its claim ends within the time that is set, though by the clock it lies a day ahead, or behind."""
    model.hold()
    workers = await crew.workers(2, digest_concurrency=1)
    digests = [await api.fire(name) for name in "ab"]
    killed = (await model.asked(2)).key
    await workers[killed].kill()
    await tables.moved(by)
    model.answer_at_once()
    for call in model.calls:
        call.release()
    await tables.wait_for_digests(digests)
    await check(tables, api.acknowledged, model.calls, killed={killed})


@both_ways
async def test_a_conversation_that_rests(
    api: Api, crew: Crew, model: ThinkingModel, tables: Tables, by: timedelta
) -> None:
    """Its digests have failed, so it begins none for a while: for that while and no day longer."""
    model.answer_at_once(*[refused(401, "Wrong key.")] * 2)
    await crew.worker(backoff=BACKOFF)
    for _ in range(2):
        await tables.wait_for_digests([await api.fire()])
    assert await tables.one("select failures from hitherto.conversation") == 2
    await tables.moved(by)
    async with asyncio.timeout(PATIENCE):
        digest = await api.fire()
    await tables.wait_for_digests([digest])
    assert (await tables.digest(digest)).status == "completed"


@pytest.mark.parametrize("by", [DAY, -DAY], ids=["forward", "back"])
async def test_a_workers_own(api: Api, crew: Crew, model: ThinkingModel, tables: Tables, by: timedelta) -> None:
    """It keeps its claim, finishes what is in hand, and makes the next."""
    model.hold()
    workers = await crew.workers(2, digest_concurrency=1, jump=by.total_seconds(), **PATIENT)
    digests = [await api.fire(name) for name in "ab"]
    jumps = (await model.asked(2)).key
    workers[jumps].send(signal.SIGUSR1)
    model.answer_at_once()
    for call in model.calls:
        call.release()
    digests += [await api.fire(name) for name in "cdef"]
    await tables.wait_for_digests(digests)
    assert {(row.status, row.attempt) for row in await tables.digests()} == {("completed", 1)}
    workers[jumps].send(signal.SIGTERM)
    assert await workers[jumps].ended() == 0
    await check(tables, api.acknowledged, model.calls)
