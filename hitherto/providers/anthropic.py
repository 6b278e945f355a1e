"""A model behind Anthropic's Messages API, through the official SDK (`pip install 'hitherto[anthropic]'`)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncAnthropic,
    DefaultAsyncHttpxClient,
    omit,
)

from hitherto.core.log.message import storable
from hitherto.core.prompt import Prompt
from hitherto.ports.models import Completion, Model
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import Endpoint, SDKErrors, name_of, paid
from hitherto.providers.endpoints.response import at, bounded, client_of, is_json, tokens

if TYPE_CHECKING:
    from httpx2 import Request, Response

ANTHROPIC = "https://api.anthropic.com"

_ERRORS = SDKErrors(timeout=APITimeoutError, connection=APIConnectionError, status=APIStatusError, base=AnthropicError)

_NAMED = EndpointSettingNames(form="it ends before /v1", example=ANTHROPIC)

_NO_KEY = "none"
"""Sent if no key is set, because the SDK would then look for one in the environment and in files."""

_TOOL = "Takes the answer."

_ROOM_TO_THINK = 4_000
"""Tokens added to the limit of the answer for a model that always thinks: its thinking counts against that limit."""

_OBJECTIONS = {
    "format": re.compile(r"output_?(?:config|format)|output format|schema|structured|extra inputs", re.IGNORECASE),
    "tool": re.compile(r"tool|schema", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class _AnthropicDialect:
    """What a model accepts. `structure`: structured output as an output format, as the input of a forced tool call, or
    not at all. `thinks`: thinking cannot be disabled."""

    structure: Literal["format", "tool", "text"] = "format"
    thinks: bool = False

    def next_dialect(self, status: int, reason: str) -> _AnthropicDialect:
        """The dialect to try after an error with `status` and `reason`; this one if they are about something else."""
        if status not in (400, 422):
            return self
        if not self.thinks and "thinking" in reason:
            return replace(self, thinks=True)
        if self.structure != "text" and _OBJECTIONS[self.structure].search(reason):
            return replace(self, structure="tool" if self.structure == "format" else "text")
        return self


class Anthropic(Model):
    """A model behind Anthropic's Messages API, at Anthropic or where `base_url` says.

    Structured output is requested as an output format with a JSON schema; if the model refuses that, as a forced tool
    call; if it refuses that too, not at all. Thinking is disabled, because it counts as part of the answer; a model
    that refuses this gets more tokens instead. The instance remembers what works.

    `timeout` limits one `complete` in seconds, refused formats included. No key is read from the environment, and none
    appears in an error message. Raises InvalidSettings for a key or a base URL that no request can be made with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_limit: int = 100_000,
    ) -> None:
        # The SDK adds /v1 to each call; many base URLs end in it already.
        address = (base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
        self._endpoint = Endpoint(
            model=model, base_url=address, api_key=api_key, timeout=timeout, named=_NAMED, errors=_ERRORS
        )
        self._client = AsyncAnthropic(
            api_key=self._endpoint.key or _NO_KEY,
            base_url=address,
            timeout=timeout,
            max_retries=0,
            http_client=client_of(_AnthropicClient),
        )
        # ANTHROPIC_CUSTOM_HEADERS may hold a key for other calls; the SDK has no public way to ignore it.
        self._client._custom_headers = {}  # pyright: ignore[reportPrivateUsage]
        self._input_limit = input_limit
        self._dialect = _AnthropicDialect()

    @property
    def name(self) -> str:
        return self._endpoint.model

    @property
    def input_limit(self) -> int:
        return self._input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        async with self._endpoint.answering():
            return self._read(await self._answer(prompt), prompt)

    async def aclose(self) -> None:
        await self._client.close()

    async def _answer(self, prompt: Prompt) -> str:
        """The body of the endpoint's answer, in the first dialect that it accepts."""
        dialect = self._dialect
        while True:
            try:
                body = await self._ask(prompt, dialect)
            except APIStatusError as error:
                following = dialect.next_dialect(error.status_code, str(error.body))
                if following == dialect:
                    raise
                dialect = following
            else:
                self._dialect = dialect
                return body

    async def _ask(self, prompt: Prompt, dialect: _AnthropicDialect) -> str:
        schema = dict[str, object](prompt.schema)
        structure = dialect.structure if schema else None
        as_format, as_tool = structure == "format", structure == "tool"
        # The raw response, because the SDK builds its objects from any JSON without looking at its shape.
        response = await self._client.messages.with_raw_response.create(
            model=self.name,
            system=storable(prompt.system),
            messages=[{"role": "user", "content": storable(prompt.user)}],
            max_tokens=prompt.max_tokens + (_ROOM_TO_THINK if dialect.thinks else 0),
            thinking=omit if dialect.thinks else {"type": "disabled"},
            output_config={"format": {"type": "json_schema", "schema": schema}} if as_format else omit,
            tools=[{"name": prompt.schema_name, "description": _TOOL, "input_schema": schema}] if as_tool else omit,
            tool_choice={"type": "tool", "name": prompt.schema_name} if as_tool else omit,
        )
        return response.http_response.text

    def _read(self, body: str, prompt: Prompt) -> Completion:
        answer = self._endpoint.answer(body)
        usage = at(answer, "usage")
        cached = tokens(at(usage, "cache_read_input_tokens"))
        new = tokens(at(usage, "input_tokens"))
        written = tokens(at(usage, "cache_creation_input_tokens"))
        all_in = None if new is None else new + (written or 0) + (cached or 0)  # Anthropic counts the three apart
        out = tokens(at(usage, "output_tokens"))
        with paid((all_in, cached, out), written):
            text = self._said(answer, body, prompt)
        return Completion(text=text, tokens_in=all_in, tokens_cached=cached, tokens_out=out, tokens_written=written)

    def _said(self, answer: object, body: str, prompt: Prompt) -> str:
        """The answer's text. Raises InvalidModelAnswer where there is none, or not all of it."""
        content = at(answer, "content")
        if not isinstance(content, list):
            raise self._endpoint.wrong_shape(body, "message")
        blocks = cast("list[object]", content)
        called = _called(blocks, prompt.schema_name)
        text = _text(blocks) if called is None else called
        stopped = at(answer, "stop_reason")
        # The API parses the input of a call, so a truncated one looks complete.
        if stopped in ("max_tokens", "model_context_window_exceeded") and (called or not is_json(text)):
            raise self._endpoint.cut_short()
        if stopped == "refusal":
            raise self._endpoint.empty_answer("declined to answer")
        if not text:
            raise self._endpoint.empty_answer(f"said nothing (stop_reason {name_of(stopped)})")
        return text


def _called(blocks: list[object], tool: str) -> str | None:
    """The input that `tool` was called with, as JSON; None if it was not called."""
    for block in blocks:
        if at(block, "type") == "tool_use" and at(block, "name") == tool and at(block, "input"):
            return json.dumps(at(block, "input"), ensure_ascii=False)
    return None


def _text(blocks: list[object]) -> str:
    texts = [at(block, "text") for block in blocks if at(block, "type") == "text"]
    return "".join(text for text in texts if isinstance(text, str)).strip()


class _AnthropicClient(DefaultAsyncHttpxClient):
    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        return await bounded(await super().send(request, stream=True, **options))
