"""Calls of a model: within the tenant's ceiling, past the breaker, tried again where it may help, and in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Protocol, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from hitherto.core.breaker import Breaker
from hitherto.core.ledger import Cause, ModelCall, Purpose, Spent
from hitherto.engine.parts import Parts
from hitherto.errors import HithertoError, ModelAnswerUnusable, ModelBusy, ModelRefused, ModelUnreachable
from hitherto.logs import logger

log = logger("hitherto.model")

_PATIENCE = 10.0
"""The longest wait for another try, in seconds, that is spent on the spot; for a longer one the digest is put off."""

_LOOKED_UP = 5.0
"""Seconds for which what a tenant has spent is taken as known, but for what this process adds to it."""

_AGAIN = 600.0
"""Seconds after which a ceiling is looked at again: it may have been raised."""

_TO_SAY_SO = 1.0
"""Seconds that an adapter has to say itself that a call took too long."""

_APART = frozenset({Purpose.COMPACT, Purpose.EMBED, Purpose.RERANK})
"""What may be asked of another endpoint under the same name."""

_Took = tuple[int | None, int | None, int | None]
"""Tokens in, those of them from the cache, and out."""


class Answered(Protocol):
    """What any of the endpoints answers: how many tokens it took, where it said so, and whether one was asked at
    all."""

    @property
    def tokens_in(self) -> int | None: ...
    @property
    def tokens_cached(self) -> int | None: ...
    @property
    def tokens_out(self) -> int | None: ...
    @property
    def asked(self) -> bool: ...


_Answer = TypeVar("_Answer", bound=Answered)


class NotNow(Exception):
    """No call is to be made for `seconds`: the endpoint failed too often of late (for this `cause`), or the tenant has
    spent enough."""

    def __init__(self, message: str, *, seconds: float, cause: Cause | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which model is asked, what for, for whom, and for which digest, if it is for one."""

    model: str
    purpose: Purpose
    tenant: str
    digest: int | None = None


