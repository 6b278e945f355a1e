"""The port to what turns texts into vectors. Its docstrings are the contract; `hitherto.testing` checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hitherto.errors import InvalidEmbedding

Vector = NDArray[np.float32]
"""One vector of unit length, or all zeros where a text has nothing to be told by."""

Vectors = NDArray[np.float32]
"""One vector a row."""


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors can be compared within one space: `name` tells the model and whatever else makes its vectors different
    from others' (a version, a prefix of questions), and all have so many `dimensions`."""

    name: str
    dimensions: int


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """What an embedder answered: one vector a row, and the tokens it took by the endpoint's own count, if given.
    `asked` is whether an endpoint was asked at all."""

    vectors: Vectors
    tokens: int | None = None
    asked: bool = True

    @property
    def tokens_in(self) -> int | None:
        """As in `Completion`; there are none out."""
        return self.tokens

    @property
    def tokens_cached(self) -> int | None:
        return None

    @property
    def tokens_out(self) -> int | None:
        return None


class Embedder(Protocol):
    """Turns texts into vectors of one space: the nearer two texts are in meaning, the larger their dot product.

    Both verbs take any strings (empty, huge, lone surrogates included) and cut what is longer than the model can read.
    They raise ModelUnavailable or ModelRateLimited where a later try may have more luck, ModelRejected where it will
    not, and InvalidEmbedding for an answer that is none. Blocking work happens off the event loop. `usable` checks what
    comes from elsewhere. The messages of errors are logged: no text belongs in them.
    """

    @property
    def space(self) -> Space: ...

    @property
    def local(self) -> bool:
        """Whether it computes in this process: then no endpoint is asked, and nothing goes into the ledger."""
        ...

    @property
    def batch(self) -> int:
        """How many documents are best given at once."""
        ...

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of texts to be found, one row each in their order; shape (len(texts), dimensions)."""
        ...

    async def query(self, text: str) -> Embeddings:
        """The vector of a question, as the only row; shape (1, dimensions)."""
        ...

    async def aclose(self) -> None:
        """Give back what is held. Calling it twice is allowed."""
        ...


def usable(found: object, *, count: int, space: Space) -> Vectors:
    """What an embedder answered to `count` texts, as unit vectors of the space; rows of zeros stay so.

    Raises InvalidEmbedding for another number of vectors, another dimension, and for numbers that are none.
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
