"""Digest rows in memory, and how a set of changes updates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import RunningDigest
from hitherto.core.log.message import storable
from hitherto.errors import Conflict
from hitherto.ports.digests import DigestOutcome, NewDigest, RewrittenDigest
from hitherto.ports.log import Changes


def changed(
    digests: Sequence[Digest], changes: Changes, fired: Sequence[int], now: datetime, due_at: datetime
) -> list[Digest]:
    """The rows after `changes`, made at the time `now`, ascending by id; new ones get the ids `fired` and are due at
    `due_at`.

    Raises Conflict for a second digest of a stage in progress, and for a second completed one of a stage and range.
    """
    rev = changes.head.rev
    outcomes = {outcome.digest: outcome for outcome in changes.outcomes}
    rewritten = {digest.digest: digest for digest in changes.rewritten}
    after: list[Digest] = []
    for digest in digests:
        known = _superseded(digest, rev) if digest.id in changes.supersede else digest
        after.append(_rewritten(_ended(known, outcomes.get(digest.id), rev, now), rewritten.get(digest.id)))
    after += [_fired(given, fire, rev, now, due_at) for given, fire in zip(fired, changes.fire, strict=True)]
    _check_alone(after)
    return sorted(after, key=lambda digest: digest.id)


def standing(digests: Iterable[Digest], view_start: int, at: int) -> Digest | None:
    """The standing summary at revision `at`: of the summaries that views use then and that end at or after
    `view_start`, the one that reaches furthest."""
    return furthest(d for d in digests if d.action is DigestAction.SUMMARIZE and d.end >= view_start and d.visible(at))


def furthest(digests: Iterable[Digest]) -> Digest | None:
    """The digest that reaches furthest; of several, the newest. None if there is none."""
    return max(digests, key=lambda digest: (digest.end, digest.id), default=None)


def running(digest: Digest) -> RunningDigest:
    return RunningDigest(
        id=digest.id,
        stage=digest.stage,
        attempt=digest.attempt,
        start=digest.start,
        end=digest.end,
        created_at=digest.created_at,
        action=digest.action,
        kept_from=digest.kept_from,
        error=digest.error,
        claimed=digest.claimed,
    )


def _check_alone(digests: Sequence[Digest]) -> None:
    if _repeats(d.stage for d in digests if d.status is Status.PROCESSING):
        raise Conflict("nothing was written: a digest of this stage is already in progress; let it end first")
    if _repeats((d.stage, d.start, d.end) for d in digests if d.status is Status.COMPLETED):
        raise Conflict("nothing was written: this stage has a completed digest of this very range; use that one")


def _repeats(values: Iterable[object]) -> bool:
    found = list(values)
    return len(set(found)) < len(found)


def _fired(digest: int, fire: NewDigest, rev: int, now: datetime, due_at: datetime) -> Digest:
    return Digest(
        id=digest,
        stage=fire.stage,
        spec=fire.spec,
        action=fire.action,
        start=fire.start,
        end=fire.end,
        base=fire.base,
        status=Status.COMPLETED if fire.completed else Status.PROCESSING,
        attempt=0,
        items=(),
        text="",
        tokens=fire.tokens,
        model=None,
        prompt_version=None,
        generation_time_ms=None,
        error=None,
        fired_rev=rev,
        visible_rev=rev if fire.completed else None,
        created_at=now,
        completed_at=now if fire.completed else None,
        freed=fire.freed,
        since=fire.since,
        kept_from=fire.kept_from,
        opaque=fire.opaque,
        family=fire.family,
        due_at=None if fire.completed else due_at,
        policy=fire.policy,
        needs=fire.needs,
    )


def _superseded(digest: Digest, rev: int) -> Digest:
    if digest.status is not Status.COMPLETED:
        return digest
    return replace(digest, status=Status.SUPERSEDED, hidden_rev=rev)


def _ended(digest: Digest, outcome: DigestOutcome | None, rev: int, now: datetime) -> Digest:
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
        opaque=outcome.opaque,
        family=outcome.family,
        visible_rev=rev if status is Status.COMPLETED else None,
        completed_at=now,
        due_at=None,
        claimed=False,
    )


def _rewritten(digest: Digest, to: RewrittenDigest | None) -> Digest:
    if to is None or digest.status not in (Status.COMPLETED, Status.SUPERSEDED):
        return digest
    rest = replace(digest, items=to.items, text=storable(to.text), tokens=to.tokens)
    return replace(rest, status=Status.SUPERSEDED, hidden_rev=0, opaque=None) if to.superseded else rest
