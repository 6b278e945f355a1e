"""An embedding model deployed in an Azure OpenAI resource."""

from __future__ import annotations

from dataclasses import replace

from hitherto.providers.azure.model import EXAMPLE, FORM, resource_address
from hitherto.providers.openai_compatible.embedder import NAMED, OpenAICompatibleEmbedder

_NAMED = replace(NAMED, form=FORM, example=EXAMPLE)


class AzureOpenAIEmbedder(OpenAICompatibleEmbedder):
    """A deployment, named by `model`, of the resource at `base_url`, through the official SDK.

    With `api_version` ("2024-10-21") it uses the older API, which has versions; without, the newer one under
    /openai/v1. The model's dimensions, limit and prefixes are known only if the deployment has the model's name.
    Everything else is as with `OpenAICompatibleEmbedder`. Raises InvalidSettings for an address that is not one of the
    chosen API.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_version: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        input_limit: int | None = None,
        timeout: float = 5.0,
        patience: float = 50.0,
    ) -> None:
        super().__init__(
            model=model,
            base_url=resource_address(base_url, api_version, _NAMED),
            api_key=api_key,
            dimensions=dimensions,
            input_limit=input_limit,
            timeout=timeout,
            patience=patience,
            api_version=api_version,
            named=_NAMED,
        )
