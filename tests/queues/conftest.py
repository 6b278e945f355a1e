"""A queue in a database, with work that a test holds in its hand and rows that it makes up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from hitherto.ports.queue import DigestJob
from hitherto.queues.procrastinate import ProcrastinateQueue
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.queues.hand import Hand

AT_ONCE = 2

SESSIONS = """
select count(*) from pg_stat_activity where application_name = 'hitherto queue' and datname = current_database()
"""
"""How many sessions queues have in the database."""


class Rows:
    """What the store would say: `unsettled` are due or in hand, here or elsewhere."""

    def __init__(self) -> None:
        self.unsettled: set[DigestJob] = set()
        self.asked = 0

    async def __call__(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        self.asked += 1
        return [one for one in jobs if one in self.unsettled]


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def tables(database: str) -> Tables:
    return Tables(database)


@pytest.fixture
async def idle(database: str, rows: Rows) -> AsyncIterator[ProcrastinateQueue]:
    """A queue that was not started."""
    made = ProcrastinateQueue(database, unsettled=rows, concurrency=AT_ONCE)
    yield made
    await made.aclose(grace=0)


@pytest.fixture
async def queue(idle: ProcrastinateQueue, hand: Hand, tables: Tables) -> ProcrastinateQueue:
    await idle.start(hand)
    await until(tables.listens, "it listens")
    return idle
