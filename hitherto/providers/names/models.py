"""Makes the models that the settings name."""

from __future__ import annotations

from typing import TypedDict

from pydantic import SecretStr

from hitherto.errors import InvalidSettings
from hitherto.ports.models.compactor import Compactor
from hitherto.ports.models.model import EXTRACTIVE, Model
from hitherto.settings import Settings


class _ModelOptions(TypedDict):
    model: str
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
        from hitherto.providers.extractive.model import Extractive

        return Extractive()
    if settings.model_api_version is not None and provider != "azure":
        raise InvalidSettings(
            f"HITHERTO_MODEL_API_VERSION ({settings.model_api_version}) is for the provider 'azure', and "
            f"HITHERTO_MODEL_PROVIDER is {provider!r}; change one of the two"
        )
    options = _ModelOptions(
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
            from hitherto.providers.azure.model import AzureOpenAI

            return AzureOpenAI(base_url=url, api_version=settings.model_api_version, **options)
        case "ollama":
            from hitherto.providers.ollama.model import Ollama

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
    own_server = settings.model_provider == "ollama" or (
        settings.model_provider == "openai" and settings.model_base_url is not None
    )
    return not own_server


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
