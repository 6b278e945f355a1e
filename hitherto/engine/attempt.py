"""One attempt at one digest: what comes of it, and how that is written behind the fence."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from hitherto.core.digest import Done, Status
from hitherto.core.head import Frontier, Head, Running
from hitherto.core.ledger import Cause, ModelCall
from hitherto.engine.calls import Calls, cause_of
from hitherto.engine.ceiling import NotNow
from hitherto.engine.digester import Digester
from hitherto.engine.expiry import erase_expired
from hitherto.engine.frontiers import sums_through
from hitherto.engine.learning import Learner, Lesson, noted
from hitherto.engine.parts import Parts
from hitherto.errors import Conflict, DatabaseUnreachable, HithertoError, ModelUnreachable, StoreError
from hitherto.logs import logger
from hitherto.ports.queue import DigestJob
from hitherto.ports.store import Changes, DigestWork, Outcome, Unit

log = logger("hitherto.digest")

_LONGEST_BACKOFF = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class _Later:
    """A digest that is given back: due again after `wait`, because of `error`. `quiet`: that has been told before."""

    wait: timedelta
    error: str | None = None
    counted: bool = True
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class _Ended:
    """A digest that came to an end, for which `cause` if it failed."""

    outcome: Outcome
    cause: Cause | None = None
    lesson: Lesson | None = None


Result = _Ended | _Later


class Attempt:
    """The attempt that holds the claim on `work`. `impatient` says that the process is about to end: then nothing is
    waited for any more. The `learner` is the worker's, with the vectors that it keeps."""

    def __init__(
        self, parts: Parts, calls: Calls, work: DigestWork, *, learner: Learner, impatient: Callable[[], bool]
    ) -> None:
        self._parts, self._store, self._work = parts, parts.store, work
        self._calls, self._learner = calls, learner
        self._digester = Digester(parts, calls, learner)
        self._impatient = impatient
        self._ledger: list[ModelCall] = []
        self._accounted = False
        self._began = time.monotonic()

    async def result(self) -> Result:
        """Make the digest; every failure that is not a cancellation is a result too."""
        work, digest = self._work, self._work.digest
        with self._parts.watch.span(
            "digest",
            tenant=work.scope.tenant,
            conversation=work.conversation,
            digest=digest.id,
            action=digest.done.value,
            start=digest.start,
            end=digest.end,
            attempt=digest.attempt,
            tries=digest.tries,
        ) as span:
            result = await self._made()
            cause = result.cause if isinstance(result, _Ended) else None
            reason = None if cause is None else cause.value
            span.set(put_off=isinstance(result, _Later), failed=cause is not None, cause=reason)
            return result

    async def _made(self) -> Result:
        """What is to be written: the digest, its failure, or that it is put off."""
        work, digest = self._work, self._work.digest
        if digest.tries > self._parts.settings.digest_tries:
            why = digest.error or "each ended without a word, as when a process dies"
            return _failed(work, f"given up after {digest.tries - 1} tries: {why}", Cause.LOST)
        try:
            if work.expiring:
                await erase_expired(self._store, work.scope, work.conversation, self._parts.canonical)
                return _Later(timedelta(0), counted=False)
            made = await self._digester.make(work, self._ledger)
        except (HithertoError, NotNow) as error:
            return self._in_vain(error)
        except Exception as error:  # the edge of a worker: a defect here must not hold up the conversation
            log.exception("Digest %s of %s failed unexpectedly", digest.id, work.conversation)
            return _failed(work, f"unexpected {type(error).__name__}: {error}", Cause.DEFECT)
        took = round((time.monotonic() - self._began) * 1_000)
        return _Ended(replace(made.outcome, generation_time_ms=took), lesson=made.lesson)

    def _in_vain(self, error: HithertoError | NotNow) -> Result:
        """Whether a try that came to nothing is the last."""
        digest, settings = self._work.digest, self._parts.settings
        match error:
            case NotNow():
                # A ceiling that is reached on the way: what was paid for is lost, so it counts, lest each day pay anew.
                paid = error.cause is None and bool(self._ledger)
                counted = paid or any(call.cause in (Cause.BUSY, Cause.UNREACHABLE) for call in self._ledger)
                if counted and digest.tries >= settings.digest_tries:
                    return _failed(self._work, str(error), error.cause or Cause.REFUSED, self._parts.model.name)
                # Never before the time: all that wait would ask again for nothing.
                wait = timedelta(seconds=error.seconds * (jitter() + 0.25))
                return _Later(wait, str(error), counted=counted, quiet=not counted)
            case ModelUnreachable() if digest.tries < settings.digest_tries:
                wait = backoff(settings.backoff, digest.tries) * jitter()
                return _Later(max(wait, timedelta(seconds=error.retry_after or 0)), _told(error))
            case DatabaseUnreachable():
                return _Later(timedelta(0), _told(error), counted=False)
            case StoreError() if digest.tries < settings.digest_tries:
                return _Later(backoff(settings.backoff, digest.tries) * jitter(), _told(error))
            case _:
                return _failed(self._work, _told(error), cause_of(error), self._parts.model.name)

    async def write(self, result: Result) -> None:
        """Write what came of it, if the claim still holds; a database that is away for a while is waited for."""
        try:
            await self._written(result)
        finally:
            self._account()

    async def _written(self, result: Result) -> None:
        work, patience = self._work, time.monotonic() + self._parts.settings.take_over_after.total_seconds()
        wait = 0.1
        while True:
            try:
                return await self._write(result)
            except DatabaseUnreachable as error:
                if self._impatient() or time.monotonic() + wait > patience:
                    log.warning("Digest %s of %s could not be written: %s", work.digest.id, work.conversation, error)
                    return None
                await asyncio.sleep(wait)
                wait = min(2 * wait, 2.0)
            except Conflict as error:
                if isinstance(result, _Later) or result.cause is not None:
                    log.warning("Digest %s of %s could not be ended: %s", work.digest.id, work.conversation, error)
                    return None
                result = _failed(work, _told(error), Cause.DEFECT, result.outcome.model)
            except HithertoError as error:
                log.warning(
                    "Digest %s of %s could not be written: %s; it is taken up again once its claim has ended",
                    work.digest.id,
                    work.conversation,
                    error,
                )
                return None

    async def hand_back(self) -> None:
        """Give the claim back, so that another worker can have it at once."""
        await self.write(_Later(timedelta(0), counted=False))

    async def break_down(self, error: Exception) -> None:
        """Put the digest off for a reason that nobody thought of: a defect, or a model of somebody's own."""
        settings, tries = self._parts.settings, self._work.digest.tries
        wait = max(backoff(settings.backoff, tries), timedelta(seconds=1))
        await self.write(_Later(wait, f"unexpected {type(error).__name__}: {error}"))

    async def lose(self) -> None:
        """Somebody else has the claim: what was spent in vain is in the ledger too."""
        try:
            await self._note()
        finally:
            self._account()

    def _account(self) -> None:
        """Once: what broke down is written a second time."""
        if not self._accounted:
            self._accounted = True
            self._calls.written(self._work.scope.tenant, self._ledger)

    async def _note(self) -> None:
        log.debug("Memory %s was taken away while it was made; its result is dropped", self._work.digest.id)
        if self._ledger:
            try:
                await self._store.note_calls(self._work.scope, self._work.conversation, self._ledger)
            except HithertoError as error:
                log.warning("%s model calls could not be put into the ledger: %s", len(self._ledger), error)

    async def _write(self, result: Result) -> None:
        work = self._work
        if isinstance(result, _Later):
            held = await self._store.put_off(
                work, wait=result.wait, error=result.error, counted=result.counted, calls=self._ledger
            )
            if held:
                self._parts.queue.submit(
                    DigestJob(work.scope.tenant, work.digest.id), after=result.wait.total_seconds()
                )
                if result.error is not None:
                    say = log.debug if result.quiet else log.warning
                    say("Summarization put off for %s: %s", work.conversation, result.error, digest=work.digest.id)
        elif await self._finish(result.outcome, result.lesson):
            seconds = time.monotonic() - self._began
            self._parts.watch.digested(done=work.digest.done, cause=result.cause, seconds=seconds)
            _report(work, result.outcome)
        else:
            await self._note()

    async def _finish(self, outcome: Outcome, lesson: Lesson | None) -> bool:
        """Write the outcome with what it cost and what was learnt, if the claim still holds; the conversation is locked
        meanwhile."""
        prepared = None if lesson is None else await self._learner.prepared(self._work, lesson)
        work, digest = self._work, self._work.digest
        async with self._store.write(work.scope, work.conversation, digest=digest.id) as unit:
            head = unit.head
            mine = next((one for one in head.running if (one.id, one.attempt) == (digest.id, digest.attempt)), None)
            if mine is None:
                # Not known is whether a commit that was cut off has got through.
                rows = await unit.digests() if head.rev else []
                return any(
                    (row.id, row.attempt, row.status) == (digest.id, digest.attempt, _ended(outcome)) for row in rows
                )
            if outcome.error is None:
                after = await _completed(unit, mine, outcome)
            else:
                rest = backoff(self._parts.settings.backoff, head.failures) if head.failures else timedelta(0)
                after = replace(head, failures=head.failures + 1, resume_at=head.now + rest if rest else None)
            learnt = None
            if prepared is not None and outcome.error is None:
                learnt = await self._learner.settled(prepared, unit)
                if learnt is not None:
                    after = replace(after, extracted=noted(after, prepared.lesson))
            await unit.commit(Changes(head=after, outcomes=(outcome,), calls=tuple(self._ledger), learnt=learnt))
        if learnt is not None:
            new, again = len(learnt.facts), len(learnt.repeated)
            log.info("Facts learnt from %s: %s (known before: %s)", work.conversation, new, again, **_fields(work))
        self._parts.appended.set()
        return True


