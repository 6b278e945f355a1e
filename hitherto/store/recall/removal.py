"""What a unit of work removes from the search index and from the archived documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from hitherto.core.changes import Changes
from hitherto.core.log.ranges import Ranges
from hitherto.store.facts.learn import ends_facts, hold_facts, hold_facts_of
from hitherto.store.rows import multirange
from hitherto.store.sql import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What changes remove from what can be found, facts aside: the messages in `ranges`, and the documents that stand
    for them or belong to `digests`. Those in `hidden` stay in the log, and forks that have them may show them. `reads`
    says that the conversation's digests are to be indexed again; `shown_from`, that messages from there on can be found
    again."""

    ranges: Ranges
    hidden: Ranges
    digests: tuple[int, ...]
    reads: bool
    shown_from: int | None

    @property
    def any(self) -> bool:
        return bool(self.reads or self.ranges)


def going(changes: Changes, *, view_start: int) -> Removal:
    """What the changes remove, where the view began at `view_start` before them. What is hidden by a clear is removed
    too, with the documents that stand for any of it."""
    after = changes.head.view_start
    hidden = (*changes.retract, *([(view_start, after - 1)] if after > view_start else []))
    return Removal(
        ranges=(*changes.erase, *hidden),
        hidden=hidden,
        digests=(*changes.supersede, *(one.digest for one in changes.rewritten if one.superseded)),
        reads=bool(after != view_start or changes.rewritten or changes.supersede or changes.restored),
        shown_from=min(
            [*(first for first, _ in changes.restored), *([after] if after < view_start else [])], default=None
        ),
    )


async def hold(connection: AsyncConnection[Any], at: dict[str, Any], changes: Changes, gone: Removal) -> None:
    """Lock what is about to be changed, in the same order as indexing workers: conversations, digests, documents,
    subjects, facts, the scope's index. Marks what is to be indexed again. What a worker has written while it held the
    scope's row is seen afterwards, for each statement reads a new snapshot."""
    if gone.shown_from is not None:
        await connection.execute(SQL["reindex_messages"], {**at, "view_start": gone.shown_from})
    if gone.reads:
        await connection.execute(SQL["reindex_digests"], at)
    if gone.any:
        await connection.execute(SQL["hold_documents"], at)
    await hold_facts(connection, at, changes)
    if gone.any or ends_facts(changes):
        await connection.execute(SQL["index_hold_scope"], at)


async def unindex(connection: AsyncConnection[Any], at: dict[str, Any], gone: Removal) -> None:
    """Delete the entries and the archived documents of what the changes remove; entries of what forks show become
    theirs. The caller has locked them."""
    if gone.reads:
        await connection.execute(SQL["move_digests"], {**at, "all": False})
        await connection.execute(SQL["unindex_digests"], at)
    if gone.hidden:
        await connection.execute(SQL["move_entries"], {**at, "ranges": multirange(gone.hidden)})
    if gone.digests or gone.ranges:
        await _gone(connection, at, gone.ranges, gone.digests)


async def hold_all(connection: AsyncConnection[Any], at: dict[str, Any], *, last: int) -> None:
    """Lock everything that belongs to a conversation, in the order of `hold`."""
    await connection.execute(SQL["reindex_digests"], at)
    await connection.execute(SQL["hold_documents"], at)
    await hold_facts_of(connection, at, last=last)
    await connection.execute(SQL["index_hold_scope"], at)


async def unindex_all(connection: AsyncConnection[Any], at: dict[str, Any], *, last: int) -> None:
    """Delete all entries and archived documents of a conversation; entries of what forks show become theirs. Facts are
    left alone."""
    everything = {**at, "ranges": multirange([(0, last)] if last >= 0 else []), "all": True}
    for name in ("move_entries", "move_digests", "move_forks"):
        await connection.execute(SQL[name], everything)
    await connection.execute(SQL["unindex_digests"], at)
    await _gone(connection, at, [(0, last)])


async def _gone(
    connection: AsyncConnection[Any],
    at: dict[str, Any],
    taken: Sequence[tuple[int, int]],
    digests: Sequence[int] = (),
) -> None:
    values = {**at, "ranges": multirange([one for one in taken if one[0] <= one[1]]), "digests": list(digests)}
    await connection.execute(SQL["unindex_messages"], values)
    await connection.execute(SQL["remove_documents"], values)
