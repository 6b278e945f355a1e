"""Vectors in the search index: several spaces side by side, each filled in the background."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.index import TEXT
from hitherto.core.recall.vectors import Space
from hitherto.store.store import Store
from tests.store.recall.samples import (
    OTHER_SPACE,
    SPACE,
    block_of,
    candidates,
    indexed,
    keys_of,
    made,
    search_data,
    taken,
    vector_of,
    vectors_of,
)
from tests.store.samples import HOUR, user, write

TEXTS = ["tea", "milk", "sugar", "honey"]


async def embedded(store: Store, space: Space, count: int) -> None:
    """Write the vectors of the next `count` entries."""
    work = await taken(store.index, space=space, limit=count)
    assert len(work.unembedded) == count
    assert await store.index.embed(work, space, vectors_of(work, space))
    await store.index.release(work)


async def assert_embedded(store: Store, spaces: Sequence[Space], space: Space | None, count: int) -> None:
    """Assert that a search over `spaces` chooses `space`, in which `count` entries have their vectors."""
    told = await search_data(store, spaces=spaces)
    assert (told.space, told.embedded, told.entries) == (space, count, len(TEXTS))
    texts = {one.key: one.source.text for one in await candidates(store)}
    coded = 0
    for key, text in texts.items():
        block, at = block_of(told, key)
        if block.coded is not None and block.coded[at]:
            assert space is not None
            assert block.codes is not None
            assert np.array_equal(block.codes[at], codes_of(vector_of(text, space)[np.newaxis])[0])
            coded += 1
    assert coded == count
    vectors = [one for one in await candidates(store, space=space) if one.passages[0].vector is not None]
    assert len(vectors) == count
    for one in vectors:
        assert space is not None
        assert one.passages[0].vector is not None
        assert one.passages[0].vector.dtype == np.float32
        assert np.allclose(one.passages[0].vector, vector_of(one.source.text, space), atol=1e-3)


class TestSearchVector:
    async def test_without_vectors_there_is_no_space(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS))
        await indexed(store)
        await assert_embedded(store, [SPACE, OTHER_SPACE], None, 0)
        assert all(block.codes is None and block.coded is None for block in (await search_data(store)).blocks)

    async def test_entries_get_vectors_one_after_the_other(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS))
        await indexed(store)
        for done in (1, 2, 4):
            await embedded(store, SPACE, 2 if done == 4 else 1)
            await assert_embedded(store, [SPACE], SPACE, done)
            await assert_embedded(store, [], None, 0)
        assert await store.index.take(space=SPACE, lease=HOUR, limit=9) is None
        assert (await store.index.backlog(SPACE)).unembedded == 0

    async def test_the_old_space_answers_until_the_new_one_is_whole(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS))
        await indexed(store, space=SPACE)
        both = [OTHER_SPACE, SPACE]
        await assert_embedded(store, both, SPACE, 4)
        for _ in range(2):
            await embedded(store, OTHER_SPACE, 1)
            await assert_embedded(store, both, SPACE, 4)
            await assert_embedded(
                store, [OTHER_SPACE], OTHER_SPACE, (await search_data(store, spaces=[OTHER_SPACE])).embedded
            )
        await indexed(store, space=OTHER_SPACE)
        await assert_embedded(store, both, OTHER_SPACE, 4)
        await assert_embedded(store, both[::-1], SPACE, 4)

    async def test_of_unfinished_spaces_the_fuller_answers(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS))
        await indexed(store)
        await embedded(store, SPACE, 1)
        await embedded(store, OTHER_SPACE, 2)
        await assert_embedded(store, [SPACE, OTHER_SPACE], OTHER_SPACE, 2)
        await embedded(store, SPACE, 1)
        await assert_embedded(store, [SPACE, OTHER_SPACE], SPACE, 2)
        await assert_embedded(store, [OTHER_SPACE, SPACE], OTHER_SPACE, 2)

    async def test_what_is_not_embedded_yet_is_found(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS[:3]))
        await indexed(store, space=SPACE)
        await write(store, "c", user(TEXTS[3]))
        await indexed(store)
        await assert_embedded(store, [SPACE], SPACE, 3)
        assert (await store.index.backlog(SPACE)).unembedded == 1

    async def test_nothing_to_be_told_by_is_zeros(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        await indexed(store)
        work = await taken(store.index, space=SPACE)
        assert await store.index.embed(work, SPACE, np.zeros((1, SPACE.dimensions), np.float32))
        await store.index.release(work)
        (told,) = await candidates(store, space=SPACE)
        assert told.passages[0].vector is not None
        assert not told.passages[0].vector.any()
        assert (await search_data(store, spaces=[SPACE])).embedded == 1

    async def test_texts_to_be_embedded_are_whole(self, store: Store) -> None:
        long = "tea " * TEXT
        await write(store, "c", user(long), user("milk"))
        await indexed(store)
        work = await taken(store.index, space=SPACE)
        numbers = [no for _, no in keys_of(await search_data(store))]
        assert [(one.no, one.text) for one in work.unembedded] == list(zip(numbers, [long, "milk"], strict=True))
        assert work.embedded_to > numbers[-1]

    async def test_embedding_again_changes_nothing(self, store: Store) -> None:
        await write(store, "c", *(user(text) for text in TEXTS))
        work = await taken(store.index, space=SPACE)
        assert await store.index.add(work, made(work.sources))
        following = await store.index.more(work, space=SPACE, lease=HOUR, limit=9)
        assert following is not None
        for _ in range(2):
            assert await store.index.embed(following, SPACE, vectors_of(following))
        await store.index.release(following)
        await assert_embedded(store, [SPACE], SPACE, 4)

    async def test_many_vectors(self, store: Store) -> None:
        """Each entry keeps its vector before and after the index is compacted, and with entries removed."""
        for start in range(0, 5_000, 1_000):
            await write(store, "c", *(user(f"tea {at}") for at in range(start, start + 1_000)))
        await indexed(store, space=SPACE)
        await write(store, "c", erase=((10, 20), (4_090, 4_100)))
        for _ in range(2):
            told = await search_data(store, spaces=[SPACE])
            keys = keys_of(told)
            assert 5_000 - 22 <= len(keys) <= 5_000
            for one in await candidates(store, keys=keys[::100] + keys[4_050:4_070] + keys[-1:], space=SPACE):
                block, at = block_of(told, one.key)
                vector = vector_of(one.source.text)
                assert one.passages[0].vector is not None
                assert np.allclose(one.passages[0].vector, vector, atol=1e-3)
                assert block.codes is not None
                assert block.coded is not None
                assert block.coded[at]
                assert np.array_equal(block.codes[at], codes_of(vector[np.newaxis])[0])
            await indexed(store, space=SPACE)
        assert len(keys_of(await search_data(store))) == 5_000 - 22
