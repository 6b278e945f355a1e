"""Endpoints with OpenAI's embeddings, as they answer on the wire: their vectors are of a text's words."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hitherto.tokens.counters import BpeCounter
from tests.providers.models.endpoint import Answer, Body, refused

KEY = "sk-quire-lane-7f3a"
PATH = "/v1/embeddings"
DIMENSIONS = 48

count = BpeCounter("cl100k_base").count


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Not of unit length: some endpoints leave that to their callers."""
    found = np.full(dimensions, 0.01, dtype=np.float32)
    for word in text.split():
        found[zlib.crc32(word.encode("utf-8", "replace")) % dimensions] += 1
    return [float(number) for number in found]


def listed(
    vectors: Sequence[object], *, tokens: int | None = 7, places: Sequence[object] | None = None, **more: object
) -> Answer:
    """A list of embeddings as OpenAI sends it."""
    places = range(len(vectors)) if places is None else places
    data = [
        {"object": "embedding", "index": place, "embedding": one} for place, one in zip(places, vectors, strict=True)
    ]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return Answer(body=json.dumps({"object": "list", "data": data, "model": "small", **usage, **more}))


def packed(one: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(one, dtype="<f4").tobytes()).decode()


def as_openai(body: Body) -> Answer:
    """OpenAI refuses empty texts, and those of more than 8,192 tokens; it answers in base64 where that is asked for."""
    texts: list[str] = body["input"]
    if any(not text for text in texts) or len(texts) > 2_048:
        return refused(400, "'$.input' is invalid. Please check the API reference.")
    longest = max((count(text) for text in texts), default=0)
    if longest > 8_192:
        return refused(
            400, f"This model's maximum context length is 8192 tokens, however you requested {longest} tokens."
        )
    found = [vector(text, body.get("dimensions", DIMENSIONS)) for text in texts]
    return listed(
        [packed(one) for one in found] if body.get("encoding_format") == "base64" else found,
        tokens=sum(count(text) for text in texts),
    )


def as_a_server_at_home(body: Body) -> Answer:
    """Ignores how vectors are asked for, and sends decimals."""
    return listed([vector(text) for text in body["input"]])


def limited(*, tokens: int, says: str, status: int = 400) -> Callable[[Body], Answer]:
    """Refuses longer texts in the words of `says`."""

    def answer(body: Body) -> Answer:
        longest = max(count(text) for text in body["input"])
        if longest > tokens:
            return refused(status, says.format(given=longest, limit=tokens))
        return as_a_server_at_home(body)

    return answer


def sent(bodies: Sequence[Body]) -> list[Any]:
    return [text for body in bodies for text in body["input"]]
