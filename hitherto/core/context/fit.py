"""Fitting a view, a digest and the incoming message into a token budget: pure, and in steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from hitherto.core.context.blocks import digest_tokens, with_digest
from hitherto.core.context.budget import cut, step_of
from hitherto.core.context.manifest import RecalledEntry
from hitherto.core.context.redaction import Redactor, before, fates, results_without_calls
from hitherto.core.context.request import ContextRequest, StablePart
from hitherto.core.log.group import Group, groups, newest
from hitherto.core.log.head import Head
from hitherto.core.log.message import Kind, Logged, Message, Payload
from hitherto.core.policy.span import Span
from hitherto.core.policy.view import View
from hitherto.errors import BudgetExceeded, InvalidBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far back the messages must be read: from the one at which the running sum of what is shown (`Layout.place`)
    reaches `least`. What is shown begins at `tokens`, unless the newest turn begins before that.

    `facts`, `digest` and `injection` say whether the facts, the digest and the memory of an earlier conversation are
    going to be shown. They give way in this order, after all else but the incoming message.
    """

    tokens: int
    least: int
    facts: bool
    digest: bool
    injection: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A finished payload: system texts and items, tokens by section, and every message's fate. The last `tail` items
    begin with the first that belongs to an incoming message; without any, with the newest group. `stable` is what comes
    before the first that is chosen anew each time."""

    system: tuple[str, ...]
    items: tuple[Payload, ...]
    sections: dict[str, int]
    fates: tuple[Span, ...]
    facts: bool
    digest: bool
    injection: bool
    stable: StablePart
    tail: int = 0
    recalled: tuple[RecalledEntry, ...] = ()
    left_out: tuple[RecalledEntry, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.sections.values())


def room_beside(view: View, request: ContextRequest) -> int:
    """The tokens that are left for facts, beside all that gives way after them but for verbatim messages. Negative if
    not even that fits."""
    needed = (
        sum(request.fixed().values())
        + request.cost(request.codec.write(request.incoming))
        + digest_tokens(view, request)
    )
    return request.room - needed - request.injection()


def reach(view: View, head: Head, request: ContextRequest) -> Reach:
    """What to load for a context. Raises BudgetExceeded when not even the incoming messages fit."""
    needed = sum(request.fixed().values()) + request.cost(request.codec.write(request.incoming))
    if needed > request.room and not any(message.answers for message in request.incoming):
        raise _over(needed, request)  # what answers a call needs the call too: only `assemble` knows how much that is
    injection = request.injected is not None and needed + request.injection() <= request.room
    needed += request.injection() if injection else 0
    digest = digest_tokens(view, request)
    shown = (view.digest is not None or view.opaque is not None) and needed + digest <= request.room
    needed += digest if shown else 0
    known = request.facts_tokens(injection=injection)
    facts = request.facts is not None and needed + known <= request.room
    room = request.room - needed - (known if facts else 0)
    begin = view.layout.place(view.layout.start_sums.tokens)
    total = view.layout.place(head.sums.tokens) - begin
    aside = _for_facts(request, known)
    away = cut(total, max(room - aside, 0), step_of(request.budget))
    if away and request.recall_tokens:  # recalled content gives way first, but has its share once the budget cuts
        away = cut(total, max(room - aside - request.recall_tokens, 0), step_of(request.budget))
    away = min(away, total)  # the newest message is read in any case
    least = min(max(total - room, 0), away)
    return Reach(tokens=begin + away, least=begin + least, facts=facts, digest=shown, injection=injection)


def assemble(view: View, head: Head, request: ContextRequest, loaded: Sequence[Logged], start: Reach) -> Assembled:
    """The context: as much of `loaded` as fits, cut in steps, with the digest and the incoming messages. The newest
    turn of the log is shown if it fits at all, even in the room that was set aside.

    `loaded` are the verbatim messages from `start` on, ascending, and before them the tool items that an incoming
    result may belong to. Raises BudgetExceeded when the incoming messages (without any: the newest group) and the calls
    they answer do not fit, InvalidBatch for an incoming result whose call is not there.
    """
    incoming = tuple(
        Logged(seq=head.next_seq + at, message=message, tokens=0, sums=head.sums, rev=head.rev, created_at=head.now)
        for at, message in enumerate(request.incoming)
    )
    found = groups((*loaded, *incoming), head.retracted)
    if any(group.last >= head.next_seq for group in found if group.orphan):
        raise InvalidBatch("the incoming tool result answers no call that is there; append the call first")
    latest = newest(found)
    step, floor = step_of(request.budget), start.tokens
    facts, digest, injection = start.facts, start.digest, start.injection
    for_facts = _for_facts(request, request.facts_tokens(injection=injection))
    required = head.next_seq if request.incoming or latest is None else latest.last
    masking = Redactor(view.layout, request.codec)
    whole = view.layout.place(view.layout.start_sums.tokens)
    newest_turn = turn = _newest_turn(found, view, head)
    while True:
        kept, more = _keep(found, view, required, floor if turn is None else min(floor, turn), step)
        cuts = floor > whole and not (turn is not None and floor >= turn)
        aside = for_facts + (request.recall_tokens if cuts else 0) if more else 0
        first = start.tokens if turn is None else min(start.tokens, turn)
        left = results_without_calls(found, kept, view, head, first)
        built = _build(
            kept,
            view,
            head,
            request,
            loaded,
            left=left,
            masking=masking,
            facts=facts,
            digest=digest,
            injection=injection,
        )
        if built.total <= request.room - aside:
            return built
        if turn is not None and floor >= turn:
            turn = None  # not even the newest turn fits by itself
        elif more:
            floor += step
        elif facts:
            facts, floor, turn = False, start.tokens, newest_turn
        elif digest:
            digest = False
        elif injection:
            injection = False
        else:
            raise _over(built.total, request)


def _newest_turn(found: Sequence[Group], view: View, head: Head) -> int | None:
    """The running sum of what is shown before the newest turn of the log; None if the view shows none."""
    for group in reversed(found):
        if group.first < head.next_seq and group.members[0].message.opens_turn:
            return before(group, view) if group.first >= view.start else None
    return None


def _for_facts(request: ContextRequest, known: int) -> int:
    """The tokens set aside for facts that are chosen anew each time, beyond the `known` ones that they take now."""
    return max(request.facts_room - known, 0)


def _over(needed: int, request: ContextRequest) -> BudgetExceeded:
    by = needed - request.room
    reserve = f" of which {request.reserve} are reserved for the answer" if request.reserve else ""
    return BudgetExceeded(
        f"the incoming message with instructions and tools takes {needed} tokens, {by} more than the budget of "
        f"{request.budget}{reserve}; raise the budget by at least {by}, or send less",
        over_by=by,
    )


def _keep(found: Sequence[Group], view: View, required: int, floor: int, step: int) -> tuple[list[Group], bool]:
    """The groups that stay when the running sum must be at least `floor` before them, and whether more could go.

    A group that reaches seq `required` stays whatever the floor: the incoming messages, or the newest one. A cut is
    moved on to the start of a turn where one begins within a step, so that the payload opens with a user message.
    """
    begin = bisect_left(found, floor, key=lambda group: before(group, view))
    kept = [
        group
        for at, group in enumerate(found)
        if not group.orphan and (group.last >= required or (at >= begin and group.first >= view.start))
    ]
    optional = [group for group in kept if group.last < required]
    if floor > view.layout.place(view.layout.start_sums.tokens) and optional:
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
    request: ContextRequest,
    loaded: Sequence[Logged],
    *,
    left: Sequence[Span],
    masking: Redactor,
    facts: bool,
    digest: bool,
    injection: bool,
) -> Assembled:
    items: list[Payload] = []
    costs: dict[int, int] = {}
    incoming_cost = 0
    ahead: int | None = None
    used: set[str] = set()
    shown: Callable[[Logged], Message] = masking if view.layout.redactions else attrgetter("message")
    for group in kept:
        unanswered = sorted(group.open - (group.pending if group is kept[-1] else set())) if group.open else ()
        messages = [*map(shown, group.members)]
        if len(messages) == 1 and messages[0].kind is Kind.TEXT and messages[0].wire == request.codec.name:
            written = [messages[0].payload]  # what `write` gives for it
            cost = request.codec.tokens(written[0], request.counter)
        else:
            written = request.codec.distinct(request.codec.write(messages, unanswered=unanswered), used)
            cost = request.cost(written)
        own = cost
        if group.last >= head.next_seq:
            logged = [shown(member) for member in group.members if member.seq < head.next_seq]
            own = request.cost(request.codec.write(logged))
        costs[group.first] = own
        incoming_cost += cost - own
        # A result of an old call belongs to the call's group, which stands before others.
        if ahead is None and (group.last >= head.next_seq if request.incoming else group is kept[-1]):
            ahead = len(items)
        items += written

    tail = len(items) - (len(items) if ahead is None else ahead)
    system = request.system(injection=injection, facts=facts)
    sections = {
        **request.fixed(),
        "injection": request.injection() if injection else 0,
        **({"facts": request.facts_tokens(injection=injection)} if facts else {}),
        "digest": 0,
        "verbatim": sum(costs.values()),
        "incoming": incoming_cost,
    }
    if digest:
        items, text, sections["digest"] = with_digest(view, request, items)
        system += text
    at = len(items) - tail
    if facts and request.facts_ahead:
        items[at:at] = request.facts_items()
    opening = request.codec.opening(items[0]) if items else None
    if opening is not None:
        items.insert(0, opening)
        at += 1
        sections["framing"] += request.codec.tokens(opening, request.counter)
    return Assembled(
        system=tuple(system),
        items=tuple(items),
        sections=sections,
        fates=fates(kept, view, loaded, costs, left=left, masking=masking, digest=digest),
        facts=facts,
        digest=digest,
        injection=injection,
        tail=tail,
        stable=StablePart(len(system), at),
    )
