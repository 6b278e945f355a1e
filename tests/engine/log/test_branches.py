"""`branches` and `switch`: what was taken back or replaced stays a branch, and is shown again as it was."""

from __future__ import annotations

import asyncio
import json

import pytest

from hitherto import Conversation, Memory, assistant, policies, user
from hitherto.core.digests.digest import Status
from hitherto.core.facts.fact import FactState
from hitherto.errors import ConcurrentWrite, InvalidInput
from hitherto.providers.scripted import Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import says_each
from tests.acceptance.test_facts_by_default import hears
from tests.conftest import SCOPE
from tests.engine.turn.asking import shown
from tests.memories import open_on


@pytest.fixture
async def chat(memory: Memory) -> Conversation:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Which day?"), assistant("Monday."))
    return chat


async def test_answers_of_one_question(chat: Conversation) -> None:
    for text in ("Tuesday.", "Wednesday."):
        async with chat.turn(at=0) as turn:
            await turn.add(text)
    await chat.append(user("And the month?"), assistant("May."))
    found = await chat.branches(1)
    assert [(one.seq, one.last, one.text, one.shown) for one in found] == [
        (1, 1, "Monday.", False),
        (2, 2, "Tuesday.", False),
        (3, 5, "Wednesday.", True),
    ]
    assert await chat.branches(3) == found == await chat.branches()
    assert [one.seq for one in await chat.branches(0)] == [0], "there are no others"
    assert await chat.branches(2, after=1, limit=1) == found[1:2]
    assert await chat.switch(1) == 5
    assert await shown(chat) == ["Which day?", "Monday."]
    assert [one.shown for one in await chat.branches(3)] == [True, False, False]
    assert await chat.switch(5) == 1
    assert await shown(chat) == ["Which day?", "Wednesday.", "And the month?", "May."]
    assert await chat.switch(3) == 5
    assert await shown(chat) == ["Which day?", "Wednesday.", "And the month?", "May."], "it was shown"


async def test_a_branch_of_a_branch(chat: Conversation) -> None:
    """The way back is that of the branch, and what was shown with it last."""
    await chat.append(user("a"), at=1)  # 2
    await chat.append(user("b"), at=1)  # 3
    await chat.append(assistant("b1"))  # 4
    await chat.append(assistant("b2"), at=3)  # 5
    await chat.append(user("Which year?"), at=-1)  # 6
    assert await chat.switch(4) == 6
    assert await shown(chat) == ["Which day?", "Monday.", "b", "b1"]
    await chat.switch(2)
    await chat.switch(3)
    assert await shown(chat) == ["Which day?", "Monday.", "b", "b1"]
    await chat.switch(6)
    await chat.switch(5)
    await chat.switch(6)
    await chat.switch(0)
    assert await shown(chat) == ["Which day?", "Monday.", "b", "b2"]
    assert [one.seq for one in await chat.branches(0)] == [0, 6]
    assert [one.seq for one in await chat.branches(5)] == [4, 5]
    every = await chat.branches()
    assert [(one.parent, one.seq) for one in every] == [(-1, 0), (1, 2), (1, 3), (3, 4), (3, 5), (-1, 6)]
    pages = [await chat.branches(after=after, limit=2) for after in (-1, 2, 4, 6)]
    assert [one for page in pages for one in page] == every


async def test_what_was_taken_back_comes_back(chat: Conversation) -> None:
    await chat.pop()
    await chat.pop()
    assert await shown(chat) == []
    assert await chat.switch(1) == -1
    assert await shown(chat) == ["Which day?", "Monday."]


@pytest.mark.parametrize("seq", [-1, 2, 99, 2**70, True])
async def test_what_is_no_branch(chat: Conversation, seq: int) -> None:
    for verb in (chat.switch(seq), chat.branches(seq)):
        with pytest.raises(InvalidInput):
            await verb
    await chat.clear()
    for verb in (chat.switch(1), chat.branches(1)):
        with pytest.raises(InvalidInput, match="was cleared"):
            await verb


