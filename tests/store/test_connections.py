"""What a connection holds while nobody uses it."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

from psycopg import AsyncCursor
from psycopg.errors import DivisionByZero

from hitherto.store.store import Store
from tests.store.samples import SCOPE, user, write

LARGE = 15_000_000
"""Characters of a message: about as many as a request may have."""


async def test_it_holds_nothing_of_what_was_written_or_read(store: Store) -> None:
    await write(store, "c", user("Hello."))
    gc.collect()
    tracemalloc.start()
    try:
        await write(store, "c", user("a" * LARGE))
        await store.head(SCOPE, "c")
        await store.backlog()  # it gets the connection once what was at work with it has given it back
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    cursors = [one for one in gc.get_objects() if isinstance(one, AsyncCursor) and not one.connection.closed]
    assert [one for one in cursors if one.pgresult is not None] == []
    assert held < LARGE / 10


async def test_a_pipeline_ends_with_its_sync(store: Store, tmp_path: Path) -> None:
    """After that, a pooler may have given the server's connection to another client: what is sent then takes one. The
    statements sleep, so that their results are still to come when the Sync is sent."""
    trace = tmp_path / "trace"
    async with store._connections.borrowed() as connection:
        with trace.open("w") as file:
            connection.pgconn.trace(file.fileno())
            async with connection.pipeline():
                late = await connection.execute("select pg_sleep(0.1), %s", ["a" * LARGE])
            with suppress(DivisionByZero):
                async with connection.pipeline():
                    await connection.execute("select pg_sleep(0.1)")
                    await connection.execute("select 1 / 0")
            async with connection.transaction(), connection.pipeline():
                await connection.execute("select pg_sleep(0.1)")
            connection.pgconn.untrace()
        assert await late.fetchone() == ("", "a" * LARGE)
    sent = [line.split("\t")[3] for line in trace.read_text().splitlines() if line.split("\t")[1] == "F"]
    assert sent.count("Sync") == 3
    assert "Flush" not in sent


async def test_only_the_task_in_a_block_ends_it(store: Store) -> None:
    """The Agents SDK's `run_sync` closes all async generators that a loop has seen begin, and the loop goes on."""
    within, closed = asyncio.Event(), asyncio.Event()

    async def use() -> tuple[object, ...] | None:
        async with store.write(SCOPE, "c") as unit, unit._connection.transaction(), unit._connection.pipeline():
            within.set()
            await closed.wait()
            return await (await unit._connection.execute("select 2")).fetchone()

    begun: list[AsyncGenerator[object]] = []
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=begun.append)
    try:
        using = asyncio.create_task(use())
        await within.wait()
    finally:
        sys.set_asyncgen_hooks(firstiter=hooks.firstiter)
    await asyncio.gather(*[one.aclose() for one in begun])
    closed.set()
    assert await using == (2,)
