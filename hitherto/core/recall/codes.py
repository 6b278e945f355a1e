"""Binary codes of vectors, and approximate cosine similarity from them: at most 256 bits for a vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hitherto.arrays import NDArray, np

BITS = 256
"""The most bits that are kept of a vector, whatever its dimensions: a question reads all codes of a scope."""


def codes_of(vectors: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The codes of vectors (one a row): their signs as bits, eight dimensions a byte, padded to whole bytes.

    For vectors of more than `BITS` dimensions, the signs of a projection on `BITS` random directions (Charikar 2002),
    which are always the same.
    """
    if vectors.shape[1] > BITS:
        vectors = vectors.astype(np.float32) @ _directions(vectors.shape[1])
    return np.packbits(vectors > 0, axis=1)


@lru_cache(maxsize=8)
def _directions(dimensions: int) -> NDArray[np.float32]:
    # Of numpy's generators, this one gives the same numbers in every version.
    return np.random.RandomState(BITS).standard_normal((dimensions, BITS)).astype(np.float32)


def likeness(codes: NDArray[np.uint8], question: NDArray[np.floating]) -> NDArray[np.float32]:
    """The approximate cosine of each document and the question, from how many of their signs differ.

    With h of d signs different it is cos(pi h / d) (Charikar 2002), right to about 1.6 / sqrt(d). All zeros for a
    question of zeros.
    """
    dimensions = min(len(question), BITS)
    if not question.any():
        return np.zeros(len(codes), dtype=np.float32)
    asked = codes_of(question[np.newaxis])[0]
    if codes.shape[1] % 8 == 0:
        differing = np.bitwise_count(np.ascontiguousarray(codes).view(np.uint64) ^ asked.view(np.uint64))
    else:
        differing = np.bitwise_count(codes ^ asked)
    cosines = np.cos(np.pi * np.arange(dimensions + 1) / dimensions).astype(np.float32)
    return cosines[differing.T.astype(np.int16, order="C").sum(axis=0)]  # ten times as fast as along the rows


@dataclass(frozen=True, slots=True)
class CosineScale:
    """The usual cosines of a question and the documents of a population: their mean (`floor`, 0 or more) and their
    standard deviation (`spread`).

    Embedders differ in both, and so do questions; `above` makes them comparable.
    """

    floor: float = 0.05
    spread: float = 0.115

    def above(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """By how many spreads each is above the floor; 0 below it, and for NaN."""
        return np.maximum(np.nan_to_num((cosines - np.float32(self.floor)) / np.float32(self.spread), nan=0.0), 0)


_AS_IF = 20


def scale_of(likenesses: NDArray[np.float32]) -> CosineScale:
    """The scale of a population, from the cosines of all documents that have a code.

    A small population says little, and all of it may be relevant. So it is mixed with the usual values of the default
    embedder, as if twenty more documents had them.
    """
    usual, count = CosineScale(), len(likenesses)
    if count == 0:
        return usual
    mean, deviation = float(likenesses.mean()), float(likenesses.std())
    floor = (count * mean + _AS_IF * usual.floor) / (count + _AS_IF)
    spread = (count * deviation + _AS_IF * usual.spread) / (count + _AS_IF)
    return CosineScale(floor=max(floor, 0.0), spread=max(spread, 0.01))
