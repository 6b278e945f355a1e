"""Branches: what else has followed a message, and going from one to another. Nothing of the log is lost by it."""

from __future__ import annotations

from dataclasses import replace

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.log.branch import Branch
from hitherto.core.log.head import Head
from hitherto.core.log.ranges import joined
from hitherto.core.log.tail import ending, open_after
from hitherto.engine.digests.frontiers_from_rows import frontiers
from hitherto.engine.handle import Handle, check_unchanged
from hitherto.engine.log.rewind import retraction
from hitherto.errors import InvalidInput

_TAIL = 256
"""The newest messages, of which the state of the log's end is worked out."""


async def branches(handle: Handle, seq: int | None, *, after: int, limit: int) -> list[Branch]:
    """See `Conversation.branches`."""
    head = await handle.head()
    if seq is not None:
        _check(head, seq, handle.id)
    return await handle.services.store.branches(
        handle.scope, handle.id, head.ref, seq, after=max(after, head.view_start - 1), limit=limit
    )


async def switch(handle: Handle, seq: int, *, expect: int | None) -> int:
    """See `Conversation.switch`."""
    async with handle.services.store.write(handle.scope, handle.id) as unit:
        head = unit.head
        check_unchanged(head, expect, handle.id)
        _check(head, seq, handle.id)
        newest = await unit.tail(1)
        last = newest[0].seq if newest else head.view_start - 1
        way, fork = await unit.way_to(seq)
        if not way:
            return last
        back = joined((*way, *unit.taken_back_with(seq)))
        taken, changes = await retraction(unit, fork + 1)
        if taken:
            await unit.apply(changes)
        head, made = unit.head, await unit.restore(back)
        tail = await unit.tail(_TAIL)
        rows = [row for row in await unit.digests() if row.visible(head.rev) and row.status is Status.COMPLETED]
        after = replace(head, rev=head.rev + 1, sums=tail[-1].sums, open_calls=open_after(made))
        after = ending(replace(after, frontiers=await frontiers(unit, rows, head.view_start)), tail)
        await unit.answer({call for one in made for call in one.message.answers})
        await unit.commit(Changes(head=after, restored=back))
    handle.services.appended.set()
    return last


def _check(head: Head, seq: int, conversation: str) -> None:
    if not head.view_start <= seq < head.next_seq:
        raise InvalidInput(f"{conversation!r} has no message {seq}, or it was cleared; give the seq of another")
