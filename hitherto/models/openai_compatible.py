"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Azure, Ollama, vLLM, llama.cpp, LM Studio, …"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, replace
from typing import Literal, cast
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, Omit, OpenAIError, omit
from openai.types.chat.completion_create_params import ResponseFormat

from hitherto.core.message import storable
from hitherto.core.prompts import Prompt
from hitherto.errors import InvalidSettings, ModelAnswerUnusable, ModelError, ModelRefused, ModelUnreachable
from hitherto.ports.model import Completion, Model

_OPENAI = "https://api.openai.com/v1"

_NO_KEY = "none"
"""Sent where no key is set: the SDK insists on one, and servers at home ignore it. Left to itself it would
take OPENAI_API_KEY and send that to whatever address is configured."""

_EXCERPT = 300
"""Characters of an endpoint's own words in an error."""

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
        self._key = _usable_key(api_key)
        self._url = _shown_url(base_url or _OPENAI)
        self._timeout = timeout
        self._input_limit = input_limit
        # OpenAI's newer models refuse max_tokens and say so; many other servers ignore max_completion_tokens
        # and say nothing, which leaves the answer unbounded.
        self._dialect = _Dialect("json_schema", "max_tokens" if base_url else "max_completion_tokens")
        self._client = AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=base_url or _OPENAI,
            timeout=timeout,
            max_retries=max_retries,
        )

    @property
    def name(self) -> str:
        return self._model

    @property
    def input_limit(self) -> int:
        return self._input_limit

    async def complete(self, prompt: Prompt) -> Completion:
        try:
            async with asyncio.timeout(self._timeout):
                return self._read(await self._answer(prompt))
        except (TimeoutError, APITimeoutError) as error:
            raise ModelUnreachable(
                f"{self._url} did not answer within {self._timeout:g} seconds; see whether it is overloaded "
                f"or still loading {self._model!r}, or allow it more time (HITHERTO_MODEL_TIMEOUT)"
            ) from error
        except APIConnectionError as error:
            raise ModelUnreachable(
                f"no answer from {self._url} ({self._excerpt(error.__cause__ or error)}); see whether the "
                "server runs there and whether HITHERTO_MODEL_BASE_URL is right"
            ) from error
        except OpenAIError as error:
            raise ModelRefused(f"the request to {self._url} failed: {self._excerpt(error)}") from error

    async def aclose(self) -> None:
        await self._client.close()

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
                    # Not chained: an endpoint may repeat the key in its answer, which the SDK's error quotes.
                    raise self._refusal(error) from None
                tried.add(dialect)
            else:
                self._dialect = dialect
                return body

    async def _ask(self, prompt: Prompt, dialect: _Dialect) -> str:
        # The raw response, because the SDK builds its objects from any JSON without looking at its shape.
        response = await self._client.chat.completions.with_raw_response.create(
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
        try:
            answer: object = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if error := _at(answer, "error"):
            raise ModelRefused(f"{self._url} answered with an error: {self._excerpt(_reason(error))}")
        if not isinstance(_at(answer, "choices", 0, "message"), dict):
            raise ModelAnswerUnusable(
                f"{self._url} answered with something that is no chat completion: {self._excerpt(body)!r}; "
                "see whether HITHERTO_MODEL_BASE_URL is right (it often ends in /v1)"
            )
        message = ("choices", 0, "message")
        text = _THOUGHTS.sub("", _text(_at(answer, *message, "content")), count=1).strip()
        finish = _at(answer, "choices", 0, "finish_reason")
        if finish == "length" and not _is_json(text):
            raise ModelAnswerUnusable(
                f"the answer of {self._model!r} broke off at its bound of tokens; give the digest a higher "
                "limit, or take a model that writes shorter (or thinks less)"
            )
        if not text:
            refusal = _at(answer, *message, "refusal")
            why = self._excerpt(f"declined: {refusal}" if refusal else f"said nothing (finish_reason {finish})")
            raise ModelAnswerUnusable(f"{self._model!r} {why}; the messages stay undigested until the next attempt")
        return Completion(
            text=text,
            tokens_in=_tokens(_at(answer, "usage", "prompt_tokens")),
            tokens_out=_tokens(_at(answer, "usage", "completion_tokens")),
        )

    def _refusal(self, error: APIStatusError) -> ModelError:
        status = error.status_code
        said = f"({status}: {self._excerpt(_reason(error.body))})"
        if status in (401, 403):
            fault = "refused the key" if self._key else "wants a key and none is set"
            return ModelRefused(
                f"{self._url} {fault} {said}; set HITHERTO_MODEL_KEY to one that may use {self._model!r}"
            )
        if status == 404:
            return ModelRefused(
                f"{self._url} does not know the model {self._model!r} {said}; set HITHERTO_MODEL to one that "
                "it has, or see whether HITHERTO_MODEL_BASE_URL is right (it often ends in /v1)"
            )
        if status == 429:
            return ModelRefused(
                f"{self._url} lets no more requests through {said}; wait, or raise the account's limits"
            )
        if status == 408 or status >= 500:
            return ModelUnreachable(f"{self._url} is failing {said}; see the server's own log, or try again later")
        return ModelRefused(f"{self._url} refused the request for {self._model!r} {said}")

    def _excerpt(self, said: object) -> str:
        """Someone else's words, on one line, short and without the key."""
        text = str(said)
        if self._key:
            text = text.replace(self._key, "[key]")
        text = " ".join(text[: 4 * _EXCERPT].split())
        return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def _usable_key(key: str | None) -> str:
    key = (key or "").strip()
    if not _is_one_word(key):
        raise InvalidSettings(
            "the model's key (HITHERTO_MODEL_KEY) has a blank or a character beyond ASCII in it, which no "
            "HTTP header can carry; copy it again"
        )
    return key


def _shown_url(url: str) -> str:
    """A base URL without what may be secret in it. Raises InvalidSettings where it is none."""
    wrong = InvalidSettings(
        "the model's base URL (HITHERTO_MODEL_BASE_URL) needs the form http(s)://host[:port]/path in ASCII, "
        "e.g. http://localhost:11434/v1"
    )
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _is_one_word(url):
        raise wrong
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _is_one_word(text: str) -> bool:
    """Whether `text` is printable ASCII without a blank: all that a header or a URL can carry."""
    return text.isascii() and text.isprintable() and " " not in text


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


def _reason(body: object) -> object:
    """An error's own sentence, where it is in one of the usual places."""
    return _at(body, "message") or _at(body, "detail") or body or "no reason given"


def _text(content: object) -> str:
    """A message's content, which is a text or, with some servers, a list of parts."""
    if isinstance(content, list):
        return "".join(_text(_at(part, "text")) for part in cast(list[object], content))
    return content if isinstance(content, str) else ""


def _tokens(value: object) -> int | None:
    return value if type(value) is int else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _at(value: object, *path: str | int) -> object:
    """What stands at `path` in parsed JSON; None where there is no such place."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = cast(dict[str, object], value).get(step)
        elif isinstance(value, list) and isinstance(step, int):
            listed = cast(list[object], value)
            value = listed[step] if step < len(listed) else None
        else:
            return None
    return value
