"""Recall where conversations have messages and digests together: each is found once, and a fork finds what it shows."""

from __future__ import annotations

import pytest

from hitherto import Conversation, Memory, policies, user
from hitherto.providers.scripted import Scripted
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
