"""Digests, and passages of documents and archives, in the search index."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hitherto.core.digests.digest import DigestOutcome
from hitherto.core.documents import ArchiveOrigin, NewDocument, Passage
from hitherto.core.log.frontier import DigestAction
from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.recall.index import OF_NO_AGENT, TEXT, Source
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row, take_back
from tests.store.documents.test_documents import NOTE, SAID
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
    STAGE,
    clear,
    dialogue,
    fire,
    head_of,
    log_of,
    user,
    write,
)

DIGESTS = replace(MINE, kinds=frozenset({EntryKind.DIGEST}))

each_side = pytest.mark.parametrize("first", [False, True], ids=["waiting", "indexed"])


async def ended(store: Store, start: int, end: int, text: str, *, stage: str = STAGE, base: int | None = None) -> int:
    """A summary of "c" with that text; its id."""
    made = await fire(store, "c", start, end, stage=stage, base=base)
    await write(store, "c", outcomes=[DigestOutcome(digest=made, text=text, tokens=len(text))])
    return made


async def chunked(
    store: Store, start: int, end: int, text: str, *, base: int | None = None, action: DigestAction = DigestAction.CHUNK
) -> int:
    """A chunk of "c" with that text; its id."""
    (made,) = (await write(store, "c", fire=[stage_row(action, start, end, completed=False, base=base)])).fired
    await write(store, "c", outcomes=[DigestOutcome(digest=made, text=text, tokens=len(text))])
    return made


class TestSearchDigest:
    @each_side
    async def test_a_digest_is_told_whole(self, store: Store, first: bool) -> None:
        for _ in range(3):
            await write(store, "c", *dialogue(1))
        digest = await ended(store, 1, 3, "a summary")
        said_at = (await log_of(store, "c"))[3].created_at
        if first:
            await indexed(store)
        told = [one.source for one in await candidates(store, DIGESTS)]
        assert [*told, *(await search_data(store, DIGESTS)).waiting] == [
            Source(
                kind=EntryKind.DIGEST,
                origin=(await head_of(store, "c")).ref,
                place=digest,
                text="a summary",
                said_at=said_at,
                conversation="c",
                start=1,
                end=3,
                agent=SCOPE.agent,
                subject=THE_USER,
            )
        ]
        assert len(told) == (1 if first else 0)

    async def test_a_digest_has_no_neighbours(self, store: Store) -> None:
        await write(store, "c", *(user(f"{at}") for at in range(4)))
        await chunked(store, 0, 1, "of two")
        await indexed(store)
        (key,) = [one.key for one in await candidates(store, DIGESTS)]
        assert [one.source.text for one in await candidates(store, keys=[key], around=9)] == ["of two"]


PASSAGES = replace(MINE, kinds=frozenset({EntryKind.PASSAGE}))
TEXTS = [one.text for one in NOTE.passages]
OTHERS = {part: replace(SCOPE, **{part: "another"}) for part in ("tenant", "user", "agent")}


async def archived(store: Store, name: str, start: int, end: int, text: str) -> int:
    """A digest of a conversation that is completed with a document of one passage; its id."""
    made_id = await fire(store, name, start, end)
    archive = NewDocument(
        namespace="conversations",
        doc_type="conversation",
        title="Talk",
        text=text,
        metadata="{}",
        fingerprint=f"of {name} {made_id}",
        passages=(Passage(text, 0, 1),),
        said_at=datetime(2026, 3, 4, tzinfo=UTC),
    )
    await write(store, name, outcomes=[DigestOutcome(digest=made_id, text="", archive=archive)])
    return made_id


class TestSearchDocument:
    @each_side
    async def test_passages_are_told_whole(self, store: Store, first: bool) -> None:
        kept = await store.documents.keep(SCOPE, NOTE)
        document = await store.documents.document(SCOPE, kept.id)
        assert document is not None
        if first:
            await indexed(store)
        told = [one.source for one in await candidates(store)]
        assert [*told, *(await search_data(store)).waiting] == [
            Source(
                kind=EntryKind.PASSAGE,
                origin=kept.id,
                place=at,
                text=passage.text,
                said_at=SAID,
                agent=OF_NO_AGENT,
                title=NOTE.title,
                doc_type=NOTE.doc_type,
                namespace=NOTE.namespace,
                metadata=json.dumps(document.metadata),
            )
            for at, passage in enumerate(NOTE.passages)
        ]
        assert len(told) == (len(NOTE.passages) if first else 0)

    @each_side
    async def test_passages_of_an_archive_are_told_whole(self, store: Store, first: bool) -> None:
        await write(store, "c", *dialogue(3))
        await archived(store, "c", 2, 3, "soup")
        (document,) = await store.documents.documents(SCOPE)
        assert document.archived is not None
        if first:
            await indexed(store)
        told = [one.source for one in await candidates(store, PASSAGES)]
        assert [*told, *(await search_data(store, PASSAGES)).waiting] == [
            Source(
                kind=EntryKind.PASSAGE,
                origin=document.id,
                place=0,
                text="soup",
                said_at=document.said_at,
                conversation="c",
                start=2,
                end=3,
                agent=SCOPE.agent,
                subject=THE_USER,
                title="Talk",
                doc_type="conversation",
                namespace="conversations",
            )
        ]
        assert document.archived == ArchiveOrigin(conversation="c", digest=document.archived.digest, start=2, end=3)

    @each_side
    async def test_the_users_own_belong_to_all_agents(self, store: Store, first: bool) -> None:
        """Another user or tenant finds nothing, not even by the entries' numbers."""
        await store.documents.keep(SCOPE, NOTE)
        if first:
            await indexed(store)
        assert await found(store) == sorted(TEXTS)
        assert await found(store, SearchFilter(scope=OTHERS["agent"])) == sorted(TEXTS)
        keys = keys_of(await search_data(store))
        for outside in (OTHERS["tenant"], OTHERS["user"]):
            criteria = SearchFilter(scope=outside, all_agents=True)
            told = await search_data(store, criteria, words=["soup"])
            assert (told.blocks, told.waiting, told.entries) == ((), (), 0)
            assert await candidates(store, criteria, keys=keys, around=9) == []

    @each_side
    async def test_an_archive_belongs_to_its_agent(self, store: Store, first: bool) -> None:
        await write(store, "c", *dialogue(3))
        await archived(store, "c", 0, 1, "soup")
        if first:
            await indexed(store)
        mine = SearchFilter(scope=OTHERS["agent"], kinds=frozenset({EntryKind.PASSAGE}))
        assert await found(store, PASSAGES) == ["soup"]
        assert await found(store, mine) == []
        assert await found(store, replace(mine, all_agents=True)) == ["soup"]
        assert await candidates(store, mine, keys=keys_of(await search_data(store))) == []

    @pytest.mark.parametrize("when", ["waiting", "indexed", "in hand"])
    async def test_what_is_discarded_is_gone(self, store: Store, when: str) -> None:
        kept = await store.documents.keep(SCOPE, NOTE)
        other = await store.documents.keep(SCOPE, replace(NOTE, fingerprint="f2", passages=(Passage("tea", 0, 1),)))
        if when == "indexed":
            await indexed(store, space=SPACE)
        before = keys_of(await search_data(store))
        work = await taken(store.index) if when == "in hand" else None
        assert await store.documents.discard(SCOPE, kept.id)
        if work is not None:
            assert await store.index.add(work, made(work.sources))
            await store.index.release(work)
        for _ in range(2):
            assert await found(store) == ["tea"]
            assert [one.source.origin for one in await candidates(store, keys=before)] in ([], [other.id])
            await indexed(store, space=SPACE)
        assert await waiting(store) == []
        assert having(await search_data(store, words=["soup"]), "soup") == {}

    async def test_what_is_discarded_gets_no_vector(self, store: Store) -> None:
        kept = await store.documents.keep(SCOPE, NOTE)
        await indexed(store)
        work = await taken(store.index, space=SPACE)
        assert sorted(one.text for one in work.unembedded) == sorted(TEXTS)
        assert await store.documents.discard(SCOPE, kept.id)
        assert await store.index.embed(work, SPACE, vectors_of(work))
        await store.index.release(work)
        assert await candidates(store, space=SPACE) == []
        await indexed(store, space=SPACE)
        assert keys_of(await search_data(store)) == []

    @each_side
    @pytest.mark.parametrize("way", ["erased", "taken back", "cleared", "deleted"])
    async def test_an_archive_goes_with_its_messages(self, store: Store, first: bool, way: str) -> None:
        await write(store, "c", *dialogue(3))
        await write(store, "d", *dialogue(3))
        await archived(store, "c", 0, 5, "soup")
        await archived(store, "d", 0, 5, "bread")
        if first:
            await indexed(store)
        before = keys_of(await search_data(store))
        match way:
            case "erased":
                await write(store, "c", erase=((2, 2),))
            case "taken back":
                await take_back(store, "c", 1)
            case "cleared":
                await clear(store, "c")
            case _:
                async with store.write(SCOPE, "c") as unit:
                    await unit.delete()
        assert await found(store, PASSAGES) == ["bread"]
        assert {one.source.text for one in await candidates(store, PASSAGES, keys=before)} <= {"bread"}
        await indexed(store)
        assert await found(store, PASSAGES) == ["bread"]

    async def test_a_passage_has_no_neighbours(self, store: Store) -> None:
        await write(store, "c", user("hello"))
        await store.documents.keep(SCOPE, NOTE)
        await indexed(store)
        for key in keys_of(await search_data(store, PASSAGES)):
            assert [one.key for one in await candidates(store, keys=[key], around=9)] == [key]

    async def test_passages_are_cut_and_indexed_whole(self, store: Store) -> None:
        long = "tea " * TEXT
        await store.documents.keep(SCOPE, replace(NOTE, passages=(Passage(long, 0, 1), Passage(" ", 0, 1))))
        work = await taken(store.index)
        assert long in [one.text for one in work.sources]
        await store.index.release(work)
        await indexed(store)
        (told,) = [one for one in await candidates(store) if one.source.place == 0]
        assert told.source.text == long[:TEXT]
        (count,) = having(await search_data(store, words=["tea"]), "tea").values()
        assert count == 255

    async def test_a_document_of_many_passages(self, store: Store) -> None:
        """More passages than one claim hands out."""
        passages = tuple(Passage(f"part {at}", at, 1) for at in range(50))
        for fingerprint in ("a", "b", "c"):
            await store.documents.keep(SCOPE, replace(NOTE, fingerprint=fingerprint, passages=passages))
        await indexed(store, space=SPACE, limit=7)
        told = await search_data(store, words=["part"], spaces=[SPACE])
        assert (told.waiting, told.entries, told.embedded) == ((), 150, 150)
        assert len(having(told, "part")) == 150
        assert sorted(one.source.place for one in await candidates(store)) == sorted([*range(50)] * 3)
