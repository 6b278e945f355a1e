"""Notifications that are lost, and digests that are gone when a worker comes to them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

import hitherto
from hitherto.core.digests.digest import DigestJob
from hitherto.engine.memory import Memory
from hitherto.providers.scripted import Gate, Scripted, items
from tests.conftest import SCOPE
from tests.faults.conftest import PATIENT, Api, Crew
from tests.faults.promises import check
from tests.faults.tables import LISTENS, Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until


async def test_a_notification_that_is_lost(api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """The session that listens is ended: what came meanwhile is made in time, and the worker listens again."""
    await crew.worker()

    async def ended() -> bool:
        return bool(await tables.all(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {LISTENS}"))

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
    await crew.worker(**PATIENT)
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
        async with hitherto.open(database, model=scripted) as memory:
            await until(tables.listens, "it listens")
            yield memory

    async def _goes_on(self, memory: Memory, tables: Tables, caplog: pytest.LogCaptureFixture) -> None:
        """The next digest is made; nothing went wrong."""
        digest = await Api(memory).fire("next")
        await memory.wait_for_digests()
        assert (await tables.digest(digest)).status == "completed"
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    async def test_one_that_is_gone_when_it_is_claimed(
        self, memory: Memory, gate: Gate, tables: Tables, caplog: pytest.LogCaptureFixture
    ) -> None:
        gate.open()
        memory._services.queue.submit(DigestJob(SCOPE.tenant, 999_999))
        await memory.wait_for_digests()
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
