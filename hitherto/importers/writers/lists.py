"""Adding a list of messages, which are told by what is before them, to the log of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hitherto.core.log.message import Logged, Message, Role, id_hash
from hitherto.errors import ConcurrentWrite, Conflict, InvalidInput
from hitherto.importers.imported import ImportedConversation, ImportedMessage
from hitherto.importers.writers.log import (
    CLEARED,
    READ,
    ImportLog,
    ImportNotes,
    dated,
    fitting,
    leave_out,
    mark_of,
    note_erased,
    note_hidden,
    pages_of,
)

if TYPE_CHECKING:
    from hitherto.core.log.head import Head
    from hitherto.engine.conversation import Conversation

_DIFFERS = "it differs from what is here, of which messages were erased that it may bring back: left out"


async def import_list(chat: Conversation, conversation: ImportedConversation, policy: str | None) -> int | None:
    """See `import_conversation`. The list is read as it is appended."""
    head = await chat.head()
    log, notes = ImportLog.of(chat, policy, head), await ImportNotes.of(chat, head)
    walk = await _Walk.of(log)
    pages, count, at, moves = pages_of(_fitted(conversation)), 0, -1, True
    while page := await asyncio.to_thread(next, pages, None):
        if not count:
            page = await walk.follow(page)
            if not page:
                continue
            if log.next and not walk.in_common and walk.followed < log.next:
                return None
            at = log.end if log.end in walk.places else walk.places[0]
            if (why := _unfit(log, walk, at, head, has_ids=page[0].message.id is not None)) is not None:
                await _leave_out(conversation, page, pages, why)
                break
            moves = walk.shown(notes) == at
            await notes.begin(conversation.title, marked=not moves, shows=walk.shown(notes))
        try:
            appended = len(await _append(log, [one.message for one in page], at))
        except (Conflict, InvalidInput) as error:
            await _leave_out(conversation, page, pages, error)
            break
        count, walk.erased = count + appended, walk.erased + len(page) - appended
        at = log.next - 1 if appended else at
    if not count and walk.followed:
        await notes.begin(conversation.title)
    if notes.unfinished and not (count and moves):
        await log.show(walk.shown(notes), last=True)
    await notes.end()
    note_erased(conversation, walk.erased)
    if count and not moves:
        note_hidden(conversation, count, at)
    return count


def _fitted(conversation: ImportedConversation) -> Iterator[ImportedMessage]:
    """The messages as they can be appended."""
    open_calls, before = set[str](), None
    for one in conversation.messages:
        before = fitting(dated(one.message, before), open_calls)[0]
        yield replace(one, message=before)


@dataclass(eq=False)
class _Walk:
    """The way of a list's messages through a log. `places` are the messages that can be the last one that was followed
    (-1: none yet), as several can say the same; `starts` are the beginnings of branches, by the message before them."""

    log: ImportLog
    end: int
    starts: dict[int, list[int]]
    branched: set[int]
    places: list[int] = field(default_factory=lambda: [-1])
    followed: int = 0
    erased: int = 0
    in_common: bool = False
    page: dict[int, Logged] = field(default_factory=dict[int, Logged])

    @classmethod
    async def of(cls, log: ImportLog) -> _Walk:
        starts, branched, after = dict[int, list[int]](), set[int](), -1
        while log.next and (page := await log.chat.branches(after=after, limit=READ)):
            for one in page:
                starts.setdefault(one.parent, []).append(one.seq)
                branched.add(one.seq)
            after = page[-1].seq
        return cls(log, -1 if log.end is None else log.end, starts, branched)

    def shown(self, notes: ImportNotes) -> int:
        """The last message that is shown; after an import that was cut off, and since which nobody went on, the one
        that was shown before."""
        return notes.shows if notes.shows is not None and self.end in self.places else self.end

    def following(self, place: int) -> list[int]:
        """The seqs of the messages that follow one."""
        straight = [place + 1] if place + 1 < self.log.next and place + 1 not in self.branched else []
        return [*straight, *self.starts.get(place, ())]

    async def follow(self, page: Sequence[ImportedMessage]) -> list[ImportedMessage]:
        """Go on to the messages that say the same, one after the other; returns those that follow the last of them."""
        known = 0
        while known < len(page) and await self._follow(page[known].message):
            known += 1
        return list(page[known:])

    async def _follow(self, message: Message) -> bool:
        """One that was erased is the one with its id; without ids, any of the same role may be."""
        same, erased = list[int](), list[int]()
        for place in self.places:
            for seq in self.following(place):
                there = await self._read(seq)
                if there.erased and _may_be(there, message):
                    erased.append(seq)
                elif not there.erased and mark_of(there.message) == mark_of(message):
                    same.append(seq)
        if same or erased:
            self.places, self.followed = [*same, *erased], self.followed + 1
            self.erased += not same
            self.in_common = self.in_common or message.role is not Role.SYSTEM
        return bool(same or erased)

    async def _read(self, seq: int) -> Logged:
        if seq not in self.page:
            stop = min(seq + READ, self.log.next)
            self.page = {one.seq: one for one in await self.log.chat.messages(start=seq, stop=stop)}
        return self.page[seq]


def _may_be(erased: Logged, message: Message) -> bool:
    if erased.id_hash is not None and message.id is not None:
        return erased.id_hash == id_hash(message.id)
    return erased.message.role is message.role


def _unfit(log: ImportLog, walk: _Walk, at: int, head: Head | None, *, has_ids: bool) -> str | None:
    """Why nothing can be added behind message `at`; None if it can. Where messages were erased, a list without ids has
    to go on from the end of what is here: else it may bring them back, in another place."""
    if not log.takes(at):
        return CLEARED
    gone = 0 if head is None else sum(last - first + 1 for first, last in head.erased)
    differs = gone > walk.erased and walk.following(at) if has_ids else gone > 0 and at != walk.end
    return _DIFFERS if differs else None


async def _append(log: ImportLog, page: Sequence[Message], at: int) -> list[int]:
    """Append the messages. One whose id another one has gets another id; one that was erased is left out."""
    try:
        return await log.append(page, at)
    except ConcurrentWrite:
        raise
    except Conflict:
        fitted = [await _with_free_id(log.chat, one) for one in page]
        kept = [one for one in fitted if one is not None]
        return await log.append(kept, at) if kept else []


async def _with_free_id(chat: Conversation, message: Message) -> Message | None:
    free, number = message.id, 1
    while free is not None and (there := await chat.get(free)) is not None:
        if there.erased:
            return None
        number += 1
        free = f"{message.id}~{number}"
    return message.with_id(free)


async def _leave_out(
    conversation: ImportedConversation,
    page: Sequence[ImportedMessage],
    pages: Iterator[list[ImportedMessage]],
    why: object,
) -> None:
    rest = await asyncio.to_thread(lambda: sum(map(len, pages)))
    leave_out(conversation, page[0], len(page) + rest, why)
