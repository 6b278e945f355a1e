"""What a connection holds while nobody uses it."""

from __future__ import annotations

import gc
import tracemalloc

from psycopg import AsyncCursor

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
