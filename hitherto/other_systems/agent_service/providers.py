"""Where the models of agents are: their providers, by the names that configurations have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from agents import Model, OpenAIChatCompletionsModel
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAIError

from hitherto.errors import InvalidInput
from hitherto.ports.models.model import Model as TextModel
from hitherto.providers.azure.model import AzureOpenAI
from hitherto.providers.ollama.model import LOCAL_URL, Ollama
from hitherto.providers.openai_compatible.model import OpenAICompatible


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An endpoint that speaks chat completions. `kind` is how it is spoken to: "azure" wants `api_version`, "openai" is
    any compatible one. What is None is read from the environment as the OpenAI SDK reads it (`OPENAI_BASE_URL`,
    `OPENAI_API_KEY`; `AZURE_OPENAI_ENDPOINT`, `AZURE_OPENAI_API_KEY`, `OPENAI_API_VERSION`); "ollama" is at
    `OLLAMA_BASE_URL`, by default on this machine."""

    kind: Literal["openai", "azure", "ollama"] = "openai"
    base_url: str | None = None
    api_key: str | None = None
    api_version: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("openai", "azure", "ollama"):
            raise InvalidInput(f"the kind of a provider is {self.kind!r}; give openai, azure or ollama")

    def client(self) -> AsyncOpenAI:
        """A client, to be closed. Raises InvalidInput where something is missing."""
        try:
            match self.kind:
                case "openai":
                    return AsyncOpenAI(base_url=self.base_url, api_key=self.api_key)
                case "azure":
                    version = self.api_version or os.environ.get("OPENAI_API_VERSION", "2024-10-21")
                    endpoint = self.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT")
                    if not endpoint:
                        raise ValueError("it has no base_url, and AZURE_OPENAI_ENDPOINT is not set")
                    return AsyncAzureOpenAI(azure_endpoint=endpoint, api_key=self.api_key, api_version=version)
                case "ollama":
                    url = self.base_url or os.environ.get("OLLAMA_BASE_URL", LOCAL_URL)
                    return AsyncOpenAI(base_url=url, api_key=self.api_key or "ollama")
        except (OpenAIError, ValueError) as error:  # for a key or an address that is missing
            raise InvalidInput(f"the provider cannot be used: {error}") from None


def chat_model(client: AsyncOpenAI, name: str) -> Model:
    """A model of the SDK at a client's endpoint."""
    return OpenAIChatCompletionsModel(name, client)


def text_model(provider: Provider, name: str) -> TextModel:
    """A model that a reranker can ask; close it with `aclose`. Raises InvalidSettings."""
    match provider.kind:
        case "openai":
            return OpenAICompatible(
                model=name, base_url=provider.base_url, api_key=provider.api_key, timeout=60.0, input_limit=100_000
            )
        case "azure":
            endpoint = provider.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT", "")
            key = provider.api_key or os.environ.get("AZURE_OPENAI_API_KEY")
            return AzureOpenAI(model=name, base_url=endpoint, api_version=provider.api_version, api_key=key)
        case "ollama":
            url = provider.base_url or os.environ.get("OLLAMA_BASE_URL")
            return Ollama(model=name, base_url=url, api_key=provider.api_key)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(),
    "azure_openai": Provider(kind="azure"),
    "azure_openai_cc": Provider(kind="azure"),
    "ollama": Provider(kind="ollama"),
}
"""The providers that every configuration can name."""
