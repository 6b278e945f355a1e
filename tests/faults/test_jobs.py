"""Hints that are lost, doubled, or about what is gone: each comes to a clear end, and the worker goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto.engine.memory import Memory
from hitherto.providers.scripted.model import Gate, Scripted, items
from tests.faults.conftest import Api, Crew, lease
from tests.faults.promises import check
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until


async def _no_jobs(tables: Tables) -> bool:
    return await tables.jobs() == []


async def test_a_job_that_is_lost(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """The row is the truth: a sweep finds it."""
    lost = await api.fire()
    await tables.all("delete from hitherto.procrastinate_jobs")
    await crew.worker()
    await tables.wait_for_digests([lost])
    await check(tables, api.acknowledged, model.calls)


async def test_a_job_that_is_lost_while_it_is_worked_on(
    api: Api, crew: Crew, model: ThinkingModel, tables: Tables
) -> None:
    model.hold()
    worker = await crew.worker()
    digest = await api.fire()
    call = await model.asked(1)
    await tables.all("delete from hitherto.procrastinate_jobs")
    call.release()
    model.answer_at_once()
    await tables.wait_for_digests([digest])
    await tables.wait_for_digests([await api.fire()])
    assert not [line for line in worker.err if "Traceback" in line or " ERROR " in line], worker.err
    assert (await tables.digest(digest)).attempt == 1
    await check(tables, api.acknowledged, model.calls)


async def test_a_notification_that_is_lost(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """The session that listens is ended: what came meanwhile is made in time, and the worker listens again."""
    await crew.worker()

    async def ended() -> bool:
        return bool(
            await tables.all(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where "
                "application_name = 'hitherto queue' and datname = current_database() and query ilike '%listen%'"
            )
        )

    for _ in range(2):
        await until(ended, "there is a session that listens, and it is ended")
        await tables.wait_for_digests([await api.fire()])
    await check(tables, api.acknowledged, model.calls)


async def test_no_worker_at_all(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """Appends and contexts go on; the first worker there is does it all."""
    names = [f"c{n}" for n in range(12)]
    digests = [await api.fire(name) for name in names]
    for name in names:
        assert (await api.append(name)).digest is None, "one is in progress"
    assert {(row.status, row.attempt) for row in await tables.digests()} == {("processing", 0)}
    await crew.worker()
    await tables.wait_for_digests(digests)
    assert len(model.calls) == len(digests)
    await check(tables, api.acknowledged, model.calls)


class TestInThisProcess:
    """With the log at hand."""

    @pytest.fixture
    def gate(self) -> Gate:
        return Gate(items("They talk."))

    @pytest.fixture
    async def memory(
        self, database: str, tables: Tables, gate: Gate, caplog: pytest.LogCaptureFixture
    ) -> AsyncIterator[Memory]:
        caplog.set_level(logging.DEBUG, "hitherto")
        scripted = Scripted([gate], then=items("They talk."))
        async with hitherto.open(database, model=scripted, lease_timeout=lease()) as memory:
            await until(tables.listens, "it listens")
            yield memory

    async def _goes_on(self, memory: Memory, tables: Tables, caplog: pytest.LogCaptureFixture) -> None:
        """The queue is empty and was not begun anew; the next digest is made; nothing went wrong."""
        await until(lambda: _no_jobs(tables), "the jobs are gone")
        api = Api(memory)
        digest = await api.fire("next")
        await memory.wait_for_digests()
        assert (await tables.digest(digest)).status == "completed"
        assert [record for record in caplog.records if record.levelno > logging.WARNING] == []
        assert "No digest jobs are taken" not in caplog.text

    async def test_a_job_that_comes_twice(
        self, memory: Memory, gate: Gate, tables: Tables, caplog: pytest.LogCaptureFixture
    ) -> None:
        digest = await Api(memory).fire()
        await gate.reached()
        await tables.put_job(digest, times=3)
        await until(
            lambda: f"Digest {digest} is not due any more" in caplog.text, "the doubles are seen for what they are"
        )
        gate.open()
        await memory.wait_for_digests()
        await tables.put_job(digest)
        row = await tables.digest(digest)
        assert (row.status, row.attempt) == ("completed", 1)
        assert len(await tables.calls()) == 1
        await self._goes_on(memory, tables, caplog)

    async def test_a_job_whose_digest_is_gone(
        self, memory: Memory, gate: Gate, tables: Tables, caplog: pytest.LogCaptureFixture
    ) -> None:
        gate.open()
        await tables.put_job(999_999)
        await until(lambda: "Digest 999999 is not due any more" in caplog.text, "it says so")
        await self._goes_on(memory, tables, caplog)

    @pytest.mark.parametrize("how", ["clear", "delete"])
    async def test_before_it_is_begun(
        self, api: Api, gate: Gate, tables: Tables, database: str, caplog: pytest.LogCaptureFixture, how: str
    ) -> None:
        """The conversation is cleared or deleted while its job waits for a worker."""
        digest = await api.fire()
        chat = api.conversation("c")
        await (chat.clear() if how == "clear" else chat.delete())
        caplog.set_level(logging.DEBUG, "hitherto")
        gate.open()
        async with hitherto.open(database, model=Scripted([gate], then=items("They talk."))) as memory:
            await until(lambda: f"Digest {digest} is not due any more" in caplog.text, "it says so")
            assert await tables.calls() == []
            await self._goes_on(memory, tables, caplog)

    @pytest.mark.parametrize("how", ["clear", "delete"])
    async def test_while_the_model_thinks(
        self, memory: Memory, gate: Gate, tables: Tables, caplog: pytest.LogCaptureFixture, how: str
    ) -> None:
        api = Api(memory)
        digest = await api.fire()
        await gate.reached()
        chat = api.conversation("c")
        await (chat.clear() if how == "clear" else chat.delete())
        gate.open()
        await until(lambda: f"Digest {digest} was taken over by another worker" in caplog.text, "it says so")

        async def noted() -> bool:
            return len(await tables.calls()) == 1

        await until(noted, "what was spent in vain is in the ledger")
        rows = [row.status for row in await tables.digests()]
        assert rows == (["superseded"] if how == "clear" else [])
        await self._goes_on(memory, tables, caplog)
