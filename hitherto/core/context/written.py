"""Groups of messages as they are sent: redacted, within the limits of their API, and cut where they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from hitherto.core.context.lasting import says_rules
from hitherto.core.context.redaction import Redactor
from hitherto.core.context.request import ContextRequest
from hitherto.core.context.shorten import Shortener
from hitherto.core.log.group import Group, ending
from hitherto.core.log.head import Head
from hitherto.core.log.message import CANONICAL, Logged, Message, Payload, Role
from hitherto.core.policy.span import Fate
from hitherto.core.policy.view import Layout


@dataclass(slots=True)
class Written:
    """A group as it is sent: its items, or `system` texts where the API takes system messages nowhere else. `own` is
    what its messages of the log take of `cost`. `plain`: one item without ids."""

    items: list[Payload]
    system: list[str | Payload]
    cost: int
    own: int
    plain: bool = False


class GroupWriter:
    """Writes the groups of one context, each once. Groups with messages behind the log have incoming ones."""

    def __init__(self, request: ContextRequest, layout: Layout, head: Head, groups: Sequence[Group]) -> None:
        self._request, self._next_seq = request, head.next_seq
        self._redactor = Redactor(layout, request.codec, request.shorten_for or request.budget)
        self._redacts = bool(layout.redactions)
        self._shorter: dict[int, Message] = {}
        self._shorteners: dict[int, Shortener] = {}
        self._made: dict[tuple[int, bool], Written] = {}
        # The log keeps what this counter says.
        self._as_logged = request.counter.name == CANONICAL
        self._limited = self._within_limits([one for group in groups for one in group.members])

    def _within_limits(self, there: list[Logged]) -> dict[int, Message]:
        """The messages that give up pictures or files, by seq."""
        codec = self._request.codec
        there.sort(key=attrgetter("seq"))
        if not codec.within_limits([one.message for one in there]):
            return {}  # as nearly always, without redacting anything for it
        limited = codec.within_limits([self._redactor(one) for one in there])
        return {there[at].seq: one for at, one in limited.items()}

    def cost(self, groups: Sequence[Group]) -> int:
        """The tokens that the groups take, one after the other."""
        return sum([one.cost for one in self(groups)])

    def __call__(self, groups: Sequence[Group]) -> list[Written]:
        """The groups one after the other."""
        made, last, found = self._made, ending(groups), list[Written]()
        for group in groups:
            key = (group.first, group is last and bool(group.open))
            if key not in made:
                made[key] = self._write(group, last=group is last)
            found.append(made[key])
        return found

    def fate(self, logged: Logged) -> Fate:
        """What becomes of a message in the groups: it is in, shortened by a limit or the budget, or redacted."""
        if logged.seq in self._shorter or logged.seq in self._limited:
            return Fate.SHORTENED
        return Fate.REDACTED if self._redacts and self._redactor.redacts(logged) else Fate.IN

    def tokens(self, logged: Logged) -> int:
        """What a message takes as it is shown, by itself."""
        return self._tokens(logged, self._shown(logged))

    def left(self, logged: Logged) -> int:
        """The tokens of a message in the log, or what a redaction leaves of them."""
        return self._tokens(logged, self._redactor(logged)) if self._redactor.redacts(logged) else logged.tokens

    def _tokens(self, logged: Logged, message: Message) -> int:
        request = self._request
        shown = request.opened(message)
        written = [] if shown is None else self.dated(request.codec.write([shown]), logged)
        return request.cost(request.sendable(written))

    def cut(self, some: Sequence[Logged], most: int, groups: Sequence[Group]) -> None:
        """From now on the texts of `some`, which are in `groups`, are cut to so many tokens each."""
        for one in some:
            if one.seq not in self._shorteners:
                self._shorteners[one.seq] = Shortener(self._uncut(one), self._request)
            shorter = self._shorteners[one.seq](most)
            if shorter is self._uncut(one):
                self._shorter.pop(one.seq, None)
            else:
                self._shorter[one.seq] = shorter
        cut = {one.seq for one in some}
        changed = {group.first for group in groups if any(member.seq in cut for member in group.members)}
        self._made = {key: made for key, made in self._made.items() if key[0] not in changed}

    def _shown(self, logged: Logged) -> Message:
        return self._shorter.get(logged.seq) or self._uncut(logged)

    def _uncut(self, logged: Logged) -> Message:
        """The message as it is shown where its text is not cut."""
        return self._limited.get(logged.seq) or self._redactor(logged)

    def _write(self, group: Group, *, last: bool) -> Written:
        request, codec = self._request, self._request.codec
        as_they_are = not (self._shorter or self._limited or self._redacts)
        if as_they_are and len(group.members) == 1 and (plain := self._plain(group.members[0])) is not None:
            return plain
        unanswered = sorted(group.open - (group.pending if last else set())) if group.open else ()
        shown = [one.message if as_they_are else self._shown(one) for one in group.members]
        opened = [one if one.raw_metadata == "{}" else request.opened(one) for one in shown]
        messages = [one for one in opened if one is not None]
        if not messages:
            return Written([], [], 0, 0)
        first = messages[0]
        if codec.system_apart and says_rules(first):
            texts: list[str | Payload] = [one.text for one in messages if one.text.strip()]
            cost = sum(codec.system_tokens(one.text, request.counter) for one in messages if one.text.strip())
            return Written([], texts, cost, cost)
        items = self.dated(codec.write(messages, unanswered=unanswered), group.members[0])
        torn = halves(messages)
        items = request.sendable(items, halves=torn)
        cost = own = request.cost(items)
        if group.last >= self._next_seq:
            both = zip(opened, group.members, strict=True)
            logged = [one for one, of in both if one is not None and of.seq < self._next_seq]
            own = request.cost(request.sendable(codec.write(logged), halves=torn))
        return Written(items, [], cost, own)

    def dated(self, items: list[Payload], logged: Logged) -> list[Payload]:
        """The items of a message with its day at the beginning where it is a user's and the request wants days."""
        days, codec = self._request.days, self._request.codec
        if days is None or logged.message.role is not Role.USER or not items or not codec.is_user(items[0]):
            return items
        behind = logged.seq - self._next_seq
        day = logged.said_at.date() if behind < 0 else days[behind]
        return [codec.prefixed(items[0], f"[{day}] "), *items[1:]]

    def _plain(self, logged: Logged) -> Written | None:
        """A message that is no more than a role and a text, as most are; None for another."""
        request, message = self._request, logged.message
        if request.days is not None and message.role is Role.USER:
            return None
        item = request.codec.as_it_is(message)
        if item is None or (message.role is Role.SYSTEM and request.codec.system_apart):
            return None
        incoming = logged.seq >= self._next_seq
        known = self._as_logged and not incoming
        cost = logged.tokens if known else request.codec.tokens(item, request.counter)
        return Written([item], [], cost, 0 if incoming else cost, plain=True)


def halves(messages: Sequence[Message]) -> bool:
    """Whether there may be halves of characters in them: a log's raw text can say them in no other way."""
    return any("\\ud" in one.raw for one in messages)
