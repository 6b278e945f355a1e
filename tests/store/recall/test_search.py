"""The search index: what is indexed, how it is found, and what a candidate has."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hitherto.core.recall.filter import CODES, EntryKind
from hitherto.core.recall.index import TEXT, SearchData
from hitherto.core.recall.terms import analyzed
from hitherto.core.scope import LONGEST_NAME
from hitherto.store.store import Store
from tests.store.recall.samples import (
    MINE,
    block_of,
    candidates,
    having,
    indexed,
    keys_of,
    made,
    search_data,
    taken,
)
from tests.store.samples import (
    SCOPE,
    assistant,
    call,
    head_of,
    log_of,
    result,
    user,
    write,
)

MANY = 5_000
"""More entries than the PostgreSQL store packs into one segment."""


class TestSearch:
    async def test_an_empty_store_has_nothing(self, store: Store) -> None:
        assert await search_data(store, words=["tea"]) == SearchData()
        assert await candidates(store, keys=[(1, 0)], around=2) == []
        load = await store.index.backlog(None)
        assert (load.waiting, load.unembedded) == (0, 0)

    async def test_of_what_waits_the_newest_is_told_oldest_first(self, store: Store) -> None:
        for at in range(3):
            await write(store, "c", user(f"{at} in c"))
            await write(store, "d", user(f"{at} in d"))
        told = [one.text for one in (await search_data(store, limit=3)).waiting]
        assert told == ["1 in d", "2 in c", "2 in d"]
        assert (await search_data(store, limit=0)).waiting == ()
        work = await taken(store.index, limit=2)
        assert [one.text for one in work.sources] in (["0 in c", "0 in d"], ["0 in c", "1 in c"])

    async def test_what_is_indexed_is_in_blocks(self, store: Store) -> None:
        await write(store, "c", user("tea, tea and more tea"), assistant("milk"), user("tea with milk"))
        await indexed(store)
        told = await search_data(store, words=["tea", "milk", "sugar"])
        assert told.waiting == ()
        assert told.entries == 3
        first, second, third = keys_of(told)
        assert len({scope for scope, _ in (first, second, third)}) == 1
        assert first < second < third
        assert having(told, "tea") == {first: 3, third: 1}
        assert having(told, "milk") == {second: 1, third: 1}
        assert having(told, "sugar") == {}
        for key, text in zip(
            (first, second, third), [one.message.text for one in await log_of(store, "c")], strict=True
        ):
            block, at = block_of(told, key)
            assert block.lengths[at] == analyzed(text).length
            assert block.kinds[at] == CODES[EntryKind.MESSAGE]
        assert (await store.index.backlog(None)).waiting == 0

    async def test_columns_tell_where_entries_come_from(self, store: Store) -> None:
        await write(store, "d", user("elsewhere"))
        await write(store, "c", user("first"), user("second"))
        await indexed(store)
        told = await search_data(store, replace(MINE, exclude_conversation="nowhere"))
        refs = {name: (await head_of(store, name)).ref for name in "cd"}
        logs = {name: await log_of(store, name) for name in "cd"}
        expected = {(refs[name], one.seq, one.created_at.timestamp()) for name, log in logs.items() for one in log}
        at = [block_of(told, key) for key in keys_of(told)]
        columns = [(block.origins, block.places, block.times, place) for block, place in at]
        for column in columns:
            assert all(one is not None for one in column)
        rows = {
            (int(o[n]), int(p[n]), float(t[n]))
            for o, p, t, n in columns
            if o is not None and p is not None and t is not None
        }
        assert {row[:2] for row in rows} == {row[:2] for row in expected}
        assert sorted(row[2] for row in rows) == pytest.approx(sorted(row[2] for row in expected), abs=1e-5)

    async def test_a_candidate_is_told_whole(self, store: Store) -> None:
        await write(store, "c", user("green tea"), assistant("with milk?"))
        sources = (await search_data(store)).waiting
        await indexed(store)
        told = await candidates(store)
        assert tuple(one.source for one in told) == sources
        assert [one.key for one in told] == keys_of(await search_data(store))
        assert [one.passages[0].vector for one in told] == [None, None]

    @pytest.mark.parametrize(
        ("name", "author"),
        [
            pytest.param("Ann", "Ann", id="name"),
            pytest.param("A" * 500, "A" * LONGEST_NAME, id="long"),
            pytest.param("A\x00\ud800", "A\ufffd\ufffd", id="odd"),
            pytest.param(" \t", None, id="blank"),
            pytest.param("", None, id="empty"),
            pytest.param(7, None, id="number"),
            pytest.param({"name": "Ann"}, None, id="object"),
            pytest.param(None, None, id="null"),
        ],
    )
    async def test_the_author_is_the_name_in_the_item(self, store: Store, name: object, author: str | None) -> None:
        message = user("hello")
        await write(store, "c", replace(message, raw=json.dumps({**message.payload, "name": name})))
        (source,) = (await search_data(store)).waiting
        assert source.author == author
        await indexed(store)
        (told,) = await candidates(store)
        assert told.source.author == author

    async def test_the_name_of_a_tool_is_no_author(self, store: Store) -> None:
        answer = result("1", "hello")
        await write(store, "c", call("1"), replace(answer, raw=json.dumps({**answer.payload, "name": "look_up"})))
        assert [one.author for one in (await search_data(store)).waiting] == [None]
        await indexed(store)
        assert [one.source.author for one in await candidates(store)] == [None]

    async def test_texts_of_candidates_are_cut(self, store: Store) -> None:
        long = "wörd " * TEXT
        await write(store, "c", user(long), user("short"))
        work = await taken(store.index)
        assert [one.text for one in work.sources] == [long, "short"]
        assert await store.index.add(work, made(work.sources))
        await store.index.release(work)
        assert [one.source.text for one in await candidates(store)] == [long[:TEXT], "short"]

    async def test_numbers_of_entries_are_never_given_again(self, store: Store) -> None:
        seen: set[tuple[int, int]] = set()
        for _ in range(3):
            await write(store, "c", user("tea"), user("milk"))
            await indexed(store)
            keys = set(keys_of(await search_data(store)))
            assert len(keys) == 2
            assert not keys & seen
            seen |= keys
            async with store.write(SCOPE, "c") as unit:
                await unit.delete()

    async def test_many_entries(self, store: Store) -> None:
        """The same is found before and after the index is compacted, and with entries removed."""
        for start in range(0, MANY, 500):
            await write(store, "c", *(user(f"tea {at} n{at % 7}") for at in range(start, start + 500)))
        await indexed(store, limit=700, compact_index=False)
        before = await search_data(store, words=["tea", "n3", "4711"])
        assert len(keys_of(before)) == MANY
        await indexed(store, limit=700)
        after = await search_data(store, words=["tea", "n3", "4711"])
        for word, count in (("tea", MANY), ("n3", MANY // 7), ("4711", 1)):
            assert having(after, word) == having(before, word)
            assert len(having(after, word)) == count
        at = sorted(keys_of(after))
        assert at == sorted(keys_of(before))
        for place in (0, 4_095, 4_096, MANY - 1):
            (told,) = await candidates(store, keys=[at[place]])
            assert told.source.text == f"tea {place} n{place % 7}"
        await write(store, "c", erase=((10, 4_097),))
        left = at[:10] + at[4_098:]
        for _ in range(2):
            told = await candidates(store)
            assert [one.source.start for one in told] == [*range(10), *range(4_098, MANY)]
            assert having(await search_data(store, words=["tea"]), "tea").keys() >= set(left)
            await indexed(store)
        assert having(await search_data(store, words=["tea"]), "tea").keys() == set(left)
        assert [one.source.start for one in await candidates(store, keys=[at[4_098]], around=3)] == [
            4_098,
            4_099,
            4_100,
            4_101,
        ]

    async def test_a_long_text_has_a_length(self, store: Store) -> None:
        await write(store, "c", user("tea " * 100_000))
        await indexed(store)
        told = await search_data(store, words=["tea"])
        ((key, count),) = having(told, "tea").items()
        block, at = block_of(told, key)
        assert (count, int(block.lengths[at])) == (255, 2**16 - 1)
        assert block.lengths.dtype == np.uint16
