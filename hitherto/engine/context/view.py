"""Building a view without a budget, and its items in an API's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.aside import in_thread
from hitherto.core.context.digest_block import with_digest
from hitherto.core.context.redaction import Redactor
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.group import groups
from hitherto.core.log.head import Head
from hitherto.core.log.message import RESPONSES, Kind, Logged, Payload, Role, plain_message
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.render import Prefix
from hitherto.core.policy.view import View
from hitherto.engine.context.log_reader import MARGIN, LogReader, view_of
from hitherto.engine.handle import Handle


@dataclass(frozen=True, slots=True)
class ViewBuilder:
    """The views of one conversation, before any budget. Reads only."""

    handle: Handle

    async def view(self, policy: Policy | None, at: int | None) -> View:
        """The log as the policy leaves it."""
        head = await self.handle.head(at)
        used, _ = self.handle.governing(head, policy, await self.handle.defaults(head))
        return await view_of(used, head, family=self.handle.services.family(None))

    async def items(
        self, *, wire: str, policy: Policy | None, model: str | None, limit: int | None, at: int | None
    ) -> list[Payload]:
        """The view as items of an API; see `Conversation.items`."""
        services = self.handle.services
        head = await self.handle.head(at)
        used, _ = self.handle.governing(head, policy, await self.handle.defaults(head))
        request = ContextRequest(
            incoming=(),
            instructions=None,
            budget=1,
            reserve=0,
            counter=services.canonical,
            codec=services.codec(wire),
            family=services.family(model),
        )
        shown, request = await LogReader(self.handle).seen(used, head, request)
        if limit is not None and shown.stop - shown.start > 4 * limit + MARGIN:
            newest = await self._tail(shown, head, request, limit)
            if newest is not None:
                return newest
        reading = MessageRange(start=shown.start, stop=shown.stop, live_at=head.rev)
        items = await self._as_they_are(shown, head, reading, wire)
        if items is None:
            loaded = await LogReader(self.handle).live(reading, head)
            items = await in_thread(_written, self._without_orphans(loaded, request), request, shown, head)
        items, system, _ = with_digest(shown, request, items)
        items = [*(item for text in system for item in request.codec.write([plain_message(Role.SYSTEM, text)])), *items]
        return items if limit is None else items[max(len(items) - limit, 0) :]

    async def _as_they_are(self, shown: View, head: Head, reading: MessageRange, wire: str) -> list[Payload] | None:
        """A fast path: the items of the whole log, where the view shows all of them as they are. None where it does
        not, or where it may show results without their calls."""
        if shown.start > 0 or shown.layout.redactions or head.retracted or head.erased:
            return None
        return await self.handle.services.store.payloads(
            self.handle.scope, self.handle.id, head.ref, reading, wire=wire
        )

    async def _tail(self, shown: View, head: Head, request: ContextRequest, limit: int) -> list[Payload] | None:
        """The newest `limit` items of a long view, without reading all of it; None where these messages alone do not
        tell them."""
        start = max(shown.start, _newest(shown, limit))
        loaded = await LogReader(self.handle).live(MessageRange(start=start, stop=shown.stop, live_at=head.rev), head)
        alike = all(one.message.wire == request.codec.name for one in loaded)
        if not alike or isinstance(shown.render, Prefix) or len(self._without_orphans(loaded, request)) < len(loaded):
            return None
        items = _written(loaded, request, shown, head)
        return items[-limit:] if limit and len(items) >= limit else None if limit else []

    def _without_orphans(self, loaded: Sequence[Logged], request: ContextRequest) -> list[Logged]:
        """The messages without those tool results whose calls are shown neither as messages nor among the opaque
        items."""
        known = {call for item in request.opaque for call in self.handle.services.read(item, RESPONSES).calls}
        kept: list[Logged] = []
        for one in loaded:
            if one.message.kind is not Kind.TOOL_RESULT or known.intersection(one.message.answers):
                kept.append(one)
            known.update(one.message.calls)
        return kept


def _newest(shown: View, limit: int) -> int:
    """The seq from which on there are `limit` messages that were neither erased nor retracted."""
    first, gone = shown.stop - limit, 0
    for span in reversed(shown.gone):
        if span.end < first - gone:
            break
        gone += span.end - span.start + 1
    return first - gone


def _written(loaded: Sequence[Logged], request: ContextRequest, shown: View, head: Head) -> list[Payload]:
    """The messages as items, redacted where the view says so, in the order of the log. Messages of another format are
    converted by groups, as only whole groups can be."""
    masking = Redactor(shown.layout, request.codec)
    if all(one.message.wire == request.codec.name for one in loaded):
        return [masking(one).payload for one in loaded]
    grouped = groups(loaded, head.retracted)
    return [item for group in grouped for item in request.codec.write([masking(member) for member in group.members])]
