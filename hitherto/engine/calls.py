"""Model calls: within the tenant's daily limit, behind a circuit breaker, with retries, each entered in the ledger."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from hitherto.blocks import block
from hitherto.core.breaker import Breaker
from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.scope import Scope
from hitherto.engine.daily_limit import CallPostponed, DailyLimit
from hitherto.engine.services import Services
from hitherto.errors import HithertoError, InvalidModelAnswer, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.logs import logger
from hitherto.ports.models import Completion
from hitherto.uninterrupted import uninterrupted

log = logger("hitherto.model")

_PATIENCE = 10.0
"""Seconds. The longest wait before a retry within one call; where the endpoint asks for a longer one, the call fails
and the digest is put off."""

_ADAPTER_GRACE = 1.0
"""Seconds after `model_timeout` in which the adapter can still raise its own timeout error."""

_OWN_BREAKER = frozenset({Purpose.COMPACT, Purpose.EMBED, Purpose.RERANK})
"""Purposes with a circuit breaker of their own: under the same model name they may go to another endpoint."""

_MOST = 2**31
"""A token count from here on is not credible and is ignored."""

_KINDS = 4
"""The most exception types that `told` names."""

_Took = tuple[int | None, int | None, int | None]
"""Tokens in, how many of these came from the cache, and tokens out."""


class ModelAnswer(Protocol):
    """What the answers of all endpoints have in common: the token counts, None where the endpoint gave none, and
    whether an endpoint was called at all (`asked`)."""

    @property
    def tokens_in(self) -> int | None: ...
    @property
    def tokens_cached(self) -> int | None: ...
    @property
    def tokens_out(self) -> int | None: ...
    @property
    def asked(self) -> bool: ...


_Answer = TypeVar("_Answer", bound=ModelAnswer)
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which model is called, for what purpose, for which tenant and which user of it, and for which digest, if any."""

    model: str
    purpose: Purpose
    tenant: str
    user: str | None = None
    digest: int | None = None


