"""Which of many known facts a digest's model is shown; on both stores."""

from __future__ import annotations

import pytest

import hitherto
from hitherto.core.facts.known import MOST_SHOWN
from hitherto.errors import ModelRejected, ModelUnavailable
from hitherto.ports.embedder import Vectors
from hitherto.ports.store import Store
from hitherto.providers.scripted.embedder import Reply, ScriptedEmbedder
from hitherto.providers.scripted.model import Scripted
from tests.acceptance.family import ANA, BEN, ROSA, Says, dialogue, fact, listener, material, opened
from tests.engine.facts.reviewing import added

ORCHESTRA = "Belonged to a string quartet."
FIDDLE = Says("Mum and her fiddle!", "hobby", "Played in a quartet.", again=ORCHESTRA)
TOWNS = tuple(f"Once visited the town number {at}." for at in range(45))
VECTORS = {
    ORCHESTRA: (1.0, -0.1, -0.1, -0.1),
    FIDDLE.text: (0.9, -0.1, -0.1, -0.1),
    "I see.": (-0.1, -1.0, -1.0, 1.0),
    **{town: (-1.0, 1.0, 1.0 if at % 2 else -1.0, -1.0) for at, town in enumerate(TOWNS)},
}
"""The first two are near each other, without a word in common."""


def embedder_with(then: Reply = None) -> ScriptedEmbedder:
    return ScriptedEmbedder(then=then, vectors=VECTORS, dimensions=4)


def shown(model: Scripted) -> list[str]:
    """The known facts that the model was shown first, in their order."""
    return [one["content"] for one in material(model.calls[0]) if "known" in one]


async def filled(memory: hitherto.Memory, *contents: str) -> None:
    await added(memory.facts(ANA, subject=ROSA), *contents, category="hobby")
    await memory.wait_for_index()


async def test_few_are_all_shown_and_nothing_is_embedded_for_it(store: Store) -> None:
    model, embedder = Scripted(then=listener()), embedder_with()
    async with opened(store, model=model, embedder=embedder) as memory:
        await filled(memory, *TOWNS[:MOST_SHOWN])
        await dialogue(memory, "a", FIDDLE.text)
    assert sorted(shown(model)) == sorted(TOWNS[:MOST_SHOWN])
    assert embedder.texts.count(FIDDLE.text) <= 1, "by the index alone"


async def test_of_many_those_near_in_meaning(store: Store) -> None:
    """What other members share is not among them. The call is in the ledger."""
    model, embedder = Scripted(then=listener(FIDDLE)), embedder_with()
    async with opened(store, model=model, embedder=embedder) as memory:
        await filled(memory, ORCHESTRA, *TOWNS)
        bens = memory.facts(BEN, subject=ROSA)
        await bens.share((await bens.add("Ben heard the quartet.", category="hobby")).id)
        await memory.wait_for_index()
        await dialogue(memory, "a", FIDDLE.text)
        assert len(shown(model)) == MOST_SHOWN
        assert shown(model)[0] == ORCHESTRA
        assert "Ben heard the quartet." not in shown(model)
        assert (await fact(memory, ORCHESTRA)).repeated == 1
        await memory.wait_for_index()
        calls = {one.group: one.calls for one in await memory.costs("purpose")}
        assert calls == {"digest": len(model.calls), "embed": len(embedder.calls)}


async def test_without_an_embedder_by_words(store: Store) -> None:
    model = Scripted(then=listener())
    async with opened(store, model=model) as memory:
        await filled(memory, ORCHESTRA, *TOWNS)
        await dialogue(memory, "a", "Her quartet was her life.")
    assert len(shown(model)) == MOST_SHOWN
    assert shown(model)[0] == ORCHESTRA


@pytest.mark.parametrize("error", [ModelUnavailable("away"), ModelRejected("no"), ValueError("a defect")])
async def test_an_embedder_that_fails_costs_no_digest(
    store: Store, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Words decide then."""
    broken = False

    def answer(vectors: Vectors) -> Vectors:
        if broken:
            raise error
        return vectors

    model = Scripted(then=listener())
    async with opened(store, model=model, embedder=embedder_with(answer), model_max_attempts=1) as memory:
        await filled(memory, ORCHESTRA, *TOWNS)
        broken = True
        chat = await dialogue(memory, "a", "Her quartet was her life.")
        assert [row.status.value for row in await chat.digests()] == ["completed"]
    assert shown(model)[0] == ORCHESTRA
    assert "the known facts that a model is shown are chosen by words only" in caplog.text
