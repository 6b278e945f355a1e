"""One attempt at one digest: makes it, decides about another try, and writes the result if its claim still holds."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeGuard

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestJob, DigestOutcome, DigestWork, NewDigest, Status
from hitherto.core.ledger import FailureCause, ModelCall
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import HeadWithCalls, RunningDigest, StandingSummary
from hitherto.engine.calls import Calls, cause_of, told
from hitherto.engine.daily_limit import CallPostponed
from hitherto.engine.digests.fire import MOST_RESUMED, committed, fired
from hitherto.engine.digests.frontiers_from_rows import sums_through
from hitherto.engine.digests.make import DigestMaker
from hitherto.engine.facts.learn import FoundFacts, found_facts_of, merge_found, noted
from hitherto.engine.handle import Handle
from hitherto.engine.log.erase import erase_expired
from hitherto.engine.services import Services
from hitherto.errors import (
    Conflict,
    DatabaseUnavailable,
    HithertoError,
    InvalidModelAnswer,
    ModelUnavailable,
    StoreError,
)
from hitherto.logs import logger

if TYPE_CHECKING:
    from hitherto.store.unit import Unit

log = logger("hitherto.digest")

_LONGEST_BACKOFF = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class _PutOff:
    """A digest that is given back: due again after `wait`, because of `error`. `counted`: this counts as a try.
    `quiet`: it is logged at debug level only."""

    wait: timedelta
    error: str | None = None
    counted: bool = True
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class _Ended:
    """A digest that completed, or that failed because of `cause`."""

    outcome: DigestOutcome
    cause: FailureCause | None = None
    found_facts: FoundFacts | None = None


Result = _Ended | _PutOff


class Attempt:
    """The attempt that holds the claim on `work`. `impatient` tells whether the process is shutting down: then a
    database that is unavailable is not waited for."""

    def __init__(self, services: Services, calls: Calls, work: DigestWork, *, impatient: Callable[[], bool]) -> None:
        self._services, self._store, self._work = services, services.store, work
        self._handle = Handle(services, work.scope, work.conversation)
        self._calls = calls
        self._digester = DigestMaker(services, calls)
        self._impatient = impatient
        self._ledger: list[ModelCall] = []
        self._accounted = False
        self._began = time.monotonic()

    async def result(self) -> Result:
        """Make the digest. Every failure but a cancellation is returned as a result, not raised."""
        work, digest = self._work, self._work.digest
        with self._services.watch.span(
            "digest",
            tenant=work.scope.tenant,
            conversation=work.conversation,
            digest=digest.id,
            action=digest.action.value,
            start=digest.start,
            end=digest.end,
            attempt=digest.attempt,
            tries=digest.tries,
        ) as span:
            result = await self._made()
            cause = result.cause if isinstance(result, _Ended) else None
            reason = None if cause is None else cause.value
            span.set(put_off=isinstance(result, _PutOff), failed=cause is not None, cause=reason)
            return result

    def _gives_up(self, result: Result) -> TypeGuard[_Ended]:
        """Whether this is a reading for facts that failed by what the model answered, not because it was down."""
        return self._reads and isinstance(result, _Ended) and result.cause is FailureCause.UNUSABLE

    @property
    def _reads(self) -> bool:
        """Whether it only finds facts."""
        return self._work.digest.action is DigestAction.FACTS

    @property
    def _unusable_before(self) -> bool:
        """Whether a model's answer to an earlier try could not be used; the row keeps that error."""
        return (self._work.digest.error or "").startswith(f"{InvalidModelAnswer.__name__}: ")

    async def _made(self) -> Result:
        """What is to be written: the digest, its failure, or that it is put off."""
        work, digest = self._work, self._work.digest
        if digest.tries > self._services.settings.digest_max_attempts:
            why = digest.error or "each ended without a word, as when a process dies"
            return _failed(work, f"given up after {digest.tries - 1} tries: {why}", FailureCause.LOST)
        try:
            if work.expiring:
                await erase_expired(
                    self._store, work.scope, work.conversation, self._services.canonical, unread=digest.id
                )
                return _PutOff(timedelta(0), counted=False)
            made = await self._digester.make(work, self._ledger)
        except (HithertoError, CallPostponed) as error:
            return self._after_failure(error)
        except Exception as error:  # the edge of a worker: a defect here must not hold up the conversation
            log.exception("Digest %s of %s failed unexpectedly", digest.id, work.conversation)
            return _failed(work, told(error), FailureCause.DEFECT)
        took = round((time.monotonic() - self._began) * 1_000)
        return _Ended(replace(made.outcome, generation_time_ms=took), found_facts=made.found_facts)

    def _after_failure(self, error: HithertoError | CallPostponed) -> Result:
        """The result of a failed try: the digest is put off, or this was the last try and it failed."""
        digest, settings = self._work.digest, self._services.settings
        most = settings.digest_max_attempts
        again = digest.tries < most
        if isinstance(error, InvalidModelAnswer):  # however many tries there were while the model was down
            again = self._reads and not self._unusable_before
        match error:
            case CallPostponed():
                # The daily limit was reached during the try. What was paid is lost, so the try counts.
                paid = error.cause is None and bool(self._ledger)
                counted = paid or any(
                    call.cause in (FailureCause.BUSY, FailureCause.UNREACHABLE) for call in self._ledger
                )
                if counted and digest.tries >= most:
                    return _failed(
                        self._work, str(error), error.cause or FailureCause.REFUSED, self._services.model.name
                    )
                # Never earlier than `seconds`: every digest that waits would ask again for nothing.
                wait = timedelta(seconds=error.seconds * (jitter() + 0.25))
                return _PutOff(wait, str(error), counted=counted, quiet=not counted)
            case ModelUnavailable() if again:
                wait = backoff(settings.backoff, digest.tries) * jitter()
                return _PutOff(max(wait, timedelta(seconds=error.retry_after or 0)), _told(error))
            case DatabaseUnavailable():
                return _PutOff(timedelta(0), _told(error), counted=False)
            case StoreError() | InvalidModelAnswer() if again:
                wait = backoff(settings.backoff, digest.tries) * jitter()
                return _PutOff(wait, _told(error), counted=digest.tries < most)
            case _:
                return _failed(self._work, _told(error), cause_of(error), self._services.model.name)

    async def write(self, result: Result) -> None:
        """Write the result, if the claim still holds. An unavailable database is waited for, at most for
        `lease_timeout`."""
        try:
            await self._written(result)
        finally:
            self._mark_written()

    async def _written(self, result: Result) -> None:
        work, patience = self._work, time.monotonic() + self._services.settings.lease_timeout.total_seconds()
        wait = 0.1
        while True:
            try:
                return await self._write(result)
            except DatabaseUnavailable as error:
                if self._impatient() or time.monotonic() + wait > patience:
                    log.warning("Digest %s of %s could not be written: %s", work.digest.id, work.conversation, error)
                    return None
                await asyncio.sleep(wait)
                wait = min(2 * wait, 2.0)
            except Conflict as error:
                if isinstance(result, _PutOff) or result.cause is not None:
                    log.warning("Digest %s of %s could not be ended: %s", work.digest.id, work.conversation, error)
                    return None
                result = _failed(work, _told(error), FailureCause.DEFECT, result.outcome.model)
            except HithertoError as error:
                if isinstance(result, _Ended):  # the row can still say why
                    result = _PutOff(
                        backoff(self._services.settings.backoff, work.digest.tries) * jitter(), _told(error)
                    )
                    continue
                log.warning(
                    "Digest %s of %s could not be written: %s; it is taken up again once its claim has ended",
                    work.digest.id,
                    work.conversation,
                    error,
                )
                return None

    async def hand_back(self) -> None:
        """Give the claim back, so that another worker can have it at once."""
        await self.write(_PutOff(timedelta(0), counted=False))

    async def break_down(self, error: Exception) -> None:
        """Put the digest off after an unexpected exception: a defect here, or a user-supplied model."""
        settings, tries = self._services.settings, self._work.digest.tries
        wait = max(backoff(settings.backoff, tries), timedelta(seconds=1))
        await self.write(_PutOff(wait, told(error)))

    async def lose(self) -> None:
        """Another worker has the claim: write no more than the model calls, to the ledger."""
        try:
            await self._note()
        finally:
            self._mark_written()

    def _mark_written(self) -> None:
        """Report the calls as written, only once: an attempt that broke down is written a second time."""
        if not self._accounted:
            self._accounted = True
            self._calls.written(self._work.scope.tenant, self._work.scope.user, self._ledger)

    async def _note(self) -> None:
        log.debug("Digest %s was taken over by another worker; this result is dropped", self._work.digest.id)
        if self._ledger:
            try:
                await self._store.note_calls(self._work.scope, self._work.conversation, self._ledger)
            except HithertoError as error:
                log.warning("%s model calls could not be written to the ledger: %s", len(self._ledger), error)

    async def _write(self, result: Result) -> None:
        work = self._work
        if isinstance(result, _PutOff):
            error = None if self._unusable_before else result.error
            held = await self._store.put_off(
                work, wait=result.wait, error=error, counted=result.counted, calls=self._ledger
            )
            if held:
                if not result.wait:
                    self._services.queue.submit(DigestJob(work.scope.tenant, work.digest.id))
                if result.error is not None:
                    say = log.debug if result.quiet else log.warning
                    say("Summarization put off for %s: %s", work.conversation, result.error, digest=work.digest.id)
        elif await self._finish(result.outcome, result.found_facts, given_up=(given_up := self._gives_up(result))):
            seconds = time.monotonic() - self._began
            self._services.watch.digested(action=work.digest.action, cause=result.cause, seconds=seconds)
            _report(work, result.outcome, given_up=given_up)
        else:
            await self._note()

    async def _finish(self, outcome: DigestOutcome, found_facts: FoundFacts | None, *, given_up: bool = False) -> bool:
        """Write the outcome, its model calls and the learned facts, with the conversation locked, and fire the stages
        that are due once a digest is completed, or its messages are `given_up`, which then count as read for facts.
        Returns whether the outcome is written; False if the claim no longer holds."""
        work, digest = self._work, self._work.digest
        async with self._store.write(work.scope, work.conversation, digest=digest.id) as unit:
            head = unit.head
            mine = next((one for one in head.running if (one.id, one.attempt) == (digest.id, digest.attempt)), None)
            if mine is None:
                # A commit that was cut off before may have succeeded.
                row = await unit.digest(digest.id)
                return row is not None and (row.attempt, row.status) == (digest.attempt, _ended(outcome))
            fire: tuple[NewDigest, ...] = ()
            learned = None
            if found_facts is not None and outcome.error is None and not head.private:
                learned = await merge_found(unit, self._services, work, found_facts)
            if outcome.error is None:
                after = await _completed(unit, mine, outcome, digest.spec)
                if found_facts is not None and (learned is not None or head.private):
                    after = replace(after, extracted=noted(after, found_facts), facts_resume_at=None)
                elif self._reads:
                    raise Conflict(f"the facts of digest {digest.id} could not be merged; the log says why")
                after, fire = await fired(self._handle, self._handle.resuming(after, digest), after, unit)
            elif given_up:
                read = found_facts_of(work, head.subject, ())
                running = tuple(one for one in head.running if one.id != digest.id)
                after = replace(head, extracted=noted(head, read), running=running, facts_resume_at=None)
                after, fire = await fired(self._handle, self._handle.resuming(after, digest), after, unit)
            elif self._reads:
                failures = await self._failed_readings(unit)
                rest = backoff(self._services.settings.backoff, failures)
                again = head.clock + rest if rest else None
                due = again if failures <= MOST_RESUMED else None  # else after the next append
                after = replace(head, facts_due_at=due, facts_resume_at=again)
            else:
                rest = backoff(self._services.settings.backoff, max(head.failures, 1))
                after = replace(head, failures=head.failures + 1, resume_at=head.clock + rest if rest else None)
            changes = Changes(
                head=after,
                outcomes=(outcome,),
                calls=tuple(self._ledger),
                learned=learned,
                fire=fire,
                background=True,
            )
            await committed(self._handle, unit, changes)
        if learned is not None:
            new, again = len(learned.facts), len(learned.repeated)
            log.info("Facts learned from %s: %s (known before: %s)", work.conversation, new, again, **_fields(work))
        self._services.appended.set()
        return True

    async def _failed_readings(self, unit: Unit) -> int:
        """How often the messages of this reading for facts could not be read, this time included. It takes the place of
        `Head.failures`, which holds up summaries."""
        rows = [row for row in await unit.digests() if row.action is DigestAction.FACTS]
        return 1 + sum(row.status is Status.FAILED and row.start == self._work.digest.start for row in rows)


