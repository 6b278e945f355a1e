from __future__ import annotations

import asyncio
from typing import Any, cast

import numpy as np
import pytest

from hitherto.core.recall.vectors import Vectors
from hitherto.errors import InvalidEmbedding, ModelRateLimited, ModelUnavailable
from hitherto.ports.models import Embedder, Embeddings, usable
from hitherto.providers.scripted import (
    Delayed,
    EmbedCall,
    Hang,
    ScriptedEmbedder,
    another_dimension,
    not_a_number,
    too_few,
)
from hitherto.testing.embedders import check_embedder

TALK = ["The barge leaves at dawn.", "Mira plays the cello."]


async def test_it_keeps_the_promises_of_its_port():
    await check_embedder(ScriptedEmbedder())


async def test_texts_with_words_in_common_are_near():
    embedder = ScriptedEmbedder()
    question = (await embedder.query("When does the barge leave, at dawn?")).vectors[0]
    near, far = (await embedder.documents(TALK)).vectors @ question
    assert near > 0.4 > far
    assert (await ScriptedEmbedder().documents(TALK)).vectors.tobytes() == (
        await embedder.documents(TALK)
    ).vectors.tobytes(), "another instance, another process"


async def test_vectors_may_be_given():
    embedder = ScriptedEmbedder(vectors={"north": [0, 2], "east": [3, 0]}, dimensions=2)
    assert (await embedder.documents(["east", "north"])).vectors.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="needs 256 numbers"):
        ScriptedEmbedder(vectors={"north": [0, 2]})


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (too_few, "1 vectors for 2 texts"),
        (another_dimension, "257 dimensions where it has 256"),
        (not_a_number, "not finite"),
        (lambda vectors: "nothing", "no table of numbers"),
        (lambda vectors: vectors[0], "1 dimensions, not 2"),
    ],
)
async def test_a_fault_goes_out_as_it_is_and_is_found(fault: Any, says: str):
    embedder = ScriptedEmbedder([fault])
    answer = await embedder.documents(TALK)
    with pytest.raises(InvalidEmbedding, match=says):
        usable(answer.vectors, count=2, space=embedder.space)
    assert usable((await embedder.documents(TALK)).vectors, count=2, space=embedder.space).shape == (2, 256)


async def test_replies_come_in_order_and_then_the_same_for_ever():
    busy = ModelRateLimited("slow down", retry_after=3)
    embedder = ScriptedEmbedder([Delayed(0.03), busy], then=ModelUnavailable("away"))
    began = asyncio.get_running_loop().time()
    assert (await embedder.query("Where?")).asked
    assert asyncio.get_running_loop().time() - began >= 0.02
    with pytest.raises(ModelRateLimited) as caught:
        await embedder.documents(TALK)
    assert caught.value.retry_after == 3
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await embedder.query("Where?")
    assert embedder.calls[:2] == [EmbedCall("query", ("Where?",)), EmbedCall("documents", tuple(TALK))]
    assert embedder.texts == ["Where?", *TALK, "Where?", "Where?"]


async def test_hanging_ends_when_it_is_cancelled():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ScriptedEmbedder([Delayed(0.01, Hang())]).query("Where?")


# The suite finds what is broken


class Broken(ScriptedEmbedder):
    """Does what `spoil` makes of the answers of one that is not."""

    def __init__(self, spoil: Any) -> None:
        super().__init__()
        self.spoil = spoil

    async def documents(self, texts: Any) -> Embeddings:
        found = (await super().documents(texts)).vectors
        return Embeddings(cast(Vectors, self.spoil(found, list(texts), self)))


def reversed_rows(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return found[::-1]


def mixed_up_beyond_a_batch(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return np.concatenate([found[of.batch :], found[: of.batch]]) if len(texts) > of.batch else found


def not_of_unit_length(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return found * np.float32(2)


def without_the_empty(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return found[[bool(text.strip()) for text in texts]]


def all_the_same(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return np.full_like(found, 1 / 16)


def doubles(found: Vectors, texts: list[str], of: Any) -> Any:
    return found.astype(np.float64)


def nothing_of_what_is_long(found: Vectors, texts: list[str], of: Any) -> Vectors:
    return found * np.asarray([[len(text) < 100_000] for text in texts], dtype=np.float32).reshape(-1, 1)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (reversed_rows, "alone and as the first of several"),
        (mixed_up_beyond_a_batch, "more texts than a batch"),
        (not_of_unit_length, "unit length"),
        (without_the_empty, "3 texts have vectors of the shape"),
        (all_the_same, "nothing in common"),
        (doubles, "float32"),
        (lambda found, texts, of: not_a_number(found), "finite"),
        (lambda found, texts, of: too_few(found), "of the shape"),
        (lambda found, texts, of: another_dimension(found), "of the shape"),
        (nothing_of_what_is_long, "is cut, and has a vector"),
    ],
)
async def test_the_suite_finds_what_is_wrong(spoil: Any, says: str):
    broken: Embedder = Broken(spoil)
    with pytest.raises(AssertionError, match=says):
        await check_embedder(broken)
