"""Archived documents: written with their digest, gone with any message they stand for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hitherto.core.digests.digest import DigestOutcome, Item, RewrittenDigest, Status
from hitherto.core.documents import CONVERSATION, ArchiveOrigin, NewDocument, namespace_of
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.documents.test_documents import (
    NOTE,
    OTHER_AGENT,
    OUTSIDE,
    PASSAGES,
    SAID,
    titles,
)
from tests.store.samples import SCOPE, dialogue, fire, write


def archive_of(digest: int, *, user: str = SCOPE.user) -> NewDocument:
    return replace(
        NOTE,
        namespace=namespace_of(user),
        doc_type=CONVERSATION,
        fingerprint=f"digest {digest}",
        metadata=json.dumps({"conversation_topics": ["soup"], "message_count": 2}),
    )


async def archived(
    store: Store, name: str, start: int, end: int, *, base: int | None = None, scope: Scope = SCOPE
) -> int:
    """Complete a digest together with its document; the digest's id."""
    made = await fire(store, name, start, end, base=base, scope=scope)
    item = Item(f"{start} to {end}", ((start, end),))
    outcome = DigestOutcome(digest=made, items=(item,), text=item.text, tokens=3, archive=archive_of(made))
    await write(store, name, outcomes=[outcome], scope=scope)
    return made


async def ranges_of(store: Store, *, scope: Scope = SCOPE) -> list[tuple[str, int, int]]:
    """Which messages the archived documents stand for, oldest document first."""
    found = await store.documents.documents(scope, doc_type=CONVERSATION)
    origins = [one.archived for one in reversed(found)]
    return [(one.conversation, one.start, one.end) for one in origins if one is not None]


class TestArchive:
    async def test_what_an_agent_archived_is_another_agents_only_on_request(self, store: Store) -> None:
        documents = store.documents
        await write(store, "c", *dialogue(1))
        await archived(store, "c", 0, 1)
        (found,) = await documents.documents(SCOPE)
        assert found.agent == SCOPE.agent
        assert await documents.documents(OTHER_AGENT) == []
        assert await documents.document(OTHER_AGENT, found.id) is None
        assert await documents.passages(OTHER_AGENT, found.id) == ()
        assert not await documents.discard(OTHER_AGENT, found.id)
        assert await documents.documents(OTHER_AGENT, all_agents=True) == [found]
        assert await documents.document(OTHER_AGENT, found.id, all_agents=True) == found
        for outside in OUTSIDE:
            assert await documents.documents(outside, all_agents=True) == []
        assert await documents.discard(OTHER_AGENT, found.id, all_agents=True)
        assert await documents.documents(SCOPE) == []

    async def test_a_digest_brings_its_document(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        first = await archived(store, "c", 0, 1)
        second = await archived(store, "c", 0, 5, base=first)
        newer, older = await store.documents.documents(SCOPE)
        assert older.archived == ArchiveOrigin(conversation="c", digest=first, start=0, end=1)
        assert newer.archived == ArchiveOrigin(conversation="c", digest=second, start=2, end=5)
        assert (newer.agent, newer.doc_type, newer.namespace) == (SCOPE.agent, CONVERSATION, "conversations:u-17")
        assert (newer.said_at, newer.passages, newer.text) == (SAID, 2, NOTE.text)
        assert await store.documents.passages(SCOPE, newer.id) == PASSAGES

    @pytest.mark.parametrize("how", ["error", "superseded"])
    async def test_one_that_comes_to_nothing_brings_none(self, store: Store, how: str) -> None:
        await write(store, "c", *dialogue(1))
        made = await fire(store, "c", 0, 1)
        outcome = DigestOutcome(digest=made, error="no", superseded=how == "superseded", archive=archive_of(made))
        await write(store, "c", outcomes=[outcome])
        assert await store.documents.documents(SCOPE) == []

    async def test_one_that_is_in_progress_no_more_brings_none(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        made = await archived(store, "c", 0, 1)
        late = DigestOutcome(
            digest=made, text="late", archive=replace(archive_of(made), fingerprint="late", title="Late")
        )
        await write(store, "c", outcomes=[late])
        assert await titles(store) == ["Meals"]
        failed = await fire(store, "c", 0, 0)
        await write(store, "c", outcomes=[DigestOutcome(digest=failed, error="no")])
        await write(store, "c", outcomes=[DigestOutcome(digest=failed, archive=archive_of(failed))])
        assert await titles(store) == ["Meals"]

    async def test_two_conversations_that_read_the_same_are_two_documents(self, store: Store) -> None:
        for name in ("c", "d"):
            await write(store, name, *dialogue(1))
            await archived(store, name, 0, 1)
        assert await ranges_of(store) == [("c", 0, 1), ("d", 0, 1)]

    async def two(self, store: Store) -> tuple[int, int]:
        """Archive messages 0 to 1 and 2 to 5 of "c", and another conversation, which must stay; the digests of "c"."""
        for name in ("c", "other"):
            await write(store, name, *dialogue(3))
        first = await archived(store, "c", 0, 1)
        second = await archived(store, "c", 0, 5, base=first)
        await archived(store, "other", 0, 5)
        assert await ranges_of(store) == [("c", 0, 1), ("c", 2, 5), ("other", 0, 5)]
        return first, second

    async def test_erasing_a_message_takes_what_stands_for_it(self, store: Store) -> None:
        await self.two(store)
        await store.documents.keep(SCOPE, NOTE)
        await write(store, "c", erase=((4, 4),))
        assert await ranges_of(store) == [("c", 0, 1), ("other", 0, 5)]
        await write(store, "c", erase=((0, 0), (3, 3)))
        assert await ranges_of(store) == [("other", 0, 5)]
        assert await titles(store, doc_type="note") == ["Meals"]

    async def test_a_document_goes_with_its_digest(self, store: Store) -> None:
        first, second = await self.two(store)
        await write(store, "c", supersede=[second])
        assert await ranges_of(store) == [("c", 0, 1), ("other", 0, 5)]
        await write(store, "c", rewritten=[RewrittenDigest(digest=first, superseded=True)])
        assert await ranges_of(store) == [("other", 0, 5)]

    async def test_a_digest_that_is_rewritten_keeps_its_document(self, store: Store) -> None:
        first, _ = await self.two(store)
        await write(store, "c", rewritten=[RewrittenDigest(digest=first, text="shorter", tokens=1)])
        assert await ranges_of(store) == [("c", 0, 1), ("c", 2, 5), ("other", 0, 5)]

    async def test_a_namesake_of_another_agent_keeps_its_documents(self, store: Store) -> None:
        await self.two(store)
        await write(store, "c", *dialogue(3), scope=OTHER_AGENT)
        await archived(store, "c", 0, 5, scope=OTHER_AGENT)
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        assert await ranges_of(store, scope=OTHER_AGENT) == [("c", 0, 5)]

    async def test_a_unit_that_is_not_committed_leaves_no_document(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        made = await fire(store, "c", 0, 1)
        async with store.write(SCOPE, "c", digest=made):
            pass
        assert await store.documents.documents(SCOPE) == []
        (row,) = await store.digests(SCOPE, "c")
        assert row.status is Status.PROCESSING
