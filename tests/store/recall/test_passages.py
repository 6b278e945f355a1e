"""The search index: texts that are indexed by their passages."""

from __future__ import annotations

import numpy as np
import pytest

from hitherto.core.recall.filter import CODES, FURTHER, EntryKind
from hitherto.store.store import Store
from tests.store.recall.samples import (
    SPACE,
    block_of,
    candidates,
    having,
    indexed,
    keys_of,
    search_data,
    taken,
    vector_of,
    vectors_of,
)
from tests.store.samples import log_of, user, write

CUT = 6
TEXTS = ("green tea, tea! oolong", "milk", "\n oolong tea")
PASSAGES = ("green ", "tea, t", "ea! oo", "long", "milk", "\n oolo", "ng tea")

PACKED = 9_000
"""Characters, each a passage: more than the PostgreSQL store packs into two segments."""


class TestSearchPassage:
    async def test_a_long_text_has_an_entry_for_each_passage(self, store: Store) -> None:
        await write(store, "c", *map(user, TEXTS))
        await indexed(store, cut=CUT)
        told = await search_data(store, words=["milk", "green"])
        keys = keys_of(told)
        assert [no - keys[0][1] for _, no in keys] == list(range(len(PASSAGES)))
        message = CODES[EntryKind.MESSAGE]
        kinds = [int(block.kinds[at]) for block, at in (block_of(told, key) for key in keys)]
        assert kinds == [message + FURTHER * (at not in (0, 4, 5)) for at in range(len(PASSAGES))]
        assert having(told, "green") == {keys[0]: 1}
        assert having(told, "milk") == {keys[4]: 1}
        assert told.entries == len(PASSAGES)
        assert told.waiting == ()

    @pytest.mark.parametrize("count", [2, len(PASSAGES)], ids=["some have one", "all have one"])
    async def test_each_passage_has_its_vector(self, store: Store, count: int) -> None:
        await write(store, "c", *map(user, TEXTS))
        await indexed(store, cut=CUT)
        work = await taken(store.index, space=SPACE, limit=count)
        assert tuple(one.text for one in work.unembedded) == PASSAGES[:count]
        assert await store.index.embed(work, SPACE, vectors_of(work))
        await store.index.release(work)
        told = await candidates(store, space=SPACE)
        assert [one.source.text for one in told] == list(TEXTS)
        vectors = [(one.source.text[each.start : each.end], each.vector) for one in told for each in one.passages]
        assert tuple(text for text, _ in vectors) == PASSAGES
        for text, vector in vectors[:count]:
            assert vector is not None
            assert np.allclose(vector, vector_of(text), atol=1e-3)
        assert all(vector is None for _, vector in vectors[count:])

    async def test_any_passage_leads_to_the_whole_once(self, store: Store) -> None:
        await write(store, "c", *map(user, TEXTS))
        await indexed(store, cut=CUT)
        keys = keys_of(await search_data(store))
        for asked in (keys[:1], keys[3:4], keys[1:4]):
            (one,) = await candidates(store, keys=asked)
            assert one.source.text == TEXTS[0]
            assert [(one.scope, passage.no) for passage in one.passages] == keys[:4]
        near = await candidates(store, keys=keys[4:5], around=1)
        assert [one.source.text for one in near] == list(TEXTS)

    @pytest.mark.parametrize("compact_index", [True, False])
    async def test_passages_of_one_text_stay_together_in_segments(self, store: Store, *, compact_index: bool) -> None:
        await write(store, "c", user("tea"), user("x" * PACKED), user("milk"))
        await indexed(store, cut=1, compact_index=compact_index)
        told = await search_data(store)
        columns = np.concatenate([block.kinds[block.kinds > 0] for block in told.blocks])
        begins = np.flatnonzero(columns < FURTHER)
        assert begins.tolist() == [0, 3, 3 + PACKED]
        assert len(columns) == 3 + PACKED + 4
        last = await candidates(store, keys=keys_of(told)[-1:])
        assert [one.source.place for one in last] == [(await log_of(store, "c"))[-1].seq]
