"""Helpers of the cases: rows of stages, frontiers, and messages taken back, each in the simplest way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome, NewDigest, Status
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.message import Kind, Logged, Role, Sums
from hitherto.core.log.ranges import ranges
from hitherto.store.store import Store
from tests.store.samples import SCOPE, log_of

REACHING = (DigestAction.DROP, DigestAction.REDACT, DigestAction.CHUNK, DigestAction.COMPACT)


def stage_row(
    action: DigestAction,
    start: int,
    end: int,
    *,
    stage: str = "",
    completed: bool = True,
    base: int | None = None,
    given: int | None = None,
    tokens: int = 7,
    freed: int = 0,
    since: int = 0,
    kept_from: int | None = None,
    opaque: str | None = None,
    family: str | None = None,
) -> NewDigest:
    """A row to fire. Its stage is named after `action`, unless `stage` is given; `given` is the id to use."""
    return NewDigest(
        stage=stage or action.value,
        spec="{}",
        action=action,
        start=start,
        end=end,
        base=base,
        completed=completed,
        id=given,
        tokens=tokens,
        freed=freed,
        since=since,
        kept_from=kept_from,
        opaque=opaque,
        family=family,
    )


def sums_through(log: Iterable[Logged], seq: int, at: int) -> Sums:
    """The running sums of the last message up to `seq` that is live at revision `at`."""
    return next((one.sums for one in sorted(log, key=lambda one: -one.seq) if one.seq <= seq and one.live(at)), Sums())


def frontiers_of(rows: Iterable[Digest], log: Sequence[Logged], view_start: int, at: int) -> dict[str, Frontier]:
    """The frontiers at revision `at`, computed from the rows and the log."""
    found: dict[str, Frontier] = {}
    counting = [row for row in rows if row.action in REACHING and row.visible(at) and row.end >= view_start]
    for row in sorted(counting, key=lambda row: (row.end, row.id)):
        kept_from = row.end + 1 if row.kept_from is None else row.kept_from
        found[row.stage] = Frontier(
            action=row.action,
            start=row.start,
            end=row.end,
            sums=sums_through(log, row.end, at),
            kept_from=kept_from,
            kept_sums=sums_through(log, kept_from - 1, at),
            digest=row.id if row.action in (DigestAction.CHUNK, DigestAction.COMPACT) else None,
            family=row.family,
            tokens=row.tokens if row.action is DigestAction.COMPACT else 0,
            freed=row.freed,
            since=row.since,
        )
    return found


async def reach(store: Store, name: str) -> None:
    """Write to the head the frontiers that follow from the rows; the revision stays."""
    log, rows = await log_of(store, name), await store.digests(SCOPE, name)
    async with store.write(SCOPE, name) as unit:
        head = unit.head
        found = frontiers_of(rows, log, head.view_start, head.rev)
        await unit.commit(Changes(head=replace(head, frontiers=found)))


async def staged(store: Store, name: str, *fire: NewDigest) -> tuple[int, ...]:
    """Fire rows that are complete at once, at a new revision; their ids."""
    async with store.write(SCOPE, name) as unit:
        ids = await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), fire=fire))
    await reach(store, name)
    return ids


async def superseded(store: Store, name: str, *digests: int, view_start: int | None = None) -> None:
    """Supersede these rows from the next revision on. If one of them is a clear, `view_start` is where the view begins
    without it."""
    log = await log_of(store, name)
    async with store.write(SCOPE, name) as unit:
        head = replace(unit.head, rev=unit.head.rev + 1)
        if view_start is not None:
            head = replace(head, view_start=view_start, view_sums=sums_through(log, view_start - 1, head.rev))
        await unit.commit(Changes(head=head, supersede=digests))
    await reach(store, name)


async def take_back(store: Store, name: str, count: int = 1) -> list[int]:
    """Take back the newest `count` messages of the view, with the digests that rest on them; their seqs."""
    log, rows = await log_of(store, name), await store.digests(SCOPE, name)
    async with store.write(SCOPE, name) as unit:
        head = unit.head
        gone = [one.seq for one in await unit.tail(count)]
        left = [one for one in log if one.live(head.rev) and one.seq < gone[0]]
        last = left[-1].message if left else None
        after = replace(
            head,
            rev=head.rev + 1,
            sums=left[-1].sums if left else Sums(),
            closed=last is not None and last.role is Role.ASSISTANT and last.kind is Kind.TEXT,
            open_calls={},
        )
        resting = [row for row in rows if row.end >= gone[0] and row.action is not DigestAction.CLEAR]
        await unit.commit(
            Changes(
                head=after,
                retract=ranges(gone),
                supersede=tuple(row.id for row in resting if row.status is Status.COMPLETED),
                outcomes=tuple(
                    DigestOutcome(digest=one.id, superseded=True) for one in head.running if one.end >= gone[0]
                ),
            )
        )
    await reach(store, name)
    return gone