class Calls:
    """Makes the calls of one process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._breakers: dict[tuple[str, Purpose | None], Breaker] = {}
        self._daily_limit = DailyLimit(services)
        self._last_causes: dict[str, FailureCause] = {}

    async def make(
        self,
        ask: Callable[[], Awaitable[_Answer]],
        what: CallContext,
        ledger: list[ModelCall],
        *,
        tries: int | None = None,
    ) -> _Answer:
        """The answer to `ask`, which makes one request. Every request made is added to `ledger`.

        A transient failure is retried, `tries` requests in all (by default the setting `model_max_attempts`), with
        exponential backoff and not before the endpoint's Retry-After. A Retry-After of more than 10 seconds is not
        waited for. Raises CallPostponed, and what the model raises.
        """

        async def once() -> _Answer:
            await self._daily_limit.check(what.tenant, what.user)
            breaker = self._breaker(what)
            ticket = breaker.admitted(time.monotonic())
            if ticket is None:
                raise self._postponed(what.model, breaker.wait(time.monotonic()))
            return await self._once(ask, what, breaker, ticket, ledger)

        trying = AsyncRetrying(
            retry=retry_if_exception(_passes_soon),
            stop=stop_after_attempt(tries or self._services.settings.model_max_attempts),
            wait=_wait,
            reraise=True,
        )
        return await trying(once)

    @block
    async def recorded(self, scope: Scope) -> AsyncGenerator[list[ModelCall]]:
        """A ledger for calls made for no conversation. At the end of the block its entries are written to the store's
        ledger, even after an error or a cancellation: the calls are paid for."""
        ledger = list[ModelCall]()
        try:
            yield ledger
        finally:
            if ledger:
                await uninterrupted(self._note(scope, ledger))

    def written(self, tenant: str, user: str | None, ledger: Sequence[ModelCall]) -> None:
        """Report that these calls are in the store's ledger now, or never will be."""
        self._daily_limit.written(tenant, user, ledger)

    async def _note(self, scope: Scope, ledger: Sequence[ModelCall]) -> None:
        try:
            await self._services.store.note_calls(scope, None, ledger)
        except HithertoError as error:
            log.warning(
                "%s model calls could not be written to the ledger: %s", len(ledger), error, tenant=scope.tenant
            )
        finally:
            self.written(scope.tenant, scope.user, ledger)

    async def _once(
        self,
        ask: Callable[[], Awaitable[_Answer]],
        what: CallContext,
        breaker: Breaker,
        ticket: int,
        ledger: list[ModelCall],
    ) -> _Answer:
        began = time.monotonic()
        asked = True
        took: _Took = (None, None, None)
        written: int | None = None
        cause: FailureCause | None = FailureCause.DEFECT
        settings = self._services.settings
        provider = settings.embedder_provider if what.purpose is Purpose.EMBED else settings.model_provider
        try:
            with self._services.watch.span(
                "model_call", model=what.model, purpose=what.purpose.value, digest=what.digest, provider=provider
            ):
                answer = await self._bounded(ask)
                took, asked = (answer.tokens_in, answer.tokens_cached, answer.tokens_out), answer.asked
                written = answer.tokens_written if isinstance(answer, Completion) else None
                cause = None
                return answer
        except asyncio.CancelledError:
            cause = FailureCause.LOST
            raise
        except HithertoError as error:
            cause = cause_of(error)
            if isinstance(error, InvalidModelAnswer):
                took, written = error.tokens, error.tokens_written
            elif isinstance(error, ModelUnavailable):
                self._last_causes[what.model] = cause
            raise
        finally:
            # First of all: without the outcome of this ticket, a half-open breaker would keep every other call out.
            self._tell(breaker, ticket, what.model, cause)
            if asked:
                call = self._entry(took, what, cause, written=written, seconds=time.monotonic() - began)
                ledger.append(call)
                self._daily_limit.made(what.tenant, what.user, call)
                self._services.watch.called(call)

    async def _bounded(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """One request, ended after `model_timeout` even if the adapter does not end it: a user-supplied model may never
        answer. Raises ModelUnavailable then."""
        seconds = self._services.settings.model_timeout
        try:
            async with asyncio.timeout(seconds + _ADAPTER_GRACE):
                return await call_adapter(ask)
        except TimeoutError:
            raise ModelUnavailable(
                f"the model did not answer within {seconds:g} seconds; see what it waits for, or allow it more time "
                "(HITHERTO_MODEL_TIMEOUT)"
            ) from None

    def _postponed(self, model: str, seconds: float) -> CallPostponed:
        """What is said of a paused model. It quotes no error: that may be of another tenant's call."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        return CallPostponed(
            f"{model!r} has failed several times in a row and is not called until {until:%H:%M:%S} UTC",
            seconds=seconds,
            cause=self._last_causes.get(model, FailureCause.UNREACHABLE),
        )

    def _entry(
        self, took: _Took, what: CallContext, cause: FailureCause | None, *, written: int | None, seconds: float
    ) -> ModelCall:
        tokens_in, tokens_cached, tokens_out = map(figure, took)
        price = None if tokens_in is None and tokens_out is None else self._services.price(what.model)
        return ModelCall(
            purpose=what.purpose,
            model=what.model,
            latency_ms=round(seconds * 1_000),
            tokens_in=tokens_in,
            tokens_cached=tokens_cached,
            tokens_out=tokens_out,
            cost=None if price is None else price.call(tokens_in, tokens_cached, tokens_out, figure(written)),
            cause=cause,
            digest=what.digest,
        )

    def _breaker(self, what: CallContext) -> Breaker:
        settings, endpoint = (
            self._services.settings,
            (what.model, what.purpose if what.purpose in _OWN_BREAKER else None),
        )
        if endpoint not in self._breakers:
            self._breakers[endpoint] = Breaker(
                failures=settings.breaker_failures, rest=settings.breaker_cooldown.total_seconds()
            )
        return self._breakers[endpoint]

    def _tell(self, breaker: Breaker, ticket: int, model: str, cause: FailureCause | None) -> None:
        match cause:
            case FailureCause.BUSY | FailureCause.UNREACHABLE:
                if breaker.failed(ticket, time.monotonic()):
                    log.warning("Calls to %s are paused: it failed too often in a row", model)
            case FailureCause.LOST | FailureCause.DEFECT:
                breaker.abandoned(ticket)
            case _:
                breaker.succeeded(ticket)


async def call_adapter(ask: Callable[[], Awaitable[_Found]]) -> _Found:
    """Run an adapter's call so that it neither ends the calling task nor keeps it from ending. A cancellation that is
    not ours becomes ModelUnavailable; whatever an adapter makes of ours, it is raised. A BaseException that is not an
    Exception, such as a panic in an extension module, becomes RuntimeError. KeyboardInterrupt, SystemExit and
    GeneratorExit are raised as they are. The call is a task of its own: some clients cancel theirs to end a wait."""
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0

    def cancelled() -> bool:
        return task is not None and task.cancelling() > before

    try:
        found = await asyncio.create_task(_awaited(ask))
    except asyncio.CancelledError:
        if cancelled():
            raise
        raise ModelUnavailable("the model's own client cancelled the call; see what ended it") from None
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if cancelled():
            raise asyncio.CancelledError from error
        if isinstance(error, Exception):
            raise
        raise RuntimeError(f"the adapter raised {type(error).__name__}") from error
    if cancelled():
        raise asyncio.CancelledError
    return found


async def _awaited(ask: Callable[[], Awaitable[_Found]]) -> _Found:
    return await ask()


def figure(value: object) -> int | None:
    """An endpoint's token count; None for a value that is not a credible count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None


def told(error: Exception) -> str:
    """What is logged and stored of a failure: the message of our own errors, and only the type names of others and of
    their causes. A foreign message may quote the conversation, and the quote would outlive an erasure."""
    if isinstance(error, HithertoError | CallPostponed):
        return str(error)
    kinds, cause = [type(error).__name__], error.__cause__
    while cause is not None and len(kinds) < _KINDS:
        kinds.append(type(cause).__name__)
        cause = cause.__cause__
    return f"unexpected {' from '.join(kinds)}"


def cause_of(error: Exception) -> FailureCause:
    """The cause under which a failure is counted."""
    match error:
        case ModelRateLimited():
            return FailureCause.BUSY
        case ModelUnavailable():
            return FailureCause.UNREACHABLE
        case ModelRejected():
            return FailureCause.REFUSED
        case InvalidModelAnswer():
            return FailureCause.UNUSABLE
        case _:
            return FailureCause.DEFECT


def _passes_soon(error: BaseException) -> bool:
    return isinstance(error, ModelUnavailable) and (error.retry_after or 0.0) <= _PATIENCE


_growing = wait_exponential(multiplier=0.5, max=_PATIENCE) + wait_random(0, 0.5)


def _wait(state: RetryCallState) -> float:
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    return max(_growing(state), asked or 0.0)
