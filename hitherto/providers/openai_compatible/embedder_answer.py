"""Reads the vectors in an answer of OpenAI's embeddings API, and checks its shape."""

from __future__ import annotations

import base64
import binascii
from typing import cast

import numpy as np

from hitherto.core.recall.vectors import Vector
from hitherto.errors import InvalidEmbedding
from hitherto.providers.endpoints.json_body import at


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
