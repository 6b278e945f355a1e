"""Removal from search: what is erased, taken back, cleared, deleted or expired is never found
again, whether it is indexed, waits to be, or is just being indexed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.core.digests.digest import RewrittenDigest
from hitherto.core.recall.index import Key
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.recall.samples import (
    MINE,
    SPACE,
    candidates,
    found,
    indexed,
    search_data,
    taken,
    vectors_of,
    waiting,
)
from tests.store.samples import (
    SCOPE,
    clear,
    digested,
    log_of,
    user,
    write,
)

OTHER = replace(SCOPE, tenant="measured")


async def _erase(store: Store) -> None:
    await write(store, "c", erase=((1, 2),))


async def _take_back(store: Store) -> None:
    await take_back(store, "c", 2)


async def _clear(store: Store) -> None:
    await clear(store, "c")


async def _delete(store: Store) -> None:
    async with store.write(SCOPE, "c") as unit:
        await unit.delete()


async def _expire(store: Store) -> None:
    ends = [one.message.expires_at for one in await log_of(store, "c") if one.message.expires_at is not None]
    await asyncio.sleep((max(ends) - datetime.now(UTC)).total_seconds() + 0.1)


async def lifetime(store: Store) -> timedelta:
    """How long a message has to last so that it is indexed and found before it expires, as busy as this machine is."""
    began = time.monotonic()
    await write(store, "c", user("tea"), scope=OTHER)
    await indexed(store)
    assert await found(store, replace(MINE, scope=OTHER)) == ["tea"]
    async with store.write(OTHER, "c") as unit:
        await unit.delete()
    return timedelta(seconds=max(1.0, 20 * (time.monotonic() - began)))


WAYS: dict[str, Callable[[Store], Awaitable[None]]] = {
    "erased": _erase,
    "taken back": _take_back,
    "cleared": _clear,
    "deleted": _delete,
    "expired": _expire,
}

each_way = pytest.mark.parametrize("way", WAYS)


async def filled(store: Store, way: str) -> None:
    """Write three messages in "c", of which `way` removes at least the last two, and three in "d", which must stay."""
    soon = datetime.now(UTC) + await lifetime(store) if way == "expired" else None
    await write(store, "c", user("first"), *(replace(user(f"tea {n}"), expires_at=soon) for n in (1, 2)))
    await write(store, "d", *(user(f"tea {n} of d") for n in range(3)))


LEFT = ["tea 0 of d", "tea 1 of d", "tea 2 of d"]


def left(way: str) -> list[str]:
    return LEFT if way in ("cleared", "deleted") else ["first", *LEFT]


async def assert_gone(store: Store, way: str, *before: Key) -> None:
    """Assert that what `way` removes neither waits nor is found, not even by its key or as a neighbor."""
    assert await found(store) == left(way)
    assert set(await waiting(store)) <= set(left(way))
    told = await candidates(store, keys=before, space=SPACE, around=9)
    assert {one.source.text for one in told} <= set(left(way))
    assert {one.key for one in told} <= set(before)


class TestSearchRemoval:
    @each_way
    async def test_what_is_being_embedded_gets_no_vector(self, store: Store, way: str) -> None:
        await filled(store, way)
        await indexed(store)
        work = await taken(store.index, space=SPACE)
        assert len(work.unembedded) == 6
        await WAYS[way](store)
        assert await store.index.embed(work, SPACE, vectors_of(work))
        assert await store.index.compact_index(work)
        await store.index.release(work)
        await assert_gone(store, way)
        told = await candidates(store, space=SPACE)
        assert [one.source.text for one in told if one.passages[0].vector is None] == []
        of_all = await search_data(store, spaces=[SPACE])
        assert of_all.embedded <= of_all.entries
        assert sorted(one.source.text for one in told) == left(way)

    async def test_what_was_rewritten_while_it_is_embedded_has_no_old_vector(self, store: Store) -> None:
        await write(store, "c", *(user("") for _ in range(2)))
        digest = await digested(store, "c", 0, 1)
        await write(store, "c", rewritten=[RewrittenDigest(digest=digest, text="a secret")])
        await indexed(store)
        work = await taken(store.index, space=SPACE)
        assert [one.text for one in work.unembedded] == ["a secret"]
        await write(store, "c", rewritten=[RewrittenDigest(digest=digest, text="nothing")])
        assert await store.index.embed(work, SPACE, vectors_of(work))
        await store.index.release(work)
        await indexed(store)
        (told,) = await candidates(store, space=SPACE)
        assert (told.source.text, told.passages[0].vector) == ("nothing", None)
