"""Facts of forks: what they have in common is read once, and holds as long as one of them shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto import Conversation, Facts, Memory, assistant, user
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.test_facts_by_default import hears
from tests.conftest import SCOPE
from tests.memories import open_on


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, model=Scripted(then=hears)) as found:
        yield found


@pytest.fixture
def facts(memory: Memory) -> Facts:
    return memory.facts(SCOPE)


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("I play the cello."), assistant("How nice!"))
    return chat


async def read(memory: Memory, *chats: Conversation) -> None:
    for one in chats:
        await one.finish()
        await memory.wait_for_digests()


async def test_said_once(memory: Memory, facts: Facts, chat: Conversation) -> None:
    """Whichever is read first, and whether it was found there or not."""
    fork = await chat.fork()
    await fork.append(user("I sing."), assistant("Oh!"))
    await read(memory, fork, chat, await fork.fork(at=1))
    assert {(one.content, one.repeated) for one in await facts.list()} == {("I play the cello.", 0), ("I sing.", 0)}


async def test_each_message_is_named_once(memory: Memory, facts: Facts, chat: Conversation) -> None:
    await read(memory, chat)
    fork = await chat.fork(id="f")
    await fork.fork()
    await chat.append(user("I play the cello."), assistant("Again!"))
    await read(memory, chat)
    evidence = (await facts.list())[0].evidence
    assert [(one.conversation, one.seq) for one in evidence] == [("c", 0), ("c", 2)]
    await chat.delete()
    evidence = (await facts.list())[0].evidence
    assert [(one.conversation, one.seq) for one in evidence] == [("f", 0)]


async def test_deleted_once(memory: Memory, facts: Facts, chat: Conversation) -> None:
    fork = await chat.fork()
    await read(memory, chat)
    (found,) = await facts.list()
    await facts.delete(found.id)
    await read(memory, fork)
    assert await facts.list() == []


async def test_of_another_subject(memory: Memory, facts: Facts, chat: Conversation) -> None:
    fork = await chat.fork()
    await memory.configure_subject(tenant=SCOPE.tenant, subject="ada")
    await fork.configure(subject="ada")
    await read(memory, chat, fork)
    assert sorted(one.subject or "" for one in await facts.list()) == ["", "ada"]


async def test_what_is_found_in_one_is_said_in_all(memory: Memory, facts: Facts, chat: Conversation) -> None:
    """As long as one shows it that is not private."""
    fork, hidden, erased = [await chat.fork(id=name) for name in ("fork", "hidden", "erased")]
    short = await chat.fork(at=1, id="short")
    await hidden.configure(remember=False)
    await short.rewind(to=-1)
    await chat.append(user("I sing."), assistant("Oh!"))
    await read(memory, chat)
    assert {one.content for one in await facts.list()} == {"I play the cello.", "I sing."}
    await chat.delete(facts=True)
    await fork.rewind(to=-1)
    assert len(await facts.list()) == 1
    await erased.rewind(to=-1)
    assert await facts.list() == []
    await short.switch(0)
    assert [one.content for one in await facts.list()] == ["I play the cello."]
    await fork.erase(0)
    assert await facts.list() == []
