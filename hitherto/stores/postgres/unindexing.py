"""What goes from the search index with a unit of work's changes."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from hitherto.ports.store import Changes
from hitherto.stores.postgres.searching import SEGMENT
from hitherto.stores.postgres.sql import SQL


async def unindex(connection: AsyncConnection[Any], at: dict[str, Any], changes: Changes, *, view_start: int) -> None:
    """Let the entries and the archived documents go of what the changes take away; the view began at `view_start`.

    Last in its transaction: whoever indexes takes conversations, digests, documents and the scope's row in this order,
    and so does this. What it writes while it holds the scope's row is seen here, for each statement looks anew.
    """
    digests = (*changes.supersede, *(one.digest for one in changes.rewritten if one.superseded))
    after = changes.head.view_start
    if after < view_start:
        await connection.execute(SQL["reindex_messages"], {**at, "view_start": after})
    ranges = [*changes.erase, *([(view_start, after - 1)] if after > view_start else [])]
    reads = after != view_start or changes.rewritten or changes.supersede
    if not (reads or ranges or changes.retract):
        return
    if reads:
        await connection.execute(SQL["reindex_digests"], at)
    await _held(connection, at)
    if reads:
        await connection.execute(SQL["unindex_digests"], {**at, "size": SEGMENT})
    if digests or changes.retract:
        await _gone(connection, at, seqs=changes.retract, digests=digests)
    for first, last in ranges:
        # Documents that stand for anything before the view go too.
        await _gone(connection, at, first=first, last=last)


async def unindex_all(connection: AsyncConnection[Any], at: dict[str, Any], *, last: int) -> None:
    """Let everything of a conversation go; see `unindex`."""
    await connection.execute(SQL["reindex_digests"], at)
    await _held(connection, at)
    await connection.execute(SQL["unindex_digests"], {**at, "size": SEGMENT})
    await _gone(connection, at, first=0, last=last)


async def _held(connection: AsyncConnection[Any], at: dict[str, Any]) -> None:
    await connection.execute(SQL["hold_documents"], at)
    await connection.execute(SQL["index_hold_scope"], at)


async def _gone(
    connection: AsyncConnection[Any],
    at: dict[str, Any],
    *,
    first: int = 0,
    last: int = -1,
    seqs: tuple[int, ...] = (),
    digests: tuple[int, ...] = (),
) -> None:
    values = {**at, "first": first, "last": last, "seqs": list(seqs), "digests": list(digests), "size": SEGMENT}
    await connection.execute(SQL["unindex_messages"], values)
    await connection.execute(SQL["remove_documents"], values)
