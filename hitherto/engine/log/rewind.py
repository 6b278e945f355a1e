"""Retracting the newest messages (`pop`, `rewind`), and showing other items in place of messages (`replace`). The log
keeps everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome, NewDigest, Status
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import REPLACED, Head, HeadWithCalls
from hitherto.core.log.message import RESPONSES, Logged, Payload
from hitherto.core.log.ranges import ranges
from hitherto.core.log.tail import covers, ending, without_from
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.view import layout_of
from hitherto.engine.context.view import ViewBuilder
from hitherto.engine.digests.frontiers_from_rows import frontiers, sums_through
from hitherto.engine.handle import Handle, check_end, check_unchanged
from hitherto.errors import ConcurrentWrite, InvalidInput, NotFound

if TYPE_CHECKING:
    from hitherto.store.unit import Unit

_TAIL = 32
"""Messages that are read at first to work out the state of the log without its newest message."""


@dataclass(frozen=True, slots=True)
class Rewinder:
    """`pop`, `rewind` and `replace` on one conversation."""

    handle: Handle

    async def pop(self, *, policy: Policy | None, model: str | None) -> Payload | None:
        """See `Conversation.pop`."""
        store = self.handle.services.store
        while True:
            head = await self.handle.head()
            item = self._shown_last(head, policy, model)
            opaque = None if item is None or item.digest is None else (
                item, await store.opaque(self.handle.scope, self.handle.id, item.digest)
            )  # fmt: skip
            async with store.write(self.handle.scope, self.handle.id) as unit:
                if unit.head.rev != head.rev:
                    continue
                if opaque is not None and opaque[1]:
                    return await self._pop_item(unit, opaque[0], opaque[1])
                tail = await unit.tail(1)
                if not tail:
                    return None
                await unit.commit((await retraction(unit, tail[0].seq))[1])
                return tail[0].message.payload

    async def rewind(self, to: int, *, expect: int | None = None) -> int:
        """See `Conversation.rewind`."""
        async with self.handle.services.store.write(self.handle.scope, self.handle.id) as unit:
            check_unchanged(unit.head, expect, self.handle.id)
            check_end(unit.head, to, "to", self.handle.id)
            taken, changes = await retraction(unit, to + 1)
            if taken:
                await unit.commit(changes)
            return len(taken)

    def _shown_last(self, head: Head, policy: Policy | None, model: str | None) -> Frontier | None:
        """The frontier of the opaque items, if nothing else is shown."""
        governing, _ = self.handle.governing(head, policy)
        item = layout_of(governing, head, family=self.handle.services.family(model)).opaque
        return item if item is not None and item.sums == head.sums else None

    async def _pop_item(self, unit: Unit, item: Frontier, items: Sequence[Payload]) -> Payload:
        """Replace the opaque items by all but the last of them, which is returned; where none is left, nothing is shown
        any more."""
        head, rest = unit.head, items[:-1]
        assert item.digest is not None, "the caller checked it"
        if rest:
            row = await self._standing_in(unit, rest, item.start, item.end, item.family)
            kept = {name: one for name, one in head.frontiers.items() if one.digest != item.digest}
            frontiers_now = {**kept, REPLACED: replace(item, digest=row.id, tokens=row.tokens)}
            changes = Changes(head=replace(head, rev=head.rev + 1, frontiers=frontiers_now), fire=(row,))
        else:
            changes = cleared(head)
        await unit.commit(replace(changes, supersede=(item.digest,)))
        return items[-1]

    async def replace(
        self,
        items: Sequence[Payload],
        *,
        wire: str,
        model: str | None,
        policy: Policy | None,
        expect: int | None,
    ) -> None:
        """See `Conversation.replace`."""
        services, store = self.handle.services, self.handle.services.store
        if wire != RESPONSES:
            raise InvalidInput(f"items in the place of others can be of {RESPONSES!r} only, not of {wire!r}")
        raw = [one.payload for one in await services.read_messages(items, wire, take_ids=False)]
        family = None if model is None else services.family(model)
        while True:
            head = await self.handle.head()
            if expect is not None and head.rev != expect:
                raise ConcurrentWrite(
                    f"expect={expect}, but {self.handle.id!r} is at revision {head.rev}: it changed since; read it and "
                    "decide again",
                    actual=head.rev,
                )
            clear = await self._last_clear(head)
            restored = False
            tail = () if clear is None else await self._tail(head)
            if clear is not None and clear.visible_rev is not None:
                with suppress(NotFound):  # a fork has no revisions of before
                    shown = await ViewBuilder(self.handle).items(
                        wire=wire, policy=policy, model=model, limit=None, at=clear.visible_rev - 1
                    )
                    restored = _same(shown, raw)
            async with store.write(self.handle.scope, self.handle.id) as unit:
                if unit.head.rev != head.rev:
                    continue
                if not raw:
                    if head.next_seq > head.view_start:
                        await unit.commit(cleared(unit.head))
                    return
                await self._put(unit, raw, family, clear, tail, restored=restored)
                return

    async def _last_clear(self, head: Head) -> Digest | None:
        """The clear that hid everything, if nothing has come since."""
        if head.view_start != head.next_seq or not head.next_seq:
            return None
        store = self.handle.services.store
        return await store.last_clear(self.handle.scope, self.handle.id, end=head.last_seq, rev=head.rev)

    async def _tail(self, head: Head) -> list[Logged]:
        """The newest messages, whether they were cleared or not."""
        reading = MessageRange(start=max(head.next_seq - 8 * _TAIL, 0), stop=head.next_seq, live_at=head.rev)
        return await self.handle.services.store.messages(self.handle.scope, self.handle.id, head.ref, reading)

    async def _put(
        self,
        unit: Unit,
        items: Sequence[Payload],
        family: str | None,
        clear: Digest | None,
        tail: Sequence[Logged],
        *,
        restored: bool,
    ) -> None:
        head = unit.head
        if clear is None and head.next_seq == head.view_start:
            raise InvalidInput("there is nothing in whose place the items could be shown; append them")
        rows = [row for row in await unit.digests() if row.visible(head.rev) and row.status is Status.COMPLETED]
        gone = [] if clear is None else [clear]
        if not restored:
            gone += [row for row in rows if row.stage == REPLACED]
        left = [row for row in rows if row not in gone]
        after = replace(head, rev=head.rev + 1)
        if clear is not None:
            start = max((row.end + 1 for row in left if row.action is DigestAction.CLEAR), default=0)
            after = replace(after, view_start=start, view_sums=await sums_through(unit, start - 1))
            after = ending(after, [one for one in tail if one.seq >= start])
        after = replace(after, frontiers=await frontiers(unit, left, after.view_start))
        fire: tuple[NewDigest, ...] = ()
        if not restored:
            fire = (await self._standing_in(unit, items, after.view_start, head.last_seq, family),)
            end = Frontier(
                action=DigestAction.COMPACT,
                start=after.view_start,
                end=head.last_seq,
                sums=head.sums,
                kept_from=head.next_seq,
                kept_sums=head.sums,
                digest=fire[0].id,
                family=family,
                tokens=fire[0].tokens,
            )
            after = replace(after, frontiers={**after.frontiers, REPLACED: end})
        # A digest in progress would be shown in place of these items.
        shown = [one for one in head.running if one.action is not DigestAction.FACTS]
        fenced = tuple(DigestOutcome(digest=one.id, superseded=True, error="replaced") for one in shown)
        changes = Changes(head=after, fire=fire, supersede=tuple(row.id for row in gone), outcomes=fenced)
        await unit.commit(changes)

    async def _standing_in(
        self, unit: Unit, items: Sequence[Payload], start: int, end: int, family: str | None
    ) -> NewDigest:
        # The conversation is held meanwhile, so this waits for no turn.
        tokens, opaque = await asyncio.to_thread(self._sealed, items)
        return NewDigest(
            stage=REPLACED,
            spec="{}",
            action=DigestAction.COMPACT,
            start=start,
            end=end,
            base=None,
            completed=True,
            id=await unit.next_digest(),
            tokens=tokens,
            opaque=opaque,
            family=family,
        )

    def _sealed(self, items: Sequence[Payload]) -> tuple[int, str]:
        """The tokens of the items, and their JSON text."""
        codec = self.handle.services.codec(RESPONSES)
        return sum(codec.tokens(item, self.handle.services.canonical) for item in items), json.dumps(list(items))


async def retraction(unit: Unit, first: int) -> tuple[Sequence[Logged], Changes]:
    """The live messages from seq `first` on, and the changes that retract them; no messages where there are none."""
    head, size = unit.head, _TAIL
    tail = await unit.tail(1)
    if not tail or tail[0].seq < first:
        return (), Changes(head=head)
    tail = await unit.tail(size)
    while len(tail) == size and not covers(tail, first):
        size *= 2
        tail = await unit.tail(size)
    taken = [one for one in tail if one.seq >= first]
    rows = await unit.digests() if _touches(head, first) else []
    visible = [row for row in rows if row.visible(head.rev) and row.status is Status.COMPLETED]
    gone = [row for row in visible if row.end >= first and row.action is not DigestAction.CLEAR]
    after = without_from(head, tail, first)
    if gone:
        left = [row for row in visible if row.end < first or row.action is DigestAction.CLEAR]
        after = replace(after, frontiers=await frontiers(unit, left, head.view_start))
    if any(one.action is DigestAction.FACTS and one.end >= first for one in head.running):
        after = replace(after, facts_due_at=head.clock)  # what is left of its messages is still unread
    return taken, Changes(
        head=after,
        retract=ranges(one.seq for one in taken),
        supersede=tuple(row.id for row in gone),
        outcomes=tuple(
            DigestOutcome(digest=one.id, superseded=True, error="a message of its range was taken back")
            for one in head.running
            if one.end >= first
        ),
    )


def cleared(head: HeadWithCalls) -> Changes:
    """The changes that hide all messages so far. There must be at least one."""
    after = replace(
        head,
        rev=head.rev + 1,
        view_start=head.next_seq,
        view_sums=head.sums,
        run_start=head.next_seq,
        awaited=(),
        late=(),
        frontiers={},
        facts_due_at=None,
    )
    hide = NewDigest(
        stage="clear",
        spec="{}",
        action=DigestAction.CLEAR,
        start=head.view_start,
        end=head.last_seq,
        base=None,
        completed=True,
    )
    fenced = tuple(DigestOutcome(digest=one.id, superseded=True, error="cleared") for one in head.running)
    return Changes(head=after, fire=(hide,), outcomes=fenced)


def _same(one: Sequence[Payload], other: Sequence[Payload]) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _touches(head: Head, seq: int) -> bool:
    """Whether any digest reaches message `seq`."""
    ends = [one.end for one in head.frontiers.values()]
    return any(end >= seq for end in (*ends, -1 if head.digest is None else head.digest.end))
