"""What rests on messages whose time has come is shown nowhere, in other conversations and in digests that restate it
neither;, and where nothing tidies up in the background."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import hitherto
from hitherto import Conversation, Memory, assistant, user
from hitherto.core.digests.digest import Status
from hitherto.core.recall.filter import EntryKind
from hitherto.engine.context.recalled import RecallOptions
from hitherto.errors import NotReproducible
from hitherto.providers.scripted import Gate, Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY, says_each
from tests.conftest import SCOPE
from tests.memories import open_on
from tests.store.samples import write

SECRET = "zanzibar"
PAST = timedelta(seconds=-1)

Shown = Callable[[Memory, Conversation], Awaitable[object]]


async def unnoticed(store: Store, chat: Conversation) -> None:
    """A turn whose question's time has come, of which nobody knows yet; what it is too short for to be digested."""
    secret = user(f"The password is {SECRET}.").expiring(datetime.now(UTC) + PAST)
    await chat.append(secret, assistant("I see."))
    await write(store, chat.id, scope=chat.scope, next_expiry=None, same_rev=True)


async def noticed(store: Store, chat: Conversation) -> None:
    """From now on it waits to be erased."""
    await write(store, chat.id, scope=chat.scope, next_expiry=datetime.now(UTC) + PAST, same_rev=True)


def sail(call: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call, "name": "sail", "arguments": "{}"}


