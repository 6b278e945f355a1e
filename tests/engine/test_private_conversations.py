"""A private conversation reads nothing of others and leaves nothing to them."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

import hitherto
from hitherto import Conversation, Memory, RecallOptions, assistant, user
from hitherto.core.digests.digest import Status
from hitherto.errors import InvalidInput
from hitherto.providers.scripted import Gate, Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY
from tests.conftest import SCOPE
from tests.memories import open_on

SECRET = "zanzibar"
QUESTION = "What did we say of the password?"
OTHER = replace(SCOPE, agent="another")

POLICIES = {
    "archive": hitherto.token_threshold(30, keep_messages=2, archive=True),
    "chunks": hitherto.chunks(threshold=3, batch=2, context=2),
}

Shown = Callable[[Memory, Conversation], Awaitable[object]]


async def tell(memory: Memory, name: str, policy: str = "archive", **given: Any) -> Conversation:
    """A conversation with the secret in its messages, and in its digests or its archive."""
    chat = memory.conversation(name, scope=SCOPE, policy=POLICIES[policy], **given)
    await chat.append(user(f"The password is {SECRET}."), assistant("I see."))
    for number in range(3):
        await chat.append(user(f"Question {number}?"), assistant(f"Answer {number}."))
        await memory.wait_for_digests()
    assert any(SECRET in row.text for row in await chat.digests())
    return chat


async def found(memory: Memory, new: Conversation) -> object:
    return (await memory.recall(SECRET, scope=SCOPE)).hits


async def found_by_others(memory: Memory, new: Conversation) -> object:
    return (await memory.recall(SECRET, scope=OTHER, all_agents=True)).hits


async def listed(memory: Memory, new: Conversation) -> object:
    return await memory.documents(SCOPE).list()


async def injected(memory: Memory, new: Conversation) -> object:
    return await new.injected(cross_session="latest")


def in_context(question: str = QUESTION, **options: Any) -> Shown:
    async def shown(memory: Memory, new: Conversation) -> object:
        return (await new.context(user(question), budget=PLENTY, **options)).request

    return shown


SHOWN: dict[str, Shown] = {
    "recall": found,
    "recall by another agent": found_by_others,
    "documents": listed,
    "injected": injected,
    "context": in_context(),
    "context with injection": in_context(cross_session="latest"),
    "context with recall": in_context(recall=RecallOptions(min_score=0.0)),
    "context of all agents": in_context(recall=RecallOptions(all_agents=True)),
    "context with chunks": in_context(policy=POLICIES["chunks"], recall="own"),
    "context across sessions": in_context(cross_session="always"),
    "context with the newest summaries": in_context("What did we say?", recall="own", cross_session="triggers"),
}


async def showing(memory: Memory, new: Conversation) -> set[str]:
    return {name for name, verb in SHOWN.items() if SECRET in repr(await verb(memory, new))}


def opened(store: Store, **given: Any) -> Any:
    return open_on(store, embedder="none", relevance_threshold=0.0, search_triggers=["what did we say"], **given)


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
async def test_it_leaves_nothing_to_others(store: Store, policy: str, indexed: bool) -> None:
    no_summary = {"documents", "injected", "context with the newest summaries"} if policy == "chunks" else set[str]()
    everywhere = set(SHOWN) - no_summary
    async with opened(store) as memory:
        old = await tell(memory, "old", policy)
        if indexed:
            await memory.wait_for_index()
        new = memory.conversation("new", scope=SCOPE)
        assert await showing(memory, new) == everywhere
        await old.configure(remember=False, create=True)
        assert await showing(memory, new) == set()
        await tell(memory, "another", policy, remember=False)
        assert await showing(memory, new) == set()
        assert SECRET in repr((await memory.recall(SECRET, scope=SCOPE, conversation="old")).hits)
        assert {one.conversation for one in (await memory.conversations(SCOPE)).conversations} == {"old", "another"}
        await old.configure(remember=True, create=True)
        assert await showing(memory, new) == everywhere


@pytest.mark.parametrize("policy", POLICIES)
async def test_it_reads_nothing_of_others(store: Store, policy: str) -> None:
    async with opened(store) as memory:
        await tell(memory, "old", policy)
        await memory.documents(SCOPE).add(f"The password: {SECRET}.")
        await memory.facts(SCOPE).add(f"Their password is {SECRET}", category="other")
        private = memory.conversation("new", scope=SCOPE, remember=False, policy=POLICIES[policy])
        ways = set(SHOWN) - {"recall", "recall by another agent", "documents"}
        for began in (False, True):
            assert not ways & await showing(memory, private)
            assert await private.known() is None
            if not began:
                await private.append(user("The sea is near."), assistant("Good."), user("And blue."))
        context = await private.context(user("What of the sea?"), facts=True, cross_session=["latest", "always"])
        assert (context.manifest.facts, context.manifest.injected, context.manifest.recalled) == (None, None, [])


async def test_it_recalls_from_itself(store: Store) -> None:
    async with opened(store) as memory:
        chat = memory.conversation("c", scope=SCOPE, remember=False)
        await chat.append(user(f"The password is {SECRET}."), assistant("I see."))
        for number in range(40):
            await chat.append(user(f"What of ship {number}?"), assistant("It sails along the coast until the winter."))
        context = await chat.context(user(QUESTION), budget=400)
        assert [one.conversation for one in context.manifest.recalled] == ["c"] * len(context.manifest.recalled)
        assert SECRET in repr(context.request)


async def test_what_is_private_takes_no_place_of_others(store: Store) -> None:
    """However much better it matches."""
    async with opened(store) as memory:
        await memory.conversation("old", scope=SCOPE).append(user("It is said that a password was chosen once."))
        chat = memory.conversation("c", scope=SCOPE, remember=False)
        await chat.append(*[user(f"The password, password number {number}.") for number in range(200)])
        for _ in range(2):
            hits = (await memory.recall("password", scope=SCOPE)).hits
            assert [hit.conversation for hit in hits] == ["old"]
            await memory.wait_for_index()


async def test_no_facts_are_learned_from_it(store: Store) -> None:
    model = Scripted(then=items(("They sail.", [0]), facts=[("hobby", f"Sails to {SECRET}", [0])]))
    policy = hitherto.sliding_window(window=2, after_seq=1, facts=True)
    async with open_on(store, model=model) as memory:
        for name, remember in {"private": False, "public": None}.items():
            chat = memory.conversation(name, scope=SCOPE, policy=policy, remember=remember)
            for _ in range(2):
                await chat.append(user(f"I sail to {SECRET}."), assistant("I see."))
                await memory.wait_for_digests()
            assert await chat.digests()
            assert len(await memory.facts(SCOPE).list()) == (name == "public")


async def test_it_is_not_read_for_facts(store: Store) -> None:
    """Also where it becomes private while it is read, or is private no more."""
    gate = Gate(items(facts=[("hobby", f"Sails to {SECRET}", [0])]))
    model = Scripted([gate], then=items(facts=[]))
    async with open_on(store, model=model, budget=100_000) as memory:
        for name, remember in {"public": None, "private": False}.items():
            chat = memory.conversation(name, scope=SCOPE, remember=remember)
            await chat.append(user(f"I sail to {SECRET}. " + "word " * 2_000), assistant("I see."))
            if name == "public":
                await gate.reached()
                await chat.configure(remember=False, create=True)
                gate.open()
            await memory.wait_for_digests()
            await chat.append(user("And back."), assistant("I see."))
            await memory.wait_for_digests()
            assert {one.status for one in await chat.digests()} == ({Status.COMPLETED} if name == "public" else set())
            assert (head := await chat.head()) is not None
            assert head.facts_due_at is None
        assert len(model.calls) == 1
        assert await memory.facts(SCOPE).list() == []
        public = memory.conversation("public", scope=SCOPE)
        await public.configure(remember=True, create=True)
        await public.append(user("I dive."), assistant("word " * 2_000))
        await memory.wait_for_digests()
        assert [(one.start, one.status) for one in await public.digests()] == [(0, "completed"), (2, "completed")]


async def test_an_export_says_so(store: Store) -> None:
    async with opened(store) as memory:
        await tell(memory, "old", remember=False)
        file = io.BytesIO()
        await memory.export_to(file, tenant=SCOPE.tenant)
        await memory.erase_tenant(SCOPE.tenant)
        file.seek(0)
        assert (await memory.import_from(file)).conversations == 1
        assert await showing(memory, memory.conversation("new", scope=SCOPE)) == set()


async def test_it_is_said_by_true_and_false_alone(store: Store) -> None:
    async with opened(store) as memory:
        with pytest.raises(InvalidInput, match="remember is 'no'"):
            memory.conversation("c", scope=SCOPE, remember="no")  # pyright: ignore[reportArgumentType]
        chat = memory.conversation("c", scope=SCOPE, remember=False)
        with pytest.raises(InvalidInput, match="remember is 0"):
            await chat.configure(remember=0, create=True)  # pyright: ignore[reportArgumentType]
        await chat.append(user("Hello."))
        await chat.configure(remember=True, create=True)
        await chat.append(user("Hello again."))
        head = await chat.head()
        assert head is not None
        assert not head.private