def backoff(first: timedelta, tries: int) -> timedelta:
    """How long to wait after so many tries that failed in a row: `first`, then twice as long each time, at most a
    quarter of an hour."""
    return min(first * 2 ** min(max(tries - 1, 0), 20), _LONGEST_BACKOFF)


def jitter() -> float:
    """A factor about 1, so that what began together does not go on together."""
    return random.uniform(0.75, 1.25)  # noqa: S311 (nobody is to guess it: workers are only to differ)


def _failed(work: DigestWork, error: str, cause: Cause, model: str | None = None) -> _Ended:
    return _Ended(Outcome(digest=work.digest.id, error=error, model=model), cause)


def _fields(work: DigestWork) -> dict[str, object]:
    """What a line in the log is found by."""
    scope, digest = work.scope, work.digest
    return {
        "tenant": scope.tenant,
        "user": scope.user,
        "agent": scope.agent,
        "conversation": work.conversation,
        "digest": digest.id,
        "attempt": digest.attempt,
    }


def _report(work: DigestWork, outcome: Outcome) -> None:
    digest, name, fields = work.digest, work.conversation, _fields(work)
    if outcome.error is not None:
        log.warning("Summarization failed for %s: %s", name, outcome.error, **fields)
    else:
        took = outcome.generation_time_ms
        log.info("Summarized messages %s-%s for %s in %sms", digest.start, digest.end, name, took, **fields)
        if digest.done is Done.SUMMARISE and digest.start > 0:
            log.info("Sliding window: dropping seq 0-%s for %s", digest.start - 1, name, **fields)
    log.debug("Memory %s status updated to %s", digest.id, _ended(outcome).value, **fields)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _ended(outcome: Outcome) -> Status:
    return Status.COMPLETED if outcome.error is None else Status.FAILED


async def _completed(unit: Unit, made: Running, outcome: Outcome) -> Head:
    """The head once a digest is visible: one revision on, and with the frontier of a stage that has one."""
    head = replace(unit.head, rev=unit.head.rev + 1, failures=0, resume_at=None)
    if made.done not in (Done.CHUNK, Done.COMPACT):
        return head
    kept_from = made.end + 1 if made.kept_from is None else made.kept_from
    frontier = Frontier(
        done=made.done,
        start=made.start,
        end=made.end,
        sums=await sums_through(unit, made.end),
        kept_from=kept_from,
        kept_sums=await sums_through(unit, kept_from - 1),
        digest=made.id,
        family=outcome.family,
        tokens=outcome.tokens if made.done is Done.COMPACT else 0,
    )
    other = head.frontiers.get(made.stage)
    if other is not None and other.end > made.end:
        return head
    return replace(head, frontiers={**head.frontiers, made.stage: frontier})
