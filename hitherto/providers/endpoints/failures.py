"""Turns an endpoint's failures into Hitherto's errors, whichever SDK makes the calls.

An error message never repeats the endpoint's text: that may quote the request, and errors are logged and stored. Only
the status is kept, and the error's type or code if it is a short name.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hitherto.blocks import block
from hitherto.errors import InvalidModelAnswer, ModelError, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.providers.endpoints.address import EndpointSettingNames, shown_url, usable_key
from hitherto.providers.endpoints.response import LONGEST, TooLong, at, parsed
from hitherto.providers.endpoints.retry_after import retry_after

if TYPE_CHECKING:  # whichever of the two the SDK brings: httpx or httpx2
    from httpx2 import Response

_SECRET = 8
"""Characters from which on a key is taken for a secret. Servers that need no key are given a word like "x", which is
also part of other words."""

_EXCERPT = 300
"""Characters of the operating system's message in an error."""

_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)

_NO_CREDIT = re.compile(r"insufficient_quota|billing|credit|spend_limit|usage_limit", re.IGNORECASE)
"""In the error codes of OpenAI and Anthropic for an account that has no credit or has reached its monthly limit. Both
also send it as a 429."""

_LOW_CREDIT = "credit balance is too low"
"""In Anthropic's message about such an account, with a 400."""

_TOO_LARGE = "request too large"
"""In OpenAI's 429 for one request above the account's tokens per minute: waiting does not help."""

_TOO_LONG = re.compile(r"(context|input|prompt|sequence) (length|window|size)|too long", re.IGNORECASE)
"""In the messages of OpenAI, Anthropic, vLLM and llama.cpp about a request that is too long for the model."""


@dataclass(frozen=True, slots=True)
class SDKErrors:
    """The classes of an SDK's errors: no answer in time, no connection, an answer that is no success, and all others.
    Those of OpenAI and of Anthropic have the same attributes."""

    timeout: type[Exception]
    connection: type[Exception]
    status: type[Exception]
    base: type[Exception]


