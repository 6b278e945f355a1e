"""Whatever happens to facts and to the messages that say them, the store tells what a few dictionaries would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings

from hitherto.core.changes import Changes
from hitherto.core.facts.fact import FactAction, FactState, NewFact, RepeatedFact, Subject, Visibility
from hitherto.core.facts.queries import FactChange
from hitherto.core.log.ranges import ranges
from hitherto.core.recall.filter import EntryKind, SearchFilter
from hitherto.core.scope import THE_USER, Scope
from hitherto.store.store import Store
from tests.lengths import examples, lasting
from tests.store.facts.drawn import ADA, BEN, CONVERSATIONS, Step, histories
from tests.store.facts.modeled import Facts, Message, One
from tests.store.facts.samples import EVERYTHING, MUM, SHARED, edit, learn, new, set_whole
from tests.store.facts.stories import STORIES
from tests.store.recall.samples import found, indexed
from tests.store.samples import dialogue, write

TENANTS = count(1)


@dataclass(kw_only=True)
class World(Facts):
    """A store, the tenant of one history, and the facts as they have to be there. `begun` counts how often a
    conversation was deleted."""

    store: Store
    tenant: str = field(default_factory=lambda: f"t{next(TENANTS)}")
    members: tuple[str, ...] = ()
    begun: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CONVERSATIONS, 0))

    def scope(self, user: str) -> Scope:
        return Scope(tenant=self.tenant, user=user, agent="planner")

    async def do(self, step: Step) -> None:
        match step:
            case ("add", str(user), str(subject), (str(content), str(category)), bool(single_valued)):
                await self._add(user, subject, new(content, category=category, single_valued=single_valued))
            case (
                "change",
                str(user),
                int(at),
                FactAction() as action,
                (str(content), str(category)),
                bool(single_valued),
            ):
                change = edit(content, category=category) if action is FactAction.EDITED else FactChange(action=action)
                await self._change(user, at, replace(change, single_valued=single_valued))
            case ("members", members):
                self.members = members
                subject = Subject(id=MUM.id, name="Rosa", members=members)
                await set_whole(self.store, self.tenant, subject)
            case ("index",):
                await indexed(self.store)
            case (_, str(name), *_):
                await self._talk(step, name, *CONVERSATIONS[name])
            case _:
                raise AssertionError(step)

    async def _talk(self, step: Step, name: str, user: str, subject: str) -> None:
        """A step in a conversation; one that is not there begins with some talk."""
        store, scope = self.store, self.scope(user)
        head = await store.head(scope, name)
        if head is None or step[0] == "talk":
            await write(store, name, *dialogue(1), scope=scope, subject=subject)
            return

        def messages(seqs: Iterable[int]) -> set[Message]:
            """Those of them that are there to be learned from."""
            found = {(name, self.begun[name], seq % head.next_seq) for seq in seqs}
            erased = {message for message in found if any(a <= message[2] <= b for a, b in head.erased)}
            return found - erased - self.lost

        match step:
            case ("learn", _, said, int(at), bool(single_valued), about):
                told = [new(content, *_seqs(messages(seqs)), category=category) for (content, category), seqs in said]
                facts = [replace(fact, single_valued=single_valued) for fact in told if fact.seqs]
                await self._learn(name, scope, subject if about is None else about, facts, at)
            case ("repeat", _, int(at), seqs, category, bool(single_valued)) if self.about(user, subject) and messages(
                seqs
            ):
                one = _at(self.about(user, subject), at)
                again = RepeatedFact(fact=one.id, seqs=_seqs(messages(seqs)), confidence=1.0 if one.confirmed else 0.5)
                await learn(
                    store, name, repeated=[replace(again, category=category, single_valued=single_valued)], scope=scope
                )
                self.repeat(one, messages(seqs), category, single_valued=single_valued)
            case ("erase", _, int(at)):
                seq = at % head.next_seq
                await write(store, name, scope=scope, erase=((seq, seq),))
                self.forget({(name, self.begun[name], seq)})
            case ("take back", _, int(number)):
                await self._take_back(name, scope, number)
            case ("delete", _, bool(facts)):
                async with store.write(scope, name) as unit:
                    await unit.delete(facts=facts)
                gone = {message for one in self.facts for message in one.said if message[0] == name}
                self.forget(gone, only=facts, confirmed=facts)
                self.begun[name] += 1
            case _:
                pass

    async def _learn(self, name: str, scope: Scope, subject: str, facts: list[NewFact], at: int) -> None:
        """New facts, the last of which takes the place of another one (or not)."""
        mine = self.about(scope.user, subject)
        old = mine[at].id if at < len(mine) else -1
        facts[-1:] = [replace(last, supersedes=(old,)) for last in facts[-1:]]
        ids = iter(await learn(self.store, name, *facts, scope=scope, subject=subject))
        for fact in facts:
            messages = {(name, self.begun[name], seq) for seq in fact.seqs}
            there = next((one for one in self.about(scope.user, subject) if one.content == fact.content), None)
            if there is None:
                self.begin(next(ids), scope.user, subject, fact, messages)
            else:
                self.repeat(there, messages)
                self.supersede(there, fact.supersedes)
        assert list(ids) == []

    async def _add(self, user: str, subject: str, fact: NewFact) -> None:
        added = await self.store.facts.add(self.scope(user), subject, fact)
        there = next((one for one in self.about(user, subject) if one.content == fact.content), None)
        assert (there is None) == added.new
        if there is None:
            self.begin(added.id, user, subject, fact, None)
        else:
            assert added.id == there.id
            self.keep(there, fact)

    async def _change(self, user: str, at: int, change: FactChange) -> None:
        """Of any fact, one's own or not."""
        if not self.facts:
            return
        one = _at(self.facts, at)
        error = self.error(one, user, change)
        asked = self.store.facts.change(self.scope(user), one.id, change)
        if error is not None:
            with pytest.raises(error):
                await asked
            return
        await asked
        match change.action:
            case FactAction.EDITED:
                one.content, one.category, one.confirmed = change.content, change.category, True
            case FactAction.CONFIRMED:
                one.confirmed = True
            case FactAction.RESTORED:
                one.state, one.superseded_by, one.confirmed = FactState.CURRENT, None, True
                one.visibility = Visibility.PRIVATE
            case FactAction.DELETED:
                one.content, one.state, one.said = "", FactState.DELETED, set()
                one.forget()
            case _:
                to = SHARED if change.action is FactAction.SHARED else Visibility.PRIVATE
                if one.visibility is to:
                    return
                one.visibility = to
        one.version += 1
        one.note(change.action)
        if change.single_valued and change.action in (FactAction.EDITED, FactAction.RESTORED):
            self.supersede_category(one)

    async def _take_back(self, name: str, scope: Scope, number: int) -> None:
        async with self.store.write(scope, name) as unit:
            seqs = tuple(one.seq for one in await unit.tail(number))
            await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=ranges(seqs)))
        gone = {(name, self.begun[name], seq) for seq in seqs}
        self.take_back(gone)

    # What the store tells.

    async def check(self) -> None:
        for user in (ADA, BEN):
            scope = self.scope(user)
            mine = [one for one in self.facts if one.user == user]
            assert await self._listed(scope) == [self._told(one) for one in mine]
            for one in mine:
                events = await self.store.facts.history(scope, one.id)
                assert [(event.action, event.content) for event in events] == one.history
            for subject in (THE_USER, MUM.id):
                book = await self.store.facts.current_facts(scope, subject)
                there = [(one.id, one.content) for one in self.about(user, subject)]
                assert [(one.id, one.content) for one in book.facts] == there
                await self._check_known(user, subject)
            facts = SearchFilter(scope=scope, kinds=frozenset({EntryKind.FACT}))
            assert await found(self.store, facts) == sorted(one.content for one in mine if one.current)

    async def _check_known(self, user: str, subject: str) -> None:
        told = await self.store.facts.known(self.scope(user), subject)
        together = subject != THE_USER and {ADA, BEN} <= set(self.members)
        shown = [
            one
            for one in self.facts
            if one.current and one.subject == subject and (one.user == user or (together and one.visibility is SHARED))
        ]
        columns = zip(told.ids, told.own, told.shared, told.versions, told.contents, strict=True)
        assert [tuple(row) for row in columns] == [
            (one.id, one.user == user, one.visibility is SHARED, one.version, one.content) for one in shown
        ]

    async def _listed(self, scope: Scope) -> list[tuple[object, ...]]:
        return [
            (
                *(
                    fact.id,
                    fact.subject,
                    fact.content,
                    fact.category,
                    fact.state,
                    fact.confirmed,
                    fact.visibility,
                    fact.version,
                ),
                *(fact.repeated, fact.ended_at is None, fact.superseded_by),
                sorted((one.conversation, one.seq) for one in fact.evidence),
            )
            for fact in await self.store.facts.facts(scope, replace(EVERYTHING, shared=False))
        ]

    def _told(self, one: One) -> tuple[object, ...]:
        return (
            *(one.id, one.subject, one.content, one.category, one.state, one.confirmed, one.visibility, one.version),
            *(one.repeated, one.current, one.superseded_by),
            sorted((name, seq) for name, _, seq in self.live(one)),
        )


def _at(found: Sequence[One], at: int) -> One:
    return found[at % len(found)]


def _seqs(messages: Iterable[Message]) -> tuple[int, ...]:
    return tuple(sorted(seq for _, _, seq in messages))


async def play(store: Store, steps: Sequence[Step]) -> None:
    world = World(store=store)
    for name in CONVERSATIONS:
        await world.do(("talk", name))
    for step in steps:
        await world.do(step)
        await world.check()


@pytest.mark.parametrize("steps", STORIES.values(), ids=STORIES)
async def test_story(store: Store, steps: list[Step]) -> None:
    await play(store, steps)


@lasting
@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=histories)
async def test_any_history(store: Store, steps: list[Step]) -> None:
    await play(store, steps)
