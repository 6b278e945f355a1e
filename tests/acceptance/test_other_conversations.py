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
    await memory.conversation(name, scope=scope).append(user(text), assistant("I have noted that."))


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
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, recall=False)
        assert not shows(await asked(memory))
        await memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, recall=True)
        assert shows(await asked(memory))
        chat = memory.conversation("friday", scope=SCOPE)
        await chat.configure(recall="off", create=True)
        assert not shows(await asked(memory))
        await chat.configure(cross_session=(), create=True)
        assert not shows(await asked(memory)), "what is not given stays as it is"
        assert shows(await asked(memory, recall="scope"))
        assert not shows(await asked(memory, recall="own"))
        assert shows(await asked(memory, recall="scope", policy="rolling"))
        with pytest.raises(InvalidInput, match="recall is 'everywhere'"):
            await asked(memory, recall="everywhere")
        with pytest.raises(InvalidInput, match=r'recall is 0; give a number of hits .* or "off" \(False\) for none'):
            await asked(memory, recall=0)
        with pytest.raises(InvalidInput, match="recall is 'everywhere'"):
            await chat.configure(recall="everywhere", create=True)  # pyright: ignore[reportArgumentType]


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


async def test_a_heading_names_the_conversation_and_the_day(store: Store) -> None:
    """By the title that it was given; a rebuilt context has it as it was."""
    async with opened(store) as memory:
        monday, chat = (memory.conversation(name, scope=SCOPE) for name in ("monday", "friday"))
        await monday.configure(title="Baking\n# days", create=True)
        context = await asked(memory)
        (said,) = await monday.messages(limit=1)
        heading = f'{said.said_at.date()}, conversation "Baking\\n# days":'
        assert shows(context, heading)
        await monday.configure(title="Bread", create=True)
        assert (await chat.rebuild(context.manifest)).messages == context.messages


SEVEN_FACTS = (
    (
        ("My bicycle is green.", "What color is my bike?"),
        ("Our dog is called Pixel.", "Remind me: what is my dog called?"),
        ("I am allergic to hazelnuts.", "Which food must I avoid?"),
        ("My sister lives in Porto.", "Where does my sister live?"),
        ("I start my new job at the harbor office on 3 March.", "When do I begin to work there?"),
        ("On Thursdays I play badminton with Nora.", "Which sport do I do with Nora?"),
        ("The code of the garage door is 4471.", "What was the garage code again?"),
    ),
    (
        ("I drink my coffee without sugar.", "How do I take my coffee?"),
        ("My passport expires in August.", "Until when is my passport valid?"),
        ("We named our son Emil.", "What is the name of my son?"),
        ("I am reading a book about the Vikings.", "Which book am I reading?"),
        ("My flight to Oslo leaves at seven in the morning.", "Could you tell me when my plane leaves, please?"),
        ("The plumber comes on Tuesday.", "Who comes on Tuesday?"),
        ("I used to be a nurse.", "What did I work as before?"),
    ),
    (
        ("I take the tram to work, line nine.", "How do I get to work?"),
        ("My guitar is a Spanish one from 1962.", "How old is my guitar?"),
        ("I can't stand horror movies.", "Should we watch a horror movie?"),
        ("My grandmother turns ninety in October.", "When is my grandma's birthday?"),
        ("We keep three hens in the garden.", "How many hens do we have?"),
        ("My favorite color is turquoise.", "Which color do I like best?"),
    ),
)

OF_SOMETHING_ELSE = (
    "Write a haiku about snow.",
    "How do I reverse a list in Python?",
    "What is the capital of Mongolia?",
    "Translate 'good evening' into Greek.",
    "Explain photosynthesis to a child.",
    "Who wrote Don Quixote?",
    "Convert 30 miles into kilometers.",
    "Give me a synonym for happy.",
    "Why is the sky blue?",
    "Draft an apology to a customer whose parcel was late.",
    "How does a heat pump function?",
    "List the planets by size.",
    "What does HTTP status 418 mean?",
    "Suggest a title for a talk on queues.",
    "Which spices belong in a curry?",
    "Summarize the plot of Hamlet.",
    "How long should I boil an egg?",
    "What is the square root of 529?",
    "Compare TCP with UDP.",
    "Tell me a joke about penguins.",
)


async def test_of_seven_facts_the_right_one_is_shown(store: Store) -> None:
    """In other words than they were told, and with a request around it; and little where something else is asked."""
    assert sum(map(len, SEVEN_FACTS)) == len(OF_SOMETHING_ELSE) == 20
    missed: list[str] = []
    async with open_on(store, worker=False) as memory:
        for number, pairs in enumerate(SEVEN_FACTS):
            scope = replace(SCOPE, user=f"user {number}")
            for day, (fact, _) in enumerate(pairs):
                await told(memory, scope, fact, f"day {day}")
            await memory.wait_for_index()
            chat = memory.conversation("new", scope=scope)
            missed += [question for fact, question in pairs if not shows(await chat.context(user(question)), fact)]
            for request in OF_SOMETHING_ELSE:
                context = await chat.context(user(request))
                assert context.manifest.sections.get("recalled", 0) <= 150, request
    assert len(missed) <= 1, missed


async def test_no_more_than_the_limit_is_recalled(memory: Memory) -> None:
    """However many conversations it is from, whatever else is shown beside it."""
    await memory.conversation("long", scope=SCOPE).append(
        *[user(f"Sourdough {number} stood in the cellar for a whole night.") for number in range(80)]
    )
    for number in range(6):
        await told(memory, SCOPE, f"Sourdough {number} is sour.", f"bread {number}")
    for limit, cross_session in ((6, ()), (1, "always")):
        context = await asked(
            memory, "Which sourdough?", name="long", budget=1_000, recall=limit, cross_session=cross_session
        )
        assert len([one for one in context.manifest.recalled if one.why == "request"]) == limit
