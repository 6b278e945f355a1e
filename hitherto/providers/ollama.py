"""Models and embedding models that Ollama runs, on this machine or another."""

from __future__ import annotations

from typing import Unpack

from hitherto.providers.endpoints.address import with_path
from hitherto.providers.names import EmbedderOptions, ModelOptions
from hitherto.providers.openai_compatible.embedder import OpenAICompatibleEmbedder
from hitherto.providers.openai_compatible.model import OpenAICompatible

LOCAL_URL = "http://localhost:11434/v1"


class Ollama(OpenAICompatible):
    """A model of the Ollama server at `base_url`, which needs no key, through its OpenAI-compatible API.

    The address may leave out /v1. `input_limit` should stay below Ollama's own `num_ctx`, because Ollama cuts longer
    prompts silently. Everything else is as with `OpenAICompatible`.
    """

    def __init__(self, *, base_url: str | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(base_url=with_path(base_url, "/v1") if base_url else LOCAL_URL, **options)


class OllamaEmbedder(OpenAICompatibleEmbedder):
    """A model of the Ollama server at `base_url`, which needs no key, through its OpenAI-compatible API.

    The address may leave out /v1. Everything else is as with `OpenAICompatibleEmbedder`.
    """

    def __init__(self, *, base_url: str | None = None, **options: Unpack[EmbedderOptions]) -> None:
        super().__init__(base_url=with_path(base_url, "/v1") if base_url else LOCAL_URL, **options)
