"""What a conversation's views and contexts read of its log."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hitherto.core.ask import Ask
from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.message import RESPONSES, Logged, Message
from hitherto.core.policy import Policy
from hitherto.core.view import View, view
from hitherto.engine.context import begins_earlier
from hitherto.engine.place import Place
from hitherto.ports.store import Reading

MARGIN = 64
"""So many messages are read without looking how few would do."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the log of one conversation."""

    place: Place

    async def messages(self, head: Head, reading: Reading) -> list[Logged]:
        """The messages, those that were erased as what is left of them."""
        return await self.place.parts.store.messages(self.place.scope, self.place.id, head.ref, reading)

    async def live(self, reading: Reading, head: Head) -> list[Logged]:
        """The messages, without those that were erased."""
        if reading.start >= reading.stop:
            return []
        return [one for one in await self.messages(head, reading) if not one.erased]

    async def seen(self, policy: Policy, head: Head, ask: Ask) -> tuple[View, Ask]:
        """The view for the API and model of `ask`, with the opaque items that it shows."""
        can = ask.codec.name == RESPONSES
        shown = view(policy, head, opaque=can, family=ask.family)
        if shown.opaque is None:
            return shown, ask
        items = await self.place.parts.store.opaque(self.place.scope, self.place.id, shown.opaque)
        if items is None:
            return view(policy, head, opaque=False), ask
        return shown, replace(ask, opaque=items)

    async def newest_said(self, head: Head) -> list[Message]:
        """The newest message of a user's, if there is one among the newest of all."""
        start = max(head.view_start, head.next_seq - MARGIN)
        newest = await self.live(Reading(start=start, stop=head.next_seq, live_at=head.rev), head)
        users = [one.message for one in newest if one.message.opens_turn]
        return users[-1:]

    async def newest_group(self, shown: View, head: Head) -> int:
        """Where the group begins that the newest message belongs to."""
        size = MARGIN
        while True:
            start = max(shown.start, shown.stop - size)
            loaded = await self.live(Reading(start=start, stop=shown.stop, live_at=head.rev), head)
            if start == shown.start or not begins_earlier(loaded, shown.start, head):
                newest = next(
                    (one for one in reversed(groups(loaded, head.retracted)) if one.last == loaded[-1].seq), None
                )
                return shown.start if newest is None else newest.first
            size *= 4
