"""Documents: the same content is kept once, and only its owner can read it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hitherto.core.documents import PREVIEW, Document, KeptDocument, NewDocument, Passage
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.samples import SCOPE

SAID = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PASSAGES = (Passage("Soup is at noon.", 0, 5), Passage("Bread is at nine.", 17, 5))
NOTE = NewDocument(
    namespace="documents:u-17",
    doc_type="note",
    title="Meals",
    text="Soup is at noon. Bread is at nine.",
    metadata='{"tags": ["soup", "bread", 1], "rank": 1, "open": true, "by": {"name": "Ada"}}',
    fingerprint="f1",
    passages=PASSAGES,
    said_at=SAID,
)
OTHER_AGENT = replace(SCOPE, agent="another")
OUTSIDE = [replace(SCOPE, user="another"), replace(SCOPE, tenant="another")]


async def titles(store: Store, scope: Scope = SCOPE, **criteria: Any) -> list[str | None]:
    return [one.title for one in await store.documents.documents(scope, **criteria)]


class TestDocument:
    async def test_a_document_comes_back_as_it_was_kept(self, store: Store) -> None:
        documents = store.documents
        before = datetime.now(UTC)
        kept = await documents.keep(SCOPE, NOTE)
        assert kept == KeptDocument(kept.id, new=True)
        found = await documents.document(SCOPE, kept.id)
        assert found is not None
        assert found.metadata == json.loads(NOTE.metadata)
        assert abs(found.created_at - before).total_seconds() < 60
        assert found == Document(
            id=kept.id,
            namespace=NOTE.namespace,
            doc_type="note",
            title="Meals",
            text=NOTE.text,
            metadata=found.metadata,
            passages=2,
            created_at=found.created_at,
            said_at=SAID,
        )
        assert await documents.passages(SCOPE, kept.id) == PASSAGES
        assert await documents.documents(SCOPE) == [found]

    async def test_what_has_no_time_was_said_when_it_was_kept(self, store: Store) -> None:
        kept = await store.documents.keep(SCOPE, replace(NOTE, said_at=None, title=None, passages=()))
        found = await store.documents.document(SCOPE, kept.id)
        assert found is not None
        assert abs(found.said_at - found.created_at).total_seconds() < 1
        assert (found.title, found.passages, await store.documents.passages(SCOPE, kept.id)) == (None, 0, ())

    async def test_the_same_content_is_one_document(self, store: Store) -> None:
        documents = store.documents
        first = await documents.keep(SCOPE, NOTE)
        again = await documents.keep(OTHER_AGENT, replace(NOTE, title="Another", text="Another"))
        assert again == KeptDocument(first.id, new=False)
        assert await titles(store) == ["Meals"]
        elsewhere = await documents.keep(SCOPE, replace(NOTE, namespace="elsewhere", title="Elsewhere"))
        assert elsewhere.new
        assert await titles(store) == ["Elsewhere", "Meals"]

    async def test_the_same_content_at_the_same_time_is_one_document(self, store: Store) -> None:
        kept = await asyncio.gather(*(store.documents.keep(SCOPE, NOTE) for _ in range(12)))
        assert len({one.id for one in kept}) == 1
        assert [one.new for one in kept].count(True) == 1
        assert len(await titles(store)) == 1

    async def test_content_that_was_discarded_is_new_again(self, store: Store) -> None:
        documents = store.documents
        first = await documents.keep(SCOPE, NOTE)
        assert await documents.discard(SCOPE, first.id)
        assert not await documents.discard(SCOPE, first.id)
        assert await documents.document(SCOPE, first.id) is None
        assert await documents.passages(SCOPE, first.id) == ()
        again = await documents.keep(SCOPE, NOTE)
        assert again.new
        assert again.id != first.id

    @pytest.mark.parametrize("outside", OUTSIDE)
    async def test_nobody_else_sees_it(self, store: Store, outside: Scope) -> None:
        documents = store.documents
        kept = await documents.keep(SCOPE, NOTE)
        for every in (False, True):
            assert await documents.documents(outside, all_agents=every) == []
            assert await documents.document(outside, kept.id, all_agents=every) is None
            assert await documents.passages(outside, kept.id, all_agents=every) == ()
            assert not await documents.discard(outside, kept.id, all_agents=every)
        theirs = await documents.keep(outside, replace(NOTE, title="Theirs"))
        assert theirs.new
        assert await titles(store) == ["Meals"]
        assert await titles(store, outside) == ["Theirs"]

    async def test_the_newest_are_listed_first_and_cut_short(self, store: Store) -> None:
        documents = store.documents
        long = "word " * PREVIEW
        for n in range(5):
            await documents.keep(SCOPE, replace(NOTE, fingerprint=f"{n}", title=f"{n}", text=long))
        assert await titles(store) == ["4", "3", "2", "1", "0"]
        assert await titles(store, limit=2) == ["4", "3"]
        assert await titles(store, limit=0) == await titles(store, limit=-1) == []
        (newest,) = await documents.documents(SCOPE, limit=1)
        everything = await documents.documents(SCOPE)
        assert await documents.documents(SCOPE, before=newest.id) == everything[1:]
        assert await documents.documents(SCOPE, before=everything[-1].id) == []
        assert newest.text == long[:PREVIEW]
        whole = await documents.document(SCOPE, newest.id)
        assert whole is not None
        assert whole.text == long

    async def test_types_and_namespaces_are_told_apart(self, store: Store) -> None:
        documents = store.documents
        await documents.keep(SCOPE, NOTE)
        await documents.keep(SCOPE, replace(NOTE, namespace="b", doc_type="letter", title="Letter"))
        assert await titles(store, doc_type="note") == ["Meals"]
        assert await titles(store, namespace="b") == ["Letter"]
        assert await titles(store, namespace="b", doc_type="note") == []

    async def test_metadata_are_found_by_equal_values(self, store: Store) -> None:
        cases: list[tuple[Any, ...]] = [
            ({}, True),
            ({"tags": "soup"}, True),
            ({"tags": "bread", "rank": 1}, True),
            ({"tags": ["soup", "bread", 1]}, True),
            ({"tags": 1.0}, True),
            ({"open": True}, True),
            ({"by": {"name": "Ada"}}, True),
            ({"tags": ["soup"]}, False),
            ({"tags": "so"}, False),
            ({"tags": True}, False),
            ({"rank": "1"}, False),
            ({"rank": True}, False),
            ({"open": 1}, False),
            ({"by": "Ada"}, False),
            ({"by": {}}, False),
            ({"tags": "soup", "other": 1}, False),
            ({"other": None}, False),
        ]
        for criteria, there in cases:
            await store.documents.keep(SCOPE, NOTE)
            assert await titles(store, metadata=criteria) == (["Meals"] if there else [])
