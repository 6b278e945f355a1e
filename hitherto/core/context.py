"""Fitting a view, a digest and the incoming message into a token budget: pure, and in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.core.ask import Ask
from hitherto.core.budget import cut, step_of
from hitherto.core.fates import before, fates, left_behind
from hitherto.core.group import Group, groups
from hitherto.core.head import Head
from hitherto.core.manifest import Recalled, Span
from hitherto.core.masking import Masking
from hitherto.core.message import Logged, Payload
from hitherto.core.standing import digest_tokens, stood_in
from hitherto.core.view import View
from hitherto.errors import InvalidBatch, OverBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far back the messages must be read: from the one at which the running sum of what is shown (`Layout.place`)
    reaches `tokens`.

    `facts`, `digest` and `injection` say whether what is known, the digest and the memory of an earlier conversation
    are going to be shown: they give way last, in this order, but before the incoming message.
    """

    tokens: int
    facts: bool
    digest: bool
    injection: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A finished payload: system texts and items, tokens by section, and every message's fate. The last `tail` items
    begin with the first that belongs to an incoming message; without any, with the newest group."""

    system: tuple[str, ...]
    items: tuple[Payload, ...]
    sections: dict[str, int]
    fates: tuple[Span, ...]
    facts: bool
    digest: bool
    injection: bool
    tail: int = 0
    recalled: tuple[Recalled, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.sections.values())


def room_beside(view: View, ask: Ask) -> int:
    """What is left for facts beside all that gives way after them, but for verbatim messages: below 0 where not even
    that fits."""
    needed = sum(ask.fixed().values()) + ask.cost(ask.codec.write(ask.incoming)) + digest_tokens(view, ask)
    return ask.room - needed - ask.injection()


def reach(view: View, head: Head, ask: Ask) -> Reach:
    """What to load for a context. Raises OverBudget when not even the incoming messages fit."""
    needed = sum(ask.fixed().values()) + ask.cost(ask.codec.write(ask.incoming))
    if needed > ask.room and not any(message.answers for message in ask.incoming):
        raise _over(needed, ask)  # what answers a call needs the call too: only `assemble` knows how much that is
    injection = ask.injected is not None and needed + ask.injection() <= ask.room
    needed += ask.injection() if injection else 0
    digest = digest_tokens(view, ask)
    shown = (view.digest is not None or view.opaque is not None) and needed + digest <= ask.room
    needed += digest if shown else 0
    known = ask.facts_tokens(injection=injection)
    facts = ask.facts is not None and needed + known <= ask.room
    room = ask.room - needed - (known if facts else 0)
    begin = view.lies.place(view.lies.start_sums.tokens)
    total = view.lies.place(head.sums.tokens) - begin
    away = cut(total, room, step_of(ask.budget))
    aside = _aside(ask, known)
    if away and aside:  # what is recalled gives way first, but has its share of a budget that cuts anyway
        away = cut(total, max(room - aside, 0), step_of(ask.budget))
    away = min(away, total)  # the newest message is read in any case
    return Reach(tokens=begin + away, facts=facts, digest=shown, injection=injection)


def assemble(view: View, head: Head, ask: Ask, loaded: Sequence[Logged], start: Reach) -> Assembled:
    """The context: as much of `loaded` as fits, cut in steps, with the digest and the incoming messages.

    `loaded` are the verbatim messages from `start` on, ascending, and before them the tool items that an incoming
    result may belong to. Raises OverBudget when the incoming messages (without any: the newest group) and the calls
    they answer do not fit, InvalidBatch for an incoming result whose call is not there.
    """
    incoming = tuple(
        Logged(seq=head.next_seq + at, message=message, tokens=0, sums=head.sums, rev=head.rev, created_at=head.now)
        for at, message in enumerate(ask.incoming)
    )
    found = groups((*loaded, *incoming), head.retracted)
    if any(group.orphan and group.last >= head.next_seq for group in found):
        raise InvalidBatch("the incoming tool result answers no call that is there; append the call first")
    newest = loaded[-1].seq if loaded else head.last_seq
    step, floor = step_of(ask.budget), start.tokens
    facts, digest, injection = start.facts, start.digest, start.injection
    set_aside = _aside(ask, ask.facts_tokens(injection=injection))
    required = head.next_seq if ask.incoming else max(newest, view.start)
    masking = Masking(view.lies, ask.codec)
    whole = view.lies.place(view.lies.start_sums.tokens)
    while True:
        kept, more = _keep(found, view, required, floor, step)
        aside = set_aside if more and floor > whole else 0
        left = left_behind(found, kept, view, head, start.tokens)
        built = _build(
            kept, view, head, ask, loaded, left=left, masking=masking, facts=facts, digest=digest, injection=injection
        )
        if built.total <= ask.room - aside:
            return built
        if more:
            floor += step
        elif facts:
            facts, floor = False, start.tokens
        elif digest:
            digest = False
        elif injection:
            injection = False
        else:
            raise _over(built.total, ask)


def _aside(ask: Ask, known: int) -> int:
    """What is set aside for what is chosen anew each time, beside the facts that were chosen, which take `known`."""
    return ask.recall_tokens + max(ask.facts_room - known, 0)


def _over(needed: int, ask: Ask) -> OverBudget:
    by = needed - ask.room
    reserve = f" of which {ask.reserve} are reserved for the answer" if ask.reserve else ""
    return OverBudget(
        f"the incoming message with instructions and tools takes {needed} tokens, {by} more than the budget of "
        f"{ask.budget}{reserve}; raise the budget by at least {by}, or send less",
        over_by=by,
    )


def _keep(found: Sequence[Group], view: View, required: int, floor: int, step: int) -> tuple[list[Group], bool]:
    """The groups that stay when the running sum must be at least `floor` before them, and whether more could go.

    A group that reaches seq `required` stays whatever the floor: the incoming messages, or the newest one. A cut is
    moved on to the start of a turn where one begins within a step, so that the payload opens with a user message.
    """
    kept: list[Group] = []
    for group in found:
        inside = group.first >= view.start and before(group, view) >= floor and not group.orphan
        if inside or (group.last >= required and not group.orphan):
            kept.append(group)
    optional = [group for group in kept if group.last < required]
    if floor > view.lies.place(view.lies.start_sums.tokens) and optional:
        limit = before(optional[0], view) + step
        for group in optional:
            if before(group, view) >= limit:
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
    left: Sequence[Span],
    masking: Masking,
    facts: bool,
    digest: bool,
    injection: bool,
) -> Assembled:
    items: list[Payload] = []
    costs: dict[int, int] = {}
    incoming_cost = 0
    ahead: int | None = None
    for group in kept:
        unanswered = sorted(group.open - (group.pending if group is kept[-1] else set())) if group.open else ()
        written = ask.codec.write([masking(member) for member in group.members], unanswered=unanswered)
        cost = ask.cost(written)
        logged = [masking(member) for member in group.members if member.seq < head.next_seq]
        own = cost if len(logged) == len(group.members) else ask.cost(ask.codec.write(logged))
        costs[group.first] = own
        incoming_cost += cost - own
        # What answers a call of long ago belongs to a group that stands before others.
        if ahead is None and (group.last >= head.next_seq if ask.incoming else group is kept[-1]):
            ahead = len(items)
        items += written

    tail = len(items) - (len(items) if ahead is None else ahead)
    system = ask.system(injection=injection, facts=facts)
    sections = {
        **ask.fixed(),
        "injection": ask.injection() if injection else 0,
        **({"facts": ask.facts_tokens(injection=injection)} if facts else {}),
        "digest": 0,
        "verbatim": sum(costs.values()),
        "incoming": incoming_cost,
    }
    if digest:
        items, text, sections["digest"] = stood_in(view, ask, items)
        system += text
    if facts and ask.facts_ahead:
        at = len(items) - tail
        items[at:at] = ask.facts_items()
    opening = ask.codec.opening(items[0]) if items else None
    if opening is not None:
        items.insert(0, opening)
        sections["framing"] += ask.codec.tokens(opening, ask.counter)
    return Assembled(
        system=tuple(system),
        items=tuple(items),
        sections=sections,
        fates=fates(kept, view, loaded, costs, left=left, masking=masking, digest=digest),
        facts=facts,
        digest=digest,
        injection=injection,
        tail=tail,
    )
