"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Azure, Ollama, vLLM, llama.cpp, LM Studio, …"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Literal, cast

from openai import APIStatusError, Omit, omit
from openai.types.chat.completion_create_params import ResponseFormat

from hitherto.core.message import storable
from hitherto.core.prompts import Prompt
from hitherto.errors import ModelAnswerUnusable
from hitherto.models.openai_endpoint import OpenAIEndpoint, at, tokens
from hitherto.ports.model import Completion, Model

_FORMAT_REFUSED = re.compile(
    r"response_?format|json_schema|json_object|schema|structured|unsupported|not supported", re.IGNORECASE
)
_THOUGHTS = re.compile(r"\A\s*+<think>(?:.*?</think>|.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What an endpoint takes: how structured output is asked for, and the name of the bound on its answer."""

    format: Literal["json_schema", "json_object"] | None
    bound: Literal["max_tokens", "max_completion_tokens"]

    def after_refusal(self, status: int, reason: str) -> _Dialect:
        """The next to try after an error of `status` that says `reason`; the same where that is about other
        things."""
        if status not in (400, 404, 422):
            return self
        if self.bound in reason:
            other = "max_tokens" if self.bound == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, bound=other)
        if self.format and _FORMAT_REFUSED.search(reason):
            return replace(self, format="json_object" if self.format == "json_schema" else None)
        return self


class OpenAICompatible(Model):
    """A model behind an OpenAI-compatible endpoint, through the official SDK.

    Structured output is asked for as a JSON schema; an endpoint that refuses it is asked for a JSON object,
    then for nothing. An objection to `max_tokens` or `max_completion_tokens` is answered with the other. What
    works is remembered as long as the instance lives.

    `timeout` bounds one `complete` in seconds, with its retries: the SDK makes up to `max_retries` after
    connection errors, 408, 409, 429 and 5xx, and honours a Retry-After. No key is read from the environment,
    and none appears in a message. Raises InvalidSettings for a key or a base URL that no request can be made
    with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_limit: int = 100_000,
        max_retries: int = 2,
    ) -> None:
        self._model = model
        self._endpoint = OpenAIEndpoint(
            model=model, base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries
        )
        self._input_limit = input_limit
        # OpenAI's newer models refuse max_tokens and say so; many other servers ignore max_completion_tokens
        # and say nothing, which leaves the answer unbounded.
        self._dialect = _Dialect("json_schema", "max_tokens" if base_url else "max_completion_tokens")

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
        """The body of the endpoint's answer, in the first dialect that it takes."""
        dialect = self._dialect
        tried = {dialect}
        while True:
            try:
                body = await self._ask(prompt, dialect)
            except APIStatusError as error:
                dialect = dialect.after_refusal(error.status_code, str(error.body))
                if dialect in tried:
                    raise
                tried.add(dialect)
            else:
                self._dialect = dialect
                return body

    async def _ask(self, prompt: Prompt, dialect: _Dialect) -> str:
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
        if not isinstance(at(answer, "choices", 0, "message"), dict):
            raise ModelAnswerUnusable(
                f"{self._endpoint.url} answered with something that is no chat completion: "
                f"{self._endpoint.excerpt(body)!r}; see whether HITHERTO_MODEL_BASE_URL is right (it often ends in /v1)"
            )
        message = ("choices", 0, "message")
        text = _THOUGHTS.sub("", _text(at(answer, *message, "content")), count=1).strip()
        finish = at(answer, "choices", 0, "finish_reason")
        if finish == "length" and not _is_json(text):
            raise ModelAnswerUnusable(
                f"the answer of {self._model!r} broke off at its bound of tokens; give the digest a higher "
                "limit, or take a model that writes shorter (or thinks less)"
            )
        if not text:
            refusal = at(answer, *message, "refusal")
            why = self._endpoint.excerpt(
                f"declined: {refusal}" if refusal else f"said nothing (finish_reason {finish})"
            )
            raise ModelAnswerUnusable(f"{self._model!r} {why}; the messages stay undigested until the next attempt")
        return Completion(
            text=text,
            tokens_in=tokens(at(answer, "usage", "prompt_tokens")),
            tokens_out=tokens(at(answer, "usage", "completion_tokens")),
        )


def _response_format(prompt: Prompt, dialect: _Dialect) -> ResponseFormat | Omit:
    match dialect.format:
        case "json_schema":
            schema = dict[str, object](prompt.schema)
            return {
                "type": "json_schema",
                "json_schema": {"name": prompt.schema_name, "schema": schema, "strict": True},
            }
        case "json_object":
            return {"type": "json_object"}
        case None:
            return omit


def _text(content: object) -> str:
    """A message's content, which is a text or, with some servers, a list of parts."""
    if isinstance(content, list):
        return "".join(_text(at(part, "text")) for part in cast(list[object], content))
    return content if isinstance(content, str) else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
