"""Branches: what else has followed a message, and going from one to another, and forks. Nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.log.branch import Branch
from hitherto.core.log.head import Head
from hitherto.core.log.probe import Mark, SeqAt
from hitherto.core.log.ranges import before, joined, without
from hitherto.core.log.tail import ending, open_after
from hitherto.engine.digests.frontiers_from_rows import frontiers
from hitherto.engine.handle import Handle, check_end, check_unchanged
from hitherto.engine.log.rewind import retraction
from hitherto.errors import Conflict, InvalidInput, NotFound

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
            await unit.apply(changes, switching=True)
        head, made = unit.head, await unit.restore(back)
        tail = await unit.tail(_TAIL)
        rows = [row for row in await unit.digests() if row.visible(head.rev) and row.status is Status.COMPLETED]
        after = replace(head, rev=head.rev + 1, sums=tail[-1].sums, open_calls=open_after(made))
        after = ending(replace(after, frontiers=await frontiers(unit, rows, head.view_start)), tail)
        await unit.answer({call for one in made for call in one.message.answers})
        await unit.commit(Changes(head=after, restored=back))
    handle.services.appended.set()
    return last


async def fork(handle: Handle, at: int | None, id: str | None) -> str:
    """See `Conversation.fork`; returns the id."""
    name = uuid4().hex if id is None else id
    async with handle.services.store.write(handle.scope, handle.id) as unit:
        head = unit.head
        if unit.new:
            raise NotFound(
                f"there is no conversation {handle.id!r} in scope {handle.scope}, so there is nothing to fork"
            )
        end = None if id is None else await unit.forked_before(name)
        if end is not None and at in (None, end):
            return name
        if at is not None:
            check_end(head, at, "at", handle.id)
        found = await unit.probe(SeqAt(head.last_seq if at is None else at))
        last = max(found.seq if isinstance(found, Mark) else -1, head.view_start - 1)
        if at is not None and at != last:
            raise InvalidInput(
                f"at is {at}, a message of {handle.id!r} that is not shown: give another, or show it first, "
                f"switch({at})"
            )
        after = head
        if last < head.last_seq:
            tail = await unit.tail(_TAIL, stop=last + 1)
            after = ending(replace(await unit.ending_at(last), ref=head.ref, next_seq=last + 1), tail)
            tools = await unit.tools(without(((head.view_start, last),), head.retracted))
            after = replace(after, open_calls=open_after(tools))
        after = replace(
            after,
            rev=head.rev + 1,
            messages_rev=head.rev + 1,
            extracted=before(head.extracted, last + 1),
            facts_due_at=None,
            finish_seq=0,
        )
        if not await unit.fork(name, after):
            raise Conflict(f"there is a conversation {name!r} already; give the fork another id, or none")
    handle.services.appended.set()
    return name


def _check(head: Head, seq: int, conversation: str) -> None:
    if not head.view_start <= seq < head.next_seq:
        raise InvalidInput(f"{conversation!r} has no message {seq}, or it was cleared; give the seq of another")
