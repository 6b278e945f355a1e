"""Reading the log of a conversation for its views and contexts."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from hitherto.aside import aside
from hitherto.core.context.gathered import Gathered, earlier, extent, read_from
from hitherto.core.context.lasting import lasting
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.group import Group, groups, newest
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import RESPONSES, Kind, Logged
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.view import View, view
from hitherto.engine.context.context import begins_earlier, tools_from
from hitherto.engine.handle import Handle

MARGIN = 64
"""Messages that are read at once, without working out how few would do."""


_MORE = 4
"""Where results are redacted, so much of the room is read beyond it at once: rarely is more to be read then."""


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads the log of one conversation."""

    handle: Handle

    async def messages(self, head: Head, reading: MessageRange) -> list[Logged]:
        """The messages; of erased ones, what is left of them."""
        return await self.handle.services.store.messages(self.handle.scope, self.handle.id, head.ref, reading)

    async def page(self, head: Head, reading: MessageRange) -> list[Logged]:
        """The first of the messages, as many as a page has room for."""
        return await self.handle.services.store.page(self.handle.scope, self.handle.id, head.ref, reading)

    async def live(self, reading: MessageRange, head: Head) -> list[Logged]:
        """The messages, without those that were erased."""
        if reading.start >= reading.stop:
            return []
        return [one for one in await self.messages(head, reading) if not one.erased]

    async def newest_at(self, head: Head) -> datetime | None:
        """When the newest message of the head was appended, or the first of all if the head has none."""
        last = max(head.last_seq, 0)
        found = await self.messages(head, MessageRange(start=last, stop=last + 1))
        return found[0].created_at if found else None

    async def seen(self, policy: Policy, head: Head, request: ContextRequest) -> tuple[View, ContextRequest]:
        """The view for the API and model of `request`, and the request with the opaque items that this view shows."""
        can = request.codec.name == RESPONSES
        shown = await view_of(policy, head, opaque=can, family=request.family)
        if shown.opaque is None:
            return shown, request
        items = await self.handle.services.store.opaque(self.handle.scope, self.handle.id, shown.opaque)
        if items is None:
            return await view_of(policy, head, opaque=False), request
        return shown, replace(request, opaque=items)

    async def gathered(self, request: ContextRequest, shown: View, head: HeadWithCalls, at: int | None) -> Gathered:
        """What a context is fitted from. Raises InvalidBatch for an incoming result whose call does not wait for
        one."""
        begin = reach = await aside(request.size, read_from, shown, head, request)
        if shown.layout.redactions:
            reach = max(begin - request.room // _MORE, extent(shown, head)[0])
        reading = MessageRange(
            start=shown.start,
            stop=shown.stop,
            tokens=shown.layout.tokens_at(reach),
            tools_from=tools_from(request, head, at),
            lasting=lasting(shown, head) if request.lasting else None,
            live_at=head.rev,
        )
        loaded = await self.messages(head, reading) if head.next_seq else []
        found = Gathered(view=shown, head=head, messages=loaded, read_from=reach)
        while shown.layout.redactions and (more := earlier(found, request, begin)) is not None:
            reading = replace(reading, tokens=shown.layout.tokens_at(more))
            loaded = await self.messages(head, reading)
            found = replace(found, messages=loaded, read_from=more)
        tail = [one for one in loaded if one.seq >= reading.start and one.sums.tokens >= reading.tokens]
        if not request.incoming and begins_earlier(tail, shown.start, head):
            latest = await self.newest_group(shown, head)
            if latest is not None:
                # `tools_from` reads no texts.
                texts = [one.sums.tokens for one in latest.members if one.message.kind in (Kind.TEXT, Kind.COMPACTION)]
                reading = replace(reading, tokens=min([reading.tokens, *texts]), tools_from=latest.first)
                loaded = await self.messages(head, reading)
        for text in await self.texts_of_calls(request, reading, loaded, head):
            insort(loaded, text, key=attrgetter("seq"))
        return replace(found, messages=loaded, read_from=begin)

    async def texts_of_calls(
        self, request: ContextRequest, reading: MessageRange, loaded: Sequence[Logged], head: Head
    ) -> list[Logged]:
        """The texts that end the groups of the calls that incoming results answer, where `loaded` lacks them: behind a
        call, a model may think on and say something."""
        answered = {call for message in request.incoming for call in message.answers}
        seqs = {one.seq for one in loaded}
        found = list[Logged]()
        for group in groups(loaded, head.retracted) if answered else []:
            for one in [] if answered.isdisjoint(group.open) else group.members:
                if one.message.goes_on and one.seq + 1 not in seqs:
                    behind = MessageRange(start=one.seq + 1, stop=reading.stop, limit=1, live_at=reading.live_at)
                    found += [text for text in await self.messages(head, behind) if text.seq not in seqs]
        return found

    async def newest_said(self, shown: View, head: Head) -> list[Logged]:
        """The newest user messages, and a few others from the beginning."""
        reading = MessageRange(start=head.next_seq, stop=head.next_seq, lasting=lasting(shown, head), live_at=head.rev)
        return await self.messages(head, reading)

    async def newest_group(self, shown: View, head: Head) -> Group | None:
        """The group of the newest message that can be sent, whole; None where nothing is left to be sent."""
        size = MARGIN
        while True:
            start = max(shown.start, shown.stop - size)
            loaded = await self.live(MessageRange(start=start, stop=shown.stop, live_at=head.rev), head)
            if start == shown.start or (loaded and not begins_earlier(loaded, shown.start, head)):
                return newest(groups(loaded, head.retracted))
            size *= 4


async def view_of(policy: Policy, head: Head, *, opaque: bool = True, family: str | None = None) -> View:
    """The view of `head`, worked out in a thread where very many ranges were erased or retracted."""
    return await aside(head.size, view, policy, head, opaque=opaque, family=family)
