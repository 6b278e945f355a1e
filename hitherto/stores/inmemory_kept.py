"""One conversation in memory, and what a set of changes makes of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hitherto.core.digest import Digest, Done, Status
from hitherto.core.head import Head, Running, Standing
from hitherto.core.message import Kind, Logged, Role, Sums, storable
from hitherto.core.prompts import Line
from hitherto.errors import Conflict
from hitherto.ports.store import Changes, DigestWork, NewDigest, Outcome, Reading, Rewritten

_TOOL_KINDS = (Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.REASONING)


@dataclass
class Kept:
    """One conversation: its head as last committed, its log and its digests."""

    head: Head
    updated_at: datetime
    log: list[Logged] = field(default_factory=list[Logged])
    digests: list[Digest] = field(default_factory=list[Digest])

    def head_now(self, clock: datetime) -> Head:
        """The newest head."""
        return self._with_digests(replace(self.head, now=max(clock, self.updated_at)))

    def head_at(self, at: int, clock: datetime) -> Head | None:
        """The head as it was at revision `at`, read off what carries its revision; None for one that is not there."""
        if not 0 <= at <= self.head.rev:
            return None
        log = [logged for logged in self.log if logged.rev <= at]
        cleared = [d.end + 1 for d in self.digests if d.done is Done.CLEAR and _visible(d, at)]
        view_start = max(cleared, default=0)
        last = log[-1].message if log else None
        past = replace(
            self.head,
            rev=at,
            next_seq=len(log),
            sums=log[-1].sums if log else Sums(),
            view_start=view_start,
            view_sums=self.log[view_start - 1].sums if view_start else Sums(),
            closed=last is not None and last.role is Role.ASSISTANT and last.kind is Kind.TEXT,
            open_calls={},
            erased=tuple((first, min(end, len(log) - 1)) for first, end in self.head.erased if first < len(log)),
            now=max(clock, self.updated_at),
        )
        return replace(self._with_digests(past), running=())

    def read(self, reading: Reading) -> list[Logged]:
        stop = max(reading.stop, 0)
        start = max(reading.start, bisect_left(self.log, reading.tokens, key=lambda logged: logged.sums.tokens))
        found = self.log[start:stop]
        if reading.tools_from is not None:
            earlier = self.log[max(reading.tools_from, 0) : min(start, stop)]
            found = [logged for logged in earlier if logged.message.kind in _TOOL_KINDS] + found
        return found if reading.limit is None else found[: max(reading.limit, 0)]

    def work(self, digest: int, attempt: int) -> DigestWork | None:
        by_id = {made.id: made for made in self.digests}
        row = by_id.get(digest)
        if row is None or row.attempt != attempt or row.status is not Status.PROCESSING:
            return None
        base = None if row.base is None else by_id.get(row.base)
        first = row.start if base is None else max(row.start, base.end + 1)
        lines = tuple(
            Line(logged.seq, logged.message.role.value, logged.message.text)
            for logged in self.log[first : row.end + 1]
            if not logged.erased
        )
        return DigestWork(digest=row, base=() if base is None else base.items, lines=lines)

    def apply(self, changes: Changes, fired: int, now: datetime) -> None:
        """Write all of `changes` but the receipt, at the time `now`; a new digest gets the id `fired`.

        Raises Conflict, before anything is written, for a digest that would be a second one where only one may be.
        """
        head = changes.head
        outcomes = {outcome.digest: outcome for outcome in changes.outcomes}
        rewritten = {digest.digest: digest for digest in changes.rewritten}
        digests = [_ended(digest, outcomes.get(digest.id), head.rev, now) for digest in self.digests]
        digests = [_rewritten(digest, rewritten.get(digest.id)) for digest in digests]
        if changes.fire is not None:
            digests.append(_fired(fired, changes.fire, head.rev, now))
        _check_alone(digests)
        self.digests = digests
        self.head = replace(head, ref=self.head.ref)
        self.updated_at = max((now, *(logged.created_at for logged in changes.messages)))
        self.log += changes.messages
        for first, last in changes.erase:
            self.log[first : last + 1] = [_erased(logged) for logged in self.log[first : last + 1]]

    def _standing(self, view_start: int, at: int) -> Digest | None:
        """The completed digest that reaches furthest, as of revision `at`, and rests on nothing cleared."""
        fit = [
            digest
            for digest in self.digests
            if digest.status is Status.COMPLETED
            and digest.done is Done.SUMMARISE
            and digest.end >= view_start
            and _visible(digest, at)
        ]
        return max(fit, key=lambda digest: (digest.end, digest.id), default=None)

    def _with_digests(self, head: Head) -> Head:
        """`head` with what it says of digests: the standing one at its revision, and those in progress."""
        digest = self._standing(head.view_start, head.rev)
        standing = None
        if digest is not None:
            standing = Standing(id=digest.id, start=digest.start, end=digest.end, text=digest.text)
        return replace(
            head,
            digest=standing,
            digest_sums=Sums() if digest is None else self.log[digest.end].sums,
            running=tuple(
                Running(id=d.id, stage=d.stage, attempt=d.attempt, end=d.end, created_at=d.created_at)
                for d in self.digests
                if d.status is Status.PROCESSING
            ),
        )


def _visible(digest: Digest, at: int) -> bool:
    return digest.visible_rev is not None and digest.visible_rev <= at


def _check_alone(digests: Sequence[Digest]) -> None:
    if _repeats(d.stage for d in digests if d.status is Status.PROCESSING):
        raise Conflict("nothing was written: a digest of this stage is already in progress; let it end first")
    if _repeats((d.stage, d.start, d.end) for d in digests if d.status is Status.COMPLETED):
        raise Conflict("nothing was written: this stage has a completed digest of this very range; use that one")


def _repeats(values: Iterable[object]) -> bool:
    found = list(values)
    return len(set(found)) < len(found)


def _fired(digest: int, fire: NewDigest, rev: int, now: datetime) -> Digest:
    return Digest(
        id=digest,
        stage=fire.stage,
        spec=fire.spec,
        done=fire.done,
        start=fire.start,
        end=fire.end,
        base=fire.base,
        status=Status.COMPLETED if fire.completed else Status.PROCESSING,
        attempt=1,
        items=(),
        text="",
        tokens=0,
        model=None,
        prompt_version=None,
        generation_time_ms=None,
        error=None,
        fired_rev=rev,
        visible_rev=rev if fire.completed else None,
        created_at=now,
        completed_at=now if fire.completed else None,
    )


def _ended(digest: Digest, outcome: Outcome | None, rev: int, now: datetime) -> Digest:
    if outcome is None or digest.status is not Status.PROCESSING:
        return digest
    status = Status.COMPLETED if outcome.error is None else Status.FAILED
    if outcome.superseded:
        status = Status.SUPERSEDED
    return replace(
        digest,
        status=status,
        items=outcome.items,
        text=storable(outcome.text),
        tokens=outcome.tokens,
        model=outcome.model,
        prompt_version=outcome.prompt_version,
        generation_time_ms=outcome.generation_time_ms,
        error=None if outcome.error is None else storable(outcome.error),
        visible_rev=rev if status is Status.COMPLETED else None,
        completed_at=now,
    )


def _rewritten(digest: Digest, to: Rewritten | None) -> Digest:
    if to is None or digest.status is not Status.COMPLETED:
        return digest
    status = Status.SUPERSEDED if to.superseded else Status.COMPLETED
    return replace(digest, items=to.items, text=storable(to.text), tokens=to.tokens, status=status)


def _erased(logged: Logged) -> Logged:
    message = replace(logged.message, raw="{}", text="", calls=(), answers=(), tools=(), metadata="{}")
    return replace(logged, message=message, erased=True)
