"""An endpoint of OpenAI's kind through the official SDK: its address and key, and its failures in our words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, OpenAIError

from hitherto.errors import InvalidSettings, ModelError, ModelRefused, ModelUnreachable

OPENAI = "https://api.openai.com/v1"

_NO_KEY = "none"
"""Sent where no key is set: the SDK insists on one, and servers at home ignore it. Left to itself it would
take OPENAI_API_KEY and send that to whatever address is configured."""

_EXCERPT = 300
"""Characters of an endpoint's own words in an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The settings that an endpoint's faults are blamed on, as they stand in the environment."""

    model: str = "HITHERTO_MODEL"
    key: str = "HITHERTO_MODEL_KEY"
    base_url: str = "HITHERTO_MODEL_BASE_URL"
    timeout: str = "HITHERTO_MODEL_TIMEOUT"


class OpenAIEndpoint:
    """One model at one address. Calls on `client` are made inside `answering`.

    `timeout` bounds one `answering` in seconds, with the SDK's retries: up to `max_retries` after connection errors,
    408, 409, 429 and 5xx, honouring a Retry-After. No key is read from the environment, and none appears in a
    message. `url` is the address without what may be secret in it. Raises InvalidSettings for a key or a base URL
    that no request can be made with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None,
        api_key: str | None,
        timeout: float,
        max_retries: int,
        named: Named | None = None,
    ) -> None:
        self.named = named or Named()
        self._model = model
        self._key = _usable_key(api_key, self.named)
        self._timeout = timeout
        self.url = _shown_url(base_url or OPENAI, self.named)
        self.client = AsyncOpenAI(
            api_key=self._key or _NO_KEY,
            base_url=base_url or OPENAI,
            timeout=timeout,
            max_retries=max_retries,
        )

    async def aclose(self) -> None:
        await self.client.close()

    @asynccontextmanager
    async def answering(self) -> AsyncGenerator[None]:
        """Turns what the SDK raises in the block into ModelUnreachable or ModelRefused, within the timeout."""
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except (TimeoutError, APITimeoutError) as error:
            raise ModelUnreachable(
                f"{self.url} did not answer within {self._timeout:g} seconds; see whether it is overloaded "
                f"or still loading {self._model!r}, or allow it more time ({self.named.timeout})"
            ) from error
        except APIConnectionError as error:
            raise ModelUnreachable(
                f"no answer from {self.url} ({self.excerpt(error.__cause__ or error)}); see whether the "
                f"server runs there and whether {self.named.base_url} is right"
            ) from error
        except APIStatusError as error:
            # Not chained: an endpoint may repeat the key in its answer, which the SDK's error quotes.
            raise self._refusal(error) from None
        except OpenAIError as error:
            raise ModelRefused(f"the request to {self.url} failed: {self.excerpt(error)}") from error

    def told(self, error: APIStatusError) -> str:
        """The status and the endpoint's own reason, in brackets."""
        return f"({error.status_code}: {self.excerpt(_reason(error.body))})"

    def answer(self, body: str) -> object:
        """A body as JSON, None for anything else. Raises ModelRefused for an error in the place of an answer."""
        answer = parsed(body)
        if error := at(answer, "error"):
            raise ModelRefused(f"{self.url} answered with an error: {self.excerpt(_reason(error))}")
        return answer

    def excerpt(self, said: object) -> str:
        """Someone else's words, on one line, short and without the key."""
        text = str(said)
        if self._key:
            text = text.replace(self._key, "[key]")
        text = " ".join(text[: 4 * _EXCERPT].split())
        return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"

    def _refusal(self, error: APIStatusError) -> ModelError:
        status, said = error.status_code, self.told(error)
        if status in (401, 403):
            fault = "refused the key" if self._key else "wants a key and none is set"
            return ModelRefused(f"{self.url} {fault} {said}; set {self.named.key} to one that may use {self._model!r}")
        if status == 404:
            return ModelRefused(
                f"{self.url} does not know the model {self._model!r} {said}; set {self.named.model} to one that "
                f"it has, or see whether {self.named.base_url} is right (it often ends in /v1)"
            )
        if status == 429:
            return ModelRefused(f"{self.url} lets no more requests through {said}; wait, or raise the account's limits")
        if status == 408 or status >= 500:
            return ModelUnreachable(f"{self.url} is failing {said}; see the server's own log, or try again later")
        return ModelRefused(f"{self.url} refused the request for {self._model!r} {said}")


def parsed(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def at(value: object, *path: str | int) -> object:
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


def tokens(value: object) -> int | None:
    """A figure of an endpoint's usage, where it is one."""
    return value if type(value) is int else None


def _reason(body: object) -> object:
    """An error's own sentence, where it is in one of the usual places."""
    return at(body, "message") or at(body, "detail") or body or "no reason given"


def _usable_key(key: str | None, named: Named) -> str:
    key = (key or "").strip()
    if not _is_one_word(key):
        raise InvalidSettings(
            f"the model's key ({named.key}) has a blank or a character beyond ASCII in it, which no "
            "HTTP header can carry; copy it again"
        )
    return key


def _shown_url(url: str, named: Named) -> str:
    """A base URL without what may be secret in it. Raises InvalidSettings where it is none."""
    wrong = InvalidSettings(
        f"the model's base URL ({named.base_url}) needs the form http(s)://host[:port]/path in ASCII, "
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
