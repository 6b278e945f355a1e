"""Dimensions, limits and prefixes of well-known embedding models, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass

INPUT_LIMIT = 8_191
"""Maximum tokens of one text for OpenAI's models, and for models of which nothing else is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model's own dimensions (None: not known), the maximum tokens it reads of a text, and the prefixes of questions
    and documents that it was trained with."""

    dimensions: int | None = None
    limit: int = INPUT_LIMIT
    query: str = ""
    document: str = ""


_SEARCHING = "Represent this sentence for searching relevant passages: "
_INSTRUCTED = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# From the models' own cards.
_KNOWN: tuple[tuple[str, KnownModel], ...] = (
    (r"text-embedding-3-small", KnownModel(dimensions=1536)),
    (r"text-embedding-3-large", KnownModel(dimensions=3072)),
    (r"text-embedding-ada-002", KnownModel(dimensions=1536)),
    (
        r"nomic-embed-text(-v1(\.5)?)?",
        KnownModel(dimensions=768, limit=2_048, query="search_query: ", document="search_document: "),
    ),
    (r"mxbai-embed-large(-v1)?", KnownModel(dimensions=1024, limit=512, query=_SEARCHING)),
    (r"bge-small-en(-v1\.5)?", KnownModel(dimensions=384, limit=512, query=_SEARCHING)),
    (r"bge-base-en(-v1\.5)?", KnownModel(dimensions=768, limit=512, query=_SEARCHING)),
    (r"bge-large-en(-v1\.5)?", KnownModel(dimensions=1024, limit=512, query=_SEARCHING)),
    (r"bge-m3", KnownModel(dimensions=1024)),
    (r"(multilingual-)?e5-small(-v2)?", KnownModel(dimensions=384, limit=512, query="query: ", document="passage: ")),
    (r"(multilingual-)?e5-base(-v2)?", KnownModel(dimensions=768, limit=512, query="query: ", document="passage: ")),
    (r"(multilingual-)?e5-large(-v2)?", KnownModel(dimensions=1024, limit=512, query="query: ", document="passage: ")),
    (r"all-minilm(-l(6|12)-v[12])?", KnownModel(dimensions=384, limit=256)),
    (r"qwen3-embedding[-:]0\.6b", KnownModel(dimensions=1024, query=_INSTRUCTED)),
    (r"qwen3-embedding[-:]4b", KnownModel(dimensions=2560, query=_INSTRUCTED)),
    (r"qwen3-embedding[-:]8b", KnownModel(dimensions=4096, query=_INSTRUCTED)),
    (
        r"embeddinggemma(-300m)?",
        KnownModel(dimensions=768, limit=2_048, query="task: search result | query: ", document="title: none | text: "),
    ),
)


def known_model(model: str) -> KnownModel:
    """What is known of `model`: the defaults of `KnownModel`, if nothing is. An organization before the name
    ("BAAI/bge-m3"), an Ollama tag after it ("nomic-embed-text:latest") and case do not matter."""
    name = model.strip().lower().rpartition("/")[2]
    for form, known in _KNOWN:
        if re.fullmatch(form, name) or re.fullmatch(form, name.partition(":")[0]):
            return known
    return KnownModel()
