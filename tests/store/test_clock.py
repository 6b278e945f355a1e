"""What ends with its time, and what a clock that was put back leaves behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.store.store import Store
from tests.store.digests.samples import begun
from tests.store.recall.samples import candidates, found, indexed, keys_of, search_data
from tests.store.samples import HOUR, SCOPE, claimed, dialogue, head_of, user, write
from tests.times import Time, time_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def time(store: Store) -> Time:
    return time_of(store)


async def test_what_was_put_off_is_due_after_its_wait_and_an_hour_at_the_most(store: Store, time: Time) -> None:
    work = await claimed(store, await begun(store))
    await store.put_off(work, wait=5 * HOUR)
    assert (await store.backlog()).put_off == 1
    await time.pass_time(HOUR / 2)
    assert await store.claim(SCOPE.tenant, work.digest.id, lease=MINUTE) is None
    await time.pass_time(HOUR / 2)
    assert (await store.backlog()).due == 1
    await claimed(store, work.digest.id)


async def test_rest_ends(store: Store, time: Time) -> None:
    await write(store, "c", *dialogue(1), failures=2, resume_at=datetime.now(UTC) + HOUR)
    assert ((await head_of(store, "c")).resting, (await store.backlog()).resting) == (True, 1)
    await time.pass_time(HOUR)
    assert ((await head_of(store, "c")).resting, (await store.backlog()).resting) == (False, 0)


async def test_what_is_indexed_ends_with_its_time(store: Store, time: Time) -> None:
    await write(store, "c", replace(user("tea"), expires_at=datetime.now(UTC) + HOUR), user("milk"))
    await indexed(store)
    assert await found(store) == ["milk", "tea"]
    keys = keys_of(await search_data(store))
    await time.pass_time(HOUR)
    assert [one.source.text for one in await candidates(store, keys=keys, around=1)] == ["milk"]
    assert await found(store) == ["milk"]
