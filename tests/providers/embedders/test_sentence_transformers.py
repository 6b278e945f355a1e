"""What surrounds a model of sentence-transformers: loading, the thread, prompts, blank texts, faults.

The package is not installed for the tests (torch takes gigabytes): a small module stands in for it, with the three
verbs and the one figure that the adapter uses. Whether the real package still has them is not tested here.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hitherto.core.recall.vectors import Space
from hitherto.errors import InvalidEmbedding, InvalidSettings, ModelRejected, ModelUnavailable
from hitherto.providers.sentence_transformers import SentenceTransformersEmbedder
from hitherto.testing.embedders import check_embedder
from tests.providers.embedders.serving import DIMENSIONS, vector


class StandIn:
    """`sentence_transformers.SentenceTransformer`, as far as it is used."""

    def __init__(self, name: str, *, truncate_dim: int | None = None) -> None:
        if name == "unknown":
            raise OSError(f"{name} is not a local folder and is not a valid model identifier")
        Loaded.append(self)
        self.dimensions = truncate_dim or DIMENSIONS
        self.asked: list[tuple[str, list[str], int]] = []
        self.threads: set[str] = set()
        self.name = name

    def get_sentence_embedding_dimension(self) -> int:
        return self.dimensions

    def encode(self, texts: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool) -> Any:
        return self._encoded("", texts, batch_size)

    def encode_query(
        self, texts: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> Any:
        return self._encoded("query", texts, batch_size)

    def encode_document(
        self, texts: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> Any:
        return self._encoded("document", texts, batch_size)

    def _encoded(self, kind: str, texts: list[str], batch: int) -> Any:
        self.asked.append((kind, list(texts), batch))
        self.threads.add(threading.current_thread().name)
        match self.name:
            case "slow":
                time.sleep(0.2)
            case "greedy":
                raise RuntimeError("CUDA out of memory.\nTried to allocate 2 GiB")
            case "nan":
                return np.full((len(texts), self.dimensions), np.nan, dtype=np.float32)
            case _:
                pass
        return np.asarray([vector(text, self.dimensions) for text in texts], dtype=np.float32)


Loaded: list[StandIn] = []


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("sentence_transformers")
    module.__spec__ = ModuleSpec("sentence_transformers", None)
    vars(module)["SentenceTransformer"] = StandIn
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    Loaded.clear()


async def test_it_keeps_the_promises_of_its_port():
    embedder = SentenceTransformersEmbedder(model="acme/notes")
    await embedder.learn()
    await check_embedder(embedder)
    await embedder.aclose()
    [loaded] = Loaded
    assert loaded.threads == {"hitherto-embedder_0"}, "a thread of its own"
    assert max(len(text) for _, texts, _ in loaded.asked for text in texts) <= 40_000


async def test_nothing_is_loaded_before_it_is_needed_and_then_the_space_is_known():
    embedder = SentenceTransformersEmbedder(model="acme/notes")
    assert Loaded == []
    with pytest.raises(ModelUnavailable, match="not known before it is loaded"):
        _ = embedder.space
    await embedder.query("Where?")
    assert embedder.space == Space(f"acme/notes/{DIMENSIONS}", DIMENSIONS)
    await embedder.aclose()


async def test_questions_and_documents_get_the_models_own_prompts_in_its_batches():
    embedder = SentenceTransformersEmbedder(model="acme/notes", dimensions=16, batch=5)
    await embedder.query("Where?")
    found = await embedder.documents(["In Leith.", "", "At dawn."])
    assert (found.vectors.shape, found.asked) == ((3, 16), False)
    await embedder.aclose()
    assert Loaded[0].asked == [("query", ["Where?"], 5), ("document", ["In Leith.", "At dawn."], 5)]


async def test_an_older_version_has_one_verb_for_both(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(StandIn, "encode_query")
    embedder = SentenceTransformersEmbedder(model="acme/notes")
    await embedder.query("Where?")
    await embedder.aclose()
    assert Loaded[0].asked[0][0] == ""


async def test_the_event_loop_goes_on_while_it_computes():
    embedder = SentenceTransformersEmbedder(model="slow")
    call = asyncio.create_task(embedder.query("Where?"))
    await asyncio.sleep(0)
    assert not call.done(), "it has begun, and goes on in a thread"
    await call
    await embedder.aclose()


async def test_faults_are_told_in_our_words():
    for name, kind, says in [
        ("unknown", ModelRejected, "cannot be loaded by sentence-transformers"),
        ("greedy", ModelUnavailable, "CUDA out of memory. Tried to allocate"),
        ("nan", InvalidEmbedding, "not finite"),
    ]:
        embedder = SentenceTransformersEmbedder(model=name)
        with pytest.raises(kind, match=says):
            await embedder.query("Where?")
        await embedder.aclose()


async def test_a_folder_is_loaded_only_where_it_is_written_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folders = ("acme/notes", "small", "sentence-transformers/all-MiniLM-L6-v2")
    for folder in folders:
        (tmp_path / "here" / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for name in (*folders, "all-MiniLM-L6-v2", "acme/../small"):
        embedder = SentenceTransformersEmbedder(model=name)
        with pytest.raises(ModelRejected, match="in the working directory; if that is meant"):
            await embedder.query("Where?")
        await embedder.aclose()
    assert Loaded == []
    for name in ("acme/others", "./small", "../here/small", str(tmp_path / "here" / "small")):
        embedder = SentenceTransformersEmbedder(model=name)
        await embedder.query("Where?")
        await embedder.aclose()
    assert len(Loaded) == 4


async def test_closing_twice_is_allowed_and_then_it_is_closed():
    embedder = SentenceTransformersEmbedder(model="acme/notes")
    await embedder.aclose()
    await embedder.aclose()
    with pytest.raises(ModelUnavailable, match="has been closed"):
        await embedder.query("Where?")


def test_a_missing_package_is_told_when_it_is_made(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InvalidSettings, match="not installed"):
        SentenceTransformersEmbedder(model="acme/notes")
