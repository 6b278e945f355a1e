"""The default embedder: static word vectors from the `wordllama` wheel. No network, no GPU, microseconds a text.

Only the wheel's two data files are read (256 dimensions for each of 32,000 tokens); its own code, which would look for
models on the network, is never run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from hitherto.aside import in_thread
from hitherto.core.log.message import storable
from hitherto.core.recall.stopwords import STOP_WORDS
from hitherto.core.recall.vectors import Space, Vectors
from hitherto.errors import ModelRejected
from hitherto.ports.models import Embeddings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LONGEST = 20_000
"""Characters that are read of a text: a mean over more says nothing about any part of it."""

_INLINE = 2_000
"""Characters up to which a question is embedded on the event loop: about 0.1 ms, less than to start a thread."""

_SAYS_LITTLE = 0.1
_CONTINUES = 0.7
_ENDINGS = frozenset({"s", "t", "m", "re", "ve", "ll", "d", "don", "didn", "doesn", "isn", "wasn"})
"""What the tokenizer leaves of contractions."""

_WEIGHTS = sha256(" ".join(sorted(STOP_WORDS | _ENDINGS)).encode()).hexdigest()[:8]
_SPACE = Space(name=f"wordllama-256/{_WEIGHTS}-1", dimensions=256)
"""Other words that say little are another space, whose vectors are made anew. Raise the number when the weights or what
is made of them change otherwise."""


class Wordllama:
    """A text's vector is the weighted mean of the vectors of its distinct tokens, scaled to unit length.

    Stop words and punctuation weigh 0.1, the later pieces of a word 0.7, all others 1; each weight is divided by the
    square root of the token vector's length. Measured on LoCoMo, this comes within half a point of weights by the word
    frequencies of the searched conversations (docs/recall.md), and needs no table of frequencies.
    """

    @property
    def space(self) -> Space:
        return _SPACE

    @property
    def local(self) -> bool:
        return True

    @property
    def batch(self) -> int:
        return 512

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(await in_thread(_vectors, tuple(texts)), asked=False)

    async def query(self, text: str) -> Embeddings:
        if len(text) <= _INLINE and _model.cache_info().currsize:
            return Embeddings(_vectors((text,)), asked=False)
        return Embeddings(await in_thread(_vectors, (text,)), asked=False)

    async def aclose(self) -> None:
        """Does nothing: all embedders of this process share the table."""


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    tokenizer: Tokenizer
    table: NDArray[np.float32]
    """Every token's vector, already weighted."""


@cache
def _model() -> _Model:
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise ModelRejected("the package wordllama is not installed; install it, or choose another embedder")
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] (its PathLike says not of what)
    from tokenizers import Tokenizer

    folder = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    weights = cast("dict[str, NDArray[np.float16]]", load_file(folder / "weights" / "l2_supercat_256.safetensors"))
    table = weights["embedding.weight"].astype(np.float32)
    lengths = np.linalg.norm(table, axis=1)
    pieces = (tokenizer.id_to_token(token) or "" for token in range(len(table)))
    telling = np.fromiter(map(_weight, pieces), dtype=np.float32, count=len(table))
    table *= (telling / np.sqrt(np.maximum(lengths, 1e-6)))[:, np.newaxis]
    return _Model(tokenizer=tokenizer, table=table)


def _weight(piece: str) -> float:
    starts = piece.startswith("\u2581")  # the tokenizer's mark for a space in front
    word = piece.removeprefix("\u2581").lower()
    tells = any(map(str.isalnum, word)) and word not in STOP_WORDS and word not in _ENDINGS
    return (1.0 if tells else _SAYS_LITTLE) * (1.0 if starts else _CONTINUES)


def _vectors(texts: tuple[str, ...]) -> Vectors:
    model = _model()
    vectors = np.zeros((len(texts), _SPACE.dimensions), dtype=np.float32)
    for row, text in enumerate(texts):
        # One at a time: the tokenizer's own threads gain little and make a later fork of the process unsafe.
        read = storable(text[:_LONGEST])
        if read and not read.isspace():
            tokens = model.tokenizer.encode(read, add_special_tokens=False).ids
            distinct = np.fromiter(sorted(set(tokens)), dtype=np.int64)
            model.table.take(distinct, axis=0).sum(axis=0, out=vectors[row])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=vectors, where=lengths > 0)
