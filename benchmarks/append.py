"""What an append costs beside the two bare rows it writes."""

from __future__ import annotations

from random import Random
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader

from benchmarks.fleet import hands, value
from benchmarks.ground import Ground, memory_on, turn
from benchmarks.measure import Side, in_turns
from benchmarks.report import Bar, Findings, ratio
from hitherto import Scope, none, sliding_window

_BAR = Bar(limit=2.5)
_SCOPE = Scope(tenant="tenant", user="user", agent="bench")
_TEXT = 36
_LEFT = "select count(*) from hitherto.digest where status = 'processing'"


async def run(ground: Ground) -> Findings:
    """Append two messages with a key ÷ the same two rows by bare psycopg in a transaction of their own."""
    random, warm_up, repetitions = Random(1), ground.size(100, quick=3), ground.size(500, quick=10)
    turns = [turn(random, _TEXT) for _ in range(warm_up + repetitions)]
    async with (
        ground.database() as url,
        ground.admin(url) as admin,
        memory_on(url, worker=False) as memory,
        hands(("work", url)),
    ):

        async def made() -> None:
            await _at_rest(admin)

        plain = memory.conversation("plain", scope=_SCOPE, policy=none())
        sliding = memory.conversation("sliding", scope=_SCOPE, policy=sliding_window())
        for number, pair in enumerate(turns[:warm_up]):
            await plain.append(*pair, key=f"before {number}")
            await sliding.append(*pair, key=f"before {number}")
            await made()
        await ground.settle(url)
        await admin.execute("create schema bare authorization hitherto")
        async with await psycopg.AsyncConnection[Any].connect(url, autocommit=True) as connection:
            bare = await Bare.on(connection)
            own, slid, rows, piped = await in_turns(
                [
                    Side("append, policy none", lambda n: plain.append(*turns[n], key=f"turn {n}")),
                    Side("append, sliding_window", lambda n: sliding.append(*turns[n], key=f"turn {n}"), made),
                    Side("two bare rows", bare.one_by_one),
                    Side("two bare rows in one pipeline", bare.pipelined),
                ],
                repetitions=repetitions,
                warm_up=warm_up,
            )
    letters = sum(len(message.text) for pair in turns for message in pair) / (2 * len(turns))
    return Findings(
        [ratio(own, rows, bar=_BAR), ratio(slid, rows, bar=_BAR), ratio(own, piped), ratio(slid, piped)],
        [
            f"{repetitions} appends a side, messages of {letters:.0f} characters; fsync is on for all sides, on one "
            "server and one disk. The bare rows have the log's columns and primary key, and no other index; they are "
            "written by begin, insert, insert, commit, each awaited, or all four sent in one pipeline.",
            "sliding_window's append writes the digest that it sets off; a worker process makes the "
            "digest before the next side's turn.",
        ],
    )


async def _at_rest(admin: psycopg.AsyncConnection[Any]) -> None:
    """Returns when the digest is made, and a little later. It is asked
    without a pause: what is timed after one finds the processor's caches cold."""
    empty = 0
    while empty < 5:
        empty = 0 if await value(admin, _LEFT) else empty + 1


class Bare:
    """Two rows of the log, written again and again under new seqs to a table without the log's other indexes."""

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], insert: sql.Composed, rows: list[dict[str, Any]]
    ) -> None:
        self._connection, self._insert, self._rows = connection, insert, rows
        self._next = 0

    @classmethod
    async def on(cls, connection: psycopg.AsyncConnection[Any]) -> Bare:
        """Makes the table like the log, and takes the rows from it, as Python values."""
        await connection.execute("create table bare.message (like hitherto.message including defaults)")
        await connection.execute("alter table bare.message add primary key (tenant, conversation, seq)")
        connection.adapters.register_loader("json", TextLoader)
        cursor = connection.cursor(row_factory=dict_row)
        rows = await (
            await cursor.execute("select * from hitherto.message order by conversation, seq limit 2")
        ).fetchall()
        names = list(rows[0])
        insert = sql.SQL("insert into bare.message ({}) values ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.SQL(", ").join(map(sql.Placeholder, names))
        )
        return cls(connection, insert, rows)

    async def one_by_one(self, _: int) -> None:
        execute = self._connection.execute
        await execute("begin")
        for row in self._renumbered():
            await execute(self._insert, row)
        await execute("commit")

    async def pipelined(self, _: int) -> None:
        async with self._connection.pipeline():
            await self.one_by_one(0)

    def _renumbered(self) -> list[dict[str, Any]]:
        self._next += 2
        return [{**row, "seq": self._next + at} for at, row in enumerate(self._rows)]
