"""Facts that supersede others, and facts that a person adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.facts.fact import FactAction, FactState, RepeatedFact
from hitherto.core.facts.queries import AddedFact
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    MUM,
    PRIVATE,
    current_contents,
    fact_of,
    facts_snapshot,
    learn,
    learned,
    new,
    said,
)
from tests.store.facts.test_evidence import delete
from tests.store.samples import SCOPE, dialogue, write


class TestReplacedFact:
    async def test_only_current_facts_about_the_subject_are_repeated_or_replaced(self, store: Store) -> None:
        """Ids that a model makes up have no effect on other facts."""
        (mine,) = await learned(store, "Mine.")
        (old,) = await learned(store, "Old.")
        await learned(store, "New.", supersedes=(old,))
        elsewhere = {
            "user": replace(SCOPE, user="another"),
            "agent": replace(SCOPE, agent="another"),
            "tenant": replace(SCOPE, tenant="another"),
        }
        (dads,) = await learned(store, "Dad's.", name="dad", subject="dad")
        theirs = [(await learned(store, "Theirs.", scope=scope))[0] for scope in elsewhere.values()]
        before = [await facts_snapshot(store, scope, "dad") for scope in elsewhere.values()]
        standing = await fact_of(store, old), await fact_of(store, dads)
        await write(store, "d", *dialogue(1))
        numbers = (old, dads, *theirs, 0, -1, 2**62)
        repeated = [RepeatedFact(fact=number, seqs=(0,), confidence=0.1) for number in numbers]
        await learn(store, "d", new("Latest.", 0, supersedes=numbers), repeated=repeated)
        assert [await facts_snapshot(store, scope, "dad") for scope in elsewhere.values()] == before
        assert (await fact_of(store, old), await fact_of(store, dads)) == standing
        assert await current_contents(store) == ["Mine.", "New.", "Latest."]
        assert (await fact_of(store, mine)).repeated == 0

    async def test_a_fact_added_by_hand_is_confirmed(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        given = new("Fences.", 0, category="habit", confidence=0.2, metadata='{"a": 1}')
        added = await store.facts.add(SCOPE, MUM.id, given)
        assert added == AddedFact(added.id, new=True)
        found = await fact_of(store, added.id)
        assert (found.confirmed, found.confidence, found.evidence, found.version) == (True, 1.0, (), 1)
        assert (found.subject, found.category, found.metadata) == (MUM.id, "habit", '{"a": 1}')
        assert (found.visibility, found.state, found.ended_at) == (PRIVATE, FactState.CURRENT, None)
        (event,) = await store.facts.history(SCOPE, added.id)
        assert (event.action, event.by, event.content, event.visibility) == (
            FactAction.ADDED,
            SCOPE.user,
            "Fences.",
            PRIVATE,
        )
        assert await current_contents(store, MUM.id) == ["Fences."]

    @pytest.mark.parametrize("way", ["taken back", "erased", "deleted", "deleted with its facts"])
    async def test_the_current_facts_know_that_a_message_says_one_no_more(self, store: Store, way: str) -> None:
        """The time at which the fact was last said is then an earlier one."""
        (made,) = await learned(store, "Swims.", name="d")
        await learned(store, "Swims.")
        (other,) = await learned(store, "Sings.", name="e", subject=MUM.id)
        before = await store.facts.current_facts(SCOPE, THE_USER)
        others = await store.facts.current_facts(SCOPE, MUM.id)
        match way:
            case "taken back":
                await take_back(store, "c", 1)
            case "erased":
                await write(store, "c", erase=((0, 0),))
            case _:
                await delete(store, facts=way != "deleted")
        after = await store.facts.current_facts(SCOPE, THE_USER)
        assert await said(store, made) == [("d", 0)]
        assert [one.said_at for one in after.facts] < [one.said_at for one in before.facts]
        assert (await store.facts.current_facts(SCOPE, MUM.id), await said(store, other)) == (others, [("e", 0)])
