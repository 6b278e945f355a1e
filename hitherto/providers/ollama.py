"""Models and embedding models that Ollama runs, on this machine or another."""

from __future__ import annotations

from hitherto.providers.endpoints.address import with_path
from hitherto.providers.openai_compatible.embedder import OpenAICompatibleEmbedder
from hitherto.providers.openai_compatible.model import OpenAICompatible

LOCAL_URL = "http://localhost:11434/v1"


class Ollama(OpenAICompatible):
    """A model of the Ollama server at `base_url`, which needs no key, through its OpenAI-compatible API.

    The address may leave out /v1. `input_limit` should stay below Ollama's own `num_ctx`, because Ollama cuts longer
    prompts silently. Everything else is as with `OpenAICompatible`.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_limit: int = 100_000,
    ) -> None:
        super().__init__(
            model=model,
            base_url=with_path(base_url, "/v1") if base_url else LOCAL_URL,
            api_key=api_key,
            timeout=timeout,
            input_limit=input_limit,
        )


class OllamaEmbedder(OpenAICompatibleEmbedder):
    """A model of the Ollama server at `base_url`, which needs no key, through its OpenAI-compatible API.

    The address may leave out /v1. Everything else is as with `OpenAICompatibleEmbedder`.
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
    ) -> None:
        super().__init__(
            model=model,
            base_url=with_path(base_url, "/v1") if base_url else LOCAL_URL,
            api_key=api_key,
            dimensions=dimensions,
            input_limit=input_limit,
            timeout=timeout,
            patience=patience,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
        )
