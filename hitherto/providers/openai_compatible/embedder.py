"""Embedders behind any endpoint with OpenAI's embeddings API: OpenAI, vLLM, llama.cpp, a gateway, …"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from openai import APIStatusError, omit

from hitherto.aside import aside
from hitherto.core.log.message import storable
from hitherto.core.recall.vectors import Space, Vector, Vectors
from hitherto.errors import InvalidEmbedding, InvalidModelAnswer, ModelUnavailable
from hitherto.ports.models import Embedder, Embeddings, usable
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import paid
from hitherto.providers.endpoints.response import at, tokens
from hitherto.providers.names import known_model
from hitherto.providers.openai_compatible.endpoint import OpenAIEndpoint
from hitherto.tokens import counter_for
from hitherto.tokens.counters import utf8_length


def rows_of(answer: object, count: int) -> list[Vector] | None:
    """One vector for each of `count` texts, in the order of the texts. The answer has them in base64 (little-endian
    float32) or as decimals. None if `answer` has no list of vectors.

    Vectors are ordered by their `index`, or as listed if none has one. Raises InvalidEmbedding for another number of
    vectors, for indexes that are not 0 to `count` - 1, each once, and for items that are not vectors.
    """
    data = at(answer, "data")
    if not isinstance(data, list):
        return None
    items = cast("list[object]", data)
    if len(items) != count:
        raise InvalidEmbedding(f"the embedder answered with {len(items)} vectors for {count} texts; none of it is kept")
    places = [at(item, "index") for item in items]
    if any(place is not None for place in places):
        if any(type(place) is not int for place in places) or set(places) != set(range(count)):
            raise InvalidEmbedding(
                f"the embedder did not number its {count} vectors from 0 to {count - 1}; none of it is kept"
            )
        items = [item for _, item in sorted(zip(cast("list[int]", places), items, strict=True), key=lambda one: one[0])]
    return [_row(at(item, "embedding")) for item in items]


def _row(value: object) -> Vector:
    try:
        if isinstance(value, str):
            row = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
        else:
            with np.errstate(over="ignore"):
                row = np.asarray(value, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError, binascii.Error):
        raise InvalidEmbedding("the embedder answered with something that is no vector; none of it is kept") from None
    if row.ndim != 1 or not len(row):
        raise InvalidEmbedding("the embedder answered with an empty vector, or with one in another shape")
    return row


_LONGEST_TOKEN = 8
"""Characters. Only blanks and repeated patterns have longer tokens on average, and their rest may be lost."""

_TRIES = 8
"""How often a text is cut by its average of characters per token, before the place is searched for."""


def without_rest(text: str, limit: int) -> str:
    """The beginning of `text` that is long enough for its first `limit` tokens, as far as `_LONGEST_TOKEN` holds."""
    return text[: limit * _LONGEST_TOKEN]


def cut(text: str, limit: int, count: Callable[[str], int]) -> str:
    """The beginning of `text` that has at most `limit` tokens by `count`. The time grows with `limit`, not with the
    length of the text."""
    text = without_rest(text, limit)
    for _ in range(_TRIES):
        tokens = count(text)
        if tokens <= limit:
            return text
        text = text[: min(len(text) * limit // tokens, len(text) - 1)]
    # The tokens are dense at the beginning, so that each cut above removed little: bisect.
    fits, over = 0, len(text) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        fits, over = (middle, over) if count(text[:middle]) <= limit else (fits, middle)
    return text[:fits]


def portion(texts: Sequence[str], *, most: int, size: int) -> int:
    """How many of the first of `texts` go into one request: at most `most`, of at most `size` bytes of UTF-8 together,
    but always at least one."""
    used = 0
    for number, text in enumerate(texts[:most]):
        used += utf8_length(text)
        if number and used > size:
            return number
    return min(len(texts), most)


_SHORTEST = 16
"""Tokens of a text at which its length is no longer taken for the cause of an error."""

_TOO_LONG = re.compile(
    r"(maximum|max|exceeds?|longer than)\W.{0,40}(context|input|sequence|length)|context (length|size|window)|"
    r"too (long|large to process)|must have less than \d+ tokens",
    re.IGNORECASE,
)
"""In the messages of OpenAI, vLLM, llama.cpp, Ollama and Text Embeddings Inference about a text that is too long."""

_TOO_MANY = re.compile(r"(allowed|maximum) batch size|too many inputs|(max|maximum) number of inputs", re.IGNORECASE)
"""In the messages of Text Embeddings Inference and Azure about too many texts."""

_TOO_LARGE = "request too large"
"""In OpenAI's 429 for one request above the account's tokens per minute."""

_DIMENSIONS = re.compile(r"dimension|matryoshka", re.IGNORECASE)

_NUMBER = re.compile(r"(?<![\w.-])\d{2,6}(?![\w-]|\.\d)")


@dataclass(frozen=True, slots=True)
class EmbedderDialect:
    """The maximum tokens of one text (`limit`) and texts of one request (`most`), the dimensions to ask for (None: not
    sent), and whether vectors are requested in base64 or as decimals."""

    limit: int
    most: int
    dimensions: int | None
    base64: bool = True

    def next_dialect(self, status: int, reason: str) -> EmbedderDialect:
        """The dialect to try after an error with `status` and `reason`; this one if they are about something else."""
        if self.most > 1 and (_TOO_LARGE in reason.lower() if status == 429 else _TOO_MANY.search(reason)):
            return replace(self, most=self.most // 2)
        # llama.cpp's server answers 500 to what is too long for it.
        if status not in (400, 413, 422) and not (status == 500 and "too large to process" in reason):
            return self
        if self.base64 and "encoding_format" in reason:
            return replace(self, base64=False)
        if self.dimensions is not None and _DIMENSIONS.search(reason):
            return replace(self, dimensions=None)
        if self.limit > _SHORTEST and _TOO_LONG.search(reason):
            return replace(self, limit=_shorter(self.limit, reason))
        return self


def _shorter(limit: int, reason: str) -> int:
    """The smallest limit that the error names below `limit`, else half of `limit`: an endpoint may count more tokens
    than we do."""
    named = [int(number) for number in _NUMBER.findall(reason)]
    return min((one for one in named if _SHORTEST <= one < limit), default=max(limit // 2, _SHORTEST))


NAMED = EndpointSettingNames(
    model="HITHERTO_EMBEDDER",
    key="HITHERTO_EMBEDDER_KEY",
    base_url="HITHERTO_EMBEDDER_BASE_URL",
    timeout="HITHERTO_EMBEDDER_TIMEOUT",
    api_version="HITHERTO_EMBEDDER_API_VERSION",
    smaller="lower HITHERTO_EMBEDDER_INPUT_LIMIT",
)
"""The settings of an embedder's endpoint."""

