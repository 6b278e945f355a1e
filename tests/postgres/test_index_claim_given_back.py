"""A claim on an index that cannot be used is given back at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from hitherto.errors import StoreError
from hitherto.store.store import Store
from tests.patience import PATIENCE
from tests.store.recall.samples import SPACE, taken
from tests.store.samples import user, write


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
