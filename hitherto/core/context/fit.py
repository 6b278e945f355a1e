"""Fitting what was gathered for a context into a token budget: pure, in steps, and the only place that says what gives
way.

In the order of importance: instructions and tools; the system messages with which the log begins; the newest group,
which the incoming messages end with if there are any; what the user said in the turn that is not finished; the
conversation's first user message; memory of an earlier conversation; the digest; facts; then older messages, the newest
first. Where not even what comes first fits, the results of tools in the newest group are cut in the middle, then what
the assistant wrote in it, then what the user said before it, then all further. What is cut leaves room for the first
user message.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from itertools import accumulate, takewhile
from operator import attrgetter

from hitherto.core.context.blocks import digest_tokens, with_digest
from hitherto.core.context.budget import cut, step_of
from hitherto.core.context.gathered import Gathered, extent
from hitherto.core.context.lasting import beginning, question, rules, says_rules
from hitherto.core.context.manifest import RecalledEntry
from hitherto.core.context.redaction import fates, places, results_without_calls
from hitherto.core.context.request import ContextRequest, StablePart
from hitherto.core.context.shorten import FRAME, Shortener
from hitherto.core.context.written import GroupWriter
from hitherto.core.log.group import Group, groups, newest
from hitherto.core.log.message import Kind, Logged, Payload, Role
from hitherto.core.policy.span import Fate, MessageFate, Reason, Span, spans_of
from hitherto.errors import BudgetExceeded, InvalidBatch

FIRST_MESSAGE = 200
"""The most tokens of the first user message where what follows it is left out; what the user said in the turn that is
not finished is cut further only where nothing else can give way."""

_UNANSWERED = 4
"""Messages of the user in a row are all shown in any case if they take no more than this part of the budget, else only
the newest."""

_QUESTION = 25
"""Incoming messages that take less than this part of the budget count as if they took so much."""

_STEPS_PART = 4
"""Where what the user said would not fit otherwise, the newest results have this part of the budget, and so has what
the assistant wrote for them."""

_LEAST = 40
"""Tokens that a text is not cut below."""

_NOTHING_OLDER = 2**62
"""A running sum that no log reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A finished payload: system texts and items, tokens by section, and every message's fate. The last `tail` items
    begin with the newest user message while its turn is not finished, but with the first incoming message if that is
    among them; without either, with the newest group. `incoming` are the fates of incoming messages that are not
    shown whole, with the seqs that they would have. `stable` is what comes before the first that is chosen anew for the
    next request. `moved` is the seq behind the message that moved the cut to where it is, None where nothing is cut.
    `facts`, `digest` and `injection` say which of these are shown."""

    system: tuple[str | Payload, ...]
    items: tuple[Payload, ...]
    sections: dict[str, int]
    fates: tuple[Span, ...]
    incoming: tuple[Span, ...]
    facts: bool
    digest: bool
    injection: bool
    stable: StablePart
    tail: int = 0
    moved: int | None = None
    recalled: tuple[RecalledEntry, ...] = ()
    left_out: tuple[RecalledEntry, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.sections.values())


class _Beside(Enum):
    """What may be shown beside messages; all that the request has is shown where it fits, in this order."""

    BEGINNING = auto()
    INJECTION = auto()
    DIGEST = auto()
    FACTS = auto()


@dataclass(slots=True)
class _Sent:
    """Groups as they are sent: the items, of which the last `tail` are as in `Fitted`, the system messages at the
    beginning and later ones that the API takes nowhere else, and the tokens: what each group's messages of the log
    take, and all of a kind together."""

    items: list[Payload] = field(default_factory=list[Payload])
    rules: list[str | Payload] = field(default_factory=list[str | Payload])
    later: list[str | Payload] = field(default_factory=list[str | Payload])
    costs: dict[int, int] = field(default_factory=dict[int, int])
    rules_tokens: int = 0
    verbatim: int = 0
    incoming: int = 0
    tail: int = 0


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The first user message where what follows it is left out; `shorter`: it is cut."""

    items: list[Payload]
    cost: int
    shorter: bool


