"""Whoever is cancelled, wherever: nothing half written, no connection lost, no digest left lying."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import assistant, sliding_window, user
from hitherto.core.digests.digest import Status
from hitherto.uninterrupted import uninterrupted
from tests.conftest import SCOPE
from tests.databases import Server
from tests.engine.test_verbs import until_made
from tests.lengths import examples, lasting
from tests.patience import PATIENCE


@lasting
@pytest.mark.parametrize("seed", range(1, examples(1) + 1))
async def test_appends_and_contexts_cancelled_at_random(database: str, seed: int) -> None:
    """They are given about as long as they take here, and longer where all of a round were cancelled."""
    chance = random.Random(seed)
    acknowledged: dict[int, int] = {}
    async with hitherto.open(database, pool_size=3, database_timeout=5) as memory:
        chats = [memory.conversation(f"c{n}", scope=SCOPE, policy=sliding_window()) for n in range(4)]

        async def once(number: int, patience: float) -> None:
            chat = chats[number % 4]
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * patience):
                    done = await chat.append(user(f"u{number}"), assistant(f"a{number}"), key=str(number))
                acknowledged[number] = done.start
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * patience / 3):
                    await chat.context(user("?"), budget=500)

        begun = time.monotonic()
        await asyncio.gather(*(memory.conversation(f"e{n}", scope=SCOPE).append(user("x")) for n in range(40)))
        patience = time.monotonic() - begun
        for first in range(0, 480, 40):
            before = len(acknowledged)
            await asyncio.gather(*(once(number, patience) for number in range(first, first + 40)))
            patience *= 2 if len(acknowledged) == before else 1

        # Every connection is still to be had, all at once.
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(memory.conversation(f"d{n}", scope=SCOPE).append(user("x")) for n in range(60)))
        for at, chat in enumerate(chats):
            log = await chat.messages()
            assert [logged.seq for logged in log] == list(range(len(log)))
            said = [logged.message.text[1:] for logged in log]
            assert said[::2] == said[1::2], "a batch is whole"
            assert len(set(said)) == len(said) // 2, "and written once"
            mine = {number: start for number, start in acknowledged.items() if number % 4 == at}
            assert all(log[start].message.text == f"u{number}" for number, start in mine.items())
            await until_made(chat)  # one whose append was cancelled while it was committed is found by the worker
            assert all(row.status is Status.COMPLETED for row in await chat.digests())
    assert 0 < len(acknowledged) < 480


async def test_opening_is_cancelled_at_random_and_can_be_done_again(server: Server) -> None:
    """Each time on a database without a schema, and always two databases at once."""
    chance = random.Random(5)
    async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as admin:
        for number in range(5):
            names = [f"empty_{number}_{part}" for part in ("a", "b")]
            for name in names:
                await admin.execute(sql.SQL("create database {} owner hitherto").format(sql.Identifier(name)))
            urls = [make_conninfo(server.url, dbname=name) for name in names]
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.2):
                    memory = await hitherto.open(urls[0])
                await memory.aclose()
            opened = await asyncio.gather(*(hitherto.open(url).__aenter__() for url in urls))
            for memory in opened:
                await memory.conversation("c", scope=SCOPE).append(user("x"))
                await memory.aclose()
            for name in names:
                await admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


async def test_an_opening_that_is_cancelled_leaves_nothing_open(database: str) -> None:
    before = len(asyncio.all_tasks())
    async with await psycopg.AsyncConnection[Any].connect(database) as other:
        await other.execute("lock table hitherto.receipt in access exclusive mode")
        for _ in range(3):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    await hitherto.open(database)
        await other.rollback()
    await asyncio.sleep(0.1)
    assert len(asyncio.all_tasks()) == before


async def test_work_that_was_begun_is_finished_before_the_cancellation_shows() -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0.05)
        done.append("work")

    task = asyncio.create_task(uninterrupted(work()))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["work"]


async def test_work_that_fails_says_so() -> None:
    async def work() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        await uninterrupted(work())
