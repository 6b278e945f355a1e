"""An endpoint of OpenAI's kind through the official SDK."""

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
from hitherto.providers.endpoints.address import EndpointSettings
from hitherto.providers.endpoints.failures import Endpoint
from hitherto.providers.endpoints.response import TooLong, bounded

if TYPE_CHECKING:
    from httpx2 import Request, Response

OPENAI = "https://api.openai.com/v1"

_NO_KEY = "none"
"""Sent where no key is set: the SDK insists on one, and servers at home ignore it. Left to itself it would
take OPENAI_API_KEY and send that to whatever address is configured."""


class OpenAIEndpoint(Endpoint):
    """One model at one address. Calls on `client` are made inside `answering`.

    With `api_version` it is the address of an Azure resource, whose older API names a version. One call is one
    request: the SDK tries nothing again. No redirect is followed, and of what the SDK finds in the environment only
    organization and project remain, for OpenAI's own address.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        api_version: str | None = None,
        named: EndpointSettings | None = None,
    ) -> None:
        address = base_url or OPENAI
        super().__init__(
            model=model, base_url=address, api_key=api_key, timeout=timeout, named=named or EndpointSettings()
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
            # SDKs before 3 prefer AZURE_OPENAI_AD_TOKEN to the key that they are given.
            self.client._azure_ad_token = None  # pyright: ignore[reportPrivateUsage]
        # OPENAI_CUSTOM_HEADERS, meant for someone else's calls, may hold a key; there is no public way to leave it out.
        self.client._custom_headers = {}  # pyright: ignore[reportPrivateUsage]
        if base_url:
            self.client.organization = self.client.project = None

    async def aclose(self) -> None:
        await self.client.close()

    @asynccontextmanager
    async def answering(self, seconds: float | None = None) -> AsyncGenerator[None]:
        """Turns what the SDK raises in the block into an error of a model, within `seconds`, which are less than the
        timeout, or the timeout."""
        async with self.in_time(seconds):
            try:
                yield
            except TooLong:
                raise self.too_long() from None
            # None is chained: the SDK's errors quote the endpoint, which may repeat the key or the request.
            except APITimeoutError:
                raise self.late() from None
            except APIConnectionError as error:
                if isinstance(error.__cause__, TooLong):  # as SDKs before 3 pass it on
                    raise self.too_long() from None
                raise self.cut_off(error.__cause__ or error) from None
            except APIStatusError as error:
                raise self.failure(error.status_code, error.body, error.response.headers) from None
            except OpenAIError as error:
                raise ModelRejected(f"the request to {self.url} failed ({type(error).__name__})") from None


class _OpenAIClient(DefaultAsyncHttpxClient):
    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        return await bounded(await super().send(request, stream=True, **options))
