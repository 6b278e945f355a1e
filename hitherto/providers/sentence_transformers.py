"""An embedder that runs a sentence-transformers model in this process."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hitherto.core.log.message import storable
from hitherto.core.recall.vectors import Space
from hitherto.errors import InvalidSettings, ModelRejected, ModelUnavailable
from hitherto.ports.models import Embedder, Embeddings, usable
from hitherto.providers.names import known_model

_PACKAGE = "sentence_transformers"

_LONGEST = 40_000
"""Characters of a text that the tokenizer gets. The model reads far less, and cuts the rest."""


class SentenceTransformersEmbedder(Embedder):
    """`model` is a name on Hugging Face, or a folder that begins with "/", "./" or "../": a folder that happens to have
    the name of a model is never loaded, as a model may have code. No text leaves the process; the model's files are
    downloaded once, unless it is a folder.

    Questions and documents get the prompts in the model's own configuration. With `dimensions`, vectors are cut to that
    length, for models that are trained for it (Matryoshka). `learn` or the first texts load the model, which runs in
    its own thread. Before that, `space` raises ModelUnavailable if the dimensions are neither given nor known for the
    model. Raises InvalidSettings if the package is not installed, and ModelRejected at the first call if there is no
    such model, or a folder of its name.
    """

    def __init__(self, *, model: str, dimensions: int | None = None, batch: int = 32) -> None:
        if importlib.util.find_spec(_PACKAGE) is None:
            raise InvalidSettings(
                "the provider 'sentence_transformers' (HITHERTO_EMBEDDER_PROVIDER) needs the package "
                "sentence-transformers, which is not installed; install it with: "
                "pip install 'hitherto[sentence-transformers]'"
            )
        self._model = model
        self._batch = batch
        self._truncated = dimensions
        self._dimensions = dimensions or known_model(model).dimensions
        self._loaded: Any = None
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="hitherto-embedder")

    @property
    def space(self) -> Space:
        if self._dimensions is None:
            raise ModelUnavailable(
                f"the dimensions of {self._model!r} are not known before it is loaded; see whether it can be, or set "
                "HITHERTO_EMBEDDER_DIMENSIONS"
            )
        return Space(f"{self._model}/{self._dimensions}", self._dimensions)

    @property
    def local(self) -> bool:
        return True

    @property
    def batch(self) -> int:
        return self._batch

    async def learn(self) -> None:
        """Loads the model. Raises what `query` raises."""
        await self._in_thread(self._ready)

    async def documents(self, texts: Sequence[str]) -> Embeddings:
        return await self._in_thread(lambda: self._embedded(texts, "encode_document"))

    async def query(self, text: str) -> Embeddings:
        return await self._in_thread(lambda: self._embedded([text], "encode_query"))

    async def aclose(self) -> None:
        thread, self._thread, self._loaded = self._thread, None, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        if self._thread is None:
            raise ModelUnavailable(f"the embedder {self._model!r} has been closed; make another")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _embedded(self, texts: Sequence[str], verb: str) -> Embeddings:
        worded = [place for place, text in enumerate(texts) if text.strip()]
        model = self._ready()
        found = np.zeros((len(texts), self.space.dimensions), dtype=np.float32)
        if worded:
            # Before version 5 there was one method for both, and callers added the prompts.
            encode = getattr(model, verb, model.encode)
            sent = [storable(texts[place][:_LONGEST]) for place in worded]
            try:
                vectors = encode(sent, batch_size=self._batch, convert_to_numpy=True, show_progress_bar=False)
            except RuntimeError as error:  # torch raises it if a device is out of memory, among other things
                raise ModelUnavailable(
                    f"the model {self._model!r} failed ({' '.join(str(error).split())[:300]}); see whether the machine "
                    "has enough memory for it"
                ) from error
            found[worded] = usable(vectors, count=len(worded), space=self.space)
        return Embeddings(found, asked=False)

    def _ready(self) -> Any:
        if self._loaded is None:
            self._check_name()
            package: Any = importlib.import_module(_PACKAGE)
            try:
                loaded = package.SentenceTransformer(self._model, truncate_dim=self._truncated)
            except (OSError, ValueError) as error:
                # Hugging Face's libraries raise these both for an unknown model and without a network.
                raise ModelRejected(
                    f"the model {self._model!r} (HITHERTO_EMBEDDER) cannot be loaded by sentence-transformers "
                    f"({' '.join(str(error).split())[:300]}); see whether it is there, or name a folder that has it"
                ) from error
            self._dimensions = int(loaded.get_sentence_embedding_dimension())
            self._loaded = loaded
        return self._loaded

    def _check_name(self) -> None:
        """Raises ModelRejected for a name that the package would take for a folder of the working directory. It looks
        for one without an organization in its own, too."""
        if self._model.startswith(("./", "../")) or os.path.isabs(self._model):
            return
        for name in (self._model, f"sentence-transformers/{self._model}"):
            if os.path.lexists(name):
                raise ModelRejected(
                    f"the model {self._model!r} (HITHERTO_EMBEDDER) would be loaded from {name!r} in the working "
                    f"directory; if that is meant, write './{name}', else start elsewhere"
                )