async def test_a_stale_page_is_told(chat: Conversation) -> None:
    head = await chat.head()
    assert head is not None
    await chat.rewind(to=0)
    with pytest.raises(ConcurrentWrite):
        await chat.switch(1, expect=head.rev)
    assert await shown(chat) == ["Which day?"]


async def test_two_pages_switch_at_once(chat: Conversation) -> None:
    for text in ("a", "b", "c"):
        await chat.append(user(text), at=1)
    await asyncio.gather(*(chat.switch(2 + number % 3) for number in range(12)))
    rows = await chat.messages()
    assert sum(one.retracted_rev is None for one in rows) == 3


async def test_past_contexts_are_as_they_were(chat: Conversation) -> None:
    """At a revision at which another branch was shown, and while this one was not."""
    taken = [await chat.context(user("So?"))]
    for text in ("a", "b"):
        await chat.append(user(text), at=1)
        taken.append(await chat.context(user("So?")))
    for seq in (2, 3, 1, 2):
        await chat.switch(seq)
        taken.append(await chat.context(user("So?")))
    for one in taken:
        assert (await chat.rebuild(one.manifest)).request == one.request
        again = await chat.context(user("So?"), at=one.manifest.rev)
        assert again.request == one.request


async def test_digests_come_back_without_a_model(store: Store) -> None:
    model = Scripted(then=says_each)
    policy = policies.rolling(threshold=4, keep_last=2)
    async with open_on(store, model=model, policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*(user(f"old {number}") for number in range(6)))
        await memory.wait_for_digests()
        before, asked = await chat.context(user("So?")), len(model.calls)
        assert asked
        await chat.append(*(user(f"new {number}") for number in range(6)), at=1)
        await memory.wait_for_digests()
        asked = len(model.calls)
        await chat.switch(5)
        assert (await chat.context(user("So?"))).request == before.request
        standing = [row for row in await chat.digests() if row.status is Status.COMPLETED]
        assert [row.end for row in standing] == [3]
        await chat.append(user("So?"))
        await memory.wait_for_digests()
        told = json.dumps([str(one.task) for one in model.calls[asked:]])
        assert "new" not in told, "a digest says nothing of another branch"


async def test_a_digest_in_progress_is_of_the_branch_that_was_left(store: Store) -> None:
    gate = Gate(says_each)
    async with open_on(
        store, model=Scripted([gate], then=says_each), policy=policies.rolling(threshold=4, keep_last=2)
    ) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("a"), user("b"))
        await chat.append(*(user(f"new {number}") for number in range(4)), at=0)
        await gate.reached()
        await chat.switch(1)
        gate.open()
        await memory.wait_for_digests()
        assert [row.status for row in await chat.digests()] == [Status.SUPERSEDED]
        assert "new" not in str((await chat.context(user("So?"))).request)


async def test_only_what_is_shown_is_found_and_known(store: Store) -> None:
    async with open_on(store, model=Scripted(then=hears)) as memory:
        chat, facts = memory.conversation("c", scope=SCOPE), memory.facts(SCOPE)
        await chat.append(user("I live in Lisbon."), assistant("Noted."))
        await chat.finish()
        await memory.wait_for_digests()
        await chat.append(user("I live in Porto."), assistant("Noted."), at=-1)
        await chat.finish()
        for shows, other in (("Porto", "Lisbon"), ("Lisbon", "Porto"), ("Porto", "Lisbon")):
            await memory.wait_for_digests()
            await memory.wait_for_index()
            found = await memory.recall("Where do I live?", scope=SCOPE)
            said = str([hit.text for hit in found.hits if hit.kind == "message"])
            assert shows in said
            assert other not in said
            known = [one.content for one in await facts.list() if one.state is FactState.CURRENT]
            assert [one for one in known if "live" in one] == [f"I live in {shows}."]
            await chat.switch(0 if shows == "Porto" else 2)