BATCH = 64

_NUMBERS = 64 * 2_048
"""The most numbers in one answer. As decimals they take three million bytes, which is below the limit of a body, and
about 30 milliseconds to read, in which nothing else runs in the process."""

_BYTES = 200_000
"""The most text in one request. OpenAI takes 300,000 tokens, which are never more than the bytes."""


class OpenAICompatibleEmbedder(Embedder):
    """An embedding model behind an OpenAI-compatible endpoint, through the official SDK.

    `dimensions` are sent if they are given. `input_limit` is the maximum tokens of one text; the rest is cut off. If
    the endpoint objects to a parameter, to the length of a text or to the number of texts, the request is repeated
    without the parameter, with shorter texts, or with fewer; the instance remembers what works. Blank texts are not
    sent, and have rows of zeros. `query_prefix` and `document_prefix` go in front of questions and documents; by
    default those that the model is known to need.

    A question gets `timeout` seconds, one request for documents `patience`. No key is read from the environment, and
    none appears in an error message. Raises InvalidSettings for a key or a base URL that no request can be made with.

    `space` is named after the model, its dimensions, and the prefix of documents. If the dimensions are neither given
    nor known for the model, the first answer tells them: until then `space` raises ModelUnavailable. `learn` asks for
    them.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        input_limit: int | None = None,
        timeout: float = 5.0,
        patience: float = 50.0,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        api_version: str | None = None,
        named: EndpointSettingNames = NAMED,
    ) -> None:
        known = known_model(model)
        self._model = model
        self._endpoint = OpenAIEndpoint(
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=max(timeout, patience),
            api_version=api_version,
            named=named,
        )
        self._timeout, self._patience = timeout, patience
        self._query = known.query if query_prefix is None else query_prefix
        self._document = known.document if document_prefix is None else document_prefix
        self._dimensions = dimensions or known.dimensions
        self._dialect = EmbedderDialect(limit=input_limit or known.limit, most=BATCH, dimensions=dimensions)
        self._count: Callable[[str], int] = counter_for(_encoding(model)).count

    @property
    def space(self) -> Space:
        if self._dimensions is None:
            raise ModelUnavailable(
                f"the dimensions of {self._model!r} are not known before {self._endpoint.url} has answered for the "
                "first time; see whether it can be reached, or set HITHERTO_EMBEDDER_DIMENSIONS"
            )
        return self._space(self._dimensions)

    @property
    def local(self) -> bool:
        return False

    @property
    def batch(self) -> int:
        return BATCH

    async def learn(self) -> None:
        """Asks for one vector where the dimensions are not known yet. Raises what `query` raises."""
        if self._dimensions is None:
            await self.query("dimensions")

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        return await self._embedded(texts, self._document, self._patience)

    async def query(self, text: str) -> Embeddings:
        return await self._embedded([text], self._query, self._timeout)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _embedded(self, texts: Sequence[str], prefix: str, seconds: float) -> Embeddings:
        worded = [place for place, text in enumerate(texts) if text.strip()]
        said = [prefix + without_rest(texts[place].lstrip(), self._dialect.limit) for place in worded]
        if not said:
            return Embeddings(np.zeros((len(texts), self.space.dimensions), dtype=np.float32), asked=False)
        found: list[Vectors] = []
        took: int | None = 0
        while said:
            vectors, some = await self._some(said, seconds)
            found.append(vectors)
            said = said[len(vectors) :]
            took = None if took is None or some is None else took + some
        whole = np.zeros((len(texts), self.space.dimensions), dtype=np.float32)
        whole[worded] = np.concatenate(found)
        return Embeddings(whole, tokens=took)

    async def _some(self, texts: Sequence[str], seconds: float) -> tuple[Vectors, int | None]:
        """The vectors of the first of `texts`, as many as one request takes, and the tokens it took."""
        with _embedding():
            async with self._endpoint.answering(seconds):
                body, count = await self._answer(texts)
                return await aside(len(body), self._read, body, count)

    async def _answer(self, texts: Sequence[str]) -> tuple[str, int]:
        """The body of the endpoint's answer, in the first dialect that it accepts, and for how many texts it is."""
        dialect = self._dialect
        while True:
            some = texts[: portion(texts, most=self._most(dialect), size=_BYTES)]
            try:
                body = await self._ask(await self._fitting(some, dialect.limit), dialect)
            except APIStatusError as error:
                other = dialect.next_dialect(error.status_code, str(error.body))
                if other == dialect:
                    raise
                dialect = other
            else:
                self._dialect = dialect
                return body, len(some)

    def _most(self, dialect: EmbedderDialect) -> int:
        return max(1, min(dialect.most, _NUMBERS // (self._dimensions or 1)))

    async def _fitting(self, texts: Sequence[str], limit: int) -> list[str]:
        size = sum(len(text) for text in texts)
        return await aside(size, lambda: [cut(storable(text), limit, self._count) for text in texts])

    async def _ask(self, texts: Sequence[str], dialect: EmbedderDialect) -> str:
        # The raw response, because the SDK builds its objects from any JSON without looking at its shape.
        response = await self._endpoint.client.embeddings.with_raw_response.create(
            model=self._model,
            input=list(texts),
            dimensions=omit if dialect.dimensions is None else dialect.dimensions,
            encoding_format="base64" if dialect.base64 else "float",
        )
        return response.text

    def _read(self, body: str, count: int) -> tuple[Vectors, int | None]:
        answer = self._endpoint.answer(body)
        usage = at(answer, "usage")
        took = tokens(at(usage, "prompt_tokens") or at(usage, "total_tokens"))
        with paid((took, None, None)):
            rows = rows_of(answer, count)
            if rows is None:
                raise self._endpoint.wrong_shape(body, "list of embeddings")
            dimensions = self._dimensions or len(rows[0])
            if any(len(row) != dimensions for row in rows):
                wrong = next(len(row) for row in rows if len(row) != dimensions)
                raise InvalidEmbedding(
                    f"{self._model!r} at {self._endpoint.url} answered with {wrong} dimensions in the place of "
                    f"{dimensions}; set HITHERTO_EMBEDDER_DIMENSIONS to what it has, or HITHERTO_EMBEDDER to the model "
                    "that is meant"
                )
            vectors = usable(np.stack(rows), count=count, space=self._space(dimensions))
        self._dimensions = dimensions
        return vectors, took

    def _space(self, dimensions: int) -> Space:
        parts = (self._model.removesuffix(":latest"), str(dimensions), self._document.strip())
        return Space("/".join(part for part in parts if part), dimensions)


@contextmanager
def _embedding() -> Generator[None]:
    """Turns an InvalidModelAnswer from the block into an InvalidEmbedding with the same tokens."""
    try:
        yield
    except InvalidEmbedding:
        raise
    except InvalidModelAnswer as error:
        raised = InvalidEmbedding(str(error))
        raised.tokens = error.tokens
        raise raised from None


def _encoding(model: str) -> str:
    """The name for `counter_for`: an encoding, or the model's own name, which gets an upper estimate if unknown."""
    return "cl100k_base" if "text-embedding-" in model else model