def sailed(call: str, says: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": says}


@asynccontextmanager
async def told(store: Store, policy: hitherto.Policy) -> AsyncGenerator[tuple[Memory, Conversation]]:
    """A memory that tidies nothing, and a new conversation beside one that said the secret: its digest, archive and
    index have it."""
    async with open_on(store, embedder="none") as memory:
        chat = memory.conversation("old", scope=SCOPE, policy=policy)
        await unnoticed(store, chat)
        for number in range(3):
            await chat.append(user(f"Question {number}?"), assistant(f"Answer {number}."))
            await memory.wait_for_digests()
        await memory.wait_for_index()
        assert any(SECRET in row.text for row in await chat.digests())
    async with open_on(store, embedder="none", worker=False, relevance_threshold=0.0) as memory:
        yield memory, memory.conversation("new", scope=SCOPE, policy="none")


async def recalled(memory: Memory, new: Conversation) -> object:
    return [hit.text for hit in (await memory.recall(SECRET, scope=SCOPE)).hits]


async def listed(memory: Memory, new: Conversation) -> object:
    documents = memory.documents(SCOPE)
    return [document.text for document in await documents.list()]


async def opened(memory: Memory, new: Conversation) -> object:
    return [await memory.documents(SCOPE).get(number) for number in range(1, 5)]


async def digests(memory: Memory, new: Conversation) -> object:
    return [(row.text, row.items) for row in await memory.conversation("old", scope=SCOPE).digests()]


async def injected(memory: Memory, new: Conversation) -> object:
    return await new.injected(cross_session="latest")


def in_context(**options: Any) -> Shown:
    async def shown(memory: Memory, new: Conversation) -> object:
        context = await new.context(user("What did we say of the password?"), budget=PLENTY, **options)
        return context.request

    return shown


SHOWN: dict[str, Shown] = {
    "recall": recalled,
    "documents": listed,
    "document": opened,
    "digests": digests,
    "injected": injected,
    "context with injection": in_context(cross_session="latest"),
    "context with injection, without facts": in_context(cross_session="latest", facts=False),
    "context with recall": in_context(recall=RecallOptions(min_score=0.0)),
    "context with recall, without facts": in_context(recall=RecallOptions(min_score=0.0), facts=False),
    "context across sessions": in_context(cross_session="always"),
}

POLICIES = {
    "archive": hitherto.token_threshold(30, keep_messages=2, archive=True),
    "chunks": hitherto.chunks(threshold=3, batch=2, context=2),
}


class TestElsewhere:
    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("how", SHOWN)
    async def test_it_is_shown_by_no_verb(self, store: Store, policy: str, how: str) -> None:
        async with told(store, POLICIES[policy]) as (memory, new):
            await noticed(store, memory.conversation("old", scope=SCOPE))
            assert SECRET not in repr(await SHOWN[how](memory, new))
            assert SECRET not in repr([await verb(memory, new) for verb in SHOWN.values()])
            left = await memory.conversation("old", scope=SCOPE).messages()
            assert [one.erased for one in left] == [True] + [False] * 7, "and erased, as soon as anybody looks"

    async def test_they_do_show_it_before(self, store: Store) -> None:
        """Each of them, so that the test above is about something."""
        async with told(store, POLICIES["archive"]) as (memory, new):
            seen = {name for name, verb in SHOWN.items() if SECRET in repr(await verb(memory, new))}
        assert seen == set(SHOWN)

    async def test_a_manifest_does_not_bring_it_back(self, store: Store) -> None:
        async with told(store, POLICIES["chunks"]) as (memory, new):
            made = await new.context(
                user(f"What of {SECRET}?"), budget=PLENTY, recall=RecallOptions(min_score=0.0), cross_session="latest"
            )
            assert SECRET in json.dumps(made.request).replace(f"What of {SECRET}?", "")
            assert (await new.rebuild(made.manifest)).request == made.request
            await noticed(store, memory.conversation("old", scope=SCOPE))
            with pytest.raises(NotReproducible):
                await new.rebuild(made.manifest)

    async def test_a_manifest_brings_back_what_does_not_rest_on_it(self, store: Store) -> None:
        async with open_on(store, embedder="none") as memory:
            old = memory.conversation("old", scope=SCOPE, policy=POLICIES["archive"])
            for number in range(3):
                await old.append(user(f"Question {number}?"), assistant(f"Answer {number}."))
                await memory.wait_for_digests()
            await memory.wait_for_index()
            new = memory.conversation("new", scope=SCOPE)
            made = await new.context("What was answer 1?", recall=RecallOptions(kinds=frozenset({EntryKind.PASSAGE})))
            assert made.manifest.recalled
            await unnoticed(store, old)
            await noticed(store, old)
            assert (await new.rebuild(made.manifest)).request == made.request

    async def test_calls_on_both_sides_of_its_place_are_one_group(self, store: Store) -> None:
        """Where it was taken back, and the calls are of one answer: whether it is erased yet or not."""
        async with open_on(store, embedder="none") as memory:
            old = memory.conversation("old", scope=SCOPE)
            await old.append(user("Sail, please."), sail("a"))
            await unnoticed(store, old)
            await old.rewind(to=1)
            await old.append(sail("b"), sailed("a", "Porto is quiet."), sailed("b", "The harbor of Lisbon is full."))
            await memory.wait_for_index()
            new = memory.conversation("new", scope=SCOPE)
            made = await new.context("Is the harbor of Lisbon full?", recall=True)
            assert [(one.start, one.end) for one in made.manifest.recalled] == [(1, 6)]
            await noticed(store, old)
            assert (await new.context("Is the harbor of Lisbon full?", recall=True)).request == made.request
            await memory.purge_expired()
            assert (await new.context("Is the harbor of Lisbon full?", recall=True)).request == made.request
            assert (await new.rebuild(made.manifest)).request == made.request


class TestRestated:
    """A window that moves on: the model restates a statement that rests on both sides of its edge."""

    @staticmethod
    async def restated(memory: Memory, store: Store) -> Conversation:
        """Digests of which the last has the secret in a statement that names none of the secret's messages."""
        chat = memory.conversation("c", scope=SCOPE, policy=hitherto.sliding_window(window=4, after_seq=3))
        await unnoticed(store, chat)
        for number in range(3):
            await chat.append(user(f"Question {number}?"), assistant(f"Answer {number}."))
            await memory.wait_for_digests()
        return chat

    async def test_a_restated_statement_is_gone_with_what_left_the_window(self, store: Store) -> None:
        both = (f"They share {SECRET}.", [0, 2])
        model = Scripted([items(both), items(replace={1: (f"Still {SECRET}.", [4])})], then=says_each)
        async with open_on(store, model=model, **ONE_TRY) as memory:
            chat = await self.restated(memory, store)
            last = (await chat.digests())[1]
            assert (last.start, last.text) == (2, f"Still {SECRET}.")
            assert [(item.sources, item.earlier) for item in last.items] == [(((2, 2), (4, 4)), ((0, 0),))]
            await noticed(store, chat)
            assert SECRET not in json.dumps((await chat.context(user("?"), budget=PLENTY)).request)
            assert SECRET not in repr(await chat.digests())

    async def test_a_digest_in_progress_that_builds_on_it_loses_its_claim(self, store: Store) -> None:
        gate = Gate(items(replace={1: (f"Still {SECRET}.", [4])}))
        model = Scripted([items((f"They share {SECRET}.", [0, 2])), gate], then=says_each)
        async with open_on(store, model=model, **ONE_TRY) as memory:
            chat = memory.conversation("c", scope=SCOPE, policy=hitherto.sliding_window(window=4, after_seq=3))
            await unnoticed(store, chat)
            await chat.append(user("Question 0?"), assistant("Answer 0."))
            await memory.wait_for_digests()
            await chat.append(user("Question 1?"), assistant("Answer 1."))
            await gate.reached()
            await noticed(store, chat)
            await memory.purge_expired()
            gate.open()
            await memory.wait_for_digests()
            rows = await chat.digests()
            assert [row.status for row in rows] == [Status.SUPERSEDED, Status.SUPERSEDED]
            assert SECRET not in repr(rows)
