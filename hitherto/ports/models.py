"""Protocols of what models do: complete a prompt, embed texts, put hits in order, compact messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hitherto.arrays import np
from hitherto.core.log.message import Payload
from hitherto.core.model_family import family_of
from hitherto.core.prompt import Prompt
from hitherto.core.recall.vectors import Space, Vectors
from hitherto.errors import InvalidEmbedding

__all__ = ["CompactionResult", "Compactor", "family_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The result of a compaction: the endpoint's own items, as JSON objects with nothing taken out, in their order.

    Exactly one of them is of the type `compaction`; only models of the same family understand its `encrypted_content`.
    Anyone can read the others (with OpenAI, the user's messages). Nothing else was checked: read each with the codec of
    Responses before relying on it. `tokens_in`, of which `tokens_cached` came from the provider's prompt cache, and
    `tokens_out` are the endpoint's own figures, if given. `asked` is as in `Completion`.
    """

    items: tuple[Payload, ...]
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    asked: bool = True


class Compactor(Protocol):
    """A model that compacts a conversation in its own, opaque way.

    `name` is what a digest records, `family` is the family of models that understand its opaque items: see `family_of`.

    `check` tests at configuration time whether the endpoint can compact, without spending tokens. Raises
    InvalidSettings where it has no such call, ModelRejected for a wrong key or a model that it does not know,
    ModelUnavailable when there is no answer in time.

    `compact` takes items of OpenAI's Responses, in the order of the conversation, no tool result without its call;
    `instructions` go to the model beside them. It changes nothing at the endpoint. Raises what `Model.complete` raises,
    InvalidModelAnswer for an answer without exactly one compaction item. One call is one request. Cancelling the task
    ends the call.

    `aclose` releases what it holds; calling it twice is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    async def check(self) -> None: ...
    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult: ...
    async def aclose(self) -> None: ...


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


EXTRACTIVE = "extractive"
"""The name of the model that is code and no language model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's answer. `text` is the answer as text; where `Prompt.schema` was given and the endpoint has structured
    output, it is the JSON text. `tokens_in`, of which `tokens_cached` came from the provider's prompt cache, and
    `tokens_out` are the endpoint's own figures, if given, and so is `tokens_written`: those of `tokens_in` that were
    put into that cache. `asked` is whether a model was called at all: an answer that was computed locally is in no
    ledger."""

    text: str
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    tokens_written: int | None = None
    asked: bool = True


class Model(Protocol):
    """A language model behind one method.

    `name` is what a digest records; "extractive" says that this is no language model. `input_limit` is the most tokens
    (o200k_base) of prompt it takes at once.

    `complete` answers the prompt. It asks the endpoint for structured output by `prompt.schema` where the endpoint has
    it, and goes on without where it has not. Raises ModelUnavailable when there is no answer in time or the endpoint is
    failing, ModelRateLimited at a rate limit (both with the endpoint's `retry_after`, if it gave one), ModelRejected
    when the endpoint refuses (the message says whether key, model name or request is at fault), InvalidModelAnswer when
    the answer is empty. Never raises anything else of its own. The error messages are logged and stored: they must not
    contain anything of the prompt, or of what the endpoint says about it. One call is one request: the caller decides
    about another try. Cancelling the task ends the call.

    `aclose` releases what it holds; calling it twice is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def input_limit(self) -> int: ...
    async def complete(self, prompt: Prompt) -> Completion: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """The order in which a reranker puts passages: their indices in what it was given, each at most once, the best
    first. Those it left out come after these, in their old order. `asked` and tokens are as in `Completion`."""

    order: tuple[int, ...]
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    asked: bool = True


class Reranker(Protocol):
    """Puts passages in the order in which they answer a question.

    `limit` is how many passages it takes at once. `rerank` raises what `Model.complete` raises, and never anything else
    of its own; one call is one request. Cancelling the task ends it. `aclose` releases what it holds; calling it twice
    is allowed.
    """

    @property
    def name(self) -> str: ...
    @property
    def limit(self) -> int: ...
    async def rerank(self, question: str, passages: Sequence[str]) -> RerankResult: ...
    async def aclose(self) -> None: ...
