"""Which model, embedder or reranker a name in the settings means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, Required, TypedDict, runtime_checkable

from pydantic import SecretStr

from hitherto.errors import InvalidSettings
from hitherto.ports.models import EXTRACTIVE, Compactor, Embedder, Model, Reranker
from hitherto.providers.extractive import Extractive
from hitherto.settings import Settings

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


WORDLLAMA = "wordllama"
NONE = "none"

_DIMENSIONED = re.compile(r"(.+)/(\d{1,5})")


class EmbedderOptions(TypedDict, total=False):
    """What embedders behind an endpoint take: see `OpenAICompatibleEmbedder`."""

    model: Required[str]
    api_key: str | None
    dimensions: int | None
    input_limit: int | None
    timeout: float
    patience: float
    query_prefix: str | None
    document_prefix: str | None


@runtime_checkable
class _Preparable(Protocol):
    async def learn(self) -> None: ...


def embedder_of(settings: Settings) -> Embedder | None:
    """The embedder, None if the settings name "none", or none and `lacks_wordllama`; close it with `aclose`.

    Nothing is sent and nothing is loaded: a missing model shows at the first call, or at `learn`. Raises
    InvalidSettings if the settings contradict each other, or cannot be used.
    """
    if settings.embedder in (WORDLLAMA, NONE) and settings.previous_embedder in (None, WORDLLAMA, NONE):
        _check_no_endpoint_settings(settings)
    return _made(settings, settings.embedder, settings.embedder_dimensions)


def lacks_wordllama(settings: Settings) -> str:
    """Why there is no embedder although the settings do not say so, and what to do; "" where that is not so."""
    if settings.embedder != WORDLLAMA or find_spec("wordllama") is not None:
        return ""
    return (
        "the embedder wordllama is not installed: its package has nothing ready for Linux on ARM and for Python 3.14 "
        "and later. Recall goes by words alone. Install it (pip install wordllama, with a compiler), name another "
        f"embedder, or say {NONE!r} to leave it so (the setting embedder, HITHERTO_EMBEDDER)"
    )


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
        found += [] if (wordllama := _made(settings, WORDLLAMA, None)) is None else [wordllama]
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


def _wordllama(settings: Settings) -> Embedder | None:
    if find_spec("wordllama") is None:
        if settings.embedder == WORDLLAMA and "embedder" in settings.model_fields_set:
            raise InvalidSettings(lacks_wordllama(settings))
        return None
    from hitherto.providers.wordllama import Wordllama

    return Wordllama()


def _made(settings: Settings, name: str, dimensions: int | None) -> Embedder | None:
    if name == NONE:
        return None
    if name == WORDLLAMA:
        return _wordllama(settings)
    provider, url, version = settings.embedder_provider, settings.embedder_base_url, settings.embedder_api_version
    if version is not None and provider != "azure":
        raise InvalidSettings(
            f"HITHERTO_EMBEDDER_API_VERSION ({version}) is for the provider 'azure', and HITHERTO_EMBEDDER_PROVIDER is "
            f"{provider!r}; change one of the two"
        )
    key = settings.embedder_key
    options = EmbedderOptions(
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
            from hitherto.providers.azure import AzureOpenAIEmbedder

            return AzureOpenAIEmbedder(base_url=url, api_version=version, **options)
        case "ollama":
            from hitherto.providers.ollama import OllamaEmbedder

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


class ModelOptions(TypedDict, total=False):
    """What models behind an endpoint take: see `OpenAICompatible`."""

    model: Required[str]
    api_key: str | None
    timeout: float
    input_limit: int


def model_of(settings: Settings) -> Model:
    """The model for digests; close it with `aclose`.

    Nothing is sent: a wrong address or key shows at the first call. Raises InvalidSettings if the settings contradict
    each other, or cannot be used.
    """
    provider, url = settings.model_provider, settings.model_base_url
    if settings.model == EXTRACTIVE:
        if provider != "openai" and "model" not in settings.model_fields_set:
            raise InvalidSettings(
                f"the provider {provider!r} (HITHERTO_MODEL_PROVIDER) is set, and no model of it; name one with "
                f"HITHERTO_MODEL, or say {EXTRACTIVE!r} there for none"
            )
        from hitherto.providers.extractive import Extractive

        return Extractive()
    if settings.model_api_version is not None and provider != "azure":
        raise InvalidSettings(
            f"HITHERTO_MODEL_API_VERSION ({settings.model_api_version}) is for the provider 'azure', and "
            f"HITHERTO_MODEL_PROVIDER is {provider!r}; change one of the two"
        )
    options = ModelOptions(
        model=settings.model,
        api_key=_key(settings.model_key),
        timeout=settings.model_timeout,
        input_limit=settings.model_input_limit,
    )
    match provider:
        case "openai":
            from hitherto.providers.openai_compatible.model import OpenAICompatible

            return OpenAICompatible(base_url=url, **options)
        case "azure":
            if not url:
                raise InvalidSettings(
                    "the provider 'azure' needs the address of your resource in HITHERTO_MODEL_BASE_URL, "
                    "e.g. https://my-resource.openai.azure.com"
                )
            from hitherto.providers.azure import AzureOpenAI

            return AzureOpenAI(base_url=url, api_version=settings.model_api_version, **options)
        case "ollama":
            from hitherto.providers.ollama import Ollama

            return Ollama(base_url=url, **options)
        case "anthropic":
            try:
                from hitherto.providers.anthropic import Anthropic
            except ModuleNotFoundError as error:
                if error.name != "anthropic":
                    raise
                raise InvalidSettings(
                    "the provider 'anthropic' (HITHERTO_MODEL_PROVIDER) needs Anthropic's SDK, which is not installed; "
                    "install it with: pip install 'hitherto[anthropic]'"
                ) from None
            return Anthropic(base_url=url, **options)


def lacks_key(settings: Settings) -> bool:
    """Whether the provider accepts no request without a key, and none is set. A self-hosted server may need none."""
    if settings.model == EXTRACTIVE or settings.model_key is not None:
        return False
    return not settings.own_server


def compactor_of(settings: Settings) -> Compactor | None:
    """The model that compacts, None if the settings name none; close it with `aclose`. Nothing is sent: see
    `Compactor.check`. Raises InvalidSettings if the settings cannot be used."""
    if settings.compact_model is None:
        return None
    from hitherto.providers.openai_compatible.compactor import OpenAICompactor

    return OpenAICompactor(
        model=settings.compact_model,
        base_url=settings.compact_base_url,
        api_key=_key(settings.compact_key),
        timeout=settings.model_timeout,
    )


def _key(key: SecretStr | None) -> str | None:
    return None if key is None else key.get_secret_value()


_MODEL = "model"


def reranker_of(settings: Settings, model: Model) -> Reranker | None:
    """The reranker, None if the settings name none; close it with `aclose`. That leaves `model`, the one for digests,
    open.

    Nothing is sent. Raises InvalidSettings if the settings contradict each other, or cannot be used.
    """
    name, url = settings.reranker, settings.reranker_base_url
    if name is None:
        if url is not None:
            raise InvalidSettings(
                "HITHERTO_RERANKER_BASE_URL is set, and no model there; name one with HITHERTO_RERANKER, or leave "
                "it out"
            )
        return None
    if name == _MODEL:
        if isinstance(model, Extractive):
            raise InvalidSettings(
                f"HITHERTO_RERANKER is {_MODEL!r}, and HITHERTO_MODEL is {model.name!r}, which cannot read; name a "
                "model there, or a cross-encoder here"
            )
        if url is not None:
            raise InvalidSettings(
                f"HITHERTO_RERANKER is {_MODEL!r}, the model for digests, and HITHERTO_RERANKER_BASE_URL the address "
                "of another; leave that out, or name the model that is there"
            )
        from hitherto.providers.chat_model_reranker import ChatModelReranker

        return ChatModelReranker(model, timeout=settings.reranker_timeout)
    if url is None:
        raise InvalidSettings(
            f"the cross-encoder {name!r} (HITHERTO_RERANKER) needs the address of its endpoint in "
            "HITHERTO_RERANKER_BASE_URL, e.g. http://localhost:8080, or https://api.jina.ai/v1"
        )
    from hitherto.providers.cross_encoder import CrossEncoder

    key = settings.reranker_key
    return CrossEncoder(
        model=name,
        base_url=url,
        api_key=None if key is None else key.get_secret_value(),
        timeout=settings.reranker_timeout,
    )
