"""What a conversation shows without a budget: its view, and the items of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.core.ask import Ask
from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.masking import Masking
from hitherto.core.message import RESPONSES, Kind, Logged, Payload, Role, plain_message
from hitherto.core.policy import Policy
from hitherto.core.render import Prefix
from hitherto.core.standing import stood_in
from hitherto.core.view import View, view
from hitherto.engine.place import Place
from hitherto.engine.reading import MARGIN, Reader
from hitherto.ports.store import Reading


@dataclass(frozen=True, slots=True)
class Views:
    """The views of one conversation, before any budget. Reads only."""

    place: Place

    async def view(self, policy: Policy | None, at: int | None) -> View:
        """The log as the policy leaves it."""
        head = await self.place.head(at)
        used, _ = self.place.governing(head, policy, await self.place.defaults(head))
        return view(used, head, family=self.place.parts.family(None))

    async def items(
        self, *, wire: str, policy: Policy | None, model: str | None, limit: int | None, at: int | None
    ) -> list[Payload]:
        """The view as items of an API; see `Conversation.items`."""
        parts = self.place.parts
        head = await self.place.head(at)
        used, _ = self.place.governing(head, policy, await self.place.defaults(head))
        ask = Ask(
            incoming=(),
            instructions=None,
            tools=(),
            budget=1,
            reserve=0,
            counter=parts.canonical,
            codec=parts.codec(wire),
            family=parts.family(model),
        )
        shown, ask = await Reader(self.place).seen(used, head, ask)
        if limit is not None and shown.stop - shown.start > 4 * limit + MARGIN:
            newest = await self._tail(shown, head, ask, limit)
            if newest is not None:
                return newest
        loaded = await Reader(self.place).live(Reading(start=shown.start, stop=shown.stop, live_at=head.rev), head)
        items = _written(self._without_orphans(loaded, ask), ask, shown, head)
        items, system, _ = stood_in(shown, ask, items)
        items = [*(item for text in system for item in ask.codec.write([plain_message(Role.SYSTEM, text)])), *items]
        return items if limit is None else items[max(len(items) - limit, 0) :]

    async def _tail(self, shown: View, head: Head, ask: Ask, limit: int) -> list[Payload] | None:
        """The newest `limit` items of a long view without reading all of it; None where they cannot be told so."""
        start = max(shown.start, _newest(shown, limit))
        loaded = await Reader(self.place).live(Reading(start=start, stop=shown.stop, live_at=head.rev), head)
        alike = all(one.message.wire == ask.codec.name for one in loaded)
        if not alike or isinstance(shown.render, Prefix) or len(self._without_orphans(loaded, ask)) < len(loaded):
            return None
        items = _written(loaded, ask, shown, head)
        return items[-limit:] if limit and len(items) >= limit else None if limit else []

    def _without_orphans(self, loaded: Sequence[Logged], ask: Ask) -> list[Logged]:
        """Without the results whose calls are not shown, neither as messages nor among the opaque items."""
        known = {call for item in ask.opaque for call in self.place.parts.read(item, RESPONSES).calls}
        kept: list[Logged] = []
        for one in loaded:
            if one.message.kind is not Kind.TOOL_RESULT or known.intersection(one.message.answers):
                kept.append(one)
            known.update(one.message.calls)
        return kept


def _newest(shown: View, limit: int) -> int:
    """From where on there are `limit` messages that are not gone."""
    first, gone = shown.stop - limit, 0
    for span in reversed(shown.gone):
        if span.end < first - gone:
            break
        gone += span.end - span.start + 1
    return first - gone


def _written(loaded: Sequence[Logged], ask: Ask, shown: View, head: Head) -> list[Payload]:
    """The messages, redacted where they are, in the order of the log; those of another format in groups, as only these
    can be converted."""
    masking = Masking(shown.lies, ask.codec)
    if all(one.message.wire == ask.codec.name for one in loaded):
        return [masking(one).payload for one in loaded]
    grouped = groups(loaded, head.retracted)
    return [item for group in grouped for item in ask.codec.write([masking(member) for member in group.members])]
