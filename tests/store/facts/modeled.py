"""Facts as they have to be: a few lines for what a store does in many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hitherto.core.facts.fact import OTHER, FactAction, FactState, NewFact, Visibility
from hitherto.core.facts.queries import FactChange
from hitherto.errors import InvalidFact, NotFound

Message = tuple[str, int, int]
"""A message: its conversation, how often that was begun anew, its seq."""


@dataclass(kw_only=True)
class One:
    """A fact as it has to be."""

    id: int
    user: str
    subject: str
    content: str
    category: str
    confirmed: bool
    said: set[Message] = field(default_factory=set[Message])
    visibility: Visibility = Visibility.PRIVATE
    state: FactState = FactState.CURRENT
    version: int = 1
    repeated: int = 0
    superseded_by: int | None = None
    history: list[tuple[FactAction, str]] = field(default_factory=list[tuple[FactAction, str]])

    def note(self, action: FactAction) -> None:
        self.history.append((action, self.content))

    def forget(self) -> None:
        """What it said otherwise before."""
        self.history = [(action, content if content == self.content else "") for action, content in self.history]

    @property
    def by_hand(self) -> bool:
        return any(action is FactAction.ADDED for action, _ in self.history)

    @property
    def current(self) -> bool:
        return self.state is FactState.CURRENT


@dataclass(kw_only=True)
class Facts:
    """All facts, ascending by id. `lost` are the messages that were taken back."""

    facts: list[One] = field(default_factory=list[One])
    lost: set[Message] = field(default_factory=set[Message])

    def about(self, user: str, subject: str) -> list[One]:
        return [one for one in self.facts if (one.user, one.subject, one.current) == (user, subject, True)]

    def live(self, one: One) -> set[Message]:
        return one.said - self.lost

    def begin(self, id: int, user: str, subject: str, fact: NewFact, said: set[Message] | None) -> None:
        """A fact that is new; no messages say one that was added by hand."""
        made = One(
            id=id, user=user, subject=subject, content=fact.content, category=fact.category, confirmed=said is None
        )
        made.said = said or set()
        made.note(FactAction.ADDED if said is None else FactAction.EXTRACTED)
        self.facts.append(made)
        self.supersede(made, fact.supersedes)
        if fact.single_valued:
            self.supersede_category(made)

    def error(self, one: One, user: str, change: FactChange) -> type[Exception] | None:
        if one.user != user or one.state is FactState.DELETED:
            return NotFound
        says = one.content if change.action is FactAction.RESTORED else change.content
        same = [other for other in self.about(user, one.subject) if other.content == says and other is not one]
        match change.action:
            case FactAction.DELETED | FactAction.UNSHARED:
                return None
            case FactAction.RESTORED:
                return InvalidFact if one.current or same else None
            case FactAction.EDITED:
                return InvalidFact if not one.current or same else None
            case _:
                return None if one.current else InvalidFact

    def take_back(self, gone: set[Message]) -> None:
        """Messages are taken back: what rested on them alone is withdrawn, and what that took the place of holds again,
        unless something current says the same."""
        self.lost |= gone
        withdrawn: set[int] = set()
        for one in self.facts:
            if one.said & gone and not self.live(one) and one.current and not one.confirmed:
                one.state = FactState.WITHDRAWN
                one.note(FactAction.WITHDRAWN)
                withdrawn.add(one.id)
        for one in sorted(self._ended_by(withdrawn), key=lambda one: -one.id):
            if one.content not in {other.content for other in self.about(one.user, one.subject)}:
                one.state, one.superseded_by = FactState.CURRENT, None
                one.visibility, one.version = Visibility.PRIVATE, one.version + 1
                one.note(FactAction.RESTORED)

    def _ended_by(self, ids: set[int]) -> list[One]:
        """What these took the place of; behind what was taken back itself, what that took the place of."""
        ended = [one for one in self.facts if one.state is FactState.SUPERSEDED and one.superseded_by in ids]
        gone = [one for one in ended if one.said and not self.live(one) and not one.confirmed]
        return [one for one in ended if one not in gone] + (self._ended_by({one.id for one in gone}) if gone else [])

    def forget(self, gone: set[Message], *, only: bool = True, confirmed: bool = False) -> None:
        """Messages are there no more: what rested on them alone is not either. `confirmed`: whoever stands for it,
        but for what was added by hand; not `only`, facts stay."""
        for one in list(self.facts):
            touched = bool(one.said & gone)
            one.said -= gone
            stays = one.by_hand if confirmed else one.confirmed
            if touched and only and not self.live(one) and not stays:
                self.facts.remove(one)
                for old in self.facts:
                    old.superseded_by = None if old.superseded_by == one.id else old.superseded_by
            elif touched and only and not confirmed and not self.live(one):
                one.forget()

    def keep(self, one: One, fact: NewFact) -> None:
        """A person adds what is there."""
        category = one.category if fact.category == OTHER else fact.category
        if not (one.by_hand and one.confirmed and category == one.category):
            one.category, one.confirmed, one.version = category, True, one.version + 1
            one.note(FactAction.ADDED)
        if fact.single_valued:
            self.supersede_category(one)

    def repeat(
        self, one: One, messages: set[Message], category: str | None = None, *, single_valued: bool = False
    ) -> None:
        if messages <= one.said:
            return
        one.said |= messages
        one.repeated += 1
        if category not in (None, one.category):
            one.category, one.version = category, one.version + 1
        one.note(FactAction.REPEATED)
        if single_valued:
            self.supersede_category(one)

    def supersede(self, by: One, ids: Iterable[int]) -> None:
        for one in self.about(by.user, by.subject):
            if one.id in set(ids) - {by.id}:
                one.state, one.superseded_by = FactState.SUPERSEDED, by.id
                one.note(FactAction.SUPERSEDED)

    def supersede_category(self, by: One) -> None:
        self.supersede(by, [one.id for one in self.about(by.user, by.subject) if one.category == by.category])
