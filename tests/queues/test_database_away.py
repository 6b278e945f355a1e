"""The queue while its database is away, and afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from hitherto.queues import procrastinate
from hitherto.queues.procrastinate import ProcrastinateQueue
from hitherto.stores.postgres.embedded.server import EmbeddedServer
from tests.faults.tables import Tables
from tests.faults.waiting import until
from tests.queues.conftest import SESSIONS
from tests.queues.hand import Hand, job


@pytest.fixture
async def admin(server: EmbeddedServer) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as connection:
        yield connection


async def test_it_begins_again(
    idle: ProcrastinateQueue,
    hand: Hand,
    tables: Tables,
    database: str,
    admin: psycopg.AsyncConnection[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once the database is back; what is in hand goes on meanwhile. It says so in one line, without tracebacks."""
    monkeypatch.setattr(procrastinate, "_CONNECTED", 0.2)
    await idle.start(hand)
    name = str(conninfo_to_dict(database)["dbname"])
    allow = sql.SQL("alter database {} with allow_connections {}")
    await tables.put_job(1)
    await hand.holds(job(1))
    await admin.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
    await admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s", [name])
    await until(lambda: "No digest jobs are taken for now" in caplog.text, "it says so")
    await admin.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
    await until(tables.listens, "it listens again")
    await hand.holds(job(1))
    await tables.put_job(2)
    hand.finish_all()
    await hand.has_done(job(1), job(2))
    assert not [one for one in caplog.records if one.exc_info and one.levelno > logging.INFO]
    assert hand.cancelled == []
    assert await tables.one(SESSIONS) <= 3
    await idle.aclose(grace=0)


async def test_when_it_hears_nothing_any_more(
    queue: ProcrastinateQueue,
    hand: Hand,
    tables: Tables,
    database: str,
    admin: psycopg.AsyncConnection[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The session that listens is ended and cannot be had again for a while; the others live. Each time is news."""
    name = str(conninfo_to_dict(database)["dbname"])
    limit = sql.SQL("alter database {} with connection limit {}")
    hand.finish_all()
    for number in (1, 2):
        await admin.execute(limit.format(sql.Identifier(name), sql.SQL("0")))
        await admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name = 'hitherto queue' and datname = %s and query ilike %s",
            [name, "listen%"],
        )
        await until(lambda: "the job listener ended" in caplog.text, "it says so")
        await admin.execute(limit.format(sql.Identifier(name), sql.SQL("-1")))
        await until(tables.listens, "it listens again")
        await tables.put_job(number)
        await hand.has_done(job(number))
        caplog.clear()


async def test_it_rests_longer_and_longer(
    idle: ProcrastinateQueue,
    hand: Hand,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to the longest rest; after it has gone well for longer than that, it is the first rest again. Why, it says
    once."""
    tried = 0
    caplog.set_level(logging.DEBUG, "hitherto.queue")

    async def fail() -> None:
        nonlocal tried
        tried += 1
        if tried == 5:
            await asyncio.sleep(0.06)
        raise RuntimeError("a defect") if tried == 3 else OSError("away")

    monkeypatch.setattr(procrastinate, "_FIRST_REST", 0.01)
    monkeypatch.setattr(procrastinate, "_LONGEST_REST", 0.05)
    monkeypatch.setattr(idle, "_work_on_jobs", fail)
    await idle.start(hand)
    await until(lambda: tried >= 8, "it is tried again and again")
    found = [
        (record.levelno, vars(record).get("retry_in_seconds"))
        for record in caplog.records
        if record.name == "hitherto.queue"
    ][:7]
    again = logging.DEBUG
    assert found[:4] == [(logging.WARNING, 0.01), (again, 0.02), (logging.ERROR, None), (again, 0.05)]
    assert found[4:] == [(again, 0.05), (again, 0.02), (again, 0.04)]
