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

from hitherto.core.digests.work import DigestOutcome, RewrittenDigest
from hitherto.core.log.frontier import DigestAction
from hitherto.core.recall.index import Key
from hitherto.store.store import Store
from tests.store.digests.stage_samples import superseded, take_back
from tests.store.recall.samples import (
    MINE,
    SPACE,
    candidates,
    found,
    having,
    indexed,
    keys_of,
    made,
    search_data,
    taken,
    vectors_of,
    waiting,
)
from tests.store.samples import (
    SCOPE,
    clear,
    dialogue,
    digested,
    fire,
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
    async def test_what_waits_is_gone(self, store: Store, way: str) -> None:
        await filled(store, way)
        await WAYS[way](store)
        await assert_gone(store, way)
        await indexed(store)
        await assert_gone(store, way)
        assert await waiting(store) == []

    @each_way
    @pytest.mark.parametrize("space", [None, SPACE], ids=["lexical", "embedded"])
    async def test_what_is_indexed_is_gone(self, store: Store, way: str, space: None) -> None:
        """Before and after the index is compacted."""
        await filled(store, way)
        await indexed(store, space=space)
        before = keys_of(await search_data(store))
        assert len(before) == 6
        await WAYS[way](store)
        await assert_gone(store, way, *before)
        await indexed(store, space=space)
        await assert_gone(store, way, *before)
        told = await search_data(store, words=["tea"], spaces=[SPACE])
        texts = {one.key: one.source.text for one in await candidates(store, keys=keys_of(told))}
        assert [texts[key] for key in having(told, "tea") if key in texts] == LEFT
        if way != "expired":  # an expiry is not written to the store
            assert texts.keys() == set(keys_of(told)), "what is put in order has nothing else"
        assert told.entries == told.embedded or space is None

    @each_way
    async def test_what_is_in_hand_gets_no_entry(self, store: Store, way: str) -> None:
        await filled(store, way)
        work = await taken(store.index)
        assert len(work.sources) == 6
        await WAYS[way](store)
        assert await store.index.add(work, made(work.sources))
        await assert_gone(store, way)
        if way != "expired":
            assert len(keys_of(await search_data(store))) == len(left(way))

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

    async def test_a_conversation_of_the_same_name_is_another_one(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        await indexed(store)
        work_before = keys_of(await search_data(store))
        await _delete(store)
        await write(store, "c", user("milk"))
        assert await waiting(store) == ["milk"]
        assert await candidates(store, keys=work_before, around=9) == []
        await indexed(store)
        assert await found(store) == ["milk"]

    @pytest.mark.parametrize("when", ["waiting", "indexed", "indexed again"])
    async def test_a_clear_that_is_taken_back_hides_nothing(self, store: Store, when: str) -> None:
        await write(store, "c", user("tea"), user("milk"))
        chunk = await digested(store, "c", 0, 1)
        await write(store, "c", rewritten=[RewrittenDigest(digest=chunk, text="of both")])
        if when != "waiting":
            await indexed(store)
        await clear(store, "c")
        assert await found(store) == []
        if when == "indexed again":
            await write(store, "c", user("sugar"))
            await indexed(store)
            await take_back(store, "c", 1)
        (hide,) = [row.id for row in await store.digests(SCOPE, "c") if row.action is DigestAction.CLEAR]
        await superseded(store, "c", hide, view_start=0)
        assert await found(store) == ["milk", "of both", "tea"]
        await indexed(store)
        assert await waiting(store) == []
        assert await found(store) == ["milk", "of both", "tea"]

    async def test_of_two_clears_one_may_be_taken_back(self, store: Store) -> None:
        for text in ("tea", "milk"):
            await write(store, "c", user(text))
            await indexed(store)
            await clear(store, "c")
        first, second = [row for row in await store.digests(SCOPE, "c") if row.action is DigestAction.CLEAR]
        await superseded(store, "c", second.id, view_start=first.end + 1)
        assert await found(store) == ["milk"]
        await indexed(store)
        assert await found(store) == ["milk"]

    @pytest.mark.parametrize("first", [False, True], ids=["waiting", "indexed"])
    async def test_a_digest_is_found_as_it_was_rewritten(self, store: Store, first: bool) -> None:
        await write(store, "c", *(user("") for _ in range(4)))
        digest = await digested(store, "c", 0, 3)
        for text in ("green tea", "black tea", "", "white tea"):
            await write(store, "c", rewritten=[RewrittenDigest(digest=digest, text=text)])
            told = await search_data(store, words=["green", "black", "white"])
            assert [one.text for one in told.waiting] == [text][: len(text)]
            assert keys_of(told) == []
            if first:
                await indexed(store)
                assert await waiting(store) == []
            assert await found(store) == [text][: len(text)]
        await indexed(store)
        told = await search_data(store, words=["green", "black", "white"])
        assert [len(having(told, word)) for word in ("green", "black", "white")] == [0, 0, 1]

    async def test_what_was_rewritten_in_hand_waits_again(self, store: Store) -> None:
        """Nothing of its old text gets into the index."""
        await write(store, "c", *(user("") for _ in range(2)))
        digest = await digested(store, "c", 0, 1)
        await write(store, "c", rewritten=[RewrittenDigest(digest=digest, text="a secret")])
        work = await taken(store.index)
        assert [one.text for one in work.sources] == ["a secret"]
        await write(store, "c", rewritten=[RewrittenDigest(digest=digest, text="nothing")])
        assert await store.index.add(work, made(work.sources))
        await store.index.release(work)
        assert having(await search_data(store, words=["secret"]), "secret") == {}
        await indexed(store)
        told = await search_data(store, words=["secret", "nothing"])
        assert (len(having(told, "secret")), len(having(told, "nothing"))) == (0, 1)

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

    async def test_a_digest_goes_with_what_it_rests_on(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await digested(store, "c", 0, 1)
        made_id = await fire(store, "c", 0, 3, stage="another stage")
        await write(store, "c", outcomes=[DigestOutcome(digest=made_id, text="of four", tokens=2)])
        await indexed(store)
        assert "of four" in await found(store)
        await take_back(store, "c", 1)
        assert "of four" not in await found(store)
        await indexed(store)
        assert "of four" not in await found(store)
