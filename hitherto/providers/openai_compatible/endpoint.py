"""An OpenAI-compatible endpoint, called through the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncAzureOpenAI,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    OpenAIError,
)

from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import Endpoint, SDKErrors
from hitherto.providers.endpoints.response import bounded, client_of

if TYPE_CHECKING:
    from httpx2 import Request, Response

OPENAI = "https://api.openai.com/v1"

_ERRORS = SDKErrors(timeout=APITimeoutError, connection=APIConnectionError, status=APIStatusError, base=OpenAIError)

_NO_KEY = "none"
"""Sent if no key is set: the SDK requires one, and local servers ignore it. Otherwise the SDK would take OPENAI_API_KEY
and send it to whatever address is configured."""


class OpenAIEndpoint(Endpoint):
    """One model at one address. Calls on `client` are made inside `answering`.

    With `api_version` it is the address of an Azure resource, whose older API has versions. One call is one request:
    the SDK does not retry. Redirects are not followed. Of the environment variables that the SDK reads, only the
    organization and the project are used, and only without a `base_url`, for OpenAI's own address.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        api_version: str | None = None,
        named: EndpointSettingNames | None = None,
    ) -> None:
        address = base_url or OPENAI
        super().__init__(
            model=model,
            base_url=address,
            api_key=api_key,
            timeout=timeout,
            named=named or EndpointSettingNames(),
            errors=_ERRORS,
        )
        http = client_of(_OpenAIClient)
        key = self.key or _NO_KEY
        if api_version is None:
            self.client = AsyncOpenAI(api_key=key, base_url=address, timeout=timeout, max_retries=0, http_client=http)
        else:
            self.client = AsyncAzureOpenAI(
                api_key=key,
                azure_endpoint=address,
                api_version=api_version,
                timeout=timeout,
                max_retries=0,
                http_client=http,
            )
            # SDKs before 3 prefer AZURE_OPENAI_AD_TOKEN to the given key.
            self.client._azure_ad_token = None  # pyright: ignore[reportPrivateUsage]
        # OPENAI_CUSTOM_HEADERS may hold a key for other calls; the SDK has no public way to ignore it.
        self.client._custom_headers = {}  # pyright: ignore[reportPrivateUsage]
        if base_url:
            self.client.organization = self.client.project = None

    async def aclose(self) -> None:
        await self.client.close()


class _OpenAIClient(DefaultAsyncHttpxClient):
    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        return await bounded(await super().send(request, stream=True, **options))