class Fitting:
    """One context in the making, which is fitted once. The `request` to fit it for may have other facts and another
    room for recalled content than the one it begins with. Raises InvalidBatch for an incoming result whose call is not
    there.

    `leading`, `asked` and `newest` are the groups that are shown in any case, `first` is the first user message.
    `incoming` are the tokens of the incoming messages, which go on where the log ends. `beside_rules` is the part of
    the budget that instructions, tools and the system messages at the log's beginning leave, the same from request to
    request; negative where they do not fit."""

    def __init__(self, request: ContextRequest, gathered: Gathered) -> None:
        view, head = gathered.view, gathered.head
        self.request, self.gathered, self.view, self.head = request, gathered, view, head
        incoming = [
            Logged(seq=head.next_seq + at, message=one, tokens=0, sums=head.sums, rev=head.rev, created_at=head.now)
            for at, one in enumerate(request.incoming)
        ]
        self.found = groups((*gathered.messages, *incoming), head.retracted)
        if any(group.last >= head.next_seq for group in self.found if group.orphan):
            raise InvalidBatch("the incoming tool result answers no call that is there; append the call first")
        self.usable = [group for group in self.found if not group.orphan]
        self._groups = GroupWriter(request, view.layout, head, self.usable)
        latest = newest([one for one in self.usable if one.last >= view.start])
        self.leading = rules(self.usable, view, head) if request.lasting else []
        instructs = [one for one in self.usable if one.first >= head.next_seq and says_rules(one.members[0].message)]
        self.newest = [one for one in self.usable if (one is latest or one in instructs) and one not in self.leading]
        self.asked = question(self.usable, view, head) if request.lasting else []
        while len(self.asked) > 1 and self._groups.cost(self.asked) > request.room // _UNANSWERED:
            del self.asked[0]
        new = [one for one in self.usable if one.last >= head.next_seq]
        tokens = [one.cost - one.own for one in self._groups(new)]
        self.incoming = sum(tokens)
        self._behind = dict(zip([one.first for one in new], accumulate(tokens, initial=0), strict=False))
        self.first = beginning(self.usable, view, head) if request.lasting else None
        fixed = request.fixed()
        self.beside_rules = request.budget - fixed["instructions"] - fixed["tools"] - self._groups.cost(self.leading)

    @property
    def said(self) -> Group | None:
        """The newest user message, where the assistant is at work on it."""
        return self.asked[-1] if self.asked and self.asked[-1].first < self.head.next_seq else None

    @property
    def must(self) -> list[Group]:
        return sorted({*self.leading, *self.asked, *self.newest}, key=attrgetter("first"))

    @property
    def room_beside(self) -> int:
        """The tokens that are left for facts, beside all that gives way after them but for older messages. Negative if
        not even that fits."""
        return self.request.room - self.needed() - self.request.injection() - digest_tokens(self.view, self.request)

    def fit(self, request: ContextRequest) -> Fitted:
        """The context. Older messages are cut in steps; the newest turn of the log is shown if it fits at all, even in
        the room that was set aside, unless the assistant is at work on it and something may be recalled. Raises
        BudgetExceeded where instructions, tools, rules and the incoming messages do not fit, with what each takes."""
        self.request = request
        made = self._whole()
        if made is None and not self.request.lasting:
            self.newest = []
            made = self._whole()
        return self._cut() if made is None else made

    def _whole(self) -> Fitted | None:
        """The context with nothing cut; None where what is to be in it does not fit."""
        request, needed = self.request, self.needed()
        parts: list[_Beside] = []
        for part in _Beside:
            takes = self._takes(part, parts)
            if takes is not None and needed + takes <= request.room:
                needed += takes
                parts.append(part)
        while (made := self._with(parts)) is None and parts:
            parts.pop()
        return made

    def needed(self) -> int:
        """What all takes that is shown in any case."""
        return sum(self.request.fixed().values()) + self._groups.cost(self.must) + self._opening()

    def _opening(self) -> int:
        """The tokens of what the API demands before the first of the groups that are shown in any case."""
        system: list[str | Payload] = [*self.request.system(injection=False, facts=False)]
        items: list[Payload] = []
        must = self.must
        for group, one in zip(must, self._groups(must), strict=True):
            system += one.system
            (system if group in self.leading else items).extend(one.items)
        return self.request.cost(self._demanded(system, items))

    def _demanded(self, system: Sequence[str | Payload], items: Sequence[Payload]) -> list[Payload]:
        """What the API demands before the items, if anything. What a framework is given is no request yet."""
        opening = self.request.codec.opening(items[0] if items else None, system)
        return [] if opening is None or self.request.framework else [opening]

    def _takes(self, part: _Beside, shown: Collection[_Beside]) -> int | None:
        """The tokens of a part beside those that are shown; None where the request has no such part."""
        request, view = self.request, self.view
        match part:
            case _Beside.BEGINNING:
                return None if self.first is None or self.first in self.must else self._beginning.cost
            case _Beside.INJECTION:
                return None if request.injected is None else request.injection()
            case _Beside.DIGEST:
                return None if view.digest is None and view.opaque is None else digest_tokens(view, request)
            case _Beside.FACTS:
                injection = _Beside.INJECTION in shown
                return request.facts_tokens(injection=injection) or None

    def _with(self, parts: Collection[_Beside]) -> Fitted | None:
        """The context with these parts and as many older groups as fit; None where they do not fit without any."""
        request = self.request
        beside = sum(request.fixed().values()) + sum(self._takes(one, parts) or 0 for one in parts)
        known = self._takes(_Beside.FACTS, parts) or 0
        for_facts = max(request.facts_room - known, 0) if _Beside.FACTS in parts else 0
        left = request.room - beside
        begin, total = extent(self.view, self.head)
        total += self.incoming
        step = step_of(self.beside_rules)
        away = cut(total, max(left - for_facts, 0), step)
        # Recalled content gives way first, but has its share once the budget cuts; and where it cuts does not depend on
        # how short a question is.
        spare = request.recall_tokens + max(request.budget // _QUESTION - self.incoming, 0)
        moved: int | None = None
        if away:
            room = max(left - for_facts - spare, 0)
            away = cut(total, room, step)
            moved = self._moved(begin + room + away - step)
        floor = begin + min(away, total)
        # What is recalled while the assistant is at work stands still: its room is not for the turn.
        turn = None if self.said is not None and request.recall_tokens else self._newest_turn()
        while True:
            kept, more = self._kept(floor if turn is None else min(floor, turn), step)
            cuts = floor > begin and not (turn is not None and floor >= turn)
            aside = for_facts + (spare if cuts else 0) if more else 0
            reach = floor if turn is None else min(floor, turn)
            made = self._built(kept, parts, floor=reach, most=request.room - aside)
            if made is not None:
                return replace(made, moved=moved)
            if turn is not None and floor >= turn:
                turn = None  # not even the newest turn fits by itself
            elif more:
                floor += step
            else:
                return None

    def _moved(self, place: int) -> int:
        """The seq behind the group in which the running sum reached `place`."""
        at = bisect_right(self.usable, place, key=self._before)
        return self.usable[max(at - 1, 0)].last + 1 if self.usable else self.head.next_seq

    def _newest_turn(self) -> int | None:
        """The running sum of what is shown before the newest turn of the log; None if the view shows none."""
        for group in reversed(self.found):
            if group.first < self.head.next_seq and group.members[0].message.opens_turn:
                place = self._before(group)
                whole = group.first >= self.view.start and place >= self.gathered.read_from
                return place if whole else None
        return None

    def _before(self, group: Group) -> int:
        """The running sum of what is shown before the group, incoming ones included."""
        if group.first < self.head.next_seq:
            return self._place(group.members[0])
        return self.view.layout.place(self.head.sums.tokens) + self._behind[group.first]

    def _place(self, logged: Logged) -> int:
        """The same for a message of the log."""
        return self._places[logged.seq] if self.view.layout.redactions else logged.sums.tokens - logged.tokens

    @cached_property
    def _places(self) -> dict[int, int]:
        return places(self.gathered.messages, self.view, self.head, self._groups.left)

    def _kept(self, floor: int, step: int) -> tuple[list[Group], bool]:
        """The groups that stay when the running sum must be at least `floor` before them, and whether more could go.

        A cut is moved on to the start of a turn where one begins within a step, so that the payload opens with a user
        message.
        """
        must, view = self.must, self.view
        begin = bisect_left(self.usable, floor, key=self._before)
        older = [one for one in self.usable[begin:] if one.first >= view.start and one not in must]
        if floor > extent(view, self.head)[0] and older:
            limit = self._before(older[0]) + step
            within = takewhile(lambda one: self._before(one) < limit, older)
            opens = next((one for one in within if one.members[0].message.opens_turn), older[0])
            older = older[older.index(opens) :]
        return sorted([*must, *older], key=attrgetter("first")), bool(older)

    def _built(self, kept: Sequence[Group], parts: Collection[_Beside], *, floor: int, most: int) -> Fitted | None:
        """The payload of these groups and parts; None where it takes more than `most` tokens."""
        request = self.request
        if sum(request.fixed().values()) + self._groups.cost(kept) > most:
            return None
        injection, digest, facts = (one in parts for one in (_Beside.INJECTION, _Beside.DIGEST, _Beside.FACTS))
        sent = self._sent(kept)
        items, text = sent.items, list[str]()
        sections = {
            **request.fixed(),
            **({"rules": sent.rules_tokens} if self.leading else {}),
            "injection": request.injection() if injection else 0,
            **({"facts": request.facts_tokens(injection=injection)} if facts else {}),
            "digest": 0,
            "verbatim": sent.verbatim,
            "incoming": sent.incoming,
        }
        if digest:
            items, text, sections["digest"] = with_digest(self.view, request, items)
        first = self.first if _Beside.BEGINNING in parts and self.first not in kept else None
        if first is not None:
            items = [*self._beginning.items, *items]
            sent.costs[first.first] = self._beginning.cost
            sections["verbatim"] += self._beginning.cost
        at = len(items) - sent.tail
        if facts:
            items = [*items[:at], *request.facts_items(), *items[at:]]
        system = [*request.system(injection=injection, facts=facts), *sent.rules, *text, *sent.later]
        opening = self._demanded(system, items)
        items, at = [*opening, *items], at + len(opening)
        sections["framing"] += request.cost(opening)
        total = sum(sections.values())
        if total > most or total + request.growth(system, items) > most:
            return None
        return Fitted(
            system=tuple(system),
            items=tuple(items),
            sections=sections,
            fates=self._fates(kept, sent.costs, floor=floor, digest=digest, first=first),
            incoming=self._not_whole(kept),
            facts=facts,
            digest=digest,
            injection=injection,
            tail=sent.tail,
            stable=StablePart(len(system), at if self.said is None else len(items)),
        )

    def _sent(self, kept: Sequence[Group]) -> _Sent:
        request, codec, head = self.request, self.request.codec, self.head
        sent, said = _Sent(), self.said
        begin: int | None = None
        used: dict[tuple[str, str], int] = {}
        for group, one in zip(kept, self._groups(kept), strict=True):
            items = one.items if one.plain else codec.distinct(one.items, used, framework=request.framework)
            cost = one.cost if items is one.items else request.cost(items)
            own = one.own + cost - one.cost if group.first < head.next_seq else 0
            sent.costs[group.first] = own
            sent.incoming += cost - own
            # A result of an old call belongs to the call's group, which stands before others.
            new = group.last >= head.next_seq if request.incoming else group is kept[-1]
            if begin is None and (new if said is None else group is said):
                begin = len(sent.items)
            if group in self.leading:
                sent.rules_tokens += own
                sent.rules += [*one.system, *items]
            else:
                sent.verbatim += own
                sent.later += one.system
                sent.items += items
        sent.tail = 0 if begin is None else len(sent.items) - begin
        return sent

    def _fates(
        self, kept: Sequence[Group], costs: Mapping[int, int], *, floor: int, digest: bool, first: Group | None
    ) -> tuple[Span, ...]:
        """One fate for every message of the log."""
        far: dict[int, Reason] = {}
        for listed, reason in ((self.asked, Reason.QUESTION), (self.leading, Reason.RULES)):
            for group in listed:
                if group.first < self.view.start or self._before(group) < floor:
                    far[group.first] = reason
        if first is not None:
            far[first.first] = Reason.BEGINNING
        shown = {member.seq for group in kept for member in group.members} | far.keys()
        left = results_without_calls(self.found, kept, self.view, self.head, lambda one: self._place(one) >= floor)
        found = [
            (one.seq, *self._fate(one, far.get(one.seq)), costs.get(one.seq, 0))
            for one in self.gathered.messages
            if one.seq in shown
        ]
        return fates(spans_of(found), self.view, left=left, digest=digest)

    def _not_whole(self, kept: Sequence[Group]) -> tuple[Span, ...]:
        """The fates of incoming messages that are left out or cut."""
        found: list[MessageFate] = []
        for group in self.usable:
            for one in group.members:
                if one.seq >= self.head.next_seq and group not in kept:
                    found.append((one.seq, Fate.DROPPED, Reason.BUDGET, 0))
                elif one.seq >= self.head.next_seq and self._groups.fate(one) is Fate.SHORTENED:
                    found.append((one.seq, Fate.SHORTENED, Reason.VERBATIM, self._groups.tokens(one)))
        return spans_of(sorted(found))

    def _fate(self, logged: Logged, far: Reason | None) -> tuple[Fate, Reason]:
        reason = far or Reason.VERBATIM
        if far is None and logged.seq < self.view.start:
            reason = Reason.CALL_OF_INCOMING
        if far is Reason.BEGINNING and self._beginning.shorter:
            return Fate.SHORTENED, reason
        fate = self._groups.fate(logged)
        return fate, Reason.REDACTED if fate is Fate.REDACTED else reason

    @cached_property
    def _beginning(self) -> _Beginning:
        """The first user message where it stands for itself: as it is, or cut."""
        assert self.first is not None, "it is asked for where there is one"
        request = self.request
        [whole] = self._groups([self.first])
        if whole.cost <= FIRST_MESSAGE:
            return _Beginning(whole.items, whole.cost, shorter=False)
        logged = self.first.members[0]
        cut = request.codec.write([Shortener(logged.message, request)(FIRST_MESSAGE)])
        items = request.sendable(self._groups.dated(cut, logged))
        return _Beginning(items, request.cost(items), shorter=True)

    def _cut(self) -> Fitted:
        """The context where not all fits that is to be in it: the newest results are cut, but not below a part of the
        budget, and then what the assistant wrote for them, calls included; then what the user said, but not below as
        much as the first message would have; then all three further."""
        members = [one for group in self.newest for one in group.members]
        results = [one for one in members if one.message.answers]
        written = [
            one for one in members if one.message.role is Role.ASSISTANT and one.message.kind is not Kind.REASONING
        ]
        share = self.request.room // _STEPS_PART
        of_result = max(share // max(sum(len(one.message.answers) for one in results), 1), _LEAST)
        of_call = max(share // max(sum(len(one.message.calls) for one in written), 1), _LEAST)
        if (made := self._cut_each(results, of_result) or self._cut_each(written, of_call)) is not None:
            return made
        del self.asked[:-1]
        said = [one.members[0] for one in self.asked if one.first < self.head.next_seq or one not in self.newest]
        for some, least in ((said, FIRST_MESSAGE), (results, _LEAST), (written, _LEAST), (said, _LEAST)):
            if (made := self._cut_each(some, least)) is not None:
                return made
        raise self._over()

    def _cut_each(self, some: Sequence[Logged], least: int) -> Fitted | None:
        """The context with the texts of `some` cut, to `least` tokens each at most, beside the first user message where
        both fit; None where they do not fit by themselves either."""
        takes = self._takes(_Beside.BEGINNING, ())
        for parts, beside in (((_Beside.BEGINNING,), takes), ((), 0)):
            room = self.request.room - (beside or 0)
            while beside is not None and some and self._shorten(some, least, room):
                made = self._built(self.must, parts, floor=_NOTHING_OLDER, most=self.request.room)
                if made is not None:
                    return made
                room -= FRAME
        return None

    def _shorten(self, some: Sequence[Logged], least: int, room: int) -> bool:
        """Cut the texts of `some` to as many tokens each as fit into `room` with all else that must be there, but not
        below `least`. Whether it fits then."""
        fits, too_long = least, max(room, least) + 1
        self._groups.cut(some, least, self.must)
        if self.needed() > room:
            return False
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            self._groups.cut(some, middle, self.must)
            if self.needed() <= room:
                fits = middle
            else:
                too_long = middle
        self._groups.cut(some, fits, self.must)
        return True

    def _over(self) -> BudgetExceeded:
        """The error, with what each part takes now that it is cut as far as may be."""
        request = self.request
        fixed = request.fixed()
        takes = {
            "instructions": fixed["instructions"],
            "tools": fixed["tools"],
            "the system messages at its beginning": self._groups.cost(self.leading),
            self._newest_named: self._groups.cost(self.newest),
            "what the user said in this turn": self._groups.cost([one for one in self.asked if one not in self.newest]),
        }
        needed = fixed["framing"] + sum(takes.values()) + self._opening()
        by = needed - request.room
        listed = ", ".join(f"{name} {tokens:,}" for name, tokens in takes.items() if tokens)
        reserve = f" of which {request.reserve} are reserved for the answer" if request.reserve else ""
        return BudgetExceeded(
            f"what must be in the request takes {needed} tokens, {by} more than the budget of {request.budget}"
            f"{reserve}: {listed}; raise the budget by at least {by}, or send less",
            over_by=by,
        )

    @property
    def _newest_named(self) -> str:
        """What the newest messages are, for an error."""
        incoming = len(self.request.incoming)
        if not incoming:
            return "the newest message"
        name = "the incoming message" if incoming == 1 else f"the {incoming:,} incoming messages"
        calls = any(one.seq < self.head.next_seq for group in self.newest for one in group.members)
        return f"{name} and the calls before it" if calls else name
