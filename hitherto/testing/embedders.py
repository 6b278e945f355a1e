"""A check that an embedder keeps the contract of `Embedder`."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hitherto.core.recall.vectors import Vectors
from hitherto.ports.models import Embedder, Embeddings

_TALK = (
    "We took the Granary in Leith for Friday.",
    "Mira is allergic to peanuts.",
    "The invoice from Delft came to 4,200 euros.",
    "Her sister plays the cello in Ghent.",
)
_ODD = (
    "a\ud800b",  # a lone surrogate
    "\x00",
    "<|endoftext|>",
    "会议改到星期五下午三点。",
    "اجتماعنا يوم الجمعة",
    "🦜🦜🦜",
    "?",
)
_HUGE = "The barge leaves Utrecht at dawn. " * 30_000


async def check_embedder(embedder: Embedder) -> None:
    """Check that `embedder` keeps the contract of its port, as far as this shows without knowing what its vectors mean.

    Makes about 20 calls, two of them with a text of a million characters, and expects each to succeed. Raises
    AssertionError, which says what is wrong. The embedder stays open.
    """
    space = embedder.space
    assert space.name, "a space needs a name"
    assert space.dimensions > 0, f"a space needs dimensions, and has {space.dimensions}"
    assert embedder.batch > 0, f"a batch of {embedder.batch} texts is none"

    dialogue = _vectors(await embedder.documents(_TALK), len(_TALK), embedder)
    assert np.allclose(_lengths(dialogue), 1, atol=1e-3), (
        f"vectors have unit length, and these have {_lengths(dialogue)}"
    )
    await _check_order(embedder, dialogue)
    await _check_odd_texts(embedder)

    one = _vectors(await embedder.query(_TALK[0]), 1, embedder)
    assert np.allclose(_lengths(one), 1, atol=1e-3), f"a question's vector has unit length, not {_lengths(one)}"
    again = _vectors(await embedder.query(_TALK[0]), 1, embedder)
    assert _alike(one, again), "the same question has the same vector each time"
    assert embedder.space == space, f"the space stays the same, and was {space} and is {embedder.space}"


async def _check_order(embedder: Embedder, dialogue: Vectors) -> None:
    alone = _vectors(await embedder.documents(_TALK[:1]), 1, embedder)
    assert _alike(alone, dialogue[:1]), "a text has the same vector alone and as the first of several"
    backwards = _vectors(await embedder.documents(_TALK[::-1]), len(_TALK), embedder)
    assert _alike(backwards, dialogue[::-1]), "each row is the vector of the text in its place, whatever the others are"
    many = [_TALK[place % len(_TALK)] for place in range(2 * embedder.batch + 1)]
    rows = _vectors(await embedder.documents(many), len(many), embedder)
    expected = dialogue[[place % len(_TALK) for place in range(len(many))]]
    assert _alike(rows, expected), f"more texts than a batch ({embedder.batch}) keep their order too"
    pairs = combinations(range(len(_TALK)), 2)
    assert not any(_alike(dialogue[[one]], dialogue[[other]]) for one, other in pairs), (
        "texts that have nothing in common have different vectors"
    )


async def _check_odd_texts(embedder: Embedder) -> None:
    _vectors(await embedder.documents([]), 0, embedder)
    odd = _vectors(await embedder.documents(_ODD), len(_ODD), embedder)
    assert _unit_or_zero(odd), f"vectors have unit length or are zeros, and these have {_lengths(odd)}"
    mixed = _vectors(await embedder.documents(["", _TALK[1], "  \n"]), 3, embedder)
    assert _unit_or_zero(mixed), f"vectors have unit length or are zeros, and these have {_lengths(mixed)}"
    plain = _vectors(await embedder.documents([_TALK[1]]), 1, embedder)
    assert _alike(mixed[1:2], plain), "empty texts change nothing about the others"
    for question in ("", *_ODD, _HUGE):
        assert _unit_or_zero(_vectors(await embedder.query(question), 1, embedder)), (
            f"a question's vector has unit length or is zeros; wrong for {question[:20]!r}"
        )
    huge = _vectors(await embedder.documents([_HUGE]), 1, embedder)
    assert np.allclose(_lengths(huge), 1, atol=1e-3), "what is longer than the model reads is cut, and has a vector"


def _vectors(answer: Embeddings, count: int, embedder: Embedder) -> Vectors:
    """The vectors of an answer, after a check of their shape, type and values."""
    vectors = answer.vectors
    expected = (count, embedder.space.dimensions)
    assert vectors.shape == expected, f"{count} texts have vectors of the shape {expected}, not {vectors.shape}"
    assert vectors.dtype == np.float32, f"vectors are of float32, not {vectors.dtype}"
    assert bool(np.isfinite(vectors).all()), "vectors are made of finite numbers"
    assert answer.tokens is None or answer.tokens >= 0, f"{answer.tokens} is no number of tokens"
    return vectors


def _lengths(vectors: Vectors) -> Vectors:
    return np.linalg.norm(vectors, axis=1)


def _unit_or_zero(vectors: Vectors) -> bool:
    lengths = _lengths(vectors)
    return bool(np.all(np.isclose(lengths, 1, atol=1e-3) | (lengths == 0)))


def _alike(one: Vectors, other: Vectors) -> bool:
    """Whether the rows are the same, with a tolerance: a GPU may compute a text in a batch a little differently."""
    return one.shape == other.shape and bool(np.allclose(one, other, atol=5e-3))
