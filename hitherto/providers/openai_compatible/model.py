"""Models behind any endpoint with OpenAI's chat completions: OpenAI, vLLM, llama.cpp, LM Studio, a gateway, …"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from openai import APIStatusError, Omit, omit
from openai.types.chat.completion_create_params import ResponseFormat

from hitherto.core.log.message import storable
from hitherto.core.prompt import Prompt
from hitherto.ports.models import Completion, Model
from hitherto.providers.endpoints.address import EndpointSettingNames
from hitherto.providers.endpoints.failures import name_of, paid
from hitherto.providers.endpoints.response import at, is_json, tokens
from hitherto.providers.openai_compatible.endpoint import OpenAIEndpoint

_FORMAT_REFUSED = re.compile(
    r"response_?format|json_schema|json_object|schema|structured|unsupported|not supported", re.IGNORECASE
)
_Format = Literal["json_schema", "json_object with a schema", "json_object"]
_SIMPLER: dict[_Format, _Format | None] = {
    "json_schema": "json_object with a schema",
    "json_object with a schema": "json_object",
    "json_object": None,
}
_THOUGHTS = re.compile(r"\A\s*+<think>(?:.*?</think>|.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _OpenAIDialect:
    """What an endpoint accepts: the format of structured output, and the parameter that limits the answer."""

    format: _Format | None
    bound: Literal["max_tokens", "max_completion_tokens"]

    def next_dialect(self, status: int, reason: str) -> _OpenAIDialect:
        """The dialect to try after an error with `status` and `reason`; this one if they are about something else."""
        # llama-cpp-python's server answers 500 where it does not know a format, and names the field.
        if status not in (400, 404, 422) and not (status == 500 and "response_format" in reason):
            return self
        if self.bound in reason:
            other = "max_tokens" if self.bound == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, bound=other)
        if self.format and _FORMAT_REFUSED.search(reason):
            return replace(self, format=_SIMPLER[self.format])
        return self


class OpenAICompatible(Model):
    """A model behind an OpenAI-compatible endpoint, through the official SDK.

    Structured output is requested as a JSON schema; if the endpoint refuses that, as a JSON object with the schema
    beside it, then as a JSON object, then not at all. If it objects to `max_tokens` or `max_completion_tokens`, the
    other one is sent. The instance remembers what works.

    `timeout` limits one `complete` in seconds, refused formats included. No key is read from the environment, and none
    appears in an error message. `api_version` and `named` are for adapters built on this class: see `OpenAIEndpoint`.
    Raises InvalidSettings for a key or a base URL that no request can be made with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_limit: int = 100_000,
        api_version: str | None = None,
        named: EndpointSettingNames | None = None,
    ) -> None:
        self._model = model
        self._endpoint = OpenAIEndpoint(
            model=model, base_url=base_url, api_key=api_key, timeout=timeout, api_version=api_version, named=named
        )
        self._input_limit = input_limit
        # OpenAI's newer models refuse max_tokens and say so; many other servers ignore max_completion_tokens
        # and say nothing, which leaves the answer unbounded.
        self._dialect = _OpenAIDialect("json_schema", "max_tokens" if base_url else "max_completion_tokens")

    @property
    def name(self) -> str:
        return self._model

    @property
    def input_limit(self) -> int:
        return self._input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        async with self._endpoint.answering():
            return self._read(await self._answer(prompt))

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _answer(self, prompt: Prompt) -> str:
        """The body of the endpoint's answer, in the first dialect that it accepts."""
        dialect = self._dialect
        tried = {dialect}
        while True:
            try:
                body = await self._ask(prompt, dialect)
            except APIStatusError as error:
                dialect = dialect.next_dialect(error.status_code, str(error.body))
                if dialect in tried:
                    raise
                tried.add(dialect)
            else:
                self._dialect = dialect
                return body

    async def _ask(self, prompt: Prompt, dialect: _OpenAIDialect) -> str:
        # The raw response, because the SDK builds its objects from any JSON without looking at its shape.
        response = await self._endpoint.client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[
                {"role": "system", "content": storable(prompt.system)},
                {"role": "user", "content": storable(prompt.user)},
            ],
            response_format=_response_format(prompt, dialect),
            max_tokens=prompt.max_tokens if dialect.bound == "max_tokens" else omit,
            max_completion_tokens=prompt.max_tokens if dialect.bound == "max_completion_tokens" else omit,
        )
        return response.text

    def _read(self, body: str) -> Completion:
        answer = self._endpoint.answer(body)
        usage = at(answer, "usage")
        took = (
            tokens(at(usage, "prompt_tokens")),
            _first(usage, _CACHED),
            tokens(at(usage, "completion_tokens")),
        )
        written = _first(usage, _WRITTEN)
        with paid(took, written):
            text = self._said(answer, body)
        return Completion(
            text=text, tokens_in=took[0], tokens_cached=took[1], tokens_out=took[2], tokens_written=written
        )

    def _said(self, answer: object, body: str) -> str:
        """The answer's text. Raises InvalidModelAnswer where there is none, or not all of it."""
        message = ("choices", 0, "message")
        if not isinstance(at(answer, *message), dict):
            raise self._endpoint.wrong_shape(body, "chat completion")
        text = _THOUGHTS.sub("", _text(at(answer, *message, "content")), count=1).strip()
        finish = at(answer, "choices", 0, "finish_reason")
        if finish == "length" and not is_json(text):
            raise self._endpoint.cut_short()
        if not text:
            refused = at(answer, *message, "refusal")
            raise self._endpoint.empty_answer(
                "declined to answer" if refused else f"said nothing (finish_reason {name_of(finish)})"
            )
        return text


def _response_format(prompt: Prompt, dialect: _OpenAIDialect) -> ResponseFormat | Omit:
    if not prompt.schema:
        return omit
    schema = dict[str, object](prompt.schema)
    match dialect.format:
        case "json_schema":
            return {
                "type": "json_schema",
                "json_schema": {"name": prompt.schema_name, "schema": schema, "strict": True},
            }
        case "json_object with a schema":
            # As llama-cpp-python's server enforces it; the SDK's types know no schema there.
            return cast(ResponseFormat, {"type": "json_object", "schema": schema})
        case "json_object":
            return {"type": "json_object"}
        case None:
            return omit


_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot, Together
    ("cache_read_input_tokens",),  # LiteLLM and other gateways to Anthropic
)
_WRITTEN = (
    ("prompt_tokens_details", "cache_write_tokens"),  # OpenRouter
    ("prompt_tokens_details", "cache_creation_tokens"),  # LiteLLM, and the next
    ("cache_creation_input_tokens",),
)
"""Where servers say how many of a prompt's tokens came from their cache, and how many were put into it."""


def _first(usage: object, places: Sequence[tuple[str, ...]]) -> int | None:
    """The first of these counts that is one."""
    return next((count for place in places if (count := tokens(at(usage, *place))) is not None), None)


def _text(content: object) -> str:
    """A message's content, which is a text or, with some servers, a list of parts."""
    parts = [at(part, "text") for part in cast(list[object], content)] if isinstance(content, list) else [content]
    return "".join(part for part in parts if isinstance(part, str))
