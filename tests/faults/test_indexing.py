"""Workers that are killed, stopped and told to stop while they index.

Each thing that can be found has one entry and one vector, and what was taken away has none.
"""

from __future__ import annotations

import asyncio
import random
import signal
from typing import Any

import psycopg

from hitherto import Message, user
from hitherto.errors import StoreError
from tests.conftest import SCOPE
from tests.faults.conftest import Api, Crew, lease
from tests.faults.waiting import until

MESSAGES = 4_600
"""More than a segment takes."""

_STATE = """
select (select count(*) from hitherto.conversation where indexed_seq < next_seq),
       (select count(*) from hitherto.search_filling where behind),
       (select count(*) from hitherto.search_scope where stale)
"""

_LIVE = """
select c.ref, m.seq from hitherto.message m
join hitherto.conversation c on c.tenant = m.tenant and c.ref = m.conversation
where not m.erased and m.retracted_rev is null and m.seq >= c.view_start
"""


async def _rows(database: str, query: str) -> list[Any]:
    async with await psycopg.AsyncConnection[Any].connect(database, autocommit=True) as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def _indexed(database: str) -> None:
    async def nothing_left() -> bool:
        return await _rows(database, _STATE) == [(0, 0, 0)]

    await until(nothing_left, "all is indexed")


async def check_index(database: str) -> None:
    """Each live message has one entry, each entry one vector; segments hold what entries say, and nothing else."""
    live = set(await _rows(database, _LIVE))
    entries = await _rows(database, "select origin, place, scope, no from hitherto.search_entry where kind = 1")
    assert sorted((origin, place) for origin, place, _, _ in entries) == sorted(live)
    vectors = await _rows(database, "select scope, no from hitherto.search_vector")
    assert sorted(vectors) == sorted((scope, no) for _, _, scope, no in entries)
    packed = await _rows(
        database,
        """
        select g.scope, g.segment * 4096 + at from hitherto.search_segment g
        cross join generate_series(0, 4095) at where get_byte(g.kinds, at) > 0
        """,
    )
    stands = {(scope, below) for scope, below in await _rows(database, "select ref, packed from hitherto.search_scope")}
    limits = dict(stands)
    assert sorted(packed) == sorted((scope, no) for _, _, scope, no in entries if no < limits[scope])


def _batch(number: int) -> list[Message]:
    return [user(f"message {number} {at} speaks of the {at % 97} rivers") for at in range(200)]


async def test_kill_9_while_indexing(api: Api, crew: Crew, database: str) -> None:
    """Workers die again and again; others take over, and nothing is there twice."""
    drawn = random.Random(4)
    workers = list((await crew.workers(2, embedder_timeout=5)).values())
    chats = [api.memory.conversation(f"c-{number}", scope=SCOPE) for number in range(3)]
    for number in range(MESSAGES // 200):
        await chats[number % 3].append(*_batch(number))
        if number % 6 == 5:
            await workers.pop(drawn.randrange(2)).kill()
            workers.append(await crew.worker())
    await _indexed(database)
    await check_index(database)
    assert (await api.memory.recall("message 17 42 rivers", scope=SCOPE)).missing == ()


async def test_a_worker_that_slept_writes_nothing(api: Api, crew: Crew, database: str) -> None:
    """Its claim was taken over meanwhile."""
    first, second = (await crew.workers(2)).values()
    chat = api.memory.conversation("c", scope=SCOPE)
    for number in range(10):
        await chat.append(*_batch(number))
        sleeper = (first, second)[number % 2]
        sleeper.send(signal.SIGSTOP)
        appending = asyncio.create_task(chat.append(*_batch(100 + number)))
        await asyncio.wait([appending], timeout=lease())
        sleeper.send(signal.SIGCONT)
        try:
            await appending
        except StoreError:  # it was stopped while it held the conversation, for longer than the append waits
            await chat.append(*_batch(100 + number))
    await _indexed(database)
    await check_index(database)
    assert first.running
    assert second.running


async def test_what_is_taken_away_while_it_is_indexed(api: Api, crew: Crew, database: str) -> None:
    """Cleared, taken back and deleted while two workers index: nothing of it is left in the index."""
    await crew.workers(2)
    chats = [api.memory.conversation(f"c-{number}", scope=SCOPE) for number in range(4)]
    for number in range(24):
        chat = chats[number % 4]
        await chat.append(*_batch(number))
        match number % 4:
            case 0 if number:
                await chat.clear()
            case 1:
                await chat.pop()
            case 2 if number > 12:
                await chat.delete()
            case _:
                pass
    await _indexed(database)
    await check_index(database)
