"""What was told in one conversation is known in the next, by default: for one user and one agent, and where it bears on
the question."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hitherto import Context, Memory, RecallOptions, Scope, assistant, user
from hitherto.errors import InvalidInput
from hitherto.store.store import Store
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.memories import open_on

BREAD = "My sourdough needs eleven hours at twenty degrees."
ASKED = "How long does my sourdough need?"


@asynccontextmanager
async def opened(store: Store, **given: Any) -> AsyncGenerator[Memory]:
    async with open_on(store, worker=False, **given) as memory:
        await told(memory, SCOPE)
        yield memory


async def told(memory: Memory, scope: Scope, text: str = BREAD, name: str = "monday") -> None:
    await memory.conversation(name, scope=scope).append(user(text), assistant("Good to know."))


async def asked(memory: Memory, question: str = ASKED, *, name: str = "friday", **options: Any) -> Context:
    chat = memory.conversation(name, scope=SCOPE)
    context = await chat.context(user(question), **options)
    await check(chat, context)
    return context


def shows(context: Context, text: str = BREAD) -> bool:
    return any(text in str(one["content"]) for one in context.messages)


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with opened(store) as found:
        yield found


async def test_a_new_conversation_knows_what_was_told(memory: Memory) -> None:
    context = await asked(memory)
    assert shows(context)
    assert [one.conversation for one in context.manifest.recalled] == ["monday"]


async def test_one_that_has_begun_knows_it_too(memory: Memory) -> None:
    await told(memory, SCOPE, "We bake on Sundays.", "friday")
    assert shows(await asked(memory))


@pytest.mark.parametrize("policy", ["none", "rolling", "trim", "summarize", "redact", "token_threshold", "chunks"])
async def test_other_policies_are_as_they_were(memory: Memory, policy: str) -> None:
    assert not shows(await asked(memory, policy=policy))


async def test_another_user_and_another_agent_stay_apart(memory: Memory) -> None:
    """The same agent's alone, unless all of the user's agents are asked for."""
    for scope in (replace(SCOPE, user="somebody else"), replace(SCOPE, tenant="elsewhere")):
        await told(memory, scope, "My sourdough needs twelve hours.")
    await told(memory, replace(SCOPE, agent="another"), "My sourdough needs thirteen hours.")
    context = await asked(memory)
    assert not shows(context, "twelve")
    assert not shows(context, "thirteen")
    everybody = await asked(memory, recall=RecallOptions(all_agents=True))
    assert shows(everybody, "thirteen")
    assert not shows(everybody, "twelve")


async def test_where_from_is_said_in_one_place_or_another(store: Store) -> None:
    """By the request, the conversation, its agent, the setting: the first that says."""
    async with opened(store, recall="own") as memory:
        assert not shows(await asked(memory))
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, recall="scope")
        assert shows(await asked(memory))
        chat = memory.conversation("friday", scope=SCOPE)
        await chat.configure(recall="off")
        assert not shows(await asked(memory))
        await chat.configure(cross_session=())
        assert not shows(await asked(memory)), "what is not given stays as it is"
        assert shows(await asked(memory, recall="scope"))
        assert not shows(await asked(memory, recall="own"))
        assert shows(await asked(memory, recall="scope", policy="rolling"))
        with pytest.raises(InvalidInput, match="recall is 'everywhere'"):
            await asked(memory, recall="everywhere")
        with pytest.raises(InvalidInput, match="recall is 'everywhere'"):
            await chat.configure(recall="everywhere")  # pyright: ignore[reportArgumentType]


async def test_what_has_nothing_to_do_with_it_takes_next_to_no_room(memory: Memory) -> None:
    for number in range(40):
        await told(memory, SCOPE, f"Shelf {number} of the archive holds maps of the coast.", f"shelf {number}")
    context = await asked(memory, "Which bolts fit the gearbox of a tractor?")
    assert context.manifest.sections.get("recalled", 0) <= 150


async def test_the_few_best_are_shown_however_little_they_score(memory: Memory) -> None:
    """In other words than the answer."""
    await told(memory, SCOPE, "My bicycle is green.", "tuesday")
    context = await asked(memory, "What color is my bike?")
    assert shows(context, "My bicycle is green.")
    assert context.manifest.sections["recalled"] <= 200


async def test_the_conversation_itself_comes_first(memory: Memory) -> None:
    """Where its own messages are cut, others take at most half of what is recalled."""
    for number in range(30):
        await told(memory, SCOPE, f"Sourdough note {number}: it needs {number} hours and much patience.", f"n{number}")
        own = f"Here in this conversation, sourdough loaf {number} needs {number} hours at home."
        await told(memory, SCOPE, own, "friday")
    context = await asked(memory, budget=600)
    tokens = {True: 0, False: 0}
    for one in context.manifest.recalled:
        tokens[one.conversation == "friday"] += one.tokens
    assert tokens[False] > 0
    assert tokens[True] >= 0.8 * tokens[False]


async def test_where_there_is_nothing_else_nothing_is_searched(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_on(store, worker=False) as memory:
        await told(memory, SCOPE, name="friday")

        def searched(*_: object, **__: object) -> object:
            raise AssertionError("it was searched")

        monkeypatch.setattr(type(store.index), "search_data", searched)
        assert shows(await asked(memory))
        monkeypatch.undo()
        await told(memory, SCOPE)
        assert (await asked(memory)).manifest.recalled
