"""Compaction of a conversation by OpenAI's call `responses.compact`, at OpenAI or another endpoint that has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from openai import APIStatusError, omit

from hitherto.core.log.message import Payload, storable
from hitherto.errors import InvalidModelAnswer, InvalidSettings, ModelRejected
from hitherto.ports.models import CompactionResult, Compactor, family_of
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import paid, shape_of
from hitherto.providers.endpoints.response import at, parsed, tokens
from hitherto.providers.openai_compatible.endpoint import OpenAIEndpoint

_NO_MODEL = ("model_not_found", "DeploymentNotFound")
"""Error codes of OpenAI and Azure for an unknown model; the status alone could also mean an unknown call."""

_NAMED = EndpointSettingNames(
    model="HITHERTO_COMPACT_MODEL", key="HITHERTO_COMPACT_KEY", base_url="HITHERTO_COMPACT_BASE_URL"
)

_NOT_HERE = (404, 405, 501)

_NO_INPUT: dict[str, object] = {"input": {}}
"""Neither a text nor a list: every endpoint that knows the call refuses it before a model is asked."""


class OpenAICompactor(Compactor):
    """A model's compaction behind an endpoint that has OpenAI's `POST /responses/compact`, through the official SDK.

    `timeout` limits one call in seconds. No key is read from the environment, and none appears in an error message.
    Raises InvalidSettings for a key or a base URL that no request can be made with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._model = model
        self._endpoint = OpenAIEndpoint(model=model, base_url=base_url, api_key=api_key, timeout=timeout, named=_NAMED)

    @property
    def name(self) -> str:
        return self._model

    @property
    def family(self) -> str:
        return family_of(self._model)

    async def check(self) -> None:
        """Sends an invalid input: if it is refused for its shape (400, 422), the endpoint has the call.

        A success without a compaction counts as missing: some servers answer every path with a page.
        """
        try:
            await self._check()
        except InvalidModelAnswer as error:
            raise InvalidSettings(self._missing(f"({error})")) from None

    async def _check(self) -> None:
        async with self._endpoint.answering():
            try:
                response = await self._endpoint.client.responses.with_raw_response.compact(
                    model=self._model, extra_body=_NO_INPUT
                )
            except APIStatusError as error:
                if self._is_missing(error):
                    raise InvalidSettings(self._missing(self._told(error))) from None
                if error.status_code not in (400, 422) or at(error.body, "code") in _NO_MODEL:
                    raise
                return
        if at(parsed(response.text), "object") != "response.compaction":
            raise InvalidSettings(self._missing(f"(it answered with {shape_of(response.text)})"))

    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult:
        async with self._endpoint.answering():
            try:
                # The raw response, because the SDK's objects drop what they do not know.
                response = await self._endpoint.client.responses.with_raw_response.compact(
                    model=self._model,
                    instructions=omit if instructions is None else storable(instructions),
                    extra_body={"input": [_sendable(item) for item in items]},
                )
            except APIStatusError as error:
                if self._is_missing(error):
                    raise ModelRejected(self._missing(self._told(error))) from None
                raise
            return self._read(response.text)

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    def _read(self, body: str) -> CompactionResult:
        answer = self._endpoint.answer(body)
        took = (
            tokens(at(answer, "usage", "input_tokens")),
            tokens(at(answer, "usage", "input_tokens_details", "cached_tokens")),
            tokens(at(answer, "usage", "output_tokens")),
        )
        with paid(took):
            items = self._items(answer, body)
        return CompactionResult(items=items, tokens_in=took[0], tokens_cached=took[1], tokens_out=took[2])

    def _items(self, answer: object, body: str) -> tuple[Payload, ...]:
        """The answer's items. Raises InvalidModelAnswer unless exactly one of them is a compaction."""
        output = at(answer, "output")
        if not isinstance(output, list):
            raise self._endpoint.wrong_shape(body, "compaction")
        items = cast("list[object]", output)
        opaque = [at(item, "encrypted_content") for item in items if at(item, "type") == "compaction"]
        usable = [content for content in opaque if isinstance(content, str) and content]
        if len(opaque) != 1 or not usable or not all(isinstance(item, dict) for item in items):
            raise InvalidModelAnswer(
                f"{self._model!r} gave {len(items)} items with {len(opaque)} compactions among them, {len(usable)} of "
                "them with content, where there should be one; the messages stay as they are until the next attempt"
            )
        return tuple(cast("list[Payload]", items))

    def _told(self, error: APIStatusError) -> str:
        return self._endpoint.told(error.status_code, error.body)

    def _is_missing(self, error: APIStatusError) -> bool:
        """Whether the endpoint lacks the call, and not only the model."""
        said = str(error.body)
        about_model = at(error.body, "code") in _NO_MODEL or ("model" in said and self._model in said)
        return error.status_code in _NOT_HERE and not about_model

    def _missing(self, told: str) -> str:
        return (
            f"{self._endpoint.url.rstrip('/')}/responses/compact is not there {told}; see whether "
            f"{_NAMED.base_url} is right (it often ends in /v1), or take a policy that needs no such call, "
            "e.g. summarize"
        )


def _sendable(value: Any) -> Any:
    """`value` with each text made `storable`, so that a request can carry it. Items are at most 100 levels deep."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): _sendable(inner) for key, inner in cast("Payload", value).items()}
    return [_sendable(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value