def backoff(first: timedelta, tries: int) -> timedelta:
    """How long to wait after `tries` failed tries in a row: `first`, then twice as long each time, at most 15
    minutes."""
    return min(first * 2 ** min(max(tries - 1, 0), 20), _LONGEST_BACKOFF)


def jitter() -> float:
    """A random factor from 0.75 to 1.25, so that workers that started together do not stay in step."""
    return random.uniform(0.75, 1.25)  # noqa: S311 (no secret: it only spreads the workers out)


def _failed(work: DigestWork, error: str, cause: FailureCause, model: str | None = None) -> _Ended:
    return _Ended(DigestOutcome(digest=work.digest.id, error=error, model=model), cause)


def _fields(work: DigestWork) -> dict[str, object]:
    """The fields of a log line about a digest."""
    scope, digest = work.scope, work.digest
    return {
        "tenant": scope.tenant,
        "user": scope.user,
        "agent": scope.agent,
        "conversation": work.conversation,
        "digest": digest.id,
        "attempt": digest.attempt,
    }


def _report(work: DigestWork, outcome: DigestOutcome, *, given_up: bool) -> None:
    digest, name, fields = work.digest, work.conversation, _fields(work)
    if given_up:
        says = "Messages %s-%s of %s are given up, not read for facts: %s"
        log.warning(says, digest.start, digest.end, name, outcome.error, **fields)
    elif outcome.error is not None:
        log.warning("Summarization failed for %s: %s", name, outcome.error, **fields)
    else:
        took = outcome.generation_time_ms
        if digest.action is DigestAction.FACTS:
            log.info("Read messages %s-%s of %s for facts in %sms", digest.start, digest.end, name, took, **fields)
        else:
            log.info("Summarized messages %s-%s for %s in %sms", digest.start, digest.end, name, took, **fields)
        if digest.action is DigestAction.SUMMARIZE and digest.start > 0:
            log.info("Sliding window: dropping seq 0-%s for %s", digest.start - 1, name, **fields)
    log.debug("Memory %s status updated to %s", digest.id, _ended(outcome).value, **fields)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _ended(outcome: DigestOutcome) -> Status:
    return Status.COMPLETED if outcome.error is None else Status.FAILED


