"""The filters of a search, and the neighbors of a candidate."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hitherto.core.documents import Passage
from hitherto.core.recall.filter import EntryKind
from hitherto.store.store import Store
from tests.store.documents.test_documents import NOTE
from tests.store.recall.samples import MINE, candidates, indexed, keys_of, search_data, waiting
from tests.store.recall.test_documents import DIGESTS, PASSAGES, archived, chunked
from tests.store.samples import SCOPE, dialogue, head_of, log_of, user, write


class TestSearchFilter:
    async def test_neighbours_are_messages_of_the_same_conversation(self, store: Store) -> None:
        for name in ("b", "c", "d"):
            await write(store, name, *(user(f"{at} in {name}") for at in range(9)))
        await write(store, "c", erase=((5, 5),))
        await indexed(store)
        (key,) = [one.key for one in await candidates(store) if one.source.text == "4 in c"]
        for around, seqs in ((0, [4]), (1, [3, 4]), (2, [2, 3, 4, 6]), (100, [0, 1, 2, 3, 4, 6, 7, 8])):
            near = await candidates(store, keys=[key], around=around)
            assert [one.source.text for one in near] == [f"{seq} in c" for seq in seqs]
        both = [one.key for one in await candidates(store) if one.source.text in ("7 in c", "8 in c")]
        near = await candidates(store, keys=[*both, key, *both], around=1)
        assert [one.source.text for one in near] == [f"{seq} in c" for seq in (3, 4, 6, 7, 8)]

    async def test_neighbours_are_only_what_is_wanted(self, store: Store) -> None:
        await write(store, "c", *(user(f"{at}") for at in range(6)))
        await indexed(store)
        keys = keys_of(await search_data(store))
        criteria = replace(MINE, conversation="c", as_of=3, hidden={"c": 3})
        near = await candidates(store, criteria, keys=[keys[2]], around=9)
        assert [one.source.text for one in near] == ["0", "1", "2"]
        assert await candidates(store, criteria, keys=[keys[4]], around=9) == []

    async def test_filters_of_conversations(self, store: Store) -> None:
        for name in "abc":
            await write(store, name, user(f"0 in {name}"), user(f"1 in {name}"))
        await indexed(store)
        everything = [f"{seq} in {name}" for seq in (0, 1) for name in "abc"]
        for criteria, texts in (
            (MINE, everything),
            (replace(MINE, conversation="b"), ["0 in b", "1 in b"]),
            (replace(MINE, conversation="x"), []),
            (replace(MINE, exclude_conversation="b"), ["0 in a", "0 in c", "1 in a", "1 in c"]),
            (replace(MINE, exclude_conversation="x"), everything),
            (replace(MINE, hidden={"a": 1, "b": 0, "x": 0}), ["0 in a", "0 in c", "1 in c"]),
            (replace(MINE, conversation="b", as_of=0), ["0 in b"]),
            (replace(MINE, conversation="b", as_of=-1), []),
        ):
            told = [one.source.text for one in await candidates(store, criteria)]
            assert sorted(told) == sorted(texts), criteria

    async def test_filters_of_times_are_inclusive(self, store: Store) -> None:
        for at in range(3):
            await write(store, "c", user(f"{at}"))
        times = [one.created_at for one in await log_of(store, "c")]
        assert times == sorted(set(times))
        await indexed(store)
        for criteria, texts in (
            (replace(MINE, after=times[1]), ["1", "2"]),
            (replace(MINE, before=times[1]), ["0", "1"]),
            (replace(MINE, after=times[1], before=times[1]), ["1"]),
            (replace(MINE, after=times[2] + timedelta(microseconds=1)), []),
            (replace(MINE, before=datetime(1990, 1, 1, tzinfo=UTC)), []),
        ):
            assert [one.source.text for one in await candidates(store, criteria)] == texts, criteria

    async def test_filters_of_times_go_by_when_it_was_said(self, store: Store) -> None:
        """Indexed or not: of a digest, when its last message was said."""
        times = [datetime(year, 5, 8, tzinfo=UTC) for year in (2024, 1969, 9998)]
        await write(store, "c", *(replace(user(f"{at:%Y}"), said_at=at) for at in times))
        await chunked(store, 0, 1, "chunk")
        said = {"2024": times[0], "1969": times[1], "9998": times[2], "chunk": times[1]}
        assert {one.text: one.said_at for one in (await search_data(store)).waiting} == said
        await indexed(store)
        assert {one.source.text: one.source.said_at for one in await candidates(store)} == said
        for criteria, texts in (
            (replace(MINE, after=times[0]), ["2024", "9998"]),
            (replace(MINE, before=times[1]), ["1969", "chunk"]),
            (replace(MINE, after=times[1], before=times[0]), ["1969", "2024", "chunk"]),
        ):
            assert sorted(one.source.text for one in await candidates(store, criteria)) == texts, criteria

    async def test_filters_of_digests_go_by_what_they_rest_on(self, store: Store) -> None:
        for _ in range(3):
            await write(store, "c", *dialogue(1))
        early = await chunked(store, 0, 1, "early")
        late = await chunked(store, 2, 3, "late")
        await indexed(store)
        times = [one.created_at for one in await log_of(store, "c")]
        for criteria, texts in (
            (replace(DIGESTS, conversation="c"), ["early", "late"]),
            (replace(DIGESTS, exclude_conversation="c"), []),
            (replace(DIGESTS, conversation="c", as_of=2), ["early"]),
            (replace(DIGESTS, conversation="c", as_of=3), ["early", "late"]),
            (replace(DIGESTS, hidden={"c": 2}), ["early"]),
            (replace(DIGESTS, hidden={"c": 3}), ["early", "late"]),
            (replace(DIGESTS, but=frozenset({early})), ["late"]),
            (replace(DIGESTS, but=frozenset({early, late})), []),
            (replace(DIGESTS, before=times[1]), ["early"]),
            (replace(DIGESTS, after=times[3]), ["late"]),
        ):
            assert sorted(one.source.text for one in await candidates(store, criteria)) == texts, criteria
        seqs = frozenset(range(early)) | frozenset({late + 1})
        both = replace(MINE, but=seqs - {early, late}, kinds=frozenset({EntryKind.MESSAGE}))
        assert len(await candidates(store, both)) == 6, "these are no numbers of messages"

    async def test_filters_of_documents(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        await archived(store, "c", 0, 3, "soup")
        for fingerprint, doc_type, namespace, metadata in (
            ("a", "note", "one", '{"tags": ["x", 1], "open": true}'),
            ("b", "note", "two", '{"tags": "x", "rank": 1}'),
            ("c", "letter", "two", "{}"),
        ):
            note = replace(NOTE, fingerprint=fingerprint, doc_type=doc_type, namespace=namespace, metadata=metadata)
            await store.documents.keep(SCOPE, replace(note, passages=(Passage(fingerprint, 0, 1),)))
        await indexed(store)
        for criteria, texts in (
            (PASSAGES, ["a", "b", "c", "soup"]),
            (replace(PASSAGES, doc_type="note"), ["a", "b"]),
            (replace(PASSAGES, namespace="two"), ["b", "c"]),
            (replace(PASSAGES, doc_type="note", namespace="two"), ["b"]),
            (replace(PASSAGES, metadata={"tags": "x"}), ["a", "b"]),
            (replace(PASSAGES, metadata={"tags": "x", "rank": 1}), ["b"]),
            (replace(PASSAGES, metadata={"open": True}), ["a"]),
            (replace(PASSAGES, metadata={"open": 1}), []),
            (replace(PASSAGES, conversation="c"), ["soup"]),
            (replace(PASSAGES, exclude_conversation="c"), ["a", "b", "c"]),
            (replace(PASSAGES, conversation="c", as_of=2), []),
            (replace(PASSAGES, conversation="c", as_of=3), ["soup"]),
            (replace(PASSAGES, hidden={"c": 3}), ["a", "b", "c"]),
        ):
            assert sorted(one.source.text for one in await candidates(store, criteria)) == texts, criteria

    async def test_candidates_are_of_the_kinds_that_are_wanted(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await indexed(store)
        keys = keys_of(await search_data(store))
        for kinds in (frozenset({EntryKind.DIGEST, EntryKind.PASSAGE}), frozenset[EntryKind]()):
            assert await candidates(store, replace(MINE, kinds=kinds), keys=keys, around=9) == []
        messages = replace(MINE, kinds=frozenset({EntryKind.MESSAGE}))
        assert [one.key for one in await candidates(store, messages, keys=keys[:2])] == keys[:2]

    async def test_what_waits_is_filtered_by_kind(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        assert await waiting(store, replace(MINE, kinds=frozenset({EntryKind.DIGEST, EntryKind.PASSAGE}))) == []
        assert len(await waiting(store, replace(MINE, kinds=frozenset({EntryKind.MESSAGE})))) == 2

    async def test_conversations_are_told_by_their_numbers(self, store: Store) -> None:
        for name in "abcd":
            await write(store, name, *dialogue(1))
        refs = {name: (await head_of(store, name)).ref for name in "abcd"}
        assert (await search_data(store)).refs == {}
        criteria = replace(MINE, conversation="a", exclude_conversation="b", hidden={"c": 3, "x": 0})
        assert (await search_data(store, criteria)).refs == {name: refs[name] for name in "abc"}
