"""Frontiers computed from the digest rows, for the rare verbs that supersede rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hitherto.core.digests.digest import Digest
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import Mark, SeqAt

if TYPE_CHECKING:
    from hitherto.store.unit import Unit

_KINDS = (DigestAction.DROP, DigestAction.REDACT, DigestAction.CHUNK, DigestAction.COMPACT, DigestAction.FACTS)


async def frontiers(unit: Unit, rows: Sequence[Digest], view_start: int) -> dict[str, Frontier]:
    """The frontiers by stage, from `rows`, all of which must be visible. Rows that end before `view_start` give
    none."""
    furthest: dict[str, Digest] = {}
    for row in rows:
        if row.action in _KINDS and row.end >= view_start:
            other = furthest.get(row.stage)
            if other is None or (row.end, row.id) > (other.end, other.id):
                furthest[row.stage] = row
    return {stage: await _frontier(unit, row) for stage, row in furthest.items()}


async def _frontier(unit: Unit, row: Digest) -> Frontier:
    kept_from = row.end + 1 if row.kept_from is None else row.kept_from
    return Frontier(
        action=row.action,
        start=row.start,
        end=row.end,
        sums=await sums_through(unit, row.end),
        kept_from=kept_from,
        kept_sums=await sums_through(unit, kept_from - 1),
        digest=row.id if row.action in (DigestAction.CHUNK, DigestAction.COMPACT) else None,
        family=row.family,
        tokens=row.tokens if row.action is DigestAction.COMPACT else 0,
        freed=row.freed,
        since=row.since,
    )


async def sums_through(unit: Unit, seq: int) -> Sums:
    """The running sums through the last live message up to `seq`."""
    mark = await unit.probe(SeqAt(seq)) if seq >= 0 else None
    return mark.sums if isinstance(mark, Mark) else Sums()
