"""Which known facts a digest's model is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import hitherto
from hitherto import Call, assistant, tool_result, user
from hitherto.core.facts.known import MOST_SHOWN
from hitherto.ports.models import Embeddings
from hitherto.providers.scripted import Scripted, ScriptedEmbedder
from hitherto.providers.wordllama import Wordllama
from hitherto.store.store import Store
from tests.acceptance.family import ANA, BEN, ROSA, Says, dialogue, fact, listener, material, opened
from tests.engine.facts.reviewing import CITIES, added

QUARTET = "Was a violinist in a string quartet."
VIOLIN = Says("Mum played the violin and the cello.", "hobby", "Played the violin.", again=QUARTET)
"""It has no word in common with QUARTET."""

TOWNS = tuple(f"Once visited the town number {at}." for at in range(45))


def shown(model: Scripted) -> list[str]:
    """The known facts that the model was shown first, in their order."""
    return [one["content"] for one in material(model.calls[0]) if "known" in one]


async def filled(memory: hitherto.Memory, *contents: str, category: str = "hobby") -> None:
    await added(memory.facts(ANA, subject=ROSA), *contents, category=category)
    await memory.wait_for_index()


async def test_few_are_all_shown_the_most_relevant_first(store: Store) -> None:
    """A model that can read little is shown the first of them only."""
    model, small = Scripted(then=listener()), Scripted(then=listener(), input_limit=2_000)
    async with opened(store, model=model) as memory:
        await filled(memory, QUARTET, *TOWNS[1:MOST_SHOWN])
        await dialogue(memory, "a", "Her quartet was her life.")
    assert sorted(shown(model)) == sorted([QUARTET, *TOWNS[1:MOST_SHOWN]])
    assert shown(model)[0] == QUARTET
    await store.open()
    async with opened(store, model=small) as memory:
        await dialogue(memory, "b", "Her quartet was her life.")
    assert 0 < len(shown(small)) < MOST_SHOWN
    assert shown(small)[0] == QUARTET


async def test_of_many_those_near_in_meaning(store: Store) -> None:
    """What other members share is not among them."""
    model = Scripted(then=listener(VIOLIN))
    async with opened(store, model=model, embedder=Wordllama()) as memory:
        await filled(memory, QUARTET, *TOWNS)
        bens = memory.facts(BEN, subject=ROSA)
        await bens.share((await bens.add("Ben heard her play the violin.", category="hobby")).id)
        await memory.wait_for_index()
        await dialogue(memory, "a", VIOLIN.text)
        assert len(shown(model)) == MOST_SHOWN
        assert QUARTET in shown(model)[:5]
        assert "Ben heard her play the violin." not in shown(model)
        assert (await fact(memory, QUARTET)).repeated == 1


async def test_of_many_by_words_where_an_embedder_would_have_to_be_called(store: Store) -> None:
    model, embedder = Scripted(then=listener()), ScriptedEmbedder()
    async with opened(store, model=model, embedder=embedder) as memory:
        await filled(memory, QUARTET, *TOWNS)
        chat = memory.conversation("a", scope=ANA, subject=ROSA)
        await chat.append(user("Her quartet was her life."), assistant("I see."))
        await memory.wait_for_index()
        before = len(embedder.calls)
        await chat.append(user("That is all."), assistant("I see."))
        await memory.wait_for_digests()
        assert {text for call in embedder.calls[before:] for text in call.texts}.isdisjoint(
            {"Her quartet was her life."}
        )
    assert len(shown(model)) == MOST_SHOWN
    assert shown(model)[0] == QUARTET


class Failing(Wordllama):
    """Fails for a text of a user's: with an error, or without one and for ever."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        if any("her life" in text for text in texts):
            if self.error is None:
                await asyncio.Event().wait()
            else:
                raise self.error
        return await super().documents(texts)


@pytest.mark.parametrize("error", [ValueError("a defect"), None])
async def test_an_embedder_that_fails_costs_no_digest(
    store: Store, error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Words decide then."""
    model = Scripted(then=listener())
    async with opened(store, model=model, embedder=Failing(error), embedder_timeout=0.2) as memory:
        await filled(memory, QUARTET, *TOWNS)
        chat = memory.conversation("a", scope=ANA, subject=ROSA)
        await chat.append(user("Her quartet was her life."), assistant("I see."), user("Well."), assistant("Yes."))
        await memory.wait_for_digests()
        assert [row.status.value for row in await chat.digests()] == ["completed"]
    assert shown(model)[0] == QUARTET
    assert "the known facts that a model is shown are chosen by words only" in caplog.text


async def test_tools_choose_no_facts(store: Store) -> None:
    """Facts are what people say."""
    model = Scripted(then=listener())
    async with opened(store, model=model) as memory:
        await filled(memory, QUARTET, *TOWNS)
        chat = memory.conversation("a", scope=ANA, subject=ROSA)
        await chat.append(
            user("Look it up."),
            assistant(calls=[Call(id="1", name="search", arguments='{"q": "quartet"}')]),
            tool_result("1", "A quartet is four players."),
            assistant("Done."),
            user("Well."),
            assistant("Yes."),
        )
        await memory.wait_for_digests()
    assert shown(model) == list(reversed(TOWNS))[:MOST_SHOWN], "the newest, as nothing bears on it"


async def test_a_value_that_may_be_replaced_is_always_shown(store: Store) -> None:
    model = Scripted(then=listener())
    async with opened(store, model=model, **CITIES) as memory:
        await filled(memory, "Lives in Turin.", category="current city")
        await filled(memory, *TOWNS)
        await dialogue(memory, "a", "She has moved.")
    assert shown(model)[0] == "Lives in Turin."
    assert len(shown(model)) == MOST_SHOWN
