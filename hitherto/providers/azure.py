"""Models and embedding models deployed in an Azure OpenAI resource."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack
from urllib.parse import urlsplit

from hitherto.errors import InvalidSettings
from hitherto.providers.endpoints.address import EndpointSettingNames, shown_url, with_path
from hitherto.providers.names import EmbedderOptions, ModelOptions
from hitherto.providers.openai_compatible.embedder import NAMED, OpenAICompatibleEmbedder
from hitherto.providers.openai_compatible.model import OpenAICompatible

FORM = "it is the address of the resource, without the path of a deployment"
EXAMPLE = "https://my-resource.openai.azure.com"

_NAMED = EndpointSettingNames(form=FORM, example=EXAMPLE)
_NEWER = "/openai/v1"


class AzureOpenAI(OpenAICompatible):
    """A deployment, named by `model`, of the resource at `base_url`, through the official SDK.

    With `api_version` ("2024-10-21") it uses the older API, which has versions; without, the newer one under
    /openai/v1. Everything else is as with `OpenAICompatible`. Raises InvalidSettings for an address that is not one of
    the chosen API.
    """

    def __init__(self, *, base_url: str, api_version: str | None = None, **options: Unpack[ModelOptions]) -> None:
        url = resource_address(base_url, api_version, _NAMED)
        super().__init__(base_url=url, api_version=api_version, named=_NAMED, **options)
        # Unlike the servers that OpenAICompatible asks for max_tokens first, Azure says which of the two it takes.
        self._dialect = replace(self._dialect, bound="max_completion_tokens")


def resource_address(base_url: str, api_version: str | None, named: EndpointSettingNames) -> str:
    """The base URL for an endpoint of the resource. Raises InvalidSettings, with the setting names of `named`, if the
    address and the version do not fit together."""
    shown = shown_url(base_url, named)
    if api_version is None:
        return with_path(base_url, _NEWER)
    if not all(part.isascii() and part.isalnum() for part in api_version.split("-")):
        raise InvalidSettings(f"{api_version!r} ({named.api_version}) is no version of Azure's API; one is 2024-10-21")
    if urlsplit(base_url).query:
        raise InvalidSettings(
            f"{named.base_url} ({shown}) must not have a query; the version stands in {named.api_version}"
        )
    path = urlsplit(shown).path.rstrip("/")
    if path.endswith(_NEWER):
        raise InvalidSettings(
            f"{named.base_url} ({shown}) is the address of Azure's newer API, which has no versions; leave out "
            f"{named.api_version}, or {_NEWER}"
        )
    if path.endswith("/openai") or "/deployments" in path:
        raise InvalidSettings(
            f"{named.base_url} ({shown}) goes too far: it is the address of the resource, e.g. {named.example}, and "
            f"the deployment's name stands in {named.model}"
        )
    return base_url


_EMBEDDER_NAMES = replace(NAMED, form=FORM, example=EXAMPLE)


class AzureOpenAIEmbedder(OpenAICompatibleEmbedder):
    """A deployment, named by `model`, of the resource at `base_url`, through the official SDK.

    With `api_version` ("2024-10-21") it uses the older API, which has versions; without, the newer one under
    /openai/v1. The model's dimensions, limit and prefixes are known only if the deployment has the model's name.
    Everything else is as with `OpenAICompatibleEmbedder`. Raises InvalidSettings for an address that is not one of the
    chosen API.
    """

    def __init__(self, *, base_url: str, api_version: str | None = None, **options: Unpack[EmbedderOptions]) -> None:
        url = resource_address(base_url, api_version, _EMBEDDER_NAMES)
        super().__init__(base_url=url, api_version=api_version, named=_EMBEDDER_NAMES, **options)
