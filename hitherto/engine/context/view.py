"""Building a view without a budget, its items in an API's format, and those that a session shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.aside import aside
from hitherto.core.context.blocks import with_digest
from hitherto.core.context.manifest import Manifest, SavedItems
from hitherto.core.context.redaction import Redactor
from hitherto.core.context.request import ContextRequest
from hitherto.core.cross_session import cross_session_of
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.group import groups
from hitherto.core.log.head import Head
from hitherto.core.log.message import RESPONSES, Kind, Logged, Payload, Role, plain_message, size_of
from hitherto.core.policy.parts import Prefix
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.span import Fate, Reason, Span, merged
from hitherto.core.policy.view import View
from hitherto.engine.context.build import ContextBuilder
from hitherto.engine.context.context import Context, request_sha256
from hitherto.engine.context.log_reader import MARGIN, LogReader, view_of
from hitherto.engine.handle import Handle
from hitherto.errors import BudgetExceeded
from hitherto.logs import logger

log = logger("hitherto.session")

_CHARACTERS = 4
"""Of a token, about."""

_UNLIMITED = 2**40
"""Tokens: more than any conversation has."""


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
            budget=services.settings.budget,
            reserve=0,
            counter=services.canonical,
            codec=services.codec(wire),
            family=services.family(model),
            framework=True,
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
            kept = self._without_orphans(loaded, request)
            items = await aside(size_of([one.message for one in kept]), _written, kept, request, shown, head)
        items = await aside(_size(shown, head), _sendable, items, request)
        items, system, _ = with_digest(shown, request, items)
        for text in reversed(system):
            items = [*request.sendable(request.codec.write([plain_message(Role.SYSTEM, text)])), *items]
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
        items = _sendable(_written(loaded, request, shown, head), request)
        return items[-limit:] if limit and len(items) >= limit else None if limit else []

    def _without_orphans(self, loaded: Sequence[Logged], request: ContextRequest) -> list[Logged]:
        """The messages without those tool results whose calls are shown neither as messages nor among the opaque
        items."""
        known = {call for item in request.opaque for call in self.handle.services.codec(RESPONSES).read(item).calls}
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
    masking = Redactor(shown.layout, request.codec, request.budget)
    if all(one.message.wire == request.codec.name for one in loaded):
        return [masking(one).payload for one in loaded]
    grouped = groups(loaded, head.retracted)
    return [item for group in grouped for item in request.codec.write([masking(member) for member in group.members])]


def _size(shown: View, head: Head) -> int:
    """What it takes to go through the messages that are shown, in characters, about."""
    return _CHARACTERS * (head.sums.tokens - shown.layout.start_sums.tokens)


def _sendable(items: Sequence[Payload], request: ContextRequest) -> list[Payload]:
    return request.codec.distinct(request.sendable(items), {}, framework=request.framework)


async def items_within(
    budget: int | None,
    handle: Handle,
    *,
    policy: Policy | None,
    model: str | None,
    limit: int | None,
    at: int | None = None,
) -> tuple[list[Payload], Manifest | None]:
    """The newest `limit` items of what the policy leaves, at most `budget` tokens of them, counted as `model` does; and
    their manifest, None where nothing fits. `at`: as it was at that revision.

    Where all fit, they are the items as they are. Where the budget cuts, they are those of a context: whole groups, a
    result right behind its call, a placeholder for the result of a call that has none; a digest that is a system
    message is the first item. Where not even the newest group fits, what stands for the older part is shown alone;
    where that does not fit, nothing.
    """
    request = _request(_UNLIMITED if budget is None else budget, handle, model)
    try:
        made = await _context(request, handle, policy, at)
    except BudgetExceeded:
        return [], None  # what every request takes is more
    items, reasons = _items(made), {span.reason for span in made.manifest.fates}
    if Reason.BUDGET not in reasons:
        views = ViewBuilder(handle)
        whole = await views.items(wire=RESPONSES, policy=policy, model=model, limit=None, at=made.manifest.rev)
        # What stands for messages that were all retracted is left out without a trace in the fates.
        items = whole if request.codec.framing + request.cost(whole) <= request.budget else items
    elif at is None and reasons.isdisjoint((Reason.VERBATIM, Reason.REDACTED)):
        log.warning(
            "The newest items take more than the session's budget of %d tokens; the model is shown none of them",
            budget,
            tenant=handle.scope.tenant,
            conversation=handle.id,
        )
    shown = items if limit is None else items[max(len(items) - limit, 0) :]
    manifest = _limited(made.manifest, request, shown) if len(shown) < len(items) else made.manifest
    return shown, _manifest(manifest, shown, SavedItems(budget=budget, limit=limit, model=model))


def _manifest(manifest: Manifest, items: list[Payload], saved: SavedItems) -> Manifest:
    request = manifest.request.model_copy(update={"incoming": [], "items": saved})
    told: dict[str, object] = {"request": request, "sha256": request_sha256({"input": items})}
    return manifest.model_copy(update=told if saved.budget is not None else {**told, "budget": manifest.total})


def _limited(manifest: Manifest, request: ContextRequest, items: list[Payload]) -> Manifest:
    """The manifest where a limit has left only the newest items. An item is a message, but for the first ones, which
    may stand for a digest."""
    left, cost, fates = len(items), request.cost(items), list[Span]()
    for span in reversed(manifest.fates):
        if span.fate not in (Fate.IN, Fate.REDACTED):
            fates.append(span)
            continue
        first = max(span.start, span.end + 1 - left)
        left -= span.end + 1 - first
        tokens = span.tokens if first == span.start else max(cost - sum(one.tokens for one in fates), 0)
        stays = Span(start=first, end=span.end, fate=span.fate, reason=span.reason, digest=span.digest, tokens=tokens)
        gone = Span(start=span.start, end=first - 1, fate=Fate.DROPPED, reason=Reason.BUDGET)
        fates += [one for one in (stays, gone) if one.start <= one.end]
    sections = {**dict.fromkeys(manifest.sections, 0), "framing": request.codec.framing, "verbatim": cost}
    told: dict[str, object] = {
        "fates": list(merged(reversed(fates))),
        "sections": sections,
        "total": sum(sections.values()),
        "digest": manifest.digest if left > 0 else None,
        "opaque": manifest.opaque if left > 0 else None,
    }
    return manifest.model_copy(update=told)


def _request(budget: int, handle: Handle, model: str | None) -> ContextRequest:
    services = handle.services
    return ContextRequest(
        incoming=(),
        instructions=None,
        budget=budget,
        reserve=0,
        counter=services.counter(model),
        codec=services.codec(RESPONSES),
        family=services.family(model),
        lasting=False,
        framework=True,
        shorten_for=services.settings.budget,
    )


async def _context(request: ContextRequest, handle: Handle, policy: Policy | None, at: int | None) -> Context:
    """A context of the conversation's own messages and digests. `Conversation.context` would add cache breakpoints and
    what a policy recalls, which are for a request and not for a list of items."""
    return await ContextBuilder(handle).build(
        request, handle.services.usable(policy), at, recall=False, cross_session=cross_session_of(()), facts=False
    )


def _items(made: Context) -> list[Payload]:
    digest = made.request.get("instructions")
    return [*([] if digest is None else [{"role": "system", "content": digest}]), *made.messages]