class Calls:
    """Makes the calls of one process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._breakers: dict[tuple[str, Purpose | None], Breaker] = {}
        self._spent: dict[str, tuple[float, Spent]] = {}
        self._unwritten: dict[str, Spent] = {}
        self._last_words: dict[str, tuple[str, Cause]] = {}
        self._told: set[tuple[str, date]] = set()

    async def make(
        self, ask: Callable[[], Awaitable[_Answer]], what: Asked, ledger: list[ModelCall], *, tries: int | None = None
    ) -> _Answer:
        """The answer to `ask`, which is one request. Every request made is added to `ledger`.

        What fails for a passing reason is asked `tries` times in all (by default the setting `model_tries`), after a
        wait that grows, and not before the endpoint's Retry-After. Raises NotNow, and what the model raises.
        """

        async def once() -> _Answer:
            await self._check_ceiling(what.tenant)
            breaker = self._breaker(what)
            ticket = breaker.admitted(time.monotonic())
            if ticket is None:
                raise self._left_alone(what.model, breaker.wait(time.monotonic()))
            return await self._once(ask, what, breaker, ticket, ledger)

        trying = AsyncRetrying(
            retry=retry_if_exception(_passes_soon),
            stop=stop_after_attempt(tries or self._parts.settings.model_tries),
            wait=_wait,
            reraise=True,
        )
        return await trying(once)

    async def _once(
        self,
        ask: Callable[[], Awaitable[_Answer]],
        what: Asked,
        breaker: Breaker,
        ticket: int,
        ledger: list[ModelCall],
    ) -> _Answer:
        began = time.monotonic()
        answer: _Answer | None = None
        took: _Took = (None, None, None)
        cause: Cause | None = Cause.DEFECT
        settings = self._parts.settings
        provider = settings.embedder_provider if what.purpose is Purpose.EMBED else settings.model_provider
        with self._parts.watch.span(
            "model_call", model=what.model, purpose=what.purpose.value, digest=what.digest, provider=provider
        ):
            try:
                found = answer = await self._bounded(ask)
                took = (found.tokens_in, found.tokens_cached, found.tokens_out)
                cause = None
                return found
            except asyncio.CancelledError:
                cause = Cause.LOST
                raise
            except HithertoError as error:
                cause = cause_of(error)
                if isinstance(error, ModelAnswerUnusable):
                    took = error.tokens
                elif isinstance(error, ModelUnreachable):
                    self._last_words[what.model] = (str(error), cause)
                raise
            finally:
                call = self._entry(took, what, cause, seconds=time.monotonic() - began)
                self._tell(breaker, ticket, call)
                if answer is None or answer.asked:
                    ledger.append(call)
                    self._add(what.tenant, call)
                    self._parts.watch.called(call)

    async def _bounded(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """One request of at most `model_timeout`, whatever the adapter makes of it: a model of somebody's own may never
        answer, and may be cancelled by others than us."""
        seconds = self._parts.settings.model_timeout
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(seconds + _TO_SAY_SO):
                return await ask()
        except TimeoutError:
            raise ModelUnreachable(
                f"the model did not answer within {seconds:g} seconds; see what it waits for, or allow it more time "
                "(HITHERTO_MODEL_TIMEOUT)"
            ) from None
        except asyncio.CancelledError:
            if task is not None and task.cancelling():
                raise
            raise ModelUnreachable("the model's own client cancelled the call; see what ended it") from None

    def _left_alone(self, model: str, seconds: float) -> NotNow:
        words, cause = self._last_words.get(model, ("no answer", Cause.UNREACHABLE))
        return NotNow(
            f"{model!r} has failed too often of late and is left alone for a while; last: {words}",
            seconds=seconds,
            cause=cause,
        )

    def _entry(self, took: _Took, what: Asked, cause: Cause | None, *, seconds: float) -> ModelCall:
        tokens_in, tokens_cached, tokens_out = took
        price = None if tokens_in is None and tokens_out is None else self._parts.price(what.model)
        return ModelCall(
            purpose=what.purpose,
            model=what.model,
            latency_ms=round(seconds * 1_000),
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_out=tokens_out,
            cost=None if price is None else price.call(tokens_in, tokens_cached, tokens_out),
            cause=cause,
            digest=what.digest,
        )

    def _breaker(self, what: Asked) -> Breaker:
        settings, endpoint = self._parts.settings, (what.model, what.purpose if what.purpose in _APART else None)
        if endpoint not in self._breakers:
            self._breakers[endpoint] = Breaker(
                failures=settings.breaker_failures, rest=settings.breaker_rest.total_seconds()
            )
        return self._breakers[endpoint]

    def _tell(self, breaker: Breaker, ticket: int, call: ModelCall) -> None:
        match call.cause:
            case Cause.BUSY | Cause.UNREACHABLE:
                if breaker.failed(ticket, time.monotonic()):
                    log.warning("No calls of %s for a while: it has failed too often in a row", call.model)
            case Cause.LOST | Cause.DEFECT:
                breaker.abandoned(ticket)
            case _:
                breaker.succeeded(ticket)

    async def _check_ceiling(self, tenant: str) -> None:
        settings = self._parts.settings
        if settings.daily_cost is None and settings.daily_tokens is None:
            return
        known = self._spent.get(tenant)
        if known is None or time.monotonic() - known[0] > _LOOKED_UP:
            known = (time.monotonic(), await self._parts.store.spent(tenant))
            self._spent[tenant] = known
        spent = _sum(known[1], self._unwritten.get(tenant, Spent()))
        reached = ""
        if settings.daily_cost is not None and spent.cost >= settings.daily_cost:
            reached = f"has spent ${spent.cost:.2f} today, of ${settings.daily_cost:.2f} (daily_cost)"
        elif settings.daily_tokens is not None and spent.tokens >= settings.daily_tokens:
            reached = f"has used {spent.tokens:,} tokens today, of {settings.daily_tokens:,} (daily_tokens)"
        if not reached:
            return
        day = datetime.now(UTC).date()
        if (tenant, day) not in self._told:
            self._told = {one for one in self._told if one[1] == day} | {(tenant, day)}
            log.warning("Tenant %s %s: no more digests for it until tomorrow (UTC)", tenant, reached, tenant=tenant)
        raise NotNow(
            f"the tenant {reached}; digests go on tomorrow (UTC), or when the ceiling is raised",
            seconds=_until_tomorrow(),
        )

    def _add(self, tenant: str, call: ModelCall) -> None:
        self._unwritten[tenant] = _sum(self._unwritten.get(tenant, Spent()), _spent_by(call))

    def written(self, tenant: str, ledger: Sequence[ModelCall]) -> None:
        """These calls are in the store's ledger now, or will never be."""
        for call in ledger:
            took = _spent_by(call)
            if tenant in self._spent:
                looked_up, spent = self._spent[tenant]
                self._spent[tenant] = looked_up, _sum(spent, took)
            left = self._unwritten.pop(tenant, Spent())
            left = Spent(cost=left.cost - took.cost, tokens=left.tokens - took.tokens)
            if left.tokens > 0 or left.cost > 0:
                self._unwritten[tenant] = left


def _spent_by(call: ModelCall) -> Spent:
    return Spent(cost=call.cost or 0.0, tokens=(call.tokens_in or 0) + (call.tokens_out or 0))


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(cost=one.cost + other.cost, tokens=one.tokens + other.tokens)


def cause_of(error: Exception) -> Cause:
    """What a failure is counted as."""
    match error:
        case ModelBusy():
            return Cause.BUSY
        case ModelUnreachable():
            return Cause.UNREACHABLE
        case ModelRefused():
            return Cause.REFUSED
        case ModelAnswerUnusable():
            return Cause.UNUSABLE
        case _:
            return Cause.DEFECT


def _passes_soon(error: BaseException) -> bool:
    return isinstance(error, ModelUnreachable) and (error.retry_after or 0.0) <= _PATIENCE


_growing = wait_exponential(multiplier=0.5, max=_PATIENCE) + wait_random(0, 0.5)


def _wait(state: RetryCallState) -> float:
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.retry_after if isinstance(error, ModelUnreachable) else None
    return max(_growing(state), asked or 0.0)


def _until_tomorrow() -> float:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return min((tomorrow - now).total_seconds() + 1, _AGAIN)
