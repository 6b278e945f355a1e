"""What rests on expired messages: nothing but their own conversation shows it, whether they are
erased yet or not.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.core.digests.digest import Item, RewrittenDigest
from hitherto.core.facts.queries import FactFilter, KnownFactsQuery
from hitherto.core.log.head import LatestDigest
from hitherto.core.log.message import Message
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.documents.test_archive import archived
from tests.store.facts.samples import (
    ADA,
    BEN,
    CONFIRM,
    EVERYTHING,
    MUM,
    SHARE,
    current_contents,
    known,
    learn,
    listed,
    new,
    set_whole,
    version_of,
)
from tests.store.recall.samples import MINE, candidates, found, indexed, keys_of, search_data
from tests.store.recall.test_documents import chunked
from tests.store.samples import SCOPE, assistant, digested, head_of, user, write

PAST = timedelta(seconds=-1)
YEAR = timedelta(days=365)

each_side = pytest.mark.parametrize("first", [False, True], ids=["waiting", "indexed"])


def passing(text: str) -> Message:
    """A message that has already expired."""
    return replace(user(text), expires_at=datetime.now(UTC) + PAST)


async def said(store: Store, *messages: Message, name: str = "c", subject: str = THE_USER) -> None:
    """Write messages, without a `next_expiry` that would show that some of them have expired."""
    await write(store, name, *messages, next_expiry=None, subject=subject)


async def expire(store: Store, name: str = "c") -> None:
    """Set `next_expiry` to the past: messages of the conversation wait to be erased."""
    await write(store, name, next_expiry=datetime.now(UTC) + PAST, same_rev=True)


async def erased(store: Store, *digests: int, name: str = "c") -> None:
    """Erase the first message, and rewrite these digests without it."""
    rewritten = [
        RewrittenDigest(digest=one, items=(Item("rest", ((1, 1),)),), text="rest", tokens=4) for one in digests
    ]
    await write(store, name, erase=((0, 0),), rewritten=rewritten, next_expiry=None)


async def due(store: Store, tenant: str = SCOPE.tenant) -> tuple[bool, bool]:
    """Whether a context and a search say that messages wait to be erased."""
    scope = replace(SCOPE, tenant=tenant)
    _, told, _ = await store.head_and_known(scope, "no such conversation", KnownFactsQuery(subject=THE_USER))
    return told.due, (await search_data(store, replace(MINE, scope=scope))).due


class TestExpired:
    async def test_the_summary_of_another_conversation(self, store: Store) -> None:
        await said(store, passing("secret"), assistant("yes"))
        made = await digested(store, "c", 0, 1, Item("secret", ((0, 0),)), Item("rest", ((1, 1),)))
        await write(store, "new", user(), latest=LatestDigest(digest=made))
        before = (await head_of(store, "new")).latest
        assert before.text == "secret\nrest"
        assert await store.earlier(SCOPE, "new", within=YEAR) is not None
        await expire(store)
        assert await store.earlier(SCOPE, "new", within=YEAR) is None
        assert (await head_of(store, "new")).latest == LatestDigest()
        past = await store.head(SCOPE, "new", at=1)
        assert past is not None
        assert past.latest == LatestDigest()
        await erased(store, made)
        earlier = await store.earlier(SCOPE, "new", within=YEAR)
        assert earlier is not None
        assert earlier.text == "rest"
        assert (await head_of(store, "new")).latest == replace(before, text="rest")

    @each_side
    async def test_digests_in_the_index(self, store: Store, first: bool) -> None:
        await said(store, passing("secret"), assistant("reply"), user("still here"))
        await digested(store, "c", 0, 1, Item("summary", ((0, 1),)))
        await chunked(store, 0, 1, "chunk")
        if first:
            await indexed(store)
        keys = keys_of(await search_data(store))
        assert len(keys) == (4 if first else 0)
        assert await found(store) == ["chunk", "reply", "still here", "summary"], "a message is told by its own time"
        await expire(store)
        assert await found(store) == ["reply", "still here"]
        told = await candidates(store, keys=keys)
        assert sorted(one.source.text for one in told) == (["reply", "still here"] if first else [])
        await write(store, "c", erase=((0, 0),), next_expiry=None)
        await indexed(store)
        assert await found(store) == ["chunk", "reply", "still here", "summary"]

    @each_side
    async def test_archived_documents(self, store: Store, first: bool) -> None:
        await said(store, passing("secret"), assistant("reply"))
        await archived(store, "c", 1, 1)
        await said(store, user("other"), name="other")
        await archived(store, "other", 0, 0)
        passages = replace(MINE, kinds=frozenset({EntryKind.PASSAGE}))
        if first:
            await indexed(store)
        everything = await found(store, passages)
        newer, older = await store.documents.documents(SCOPE)
        await expire(store)
        assert await store.documents.documents(SCOPE) == [newer]
        assert await store.documents.document(SCOPE, older.id) is None
        assert await store.documents.passages(SCOPE, older.id) == ()
        assert len(await found(store, passages)) == len(everything) / 2
        await write(store, "c", erase=((0, 0),), next_expiry=None)
        assert await store.documents.documents(SCOPE) == [newer, older], "it rests on what is still there"
        assert await store.documents.document(SCOPE, older.id) is not None
        await indexed(store)
        assert await found(store, passages) == everything

    @each_side
    async def test_facts_that_nothing_else_says(self, store: Store, first: bool) -> None:
        await said(store, passing("secret"), user("twice"), passing("twice"), passing("sure"))
        facts = [new("secret", 0), new("twice", 1, 2), new("sure", 3)]
        secret, _, sure = await learn(store, "c", *facts)
        await store.facts.change(SCOPE, sure, CONFIRM)
        if first:
            await indexed(store)
        searched = replace(MINE, kinds=frozenset({EntryKind.FACT}))
        every, left = ["secret", "sure", "twice"], ["sure", "twice"]
        for now in (every, left):
            if now is left:
                await expire(store)
            assert sorted(await known(store)) == now
            assert sorted(await listed(store)) == now
            assert sorted(await listed(store, conversation="c")) == now
            assert sorted(await current_contents(store)) == now
            assert await found(store, searched) == now
            there = now is every
            assert (await store.facts.fact(SCOPE, secret) is not None) is there
            assert (await version_of(store, secret, 1) is not None) is there
            assert (await store.facts.history(SCOPE, secret) != ()) is there
        await write(store, "c", erase=((0, 0), (2, 3)), next_expiry=None)
        assert sorted(await known(store)) == left

    async def test_facts_that_others_share(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        await said(store, passing("secret"), user("open"), subject=MUM.id)
        secret, opened = await learn(store, "c", new("secret", 0), new("open", 1))
        for number in (secret, opened):
            await store.facts.change(ADA, number, SHARE)
        assert await known(store, MUM.id, scope=BEN) == ["secret", "open"]
        await expire(store)
        assert await known(store, MUM.id, scope=BEN) == ["open"]
        assert await listed(store, scope=BEN) == ["open"]
        assert await store.facts.fact(BEN, secret) is None
        assert await version_of(store, secret, 2, scope=BEN) is None

    async def test_a_fact_in_any_state(self, store: Store) -> None:
        await said(store, passing("first"), user("second"))
        (first,) = await learn(store, "c", new("first", 0))
        await learn(store, "c", new("second", 1, supersedes=(first,)))
        assert len(await store.facts.facts(SCOPE, EVERYTHING)) == 2
        await expire(store)
        assert [one.content for one in await store.facts.facts(SCOPE, EVERYTHING)] == ["second"]

    async def test_facts_whose_conversation_is_gone(self, store: Store) -> None:
        await said(store, passing("kept"))
        await learn(store, "c", new("kept", 0))
        await said(store, passing("other"), name="other")
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        await expire(store, "other")
        assert await listed(store) == ["kept"]

    async def test_that_messages_wait_to_be_erased_is_told(self, store: Store) -> None:
        assert await due(store) == (False, False)
        await said(store, passing("secret"))
        assert await due(store) == (False, False)
        await expire(store)
        assert await due(store) == (True, True)
        assert await due(store, "another") == (False, False)
        await erased(store)
        assert await due(store) == (False, False)

    async def test_a_context_without_facts_is_told_too(self, store: Store) -> None:
        await said(store, passing("secret"), user("open"))
        await learn(store, "c", new("open", 1))
        await expire(store)
        head, told, _ = await store.head_and_known(SCOPE, "c", KnownFactsQuery(subject=THE_USER, facts=False))
        assert head is not None
        assert (told.due, len(told.ids)) == (True, 0)
        assert await store.facts.facts(SCOPE, FactFilter()) != []
