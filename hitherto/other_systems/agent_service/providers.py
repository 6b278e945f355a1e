"""Where the models of agents are: their providers, by the names that configurations have."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

from agents import Model, OpenAIChatCompletionsModel
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAIError

from hitherto.errors import InvalidInput
from hitherto.ports.models import Model as TextModel
from hitherto.providers.azure import AzureOpenAI
from hitherto.providers.ollama import LOCAL_URL, Ollama
from hitherto.providers.openai_compatible.model import OpenAICompatible


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An endpoint that speaks chat completions. `kind` is how it is spoken to: "azure" wants `api_version`, "openai" is
    any compatible one. What is None is read from the environment as the OpenAI SDK reads it (`OPENAI_BASE_URL`,
    `OPENAI_API_KEY`; `AZURE_OPENAI_ENDPOINT`, `AZURE_OPENAI_API_KEY`, `OPENAI_API_VERSION`); "ollama" is at
    `OLLAMA_BASE_URL`, by default on this machine."""

    kind: Literal["openai", "azure", "ollama"] = "openai"
    base_url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("openai", "azure", "ollama"):
            raise InvalidInput(f"the kind of a provider is {self.kind!r}; give openai, azure or ollama")

    @property
    def address(self) -> str:
        """Where requests go. Raises InvalidInput where nothing says it."""
        match self.kind:
            case "openai":
                return self.base_url or _variable("OPENAI_BASE_URL") or "https://api.openai.com/v1"
            case "azure":
                found = self.base_url or _variable("AZURE_OPENAI_ENDPOINT")
                if found is None:
                    raise InvalidInput(
                        "the provider cannot be used: it has no base_url, and AZURE_OPENAI_ENDPOINT is not set"
                    )
                return found
            case "ollama":
                return self.base_url or _variable("OLLAMA_BASE_URL") or LOCAL_URL

    @property
    def key(self) -> str | None:
        """The key that goes there."""
        match self.kind:
            case "openai":
                return self.api_key or _variable("OPENAI_API_KEY")
            case "azure":
                return self.api_key or _variable("AZURE_OPENAI_API_KEY")
            case "ollama":
                return self.api_key or "ollama"

    @property
    def version(self) -> str:
        """The version of Azure's API."""
        return self.api_version or _variable("OPENAI_API_VERSION") or "2024-10-21"

    def check(self) -> None:
        """Raises InvalidInput where no request could be made, for want of a key or an address."""
        if self.key is None and not (self.kind == "azure" and _variable("AZURE_OPENAI_AD_TOKEN")):
            raise InvalidInput(f"the provider {self.kind!r} has no api_key, and the environment has none for it")
        _ = self.address

    def client(self) -> AsyncOpenAI:
        """A client, to be closed. Raises InvalidInput where something is missing."""
        try:
            if self.kind == "azure":
                return AsyncAzureOpenAI(azure_endpoint=self.address, api_key=self.key, api_version=self.version)
            return AsyncOpenAI(base_url=self.address, api_key=self.key)
        except (OpenAIError, ValueError) as error:  # for a key that is missing
            raise InvalidInput(f"the provider cannot be used: {error}") from None


def _variable(name: str) -> str | None:
    return os.environ.get(name) or None


def chat_model(client: AsyncOpenAI, name: str) -> Model:
    """A model of the SDK at a client's endpoint."""
    return OpenAIChatCompletionsModel(name, client)


def text_model(provider: Provider, name: str) -> TextModel:
    """A model that a reranker can ask, where the provider's client is; close it with `aclose`. Raises InvalidInput
    where something is missing, InvalidSettings for an unusable address."""
    provider.check()
    address, key = provider.address, provider.key
    match provider.kind:
        case "openai":
            return OpenAICompatible(model=name, base_url=address, api_key=key)
        case "azure":
            return AzureOpenAI(model=name, base_url=address, api_version=provider.version, api_key=key)
        case "ollama":
            return Ollama(model=name, base_url=address, api_key=key)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(),
    "azure_openai": Provider(kind="azure"),
    "azure_openai_cc": Provider(kind="azure"),
    "ollama": Provider(kind="ollama"),
}
"""The providers that every configuration can name."""