async def _completed(unit: Unit, made: RunningDigest, outcome: DigestOutcome, spec: str) -> HeadWithCalls:
    """The head once a digest is visible: at the next revision, with the new summary, or the new frontier of a stage
    that has one. A reading for facts changes no view, so the revision stays, and `Head.failures` too."""
    running = tuple(one for one in unit.head.running if one.id != made.id)
    rev = unit.head.rev + (made.action is not DigestAction.FACTS)
    head = replace(unit.head, rev=rev, running=running)
    if made.action is not DigestAction.FACTS:
        head = replace(head, failures=0, resume_at=None)
    if made.action is DigestAction.SUMMARIZE and (head.digest is None or head.digest.end <= made.end):
        summary = StandingSummary(
            id=made.id, start=made.start, end=made.end, text=outcome.text, spec=spec, tokens=outcome.tokens
        )
        return replace(head, digest=summary, digest_sums=await sums_through(unit, made.end))
    if made.action not in (DigestAction.CHUNK, DigestAction.COMPACT, DigestAction.FACTS):
        return head
    kept_from = made.end + 1 if made.kept_from is None else made.kept_from
    frontier = Frontier(
        action=made.action,
        start=made.start,
        end=made.end,
        sums=await sums_through(unit, made.end),
        kept_from=kept_from,
        kept_sums=await sums_through(unit, kept_from - 1),
        digest=None if made.action is DigestAction.FACTS else made.id,
        family=outcome.family,
        tokens=outcome.tokens if made.action is DigestAction.COMPACT else 0,
    )
    other = head.frontiers.get(made.stage)
    if other is not None and other.end > made.end:
        return head
    return replace(head, frontiers={**head.frontiers, made.stage: frontier})
