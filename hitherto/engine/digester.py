"""Making digests in the background: read, release the connection, ask the model, write behind the fence."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import replace

from hitherto.core.budget import TokenCounter
from hitherto.core.digesting import Digested, digest
from hitherto.core.policy import Stage
from hitherto.core.prompts import PROMPT_VERSION
from hitherto.engine.expiry import erase_expired
from hitherto.errors import HithertoError
from hitherto.ports.model import Model
from hitherto.ports.queue import DigestJob
from hitherto.ports.store import Changes, DigestWork, Outcome, Store
from hitherto.uninterrupted import uninterrupted

log = logging.getLogger("hitherto.digest")


class Digester:
    """Works on digest jobs. A job that is not in progress any more is left alone; whatever goes wrong with the model
    ends in a 'failed' row, never in an exception."""

    def __init__(self, store: Store, model: Model, counter: TokenCounter) -> None:
        self._store, self._model, self._counter = store, model, counter

    async def work(self, job: DigestJob) -> None:
        """Make the digest of `job` and write it, if nobody took it away meanwhile."""
        started = time.monotonic()
        try:
            await erase_expired(self._store, job.scope, job.conversation, self._counter)
            work = await self._store.work(job.scope, job.conversation, job.digest, job.attempt)
            if work is None:
                log.debug("Memory %s is not in progress any more", job.digest)
                return
            outcome = self._outcome(job, await self._make(work), started)
        except asyncio.CancelledError:
            await uninterrupted(self.hand_back(job))
            raise
        except HithertoError as error:
            outcome = Outcome(digest=job.digest, error=f"{type(error).__name__}: {error}", model=self._model.name)
        except Exception as error:  # the edge of a worker: a defect here must not hold up the conversation
            log.exception("Digest %s of %s failed unexpectedly", job.digest, job.conversation)
            outcome = Outcome(digest=job.digest, error=f"unexpected {type(error).__name__}: {error}")
        await uninterrupted(self._write(job, outcome))

    async def hand_back(self, job: DigestJob) -> None:
        """Give up a digest that this process will not make, so that the next round is free to."""
        await self._write(job, Outcome(digest=job.digest, error="interrupted: the process was shutting down"))

    async def _make(self, work: DigestWork) -> Digested:
        stage = Stage.from_json(json.loads(work.digest.spec))
        making = digest(
            base=work.base,
            lines=work.lines,
            start=work.digest.start,
            end=work.digest.end,
            limit=stage.action.limit,
            input_limit=self._model.input_limit,
            count=self._counter.count,
        )
        try:
            prompt = next(making)
            while True:
                answer = await self._model.complete(prompt)
                prompt = making.send(answer.text)
        except StopIteration as end:
            return end.value

    def _outcome(self, job: DigestJob, made: Digested, started: float) -> Outcome:
        return Outcome(
            digest=job.digest,
            items=made.items,
            text=made.text,
            tokens=made.tokens,
            model=self._model.name,
            prompt_version=PROMPT_VERSION,
            generation_time_ms=round((time.monotonic() - started) * 1_000),
        )

    async def _write(self, job: DigestJob, outcome: Outcome) -> None:
        try:
            written = await self._finish(job, outcome)
        except HithertoError as error:
            log.warning(
                "Digest %s of %s could not be written (%s); it is given up and made anew once it counts as stuck",
                job.digest,
                job.conversation,
                error,
            )
            return
        if not written:
            log.debug("Memory %s was taken away while it was made; its result is dropped", job.digest)

    async def _finish(self, job: DigestJob, outcome: Outcome) -> bool:
        """Write the outcome if the job's attempt still holds the digest; the conversation is locked meanwhile."""
        async with self._store.write(job.scope, job.conversation) as unit:
            head = unit.head
            mine = next((one for one in head.running if (one.id, one.attempt) == (job.digest, job.attempt)), None)
            if mine is None:
                return False
            shown = 1 if outcome.error is None else 0
            await unit.commit(Changes(head=replace(head, rev=head.rev + shown), outcomes=(outcome,)))
        self._report(job, outcome)
        return True

    def _report(self, job: DigestJob, outcome: Outcome) -> None:
        if outcome.error is not None:
            log.warning("Summarization failed for %s: %s", job.conversation, outcome.error)
        else:
            log.info(
                "Summarized messages %s-%s for %s in %sms",
                job.start,
                job.end,
                job.conversation,
                outcome.generation_time_ms,
            )
            if job.start > 0:
                log.info("Sliding window: dropping seq 0-%s for %s", job.start - 1, job.conversation)
        status = "completed" if outcome.error is None else "failed"
        log.debug("Memory %s status updated to %s", job.digest, status)
