"""Fitting a view, a digest and the incoming message into a token budget: pure, and in steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hitherto.core.budget import TokenCounter, cut, step_of
from hitherto.core.group import Group, groups
from hitherto.core.head import Head
from hitherto.core.manifest import Fate, Reason, Span
from hitherto.core.message import Kind, Logged, Message, Payload
from hitherto.core.policy import Prefix
from hitherto.core.view import View, expired, merged, overlaid
from hitherto.errors import InvalidBatch, OverBudget


class Codec(Protocol):
    """One wire format: how its items are read into messages and how messages are written for its API.

    `read` raises InvalidMessage for an item the API would not send or accept. `write` gives the items of one whole
    group, in order: a message that came in this shape comes back equal, one of another shape is converted; for each
    call in `unanswered` a placeholder result is added, so that the API accepts the request. `is_user` tells a user's
    own item from a tool result that travels as one; `prefixed` is a user item with `text` in front of its own.
    `opening` is what this API demands before `first` at the start of a request, if anything. `tokens` is what one
    item costs, `system_tokens` a system text, `tools_tokens` the tool schemas, `framing` the request beside all of
    these. `request` are the arguments for the API call.
    """

    @property
    def name(self) -> str: ...
    @property
    def framing(self) -> int: ...
    def read(self, payload: Mapping[str, Any]) -> Message: ...
    def write(self, messages: Sequence[Message], *, unanswered: Sequence[str] = ()) -> list[Payload]: ...
    def is_user(self, item: Payload) -> bool: ...
    def prefixed(self, item: Payload, text: str) -> Payload: ...
    def opening(self, first: Payload) -> Payload | None: ...
    def tokens(self, item: Payload, counter: TokenCounter) -> int: ...
    def system_tokens(self, text: str, counter: TokenCounter) -> int: ...
    def tools_tokens(self, tools: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int: ...
    def request(
        self, *, system: Sequence[str], items: Sequence[Payload], tools: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a context is asked for: everything but the conversation itself."""

    incoming: tuple[Message, ...]
    instructions: str | None
    tools: tuple[Mapping[str, Any], ...]
    budget: int
    reserve: int
    counter: TokenCounter
    codec: Codec
    model: str | None = None

    @property
    def room(self) -> int:
        return self.budget - self.reserve

    def fixed(self) -> dict[str, int]:
        """The sections that do not depend on the conversation."""
        system = 0 if self.instructions is None else self.codec.system_tokens(self.instructions, self.counter)
        return {
            "framing": self.codec.framing,
            "instructions": system,
            "tools": self.codec.tools_tokens(self.tools, self.counter) if self.tools else 0,
        }

    def cost(self, items: Iterable[Payload]) -> int:
        return sum(self.codec.tokens(item, self.counter) for item in items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far back the messages must be read: from the one at which the canonical running sum reaches `tokens`.

    `digest` says whether the digest is going to be shown: it gives way last, but before the incoming message.
    """

    tokens: int
    digest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A finished payload: system texts and items, tokens by section, and every message's fate."""

    system: tuple[str, ...]
    items: tuple[Payload, ...]
    sections: dict[str, int]
    fates: tuple[Span, ...]
    digest: int | None

    @property
    def total(self) -> int:
        return sum(self.sections.values())


def reach(view: View, head: Head, ask: Ask) -> Reach:
    """What to load for a context. Raises OverBudget when not even the incoming messages fit."""
    needed = sum(ask.fixed().values()) + ask.cost(ask.codec.write(ask.incoming))
    if needed > ask.room:
        raise _over(needed, ask)
    digest = _digest_tokens(view, ask)
    shown = view.digest is not None and needed + digest <= ask.room
    room = ask.room - needed - (digest if shown else 0)
    total = head.sums.tokens - view.start_sums.tokens
    away = min(cut(total, room, step_of(ask.budget)), total)  # the newest message is read in any case
    return Reach(tokens=view.start_sums.tokens + away, digest=shown)


def assemble(view: View, head: Head, ask: Ask, loaded: Sequence[Logged], start: Reach) -> Assembled:
    """The context: as much of `loaded` as fits, cut in steps, with the digest and the incoming messages.

    `loaded` are the verbatim messages from `start` on, ascending, and before them the tool items that an incoming
    result may belong to. Raises OverBudget when the incoming messages (without any: the newest one) and the calls they
    answer do not fit, InvalidBatch for an incoming result whose call is not there.
    """
    incoming = tuple(
        Logged(seq=head.next_seq + at, message=message, tokens=0, sums=head.sums, rev=head.rev, created_at=head.now)
        for at, message in enumerate(ask.incoming)
    )
    found = groups((*loaded, *incoming))
    orphans = merged(sorted(_left_behind(found, view, head, start), key=lambda span: span.start))
    if any(group.orphan and group.last >= head.next_seq for group in found):
        raise InvalidBatch("the incoming tool result answers no call that is there; append the call first")
    step, floor, digest = step_of(ask.budget), start.tokens, start.digest
    required = head.next_seq if ask.incoming else max(head.last_seq, view.start)
    while True:
        kept, more = _keep(found, view, required, floor, step)
        built = _build(kept, view, head, ask, loaded, orphans=orphans, digest=digest)
        if built.total <= ask.room:
            return built
        if more:
            floor += step
        elif digest:
            digest = False
        else:
            raise _over(built.total, ask)


def _left_behind(found: Sequence[Group], view: View, head: Head, start: Reach) -> Iterator[Span]:
    """The results that could be shown, but for their calls: those are older than what is shown."""
    for group in found:
        if group.first >= view.start and _before(group) >= start.tokens and not group.orphan:
            continue
        for member in group.members:
            late = view.start <= member.seq < head.next_seq and member.sums.tokens - member.tokens >= start.tokens
            if late and member.message.kind is Kind.TOOL_RESULT:
                yield Span(start=member.seq, end=member.seq, fate=Fate.DROPPED, reason=Reason.CALL_NOT_IN)


def _before(group: Group) -> int:
    """The canonical running sum before the group."""
    return group.members[0].sums.tokens - group.members[0].tokens


def _over(needed: int, ask: Ask) -> OverBudget:
    by = needed - ask.room
    reserve = f" of which {ask.reserve} are reserved for the answer" if ask.reserve else ""
    return OverBudget(
        f"the incoming message with instructions and tools takes {needed} tokens, {by} more than the budget of "
        f"{ask.budget}{reserve}; raise the budget by at least {by}, or send less",
        over_by=by,
    )


def _digest_tokens(view: View, ask: Ask) -> int:
    if view.digest is None or view.render is None or not view.digest.text:
        return 0
    text = view.render(view.digest.text)
    prefix = isinstance(view.render, Prefix)
    return ask.counter.count(text) if prefix else ask.codec.system_tokens(text, ask.counter)


def _keep(found: Sequence[Group], view: View, required: int, floor: int, step: int) -> tuple[list[Group], bool]:
    """The groups that stay when the running sum must be at least `floor` before them, and whether more could go.

    A group that reaches seq `required` stays whatever the floor: the incoming messages, or the newest one. A cut is
    moved on to the start of a turn where one begins within a step, so that the payload opens with a user message.
    """
    kept: list[Group] = []
    for group in found:
        inside = group.first >= view.start and _before(group) >= floor and not group.orphan
        if inside or (group.last >= required and not group.orphan):
            kept.append(group)
    optional = [group for group in kept if group.last < required]
    if floor > view.start_sums.tokens and optional:
        limit = _before(optional[0]) + step
        for group in optional:
            if _before(group) >= limit:
                break
            if group.members[0].message.opens_turn:
                kept = [one for one in kept if one.last >= required or one.first >= group.first]
                break
    return kept, bool(optional)


def _build(
    kept: Sequence[Group],
    view: View,
    head: Head,
    ask: Ask,
    loaded: Sequence[Logged],
    *,
    orphans: Sequence[Span],
    digest: bool,
) -> Assembled:
    items: list[Payload] = []
    costs: dict[int, int] = {}
    incoming_cost = 0
    for group in kept:
        unanswered = sorted(group.open) if group is not kept[-1] else ()
        written = ask.codec.write([member.message for member in group.members], unanswered=unanswered)
        cost = ask.cost(written)
        logged = [member.message for member in group.members if member.seq < head.next_seq]
        own = cost if len(logged) == len(group.members) else ask.cost(ask.codec.write(logged))
        costs[group.first] = own
        incoming_cost += cost - own
        items += written

    sections = {**ask.fixed(), "digest": 0, "verbatim": sum(costs.values()), "incoming": incoming_cost}
    system = [] if ask.instructions is None else [ask.instructions]
    if digest and view.digest is not None and view.render is not None and view.digest.text:
        text = view.render(view.digest.text)
        at = next((at for at, item in enumerate(items) if ask.codec.is_user(item)), None)
        if isinstance(view.render, Prefix) and at is not None:
            before = ask.codec.tokens(items[at], ask.counter)
            items[at] = ask.codec.prefixed(items[at], text)
            sections["digest"] = ask.codec.tokens(items[at], ask.counter) - before
        else:
            system.append(text := text.rstrip())
            sections["digest"] = ask.codec.system_tokens(text, ask.counter)
    opening = ask.codec.opening(items[0]) if items else None
    if opening is not None:
        items.insert(0, opening)
        sections["framing"] += ask.codec.tokens(opening, ask.counter)
    return Assembled(
        system=tuple(system),
        items=tuple(items),
        sections=sections,
        fates=_fates(kept, view, head, loaded, costs, orphans=orphans, digest=digest),
        digest=view.digest.id if digest and view.digest is not None else None,
    )


def _fates(
    kept: Sequence[Group],
    view: View,
    head: Head,
    loaded: Sequence[Logged],
    costs: Mapping[int, int],
    *,
    orphans: Sequence[Span],
    digest: bool,
) -> tuple[Span, ...]:
    """One fate for every message of the log, as merged ranges in order."""
    stays = {member.seq for group in kept for member in group.members}
    shown = merged(
        Span(
            start=logged.seq,
            end=logged.seq,
            fate=Fate.IN,
            reason=Reason.VERBATIM if logged.seq >= view.start else Reason.CALL_OF_INCOMING,
            tokens=costs.get(logged.seq, 0),
        )
        for logged in loaded
        if logged.seq in stays
    )
    under = list(view.before)
    if not digest:
        under = [
            Span(start=span.start, end=span.end, fate=Fate.DROPPED, reason=Reason.BUDGET)
            if span.fate is Fate.DIGESTED
            else span
            for span in under
        ]
    if view.start < view.stop:
        rest = Span(start=view.start, end=view.stop - 1, fate=Fate.DROPPED, reason=Reason.BUDGET)
        parts = overlaid(rest, expired(head.erased))
        under += (piece for part in parts for piece in overlaid(part, orphans))
    return merged(piece for span in under for piece in overlaid(span, shown))
