"""Making digests in the background: read, release the connection, ask the model, write behind the fence."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import replace

from hitherto.core.action import Chunk, Summarise
from hitherto.core.digest import Done
from hitherto.core.digesting import digest
from hitherto.core.group import groups
from hitherto.core.head import Frontier, Head, Running
from hitherto.core.layout import layout
from hitherto.core.masking import Masking
from hitherto.core.message import RESPONSES
from hitherto.core.policy import Stage
from hitherto.core.prompts import PROMPT_VERSION, Line
from hitherto.engine.expiry import erase_expired
from hitherto.engine.frontiers import sums_through
from hitherto.engine.parts import Parts
from hitherto.engine.place import Place
from hitherto.errors import HithertoError, InvalidPolicy
from hitherto.ports.queue import DigestJob
from hitherto.ports.store import Changes, DigestWork, Outcome, Unit
from hitherto.uninterrupted import uninterrupted

log = logging.getLogger("hitherto.digest")


class Digester:
    """Works on digest jobs. A job that is not in progress any more is left alone; whatever goes wrong with the model
    ends in a 'failed' row, never in an exception."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store

    async def work(self, job: DigestJob) -> None:
        """Make the digest of `job` and write it, if nobody took it away meanwhile."""
        started = time.monotonic()
        try:
            await erase_expired(self._store, job.scope, job.conversation, self._parts.canonical)
            work = await self._store.work(job.scope, job.conversation, job.digest, job.attempt)
            if work is None:
                log.debug("Memory %s is not in progress any more", job.digest)
                return
            made = await self._make(job, work)
            outcome = replace(made, generation_time_ms=round((time.monotonic() - started) * 1_000))
        except asyncio.CancelledError:
            await uninterrupted(self.hand_back(job))
            raise
        except HithertoError as error:
            outcome = Outcome(digest=job.digest, error=f"{type(error).__name__}: {error}", model=self._parts.model.name)
        except Exception as error:  # the edge of a worker: a defect here must not hold up the conversation
            log.exception("Digest %s of %s failed unexpectedly", job.digest, job.conversation)
            outcome = Outcome(digest=job.digest, error=f"unexpected {type(error).__name__}: {error}")
        await uninterrupted(self._write(job, outcome))

    async def hand_back(self, job: DigestJob) -> None:
        """Give up a digest that this process will not make, so that the next round is free to."""
        await self._write(job, Outcome(digest=job.digest, error="interrupted: the process was shutting down"))

    async def _make(self, job: DigestJob, work: DigestWork) -> Outcome:
        action = Stage.from_json(json.loads(work.digest.spec)).action
        match action:
            case Summarise() | Chunk():
                return await self._summarised(work, action)
            case _ if action.done is Done.COMPACT:
                return await self._compacted(job, work)
            case _:
                raise InvalidPolicy(f"{action} is nothing that is made in the background")

    async def _summarised(self, work: DigestWork, action: Summarise | Chunk) -> Outcome:
        model = self._parts.model
        making = digest(
            base=work.base if isinstance(action, Summarise) else (),
            lines=[Line(one.seq, one.message.role.value, one.message.text) for one in work.messages],
            start=work.digest.start,
            end=work.digest.end,
            limit=action.limit,
            input_limit=model.input_limit,
            count=self._parts.canonical.count,
        )
        try:
            prompt = next(making)
            while True:
                answer = await model.complete(prompt)
                prompt = making.send(answer.text)
        except StopIteration as end:
            made = end.value
        return Outcome(
            digest=work.digest.id,
            items=made.items,
            text=made.text,
            tokens=made.tokens,
            model=model.name,
            prompt_version=PROMPT_VERSION,
        )

    async def _compacted(self, job: DigestJob, work: DigestWork) -> Outcome:
        """The opaque items of the base and the messages since, redacted where the view has them so, as the model's own
        endpoint makes them anew."""
        compactor, codec = self._parts.compactor, self._parts.codec(RESPONSES)
        if compactor is None:
            raise InvalidPolicy("this process has no endpoint that compacts; set compact_model")
        items = [] if work.opaque is None else list(json.loads(work.opaque))
        masking = await self._masking(job)
        for group in groups(work.messages):
            items += codec.write([masking(member) for member in group.members], unanswered=sorted(group.open))
        made = await compactor.compact(items)
        for item in made.items:
            self._parts.read(item, RESPONSES)  # what no request could carry is no answer
        return Outcome(
            digest=work.digest.id,
            tokens=sum(codec.tokens(item, self._parts.canonical) for item in made.items),
            model=compactor.name,
            opaque=json.dumps(list(made.items)),
            family=compactor.family,
        )

    async def _masking(self, job: DigestJob) -> Masking:
        """The redactions of the view, as the conversation's policy has them now."""
        place = Place(self._parts, job.scope, job.conversation)
        head = await place.head()
        return Masking(layout(place.governing(head, None)[0], head), self._parts.codec(RESPONSES))

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
            after = replace(head, failed=True)
            if outcome.error is None:
                after = await _completed(unit, mine, outcome)
            await unit.commit(Changes(head=after, outcomes=(outcome,)))
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


async def _completed(unit: Unit, made: Running, outcome: Outcome) -> Head:
    """The head once a digest is visible: one revision on, and with the frontier of a stage that has one."""
    head = replace(unit.head, rev=unit.head.rev + 1, failed=False)
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
