"""What an indexing worker has looked at, and what became of it before the worker comes back with entries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from hitherto.core.digests.digest import DigestOutcome
from hitherto.core.log.frontier import DigestAction
from hitherto.errors import StoreError
from hitherto.store.store import Store
from tests.patience import PATIENCE
from tests.store.digests.stage_samples import stage_row, superseded
from tests.store.recall.samples import SPACE, found, indexed, made, taken, waiting
from tests.store.samples import SCOPE, assistant, clear, user, write

TEXTS = ["milk", "sugar", "tea"]


@pytest.fixture
async def store(database: str) -> AsyncIterator[Store]:
    made = Store(database)
    await made.open()
    yield made
    await made.aclose()


@pytest.mark.parametrize("before", [True, False])
async def test_what_a_clear_hid_for_a_while_is_indexed(store: Store, before: bool) -> None:
    """A worker that looked at it meanwhile, when it did not belong in an index, leaves it waiting; one that looked
    before may write its entries, or leave it."""
    await write(store, "c", user("tea"), assistant("milk"))
    (digest,) = (await write(store, "c", fire=[stage_row(DigestAction.SUMMARIZE, 0, 1, completed=False)])).fired
    await write(store, "c", outcomes=[DigestOutcome(digest=digest, text="sugar", tokens=1)])
    work = await taken(store.index) if before else None
    await clear(store, "c")
    cleared = next(row.id for row in await store.digests(SCOPE, "c") if row.action is DigestAction.CLEAR)
    work = work or await taken(store.index)
    assert [one.text for one in work.sources] == (["tea", "milk", "sugar"] if before else [])
    assert await found(store) == []
    await superseded(store, "c", cleared, view_start=0)
    assert await store.index.add(work, made(work.sources))
    assert await found(store) == TEXTS
    await store.index.release(work)
    await indexed(store, space=SPACE)
    assert (await found(store), await waiting(store)) == (TEXTS, [])


async def test_where_what_is_to_be_done_cannot_be_read(database: str) -> None:
    store = Store(database, patience=0.2)
    await store.open()
    await write(store, "c", user("tea"))
    async with await psycopg.AsyncConnection.connect(database) as other:
        # Read for every claim, but not for claiming.
        await other.execute("alter table hitherto.passage rename to mislaid")
        await other.commit()
        with pytest.raises(StoreError, match=r"hitherto\.passage"):
            await store.index.take(space=SPACE, lease=timedelta(minutes=5), limit=10)
        await other.execute("alter table hitherto.mislaid rename to passage")
        await other.commit()
    async with asyncio.timeout(PATIENCE):
        work = await taken(store.index)
    assert [one.text for one in work.sources] == ["tea"]
    await store.aclose()