class Endpoint:
    """One model at one address, called through an SDK with these `errors`, and Hitherto's errors for what can go wrong
    there.

    `timeout` limits one `answering` in seconds. No key is read from the environment, and none appears in an error
    message. `url` is the address without what may be secret in it. Raises InvalidSettings for a key or a base URL that
    no request can be made with.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        api_key: str | None,
        timeout: float,
        named: EndpointSettingNames,
        errors: SDKErrors,
    ) -> None:
        self._errors = errors
        self.named = named
        self.model = model
        self.key = usable_key(api_key, named)
        self._secret = self.key if self.key and len(self.key) >= _SECRET else ""
        self.url = shown_url(base_url, named)
        self.timeout = timeout

    @block
    async def answering(self, seconds: float | None = None) -> AsyncGenerator[None]:
        """Turns what the SDK raises in the block into a ModelError, and ends the block after `seconds` (default: the
        timeout) with ModelUnavailable, even while the endpoint still sends."""
        seconds, errors = self.timeout if seconds is None else seconds, self._errors
        # `from None`: the SDK's errors quote the endpoint, which may repeat the key or the request.
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise self._late(seconds) from None
        except TooLong:
            raise self._too_long() from None
        except errors.timeout:
            raise self._late(self.timeout) from None
        except errors.connection as error:
            if isinstance(error.__cause__, TooLong):  # as SDKs before 3 pass it on
                raise self._too_long() from None
            raise self._connection_lost(error.__cause__ or error) from None
        except errors.status as error:
            response: Response = getattr(error, "response")  # noqa: B009 (the two SDKs have no class in common)
            raise self.failure(response.status_code, getattr(error, "body", None), response.headers) from None
        except errors.base as error:
            raise ModelRejected(f"the request to {self.url} failed ({type(error).__name__})") from None

    def _late(self, seconds: float) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.url} did not answer within {seconds:g} seconds; see whether it is overloaded "
            f"or still loading {self.model!r}, or allow it more time ({self.named.timeout})"
        )

    def _connection_lost(self, cause: BaseException) -> ModelUnavailable:
        return ModelUnavailable(
            f"no answer from {self.url} ({self._fault(cause)}); see whether the server runs there and whether "
            f"{self.named.base_url} is right"
        )

    def _too_long(self) -> InvalidModelAnswer:
        return InvalidModelAnswer(
            f"{self.url} answered with more than {LONGEST // 1_000_000} MB, which no answer has; see whether "
            f"{self.named.base_url} is right ({self.named.form})"
        )

    def wrong_shape(self, body: str, expected: str) -> InvalidModelAnswer:
        return InvalidModelAnswer(
            f"{self.url} answered with something that is no {expected} ({shape_of(body)}); see whether "
            f"{self.named.base_url} is right ({self.named.form})"
        )

    def cut_short(self) -> InvalidModelAnswer:
        return InvalidModelAnswer(
            f"the answer of {self.model!r} broke off at its bound of tokens; give a digest a higher "
            "limit, or take a model that writes shorter (or thinks less)"
        )

    def empty_answer(self, why: str) -> InvalidModelAnswer:
        return InvalidModelAnswer(f"{self.model!r} {why}; what it was to do is left undone until the next attempt")

    def answer(self, body: str) -> object:
        """A body as JSON, None if it is not JSON. Raises ModelError if the body is an error instead of an answer:
        gateways pass failures on in this way, with the status as `code` or without."""
        answer = parsed(body)
        error = at(answer, "error")
        if not error:
            return answer
        code = at(error, "code")
        if isinstance(code, int) and 400 <= code < 600:
            raise self.failure(code, error, {})
        names = self._names(answer)
        named = f" ({names})" if names else ""
        raise ModelRejected(f"{self.url} answered with an error{named}; see the endpoint's own log for the reason")

    def told(self, status: int, body: object) -> str:
        """The status and the names of the error, in parentheses: "(429: rate_limit_error)"."""
        names = self._names(body)
        return f"({status}: {names})" if names else f"({status})"

    def failure(self, status: int, body: object, headers: Mapping[str, str]) -> ModelError:
        """The error to raise for a response that is not a success."""
        said, reason = self.told(status, body), _reason(body)
        if status == 402 or (status == 429 and _is_without_credit(body)) or (status == 400 and _LOW_CREDIT in reason):
            return ModelRejected(
                f"the account at {self.url} has no credit left {said}; see to its billing and limits, or set "
                f"{self.named.key} to the key of another"
            )
        if status == 429 and _TOO_LARGE in reason.lower():
            return ModelRejected(
                f"{self.url} takes no request of this size {said}; raise the account's limits, or {self.named.smaller}"
            )
        if status == 429:
            return ModelRateLimited(
                f"{self.url} lets no more requests through {said}; wait, or raise the account's limits",
                retry_after=retry_after(headers),
            )
        if status in (408, 409) or status >= 500:
            return ModelUnavailable(
                f"{self.url} is failing {said}; see the server's own log, or try again later",
                retry_after=retry_after(headers),
            )
        if status in (400, 413, 422) and _TOO_LONG.search(reason):
            return ModelRejected(
                f"{self.url} finds the request too long for {self.model!r} {said}; {self.named.smaller}"
            )
        return ModelRejected(self._refusal(status, said))

    def _names(self, body: object) -> str:
        """The error's type, code and status as far as they are short names, joined by commas; never the key."""
        error = _error(body)
        places = (("type",), ("code",), ("status",), ("details", "error_code"))
        found = dict.fromkeys(name for place in places if (name := name_of(at(error, *place))) is not None)
        return ", ".join(name for name in found if not (self._secret and self._secret in name))

    def _fault(self, error: BaseException) -> str:
        """Why there was no answer: the operating system's message, or only the class of any other error, because a
        protocol error quotes what was received."""
        kind, cause = type(error).__name__, error
        while cause.__cause__ is not None and not isinstance(cause, OSError):
            cause = cause.__cause__
        text = str(cause) if isinstance(cause, OSError) else ""
        if self._secret:
            text = text.replace(self._secret, "[key]")
        return " ".join(text[:_EXCERPT].split()) or kind

    def _refusal(self, status: int, said: str) -> str:
        if status in (401, 403):
            fault = "refused the key" if self.key else "wants a key and none is set"
            return f"{self.url} {fault} {said}; set {self.named.key} to one that may use {self.model!r}"
        if status == 404:
            return (
                f"{self.url} does not know the model {self.model!r} {said}; set {self.named.model} to one that "
                f"it has, or see whether {self.named.base_url} is right ({self.named.form})"
            )
        if status < 400:
            return (
                f"{self.url} sends the request elsewhere ({status}), where Hitherto does not follow with a key and a "
                f"conversation; set {self.named.base_url} to the address that answers"
            )
        return f"{self.url} refused the request for {self.model!r} {said}; see the endpoint's own log for the reason"


def _error(body: object) -> object:
    """The error object in a body. The SDKs may have unwrapped it already, and Google's is in a list."""
    return at(body, "error") or at(body, 0, "error") or body


def _reason(body: object) -> str:
    """The text of an error from one of the usual places, else "". It serves to tell errors apart and is never shown."""
    error = _error(body)
    said = at(error, "message") or at(error, "detail") or error
    return said if isinstance(said, str) else ""


def name_of(value: object) -> str | None:
    """`value`, if it is a short name, as endpoints give to kinds of errors; else None."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def shape_of(body: str) -> str:
    """What kind of thing a body is, without quoting it."""
    if not body.strip():
        return "nothing"
    if body.lstrip().startswith("<"):
        return "a page"
    return "no JSON" if parsed(body) is None else "JSON of another shape"


def _is_without_credit(body: object) -> bool:
    error = _error(body)
    codes = (at(error, "code"), at(error, "type"), at(error, "details", "error_code"))
    return any(isinstance(code, str) and _NO_CREDIT.search(code) for code in codes)


@contextmanager
def paid(tokens: tuple[int | None, int | None, int | None], written: int | None = None) -> Generator[None]:
    """Sets `tokens` (in, cached, out) and those written to the cache on an InvalidModelAnswer from the block: an
    unusable answer costs too."""
    try:
        yield
    except InvalidModelAnswer as error:
        error.tokens, error.tokens_written = tokens, written
        raise
