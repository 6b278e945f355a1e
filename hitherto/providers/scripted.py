"""A model, an embedder and a reranker that need no network: for tests and examples."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Literal, TypeAlias, TypeVar, cast

import numpy as np

from hitherto.core.prompt import Prompt
from hitherto.core.recall.vectors import Space, Vector, Vectors
from hitherto.ports.models import Completion, Embedder, Embeddings, Model, Reranker, RerankResult
from hitherto.providers.extractive import Extractive

Reply: TypeAlias = "str | Exception | Callable[[Prompt], str] | Delayed | Hang | Gate"
"""What one call gets: a text, an error to raise, a function of the prompt, or one of these after a wait."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """`reply`, after `seconds`: any that the model, the embedder or the reranker takes."""

    seconds: float
    reply: object = None


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer, ever: the call ends when its task is cancelled."""


class Gate:
    """`reply`, once the test calls `open`, so that a digest can be looked at while it is being made.

    `await gate.reached()` returns when a call waits at the gate. An open gate stays open. It belongs to one event
    loop: from another thread, call `open` through that loop.
    """

    def __init__(self, reply: object = None) -> None:
        self.reply = reply
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def reached(self) -> None:
        await self._reached.wait()

    async def passed(self) -> None:
        """Waits until the gate is open; called by the double."""
        self._reached.set()
        await self._opened.wait()


Statement: TypeAlias = "str | tuple[str, Sequence[int]]"
"""A statement's text, with the seqs it rests on or without (it then rests on all that was shown)."""


@dataclass(frozen=True, slots=True)
class ScriptedFact:
    """A fact in an answer. `sources` are the seqs that say so; `relation` is "new", "repeats" or "replaces", `known`
    the number (from 1) of the known fact that is repeated or replaced."""

    category: str
    content: str
    sources: Sequence[int] = ()
    confidence: float = 0.9
    relation: str = "new"
    known: int = 0


ScriptedFacts: TypeAlias = "ScriptedFact | tuple[str, str] | tuple[str, str, Sequence[int]]"
"""A fact's category and content, with the seqs that say so or without (it then rests on all that was shown)."""


def items(
    *add: Statement,
    replace: Mapping[int, Statement] | None = None,
    drop: Sequence[int] = (),
    facts: Sequence[ScriptedFacts] | None = None,
) -> str:
    """The JSON in which a model answers a digest's prompt: statements to add, and others, by their number
    (from 1), to replace or to drop; and facts, if `facts` is given. `items("They talk.", facts=[("hobby", "Plays the
    cello.", [3])])`."""
    answer: dict[str, object] = {
        "add": [_stated(one) for one in add],
        "replace": [{"item": number, **_stated(one)} for number, one in (replace or {}).items()],
        "drop": list(drop),
    }
    if facts is not None:
        answer["facts"] = [_told(one) for one in facts]
    return json.dumps(answer)


def _told(fact: ScriptedFacts) -> dict[str, object]:
    match fact:
        case ScriptedFact():
            return {**asdict(fact), "sources": list(fact.sources)}
        case (category, content):
            return _told(ScriptedFact(category, content))
        case (category, content, sources):
            return _told(ScriptedFact(category, content, sources))


def _stated(statement: Statement) -> dict[str, object]:
    text, sources = (statement, ()) if isinstance(statement, str) else statement
    return {"text": text, "sources": list(sources)}


_CallT = TypeVar("_CallT")


class _Script(Generic[_CallT]):
    """The calls so far, and what each gets."""

    def __init__(self, replies: Sequence[object], then: object) -> None:
        self.calls: list[_CallT] = []
        self.closed = 0
        self._replies = list(replies)
        self._then = then

    async def _next(self, call: _CallT) -> object:
        """The reply to a call, after its wait. Raises a reply that is an error."""
        reply = self._replies[len(self.calls)] if len(self.calls) < len(self._replies) else self._then
        self.calls.append(call)
        while True:
            match reply:
                case Exception():
                    raise reply
                case Delayed():
                    await asyncio.sleep(reply.seconds)
                    reply = reply.reply
                case Gate():
                    await reply.passed()
                    reply = reply.reply
                case Hang():
                    await asyncio.Event().wait()
                case _:
                    return reply

    async def aclose(self) -> None:
        self.closed += 1


class Scripted(_Script[Prompt], Model):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`,
    which is a reply or another model (`extractive` if left out).

    `calls` are the prompts of its calls, each added when the call begins. `closed` counts calls of `aclose`.
    """

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        then: Reply | Model | None = None,
        name: str = "scripted",
        input_limit: int = 100_000,
    ) -> None:
        super().__init__(replies, Extractive() if then is None else then)
        self._name = name
        self._input_limit = input_limit

    @property
    def name(self) -> str:
        return self._name

    @property
    def input_limit(self) -> int:
        return self._input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        reply = await self._next(prompt)
        if isinstance(reply, str):
            return Completion(text=reply)
        if callable(reply):
            return Completion(text=cast("Callable[[Prompt], str]", reply)(prompt))
        return await cast(Model, reply).complete(prompt)


_WORD = re.compile(r"\w+")


EmbedderReply: TypeAlias = "Exception | Callable[[Vectors], object] | Delayed | Hang | Gate | None"
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


class ScriptedEmbedder(_Script[EmbedCall], Embedder):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`.

    A text's vector is the one in `vectors`, else it is made from the text's words: the more words two texts share, the
    nearer they are. The same text always has the same vector. What a function in `replies` returns is passed on
    unchecked.

    `calls` are the calls it got, `texts` the texts of all calls. `closed` counts calls of `aclose`.
    """

    def __init__(
        self,
        replies: Sequence[EmbedderReply] = (),
        *,
        then: EmbedderReply = None,
        vectors: Mapping[str, Sequence[float]] | None = None,
        dimensions: int = 256,
        name: str = "scripted",
        batch: int = 64,
    ) -> None:
        super().__init__(replies, then)
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

    async def _answer(self, call: EmbedCall) -> Embeddings:
        reply = await self._next(call)
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


Order: TypeAlias = "Sequence[int] | Callable[[str, Sequence[str]], Sequence[int]]"
"""Places from 0, the best first, or a function that returns them for a question and its passages."""


RerankerReply: TypeAlias = "Order | Exception | Delayed | Hang | Gate"
"""What one call gets: an order, an error to raise, or one of these after a wait."""


class ScriptedReranker(_Script[tuple[str, tuple[str, ...]]], Reranker):
    """Answers its calls with `replies`, one each, in the order in which they come; then always with `then`. By
    default the passages stay in their order.

    `calls` are the questions and passages of its calls. `closed` counts calls of `aclose`.
    """

    def __init__(
        self,
        replies: Sequence[RerankerReply] = (),
        *,
        then: RerankerReply = (),
        name: str = "scripted",
        limit: int = 20,
    ) -> None:
        super().__init__(replies, then)
        self._name = name
        self._limit = limit

    @property
    def name(self) -> str:
        return self._name

    @property
    def limit(self) -> int:
        return self._limit

    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult:
        reply = await self._next((question, tuple(passages)))
        if callable(reply):
            reply = cast("Callable[[str, Sequence[str]], Sequence[int]]", reply)(question, passages)
        return RerankResult(order=tuple(cast("Sequence[int]", reply)))
