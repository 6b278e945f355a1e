"""Claims on digests in progress, in memory: which digests are claimed, and when each is due."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hitherto.core.digests.digest import Digest, Needs, Status
from hitherto.core.log.message import storable
from hitherto.core.scope import Scope
from hitherto.ports.digests import Backlog, Claim, DigestJob, DigestWork, FailedDigest
from hitherto.stores.in_memory.conversation import MAX_AHEAD, StoredConversation

_LONGEST_WAIT = timedelta(hours=1)

Name = tuple[Scope, str]


class Claims:
    """The verbs of `DigestStore` on digests in progress, over `conversations` by name. `clock` gives the time, with a
    zone."""

    def __init__(self, conversations: Mapping[Name, StoredConversation], clock: Callable[[], datetime]) -> None:
        self._conversations = conversations
        self._clock = clock
        self._owners: dict[int, Name] = {}

    def note(self, name: Name, fired: Iterable[int]) -> None:
        """Record that the digests `fired` belong to the conversation `name`."""
        self._owners.update(dict.fromkeys(fired, name))

    def take(self, tenant: str, digest: int, lease: timedelta, able: Collection[Needs]) -> DigestWork | None:
        found, now = self._in_progress(tenant, digest), self._clock()
        if found is None:
            return None
        (scope, conversation), kept, row = found
        if not (_is_due(row, now) and _can_make(row, able)):
            return None
        taken = replace(row, attempt=row.attempt + 1, tries=row.tries + 1, claimed=True, due_at=now + lease)
        kept.replaced(taken)
        return kept.work(scope, conversation, taken, now)

    def prolong(self, claims: Iterable[Claim], lease: timedelta, *, but: Callable[[Claim], bool]) -> frozenset[Claim]:
        held = {claim: found for claim in claims if (found := self._held(claim)) is not None}
        for claim, (kept, row) in held.items():
            if not but(claim):
                kept.replaced(replace(row, due_at=self._clock() + lease))
        return frozenset(held)

    def put_off(self, claim: Claim, wait: timedelta, error: str | None, *, counted: bool) -> bool:
        found = self._held(claim)
        if found is None:
            return False
        kept, row = found
        kept.replaced(
            replace(
                row,
                attempt=row.attempt + 1,
                tries=row.tries if counted else row.tries - 1,
                claimed=False,
                due_at=self._clock() + min(wait, _LONGEST_WAIT),
                error=row.error if error is None else storable(error),
            )
        )
        return True

    def due_digests(self, limit: int, able: Collection[Needs]) -> list[DigestJob]:
        now = self._clock()
        found = [
            (row.due_at, DigestJob(scope.tenant, row.id))
            for (scope, _), kept in self._conversations.items()
            for row in kept.digests
            if row.status is Status.PROCESSING and _can_make(row, able) and row.due_at is not None and _is_due(row, now)
        ]
        return [job for _, job in sorted(found, key=lambda one: one[0])][: max(limit, 0)]

    def rested(self, limit: int, able: Collection[Needs]) -> list[FailedDigest]:
        found: list[tuple[datetime, FailedDigest]] = []
        for (scope, name), kept in self._conversations.items():
            head = kept.head_now(self._clock())
            at = head.resume_at
            failed = next((row for row in reversed(kept.digests) if row.status is Status.FAILED), None)
            if failed is not None and at is not None and at <= head.clock and _can_make(failed, able):
                found.append((at, FailedDigest(scope=scope, conversation=name, digest=failed.id)))
        return [one for _, one in sorted(found, key=lambda one: one[0])][: max(limit, 0)]

    def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        now = self._clock()
        found = {job: self._in_progress(job.tenant, job.digest) for job in jobs}
        return [job for job, at in found.items() if at is not None and (at[2].claimed or _is_due(at[2], now))]

    def backlog(self, tenant: str | None) -> Backlog:
        now = self._clock()
        conversations = [kept for (scope, _), kept in self._conversations.items() if tenant in (None, scope.tenant)]
        rows = [(kept, row) for kept in conversations for row in kept.digests if row.status is Status.PROCESSING]
        waiting = [row for _, row in rows if not _is_due(row, now)]
        return Backlog(
            due=len(rows) - len(waiting),
            claimed=sum(row.claimed for row in waiting),
            put_off=sum(not row.claimed for row in waiting),
            lag_seconds=max(((now - row.created_at).total_seconds() for _, row in rows), default=0.0),
            lag_messages=max((kept.behind(row) for kept, row in rows), default=0),
            resting=sum(kept.head_now(now).resting for kept in conversations),
        )

    def _in_progress(self, tenant: str, digest: int) -> tuple[Name, StoredConversation, Digest] | None:
        name = self._owners.get(digest)
        kept = None if name is None else self._conversations.get(name)
        if name is None or kept is None or name[0].tenant != tenant:
            return None
        row = next((row for row in reversed(kept.digests) if row.id == digest), None)
        return None if row is None or row.status is not Status.PROCESSING else (name, kept, row)

    def _held(self, claim: Claim) -> tuple[StoredConversation, Digest] | None:
        found = self._in_progress(claim.tenant, claim.digest)
        if found is None or not found[2].claimed or found[2].attempt != claim.attempt:
            return None
        return found[1], found[2]


def _can_make(row: Digest, able: Collection[Needs]) -> bool:
    return row.needs is None or row.needs in able


def _is_due(row: Digest, now: datetime) -> bool:
    """What is further ahead than anything is set was set before the clock was put back."""
    return row.due_at is None or not now < row.due_at <= now + MAX_AHEAD
