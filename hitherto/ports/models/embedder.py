"""The port to embedders, which turn texts into vectors. Its docstrings are the contract; `hitherto.testing` checks
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hitherto.core.recall.vectors import Space, Vectors
from hitherto.errors import InvalidEmbedding


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """An embedder's answer: one vector per row, and the tokens it took by the endpoint's own count, if given. `asked`
    is whether an endpoint was called at all."""

    vectors: Vectors
    tokens: int | None = None
    asked: bool = True

    @property
    def tokens_in(self) -> int | None:
        """As in `Completion`; an embedding has no tokens out."""
        return self.tokens

    @property
    def tokens_cached(self) -> int | None:
        return None

    @property
    def tokens_out(self) -> int | None:
        return None


class Embedder(Protocol):
    """Turns texts into vectors of one space: the nearer two texts are in meaning, the larger their dot product.

    `documents` and `query` take any strings (empty, huge, lone surrogates included) and cut what is longer than the
    model can read. They raise ModelUnavailable or ModelRateLimited where a later try may succeed, ModelRejected where
    it will not, and InvalidEmbedding for an unusable answer. Blocking work happens off the event loop. `usable` checks
    an endpoint's answer. Error messages are logged: they must not contain the texts.
    """

    @property
    def space(self) -> Space: ...

    @property
    def local(self) -> bool:
        """Whether it computes in this process: then no endpoint is called, and nothing goes into the ledger."""
        ...

    @property
    def batch(self) -> int:
        """How many texts are best given to `documents` at once."""
        ...

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of texts to be indexed, one row each in their order; shape (len(texts), dimensions)."""
        ...

    async def query(self, text: str) -> Embeddings:
        """The vector of a question, as the only row; shape (1, dimensions)."""
        ...

    async def aclose(self) -> None:
        """Release what is held. Calling it twice is allowed."""
        ...


def usable(found: object, *, count: int, space: Space) -> Vectors:
    """An embedder's answer to `count` texts, as unit vectors of the space; rows of zeros stay so.

    Raises InvalidEmbedding for another number of vectors, another dimension, and values that are not finite numbers.
    """
    try:
        # What is too large for a float32 becomes infinite, and is refused as such.
        with np.errstate(over="ignore"):
            vectors = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise InvalidEmbedding(
            f"the embedder {space.name!r} answered with something that is no table of numbers; nothing of it is kept"
        ) from None
    if vectors.ndim != 2 and not (count == 0 and vectors.size == 0):
        raise InvalidEmbedding(
            f"the embedder {space.name!r} answered with an array of {vectors.ndim} dimensions, not 2"
        )
    if len(vectors) != count:
        raise InvalidEmbedding(
            f"the embedder {space.name!r} answered with {len(vectors)} vectors for {count} texts; nothing of it is kept"
        )
    vectors = vectors.reshape(count, -1) if count else np.zeros((0, space.dimensions), dtype=np.float32)
    if vectors.shape[1] != space.dimensions:
        raise InvalidEmbedding(
            f"the embedder {space.name!r} answered with {vectors.shape[1]} dimensions where it has {space.dimensions}; "
            "another model needs a space, and so a name, of its own"
        )
    if not np.isfinite(vectors).all():
        raise InvalidEmbedding(
            f"the embedder {space.name!r} answered with numbers that are not finite (NaN or infinity)"
        )
    wide = vectors.astype(np.float64)  # whose squares do not overflow
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0).astype(np.float32)
