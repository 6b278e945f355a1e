"""An endpoint's failures in our words, whichever SDK it is reached through."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

from hitherto.errors import ModelAnswerUnusable, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from hitherto.models.address import Named, shown_url, usable_key
from hitherto.models.bounded import LONGEST
from hitherto.models.json_body import at, parsed
from hitherto.models.retry_after import retry_after

_EXCERPT = 300
"""Characters of an endpoint's own words in an error."""

_NO_CREDIT = re.compile(r"insufficient_quota|billing|credit|spend_limit|usage_limit", re.IGNORECASE)
"""In what OpenAI and Anthropic call the fault of an account that must be paid for, or that has reached what it may
spend in a month. Both send it as a 429 too."""

_TOO_LARGE = "request too large"
"""In OpenAI's 429 for one request beyond the tokens that an account has in a whole minute: waiting does not help."""


class Endpoint:
    """One model at one address.

    `timeout` bounds one `in_time` in seconds. No key is read from the environment, and none appears in a message.
    `url` is the address without what may be secret in it. Raises InvalidSettings for a key or a base URL that no
    request can be made with.
    """

    def __init__(self, *, model: str, base_url: str, api_key: str | None, timeout: float, named: Named) -> None:
        self.named = named
        self.model = model
        self.key = usable_key(api_key, named)
        self.url = shown_url(base_url, named)
        self.timeout = timeout

    @asynccontextmanager
    async def in_time(self, seconds: float | None = None) -> AsyncGenerator[None]:
        """Ends the block after `seconds` (the timeout, if left out) with ModelUnreachable, however busy the endpoint
        keeps it."""
        seconds = self.timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise self.late(seconds) from error

    def late(self, seconds: float | None = None) -> ModelUnreachable:
        return ModelUnreachable(
            f"{self.url} did not answer within {seconds or self.timeout:g} seconds; see whether it is overloaded "
            f"or still loading {self.model!r}, or allow it more time ({self.named.timeout})"
        )

    def cut_off(self, cause: BaseException) -> ModelUnreachable:
        return ModelUnreachable(
            f"no answer from {self.url} ({self.excerpt(cause)}); see whether the server runs there and whether "
            f"{self.named.base_url} is right"
        )

    def too_long(self) -> ModelAnswerUnusable:
        return ModelAnswerUnusable(
            f"{self.url} answered with more than {LONGEST // 1_000_000} MB, which no answer has; see whether "
            f"{self.named.base_url} is right ({self.named.form})"
        )

    def no_answer(self, body: str, expected: str) -> ModelAnswerUnusable:
        return ModelAnswerUnusable(
            f"{self.url} answered with something that is no {expected}: {self.excerpt(body)!r}; see whether "
            f"{self.named.base_url} is right ({self.named.form})"
        )

    def broke_off(self) -> ModelAnswerUnusable:
        return ModelAnswerUnusable(
            f"the answer of {self.model!r} broke off at its bound of tokens; give a digest a higher "
            "limit, or take a model that writes shorter (or thinks less)"
        )

    def nothing_said(self, why: str) -> ModelAnswerUnusable:
        return ModelAnswerUnusable(
            f"{self.model!r} {self.excerpt(why)}; what it was to do is left undone until the next attempt"
        )

    def answer(self, body: str) -> object:
        """A body as JSON, None for anything else. Raises ModelError for an error in the place of an answer, which is
        how a gateway passes on what happened behind it: with the status as `code`, or without."""
        answer = parsed(body)
        error = at(answer, "error")
        if not error:
            return answer
        code = at(error, "code")
        if isinstance(code, int) and code >= 400:
            raise self.failure(code, error, {})
        raise ModelRefused(f"{self.url} answered with an error: {self.excerpt(_reason(error))}")

    def told(self, status: int, body: object) -> str:
        """The status and the endpoint's own reason, in brackets."""
        return f"({status}: {self.excerpt(_reason(body))})"

    def failure(self, status: int, body: object, headers: Mapping[str, str]) -> ModelError:
        """What a response that is no success means for the caller."""
        said = self.told(status, body)
        if status == 402 or (status == 429 and _is_without_credit(body)):
            return ModelRefused(
                f"the account at {self.url} has no credit left {said}; see to its billing and limits, or set "
                f"{self.named.key} to the key of another"
            )
        if status == 429 and _TOO_LARGE in said.lower():
            return ModelRefused(
                f"{self.url} takes no request of this size {said}; raise the account's limits, or {self.named.smaller}"
            )
        if status == 429:
            return ModelBusy(
                f"{self.url} lets no more requests through {said}; wait, or raise the account's limits",
                retry_after=retry_after(headers),
            )
        if status in (408, 409) or status >= 500:
            return ModelUnreachable(
                f"{self.url} is failing {said}; see the server's own log, or try again later",
                retry_after=retry_after(headers),
            )
        return ModelRefused(self._refusal(status, said))

    def excerpt(self, said: object) -> str:
        """Someone else's words, on one line, short and without the key."""
        text = str(said)
        if self.key:
            text = text.replace(self.key, "[key]")
        text = " ".join(text[: 4 * _EXCERPT].split())
        return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"

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
        return f"{self.url} refused the request for {self.model!r} {said}"


def _error(body: object) -> object:
    """An error's own object. The SDKs leave it in its envelope or not, and Google's is in a list."""
    return at(body, "error") or at(body, 0, "error") or body


def _reason(body: object) -> object:
    """An error's own sentence, where it is in one of the usual places."""
    error = _error(body)
    return at(error, "message") or at(error, "detail") or error or "no reason given"


def _is_without_credit(body: object) -> bool:
    error = _error(body)
    codes = (at(error, "code"), at(error, "type"), at(error, "details", "error_code"))
    return any(isinstance(code, str) and _NO_CREDIT.search(code) for code in codes)


@contextmanager
def paid(tokens: tuple[int | None, int | None, int | None]) -> Generator[None]:
    """Says what an answer took on what is raised in the block because it cannot be used."""
    try:
        yield
    except ModelAnswerUnusable as error:
        error.tokens = tokens
        raise
