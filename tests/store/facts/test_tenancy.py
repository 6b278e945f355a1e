"""The scope of facts: those of another scope are never found, counted, named or changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.facts.fact import RepeatedFact
from hitherto.core.facts.queries import FactFilter, KnownFactsQuery
from hitherto.core.scope import THE_USER, Scope
from hitherto.errors import NotFound
from hitherto.store.store import Store
from tests.store.conftest import AS_BOTH
from tests.store.facts.samples import (
    CONFIRM,
    EVERYTHING,
    MUM,
    SHARE,
    current_contents,
    fact_of,
    facts_snapshot,
    known,
    learn,
    learned,
    listed,
    new,
    rows_of,
    set_whole,
    version_of,
)
from tests.store.log.test_tenancy import OTHERS
from tests.store.samples import SCOPE, dialogue, write

SUBJECTS = ["mum", "Mum", "mum ", " mum", "%", "_", "mum'", 'mum"', "m\u00fcm", "mu\u0308m", "家", "$1", "m" * 200]


async def planted(store: Store, *scopes: Scope) -> None:
    """Learn in each scope private facts about the user, and shared ones about `MUM`."""
    for scope in scopes:
        await learned(store, "Swims.", "Sings.", scope=scope)
        for made in await learned(store, "Swims.", "Sings.", scope=scope, name="m", subject=MUM.id):
            await store.facts.change(scope, made, SHARE)


pytestmark = [AS_BOTH, pytest.mark.slow]


class TestFactScope:
    async def test_no_verb_shows_facts_of_others(self, store: Store) -> None:
        await planted(store, SCOPE)
        before = await facts_snapshot(store, SCOPE, MUM.id)
        made = [fact.id for fact in await store.facts.facts(SCOPE, EVERYTHING)]
        for other in OTHERS.values():
            for subject in (THE_USER, MUM.id):
                assert (
                    await current_contents(store, subject, scope=other)
                    == await known(store, subject, scope=other)
                    == []
                )
                head, told, _ = await store.head_and_known(other, "m", KnownFactsQuery(subject=subject))
                assert (head, rows_of(told)) == (None, [])
            assert await listed(store, scope=other, state=None) == []
            assert await listed(store, scope=other, conversation="c") == []
            for number in made:
                assert await store.facts.fact(other, number) is None
                assert await version_of(store, number, 1, scope=other) is None
                assert await store.facts.history(other, number) == ()
                with pytest.raises(NotFound):
                    await store.facts.change(other, number, CONFIRM)
            async with store.write(other, "c") as unit:
                assert (await unit.current_facts(THE_USER)).facts == ()
            assert await facts_snapshot(store, SCOPE, MUM.id) == before

    async def test_no_unit_changes_facts_of_others(self, store: Store) -> None:
        await planted(store, SCOPE)
        before = await facts_snapshot(store, SCOPE, MUM.id)
        made = [fact.id for fact in await store.facts.facts(SCOPE, EVERYTHING)]
        for other in OTHERS.values():
            await write(store, "c", *dialogue(2), scope=other)
            again = [RepeatedFact(fact=number, seqs=(0,), confidence=0.9) for number in made]
            await learn(store, "c", new("Swims.", 0, supersedes=made), repeated=again, scope=other)
            assert (await store.facts.add(other, THE_USER, new("Sings.", single_valued=True))).new
            assert await current_contents(store, scope=other) == ["Sings."]
            await write(store, "c", scope=other, erase=((0, 3),))
            for name in ("c", "m"):
                async with store.write(other, name) as unit:
                    await unit.delete(facts=True)
            assert await facts_snapshot(store, SCOPE, MUM.id) == before

    async def test_facts_of_all_agents_are_read(self, store: Store) -> None:
        for name, scope in {"mine": SCOPE, **OTHERS}.items():
            await learned(store, f"Of {name}.", scope=scope)
        agents = {"mine": SCOPE, "agent": OTHERS["agent"]}
        assert await listed(store) == ["Of mine."]
        assert await listed(store, all_agents=True) == ["Of mine.", "Of agent."]
        assert await listed(store, all_agents=True, limit=1) == ["Of mine."]
        for fact in await store.facts.facts(SCOPE, FactFilter(all_agents=True)):
            owner = next(scope for scope in agents.values() if scope.agent == fact.agent)
            assert fact == await fact_of(store, fact.id, scope=owner), "with its evidence"
            assert await store.facts.fact(SCOPE, fact.id, all_agents=True) == fact
            assert len(await store.facts.history(SCOPE, fact.id, all_agents=True)) == 1
            assert (await store.facts.fact(SCOPE, fact.id) is None) == (fact.agent != SCOPE.agent)
            assert (await version_of(store, fact.id, 1) is None) == (fact.agent != SCOPE.agent)

    async def test_conversations_of_all_agents_are_asked_for(self, store: Store) -> None:
        """Two agents can each have a conversation of the same name."""
        for name, scope in {"mine": SCOPE, **OTHERS}.items():
            await learned(store, f"Of {name} in c.", scope=scope)
            await learned(store, f"Of {name} in d.", name="d", scope=scope)
        await learned(store, "Of agent in e.", name="e", scope=OTHERS["agent"])
        assert await listed(store, conversation="c") == ["Of mine in c."]
        assert await listed(store, conversation="c", all_agents=True) == ["Of mine in c.", "Of agent in c."]
        assert await listed(store, conversation="e", all_agents=True) == ["Of agent in e."]
        assert await listed(store, conversation="e") == []

    async def test_subjects_are_told_apart_exactly(self, store: Store) -> None:
        for at, subject in enumerate(SUBJECTS):
            assert await current_contents(store, subject) == await known(store, subject) == []
            assert await store.facts.subject(SCOPE.tenant, subject) is None
            await learned(store, f"{at}", name=f"c{at}", subject=subject)
            await set_whole(store, SCOPE.tenant, replace(MUM, id=subject, name=f"Name {at}"))
        for at, subject in enumerate(SUBJECTS):
            assert await current_contents(store, subject) == await known(store, subject) == [f"{at}"]
            assert await listed(store, subject=subject) == [f"{at}"]
            assert (await store.facts.current_facts(SCOPE, subject)).subject.name == f"Name {at}"
        assert len(await store.facts.subjects(SCOPE.tenant)) == len(SUBJECTS)

    async def test_owners_are_told_apart_exactly(self, store: Store) -> None:
        scopes = [SCOPE, *OTHERS.values()]
        for at, scope in enumerate(scopes):
            await learned(store, f"{at}", scope=scope)
        for at, scope in enumerate(scopes):
            assert await current_contents(store, scope=scope) == await known(store, scope=scope) == [f"{at}"]
            assert await listed(store, scope=scope) == [f"{at}"]
