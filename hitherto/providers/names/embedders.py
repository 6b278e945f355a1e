"""Makes the embedders that the settings name."""

from __future__ import annotations

import re
from typing import Protocol, TypedDict, runtime_checkable

from hitherto.errors import InvalidSettings
from hitherto.ports.models.embedder import Embedder
from hitherto.settings import Settings

WORDLLAMA = "wordllama"
NONE = "none"

_DIMENSIONED = re.compile(r"(.+)/(\d{1,5})")


class _EmbedderOptions(TypedDict):
    model: str
    api_key: str | None
    dimensions: int | None
    input_limit: int | None
    timeout: float
    patience: float


@runtime_checkable
class _Preparable(Protocol):
    async def learn(self) -> None: ...


def embedder_of(settings: Settings) -> Embedder | None:
    """The embedder, None if the settings name "none"; close it with `aclose`.

    Nothing is sent and nothing is loaded: a missing model shows at the first call, or at `learn`. Raises
    InvalidSettings if the settings contradict each other, or cannot be used.
    """
    if settings.embedder in (WORDLLAMA, NONE) and settings.previous_embedder in (None, WORDLLAMA, NONE):
        _check_no_endpoint_settings(settings)
    return _made(settings, settings.embedder, settings.embedder_dimensions)


def previous_of(settings: Settings) -> tuple[Embedder, ...]:
    """The embedders that searches use until the new embedder's vectors are complete: `previous_embedder`, if it is set,
    and wordllama, the default, unless that is the new one. Empty if there is no embedder. They load, or call their
    endpoint, only for their first question; close them with `aclose`.

    `previous_embedder` is "wordllama", the name of a model, or the name of its space, which has the dimensions too:
    "small/512". Raises InvalidSettings as `embedder_of`.
    """
    if settings.embedder == NONE:
        return ()
    found: list[Embedder] = []
    former = settings.previous_embedder
    if former not in (None, WORDLLAMA, NONE):
        named = _DIMENSIONED.fullmatch(former)
        made = _made(settings, named[1], int(named[2])) if named else _made(settings, former, None)
        assert made is not None, "only the name of none gives none"
        found.append(made)
    if settings.embedder != WORDLLAMA:
        wordllama = _made(settings, WORDLLAMA, None)
        assert wordllama is not None, "only the name of none gives none"
        found.append(wordllama)
    return tuple(found)


async def learn(embedder: Embedder) -> None:
    """Finds out the dimensions of an embedder's space: asks the endpoint for one vector if they are not known, or loads
    a model that runs in this process. Raises what `Embedder.query` raises. It may be tried again or left out: the
    first vectors tell the dimensions too."""
    if isinstance(embedder, _Preparable):
        await embedder.learn()


def _check_no_endpoint_settings(settings: Settings) -> None:
    """Raises InvalidSettings if a setting is given that an embedder without an endpoint does not use: most likely the
    model's name was forgotten."""
    given = settings.model_fields_set
    if "embedder" in given and settings.embedder == NONE:
        return
    for name in ("embedder_base_url", "embedder_dimensions", "embedder_api_version"):
        if name in given and getattr(settings, name) is not None:
            raise InvalidSettings(
                f"HITHERTO_{name.upper()} is set, and the embedder is {settings.embedder!r}, which has none; name a "
                "model with HITHERTO_EMBEDDER, or leave that out"
            )
    if settings.embedder_provider != "openai" and "embedder" not in given:
        raise InvalidSettings(
            f"the provider {settings.embedder_provider!r} (HITHERTO_EMBEDDER_PROVIDER) is set, and no model of it; "
            f"name one with HITHERTO_EMBEDDER, or say {WORDLLAMA!r} there"
        )


def _made(settings: Settings, name: str, dimensions: int | None) -> Embedder | None:
    if name == NONE:
        return None
    if name == WORDLLAMA:
        from hitherto.providers.wordllama import Wordllama

        return Wordllama()
    provider, url, version = settings.embedder_provider, settings.embedder_base_url, settings.embedder_api_version
    if version is not None and provider != "azure":
        raise InvalidSettings(
            f"HITHERTO_EMBEDDER_API_VERSION ({version}) is for the provider 'azure', and HITHERTO_EMBEDDER_PROVIDER is "
            f"{provider!r}; change one of the two"
        )
    key = settings.embedder_key
    options = _EmbedderOptions(
        model=name,
        api_key=None if key is None else key.get_secret_value(),
        dimensions=dimensions,
        input_limit=settings.embedder_input_limit,
        timeout=settings.embedder_timeout,
        patience=10 * settings.embedder_timeout,
    )
    match provider:
        case "openai":
            from hitherto.providers.openai_compatible.embedder import OpenAICompatibleEmbedder

            return OpenAICompatibleEmbedder(base_url=url, **options)
        case "azure":
            if not url:
                raise InvalidSettings(
                    "the provider 'azure' needs the address of your resource in HITHERTO_EMBEDDER_BASE_URL, "
                    "e.g. https://my-resource.openai.azure.com"
                )
            from hitherto.providers.azure.embedder import AzureOpenAIEmbedder

            return AzureOpenAIEmbedder(base_url=url, api_version=version, **options)
        case "ollama":
            from hitherto.providers.ollama.embedder import OllamaEmbedder

            return OllamaEmbedder(base_url=url, **options)
        case "sentence_transformers":
            if url is not None or key is not None:
                raise InvalidSettings(
                    "the provider 'sentence_transformers' computes in this process and has neither address nor key; "
                    "leave out HITHERTO_EMBEDDER_BASE_URL and HITHERTO_EMBEDDER_KEY, or change "
                    "HITHERTO_EMBEDDER_PROVIDER"
                )
            from hitherto.providers.sentence_transformers import SentenceTransformersEmbedder

            return SentenceTransformersEmbedder(model=name, dimensions=dimensions)
