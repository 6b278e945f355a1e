"""An OpenAI-compatible endpoint, called through the official SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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

from hitherto.errors import ModelRejected
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import Endpoint
from hitherto.providers.endpoints.response import TooLong, bounded

if TYPE_CHECKING:
    from httpx2 import Request, Response

OPENAI = "https://api.openai.com/v1"

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
            model=model, base_url=address, api_key=api_key, timeout=timeout, named=named or EndpointSettingNames()
        )
        http = _OpenAIClient(follow_redirects=False)
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

    @asynccontextmanager
    async def answering(self, seconds: float | None = None) -> AsyncGenerator[None]:
        """Limits the block to `seconds` (at most the timeout, which is the default), and turns what the SDK raises in
        it into a ModelError."""
        async with self.in_time(seconds):
            try:
                yield
            except TooLong:
                raise self.too_long() from None
            # `from None`: the SDK's errors quote the endpoint, which may repeat the key or the request.
            except APITimeoutError:
                raise self.late() from None
            except APIConnectionError as error:
                if isinstance(error.__cause__, TooLong):  # as SDKs before 3 pass it on
                    raise self.too_long() from None
                raise self.connection_lost(error.__cause__ or error) from None
            except APIStatusError as error:
                raise self.failure(error.status_code, error.body, error.response.headers) from None
            except OpenAIError as error:
                raise ModelRejected(f"the request to {self.url} failed ({type(error).__name__})") from None


class _OpenAIClient(DefaultAsyncHttpxClient):
    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        return await bounded(await super().send(request, stream=True, **options))
