"""PostgreSQL stopped, killed and started again in the middle of appends and digests."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.conftest import Crew
from tests.faults.processes import Program
from tests.faults.promises import check
from tests.faults.server import FAST, KILL, Server
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until
from tests.patience import PATIENCE


@pytest.fixture
def database(own_server: Server) -> str:
    return own_server.url


@pytest.fixture
def tables(database: str) -> Tables:
    return Tables(database)


async def test_everything_goes_on_by_itself(
    own_server: Server, crew: Crew, model: ThinkingModel, tables: Tables
) -> None:
    """The server is stopped, and then killed; two writers and two workers find back, and nothing that was acknowledged
    is lost."""
    workers = (await crew.workers(2)).values()
    writers = await asyncio.gather(*(crew.writer("a", "b") for _ in range(2)))
    await _appended(writers)
    for how in (FAST, KILL):
        before = len(model.calls)
        await own_server.stop(how)
        stopped = [len(writer.acknowledged) for writer in writers]
        await own_server.start_again()
        await _appended(writers)
        await until(lambda before=before: len(model.calls) > before, f"digests after {how.name}")
        assert all(len(writer.acknowledged) > known for writer, known in zip(writers, stopped, strict=True))
    for writer in writers:
        writer.send(signal.SIGTERM)
    assert [await writer.ended() for writer in writers] == [0, 0]
    await tables.wait_for_digests()
    for worker in workers:
        assert worker.running, worker.err
        assert not [line for line in worker.err if "Traceback" in line or " ERROR " in line], worker.err
        worker.send(signal.SIGTERM)
    assert [await worker.ended() for worker in workers] == [0, 0]
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    assert [line for writer in writers for line in writer.err], "the writers have noticed nothing"
    await check(tables, acknowledged, model.calls, away=True)


async def test_while_the_model_thinks(own_server: Server, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
    """The server is away when the answer comes, and back before the claim has run out: it is written, once."""
    model.hold()
    await crew.worker(lease_timeout=PATIENCE)
    writer = await crew.writer("c", appends=2)
    call = await model.asked(1)
    assert await writer.ended() == 0
    await own_server.stop(FAST)
    call.release("It was worth the wait.")
    await own_server.start_again()
    await tables.wait_for_digests()
    (row,) = await tables.digests()
    assert (row.status, row.text, row.attempt) == ("completed", "It was worth the wait.", 1)
    await check(tables, writer.acknowledged, model.calls)


async def test_told_to_stop_while_the_server_is_away(
    own_server: Server, crew: Crew, model: ThinkingModel, tables: Tables
) -> None:
    """A worker ends in time all the same, though it cannot give anything back; another takes over."""
    model.hold()
    first = await crew.worker("first", grace=0.1, database_timeout=0.5)
    writer = await crew.writer("c", appends=2)
    await model.asked(1)
    assert await writer.ended() == 0
    await own_server.stop(FAST)
    first.send(signal.SIGTERM)
    assert await first.ended() == 0
    await own_server.start_again()
    model.answer_at_once()
    await crew.worker()
    await tables.wait_for_digests()
    await check(tables, writer.acknowledged, model.calls, killed={"first"})


async def _appended(writers: list[Program]) -> None:
    await asyncio.gather(*(writer.appended(8) for writer in writers))
