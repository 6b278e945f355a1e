"""An embedder for tests, with vectors, delays and faults from a list."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from hitherto.core.recall.vectors import Space, Vector, Vectors
from hitherto.ports.models.embedder import Embedder, Embeddings
from hitherto.providers.scripted.model import Hang

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DelayedVectors:
    """`reply`, after `seconds`."""

    seconds: float
    reply: Reply = None


Reply: TypeAlias = "Exception | Callable[[Vectors], object] | DelayedVectors | Hang | None"
"""What one call gets: the vectors as they should be (None), an error to raise, what a function makes of those vectors,
or one of these after a wait."""


def too_few(vectors: Vectors) -> Vectors:
    """One vector is missing."""
    return vectors[:-1]


def another_dimension(vectors: Vectors) -> Vectors:
    """Each vector has one number more."""
    return np.pad(vectors, ((0, 0), (0, 1)), constant_values=0.5)


def not_a_number(vectors: Vectors) -> Vectors:
    """One number is NaN."""
    spoiled = vectors.copy()
    spoiled[-1:, -1:] = np.nan
    return spoiled


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """One call of an embedder."""

    verb: Literal["documents", "query"]
    texts: tuple[str, ...]


class ScriptedEmbedder(Embedder):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`.

    A text's vector is the one in `vectors`, else it is made from the text's words: the more words two texts share, the
    nearer they are. The same text always has the same vector. What a function in `replies` returns is passed on
    unchecked.

    `calls` are the calls it got, `texts` the texts of all calls. `closed` counts calls of `aclose`.
    """

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        then: Reply = None,
        vectors: Mapping[str, Sequence[float]] | None = None,
        dimensions: int = 256,
        name: str = "scripted",
        batch: int = 64,
    ) -> None:
        self.calls: list[EmbedCall] = []
        self.closed = 0
        self._replies = list(replies)
        self._then = then
        self._space = Space(name, dimensions)
        self._batch = batch
        self._given = {text: _unit(np.asarray(vector, dtype=np.float32)) for text, vector in (vectors or {}).items()}
        if any(vector.shape != (dimensions,) for vector in self._given.values()):
            raise ValueError(f"each of the vectors that are given needs {dimensions} numbers, as many as `dimensions`")

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call.texts]

    @property
    def space(self) -> Space:
        return self._space

    @property
    def local(self) -> bool:
        return False

    @property
    def batch(self) -> int:
        return self._batch

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        return await self._answer(EmbedCall("documents", tuple(texts)))

    async def query(self, text: str) -> Embeddings:
        return await self._answer(EmbedCall("query", (text,)))

    async def aclose(self) -> None:
        self.closed += 1

    async def _answer(self, call: EmbedCall) -> Embeddings:
        reply = self._replies[len(self.calls)] if len(self.calls) < len(self._replies) else self._then
        self.calls.append(call)
        while isinstance(reply, DelayedVectors):
            await asyncio.sleep(reply.seconds)
            reply = reply.reply
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Hang):
            await asyncio.Event().wait()
        found = np.zeros((len(call.texts), self._space.dimensions), dtype=np.float32)
        for row, text in enumerate(call.texts):
            found[row] = self._vector(text)
        answer = found if reply is None else cast("Callable[[Vectors], object]", reply)(found)
        return Embeddings(cast(Vectors, answer), tokens=sum(len(_WORD.findall(text)) for text in call.texts))

    def _vector(self, text: str) -> Vector:
        if text in self._given:
            return self._given[text]
        vector = np.zeros(self._space.dimensions, dtype=np.float32)
        for word in _WORD.findall(text.casefold()):
            number = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")
            vector[(number >> 1) % len(vector)] += 1.0 if number & 1 else -1.0
        return _unit(vector)


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector
