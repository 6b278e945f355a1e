"""Recall where conversations have messages and digests together: each is found once, and a fork finds what it shows."""

from __future__ import annotations

import numpy as np
import pytest

from hitherto import Conversation, Memory, policies, user
from hitherto.core.recall.index import IndexBlock, Relative
from hitherto.providers.scripted import Scripted
from hitherto.store.recall.search import of_relatives
from tests.acceptance.dialogue import says_each
from tests.conftest import SCOPE
from tests.databases import OpenStore
from tests.memories import open_on
from tests.postgres.asking import rows

ROLLING = policies.rolling(threshold=4, keep_last=2)


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE)


async def found(memory: Memory, question: str, conversation: str | None = None) -> list[tuple[str | None, str]]:
    hits = (await memory.recall(question, scope=SCOPE, conversation=conversation)).hits
    return [(hit.conversation, hit.text) for hit in hits]


async def test_forks_do_not_crowd_out_what_else_there_is(store: OpenStore) -> None:
    """A digest of them has one entry, however many have it."""
    async with open_on(store, model=Scripted(then=says_each), policy=ROLLING, embedder=None) as memory:
        chat, other = (memory.conversation(name, scope=SCOPE) for name in ("c", "o"))
        await chat.append(*(user(f"The {number}th bird.") for number in range(6)))
        await other.append(user("Number <1> is a heron that flew away."))
        await memory.wait_for_digests()
        await memory.wait_for_index()
        entries = await rows(store.owners_url, "select no from search_entry")
        fork = await chat.fork(id="f")
        for _ in range(30):
            fork = await fork.fork()
        await memory.wait_for_index()
        assert await rows(store.owners_url, "select no from search_entry") == entries
        assert {one for one, _ in await found(memory, "<1>")} == {"c", "o"}
        digests = (await memory.recall("<1>", scope=SCOPE, conversation=fork.id, kinds=["digest"])).hits
        assert [(hit.conversation, hit.digest) for hit in digests] == [(fork.id, (await fork.digests())[0].id)]


async def test_a_fork_that_took_back_much_finds_its_own(memory: Memory, chat: Conversation) -> None:
    await chat.append(user("Hello."), *(user(f"The cello number {number} is a cello.") for number in range(80)))
    await memory.wait_for_index()
    fork = await chat.fork(id="f")
    await fork.rewind(to=0)
    bought = "My cello was bought in Lisbon by my aunt Anna long ago, and it has a long story."
    await fork.append(user(bought))
    await memory.wait_for_index()
    assert await found(memory, "cello", "f") == [("f", bought)]


async def test_what_was_to_be_forgotten_in_a_fork_is_not_found_there(memory: Memory, chat: Conversation) -> None:
    fact = await memory.facts(SCOPE).add("Has a pelican.")
    await chat.append(user("Forget my pelican."))
    await memory.wait_for_index()
    await (await chat.fork(id="f")).forget(fact.id)
    assert await found(memory, "pelican", "f") == []


async def test_a_message_in_common_has_the_title_of_who_asks(memory: Memory, chat: Conversation) -> None:
    await chat.append(user("The cello is brown."))
    await chat.configure(title="Of the first")
    await memory.wait_for_index()
    await (await chat.fork(id="f")).configure(title="Of the fork")
    hits = (await memory.recall("cello", scope=SCOPE, conversation="f")).hits
    assert [hit.title for hit in hits] == ["Of the fork"]


async def test_what_is_asked_for_is_not_left_out_with_a_relative(memory: Memory, chat: Conversation) -> None:
    await chat.append(user("The cello is brown."))
    await (await chat.fork(id="f")).append(user("The cello is old."))
    await memory.wait_for_index()
    hits = (await memory.recall("cello", scope=SCOPE, conversation="f", exclude_conversation="c")).hits
    assert {(hit.conversation, hit.start) for hit in hits} == {("f", 0), ("f", 1)}


async def test_an_entry_goes_to_a_fork_that_others_find(memory: Memory, chat: Conversation) -> None:
    await chat.append(user("The cello is brown."))
    await memory.wait_for_index()
    hidden, _ = await chat.fork(id="hidden"), await chat.fork(id="f")
    await hidden.configure(remember=False)
    await chat.delete()
    assert await found(memory, "cello") == [("f", "The cello is brown.")]


async def test_what_was_discussed_last_is_told_once(store: OpenStore) -> None:
    async with open_on(store, model=Scripted(then=says_each), policy=ROLLING, embedder=None) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"The {number}th heron.") for number in range(6)))
        await memory.wait_for_digests()
        forks = [await chat.fork() for _ in range(3)]
        for one in (memory.conversation("new", scope=SCOPE), forks[0]):
            context = await one.context(user("What did we discuss last time?"), cross_session="triggers", budget=4_000)
            assert str(context.request).count("<1>") == 1


async def test_a_digest_stays_with_who_uses_it_still(store: OpenStore) -> None:
    policy = policies.chunks(threshold=4, batch=2)
    async with open_on(store, model=Scripted(then=says_each), policy=policy, embedder=None) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"The {number}th heron.") for number in range(8)))
        await memory.wait_for_digests()
        await memory.wait_for_index()
        await chat.fork(id="f")
        await chat.rewind(to=2)
        await memory.wait_for_index()
        hits = (await memory.recall("<1> <3>", scope=SCOPE, kinds=["digest"])).hits
        assert {hit.start: hit.conversation for hit in hits} == {0: "c", 2: "f"}


async def test_what_waits_is_not_recalled_beside_itself(memory: Memory, chat: Conversation) -> None:
    await chat.append(user("Which month has the most rain here?"), user("Thanks."))
    context = await (await chat.fork(id="f")).context(user("Which month has the most rain?"), budget=4_000, recall=True)
    assert str(context.messages).count("has the most rain here") == 1


def test_what_a_conversation_has_together_with_another_is_its_own() -> None:
    """Messages (1) and digests (2) alone: what is a document's (3) or a fact's (4) has the number of that."""
    kinds, places = [1, 1, 1, 2, 2, 2, 3, 4, 1], [1, 2, 8, 31, 32, 33, 2, 2, 2]
    block = IndexBlock(
        scope=1,
        first=0,
        lengths=np.ones(9, np.uint16),
        kinds=np.array(kinds, np.uint8),
        postings={},
        origins=np.array([7] * 8 + [6]),
        places=np.array(places),
    )
    found = of_relatives(block, {7: Relative(own=9, through=5, shown=((0, 1), (4, 5)), digests={31: 41, 32: None})})
    assert found.origins is not None
    assert found.places is not None
    assert found.kinds.tolist() == [1, 0, 1, 2, 0, 2, 3, 4, 1]
    assert found.origins[found.kinds > 0].tolist() == [9, 7, 9, 7, 7, 7, 6]
    assert found.places[found.kinds > 0].tolist() == [1, 8, 41, 33, 2, 2, 2]
