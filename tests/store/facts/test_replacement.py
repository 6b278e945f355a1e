"""Facts that supersede others, and facts that a person adds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.facts.fact import OTHER, FactAction, FactState, RepeatedFact
from hitherto.core.facts.queries import AddedFact, FactChange
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    CONFIRM,
    MUM,
    PRIVATE,
    SHARE,
    SHARED,
    actions_of,
    current_contents,
    edit,
    fact_of,
    facts_snapshot,
    known,
    learn,
    learned,
    listed,
    new,
    said,
)
from tests.store.facts.test_evidence import delete
from tests.store.recall.samples import MINE, SPACE, found, indexed, waiting
from tests.store.samples import SCOPE, dialogue, user, write


class TestReplacedFact:
    async def test_a_fact_takes_the_place_of_others(self, store: Store) -> None:
        rome, milan, other = await learned(store, "Lives in Rome.", "Lives in Milan.", "Has a cat.")
        await write(store, "d", user("I have moved to Bari."))
        (bari,) = await learn(store, "d", new("Lives in Bari.", 0, supersedes=(rome, milan)))
        now = await fact_of(store, bari)
        for made, content in ((rome, "Lives in Rome."), (milan, "Lives in Milan.")):
            old = await fact_of(store, made)
            assert (old.state, old.content, old.superseded_by) == (FactState.SUPERSEDED, content, bari)
            assert old.ended_at is not None
            assert old.extracted_at < old.ended_at <= old.updated_at
            assert abs(old.ended_at - now.extracted_at).total_seconds() < 1
            assert (old.version, old.confidence, len(old.evidence)) == (1, 0.5, 1)
            events = await store.facts.history(SCOPE, made)
            assert [(one.action, one.by, one.version, one.content) for one in events] == [
                (FactAction.EXTRACTED, None, 1, content),
                (FactAction.SUPERSEDED, None, 1, content),
            ]
        assert (
            await current_contents(store)
            == await known(store)
            == await listed(store)
            == ["Has a cat.", "Lives in Bari."]
        )
        assert (await fact_of(store, other)).superseded_by is None
        again = await learn(store, "d", new("Lives in Rome.", 0, supersedes=(bari,)))
        assert again > [bari], "what once held can hold anew"
        assert await current_contents(store) == ["Has a cat.", "Lives in Rome."]

    async def test_a_repetition_ends_what_it_replaces(self, store: Store) -> None:
        rome, milan = await learned(store, "Lives in Rome.", "Lives in Milan.")
        await write(store, "d", *dialogue(1))
        assert await learn(store, "d", new("Lives in Rome.", 0, supersedes=(milan, rome))) == []
        assert await current_contents(store) == ["Lives in Rome."]
        assert (await fact_of(store, milan)).superseded_by == rome

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

    async def test_what_is_known_already_is_kept_by_hand(self, store: Store) -> None:
        first, _ = await learned(store, "Swims.", "Fences.", metadata='{"category": "water"}')
        before = await fact_of(store, first)
        given = new("Swims.", category=OTHER, metadata='{"category": "sports"}')
        assert await store.facts.add(SCOPE, THE_USER, given) == AddedFact(first, new=False)
        after = await fact_of(store, first)
        assert after == replace(before, confirmed=True, confidence=1.0, version=2, updated_at=after.updated_at)
        assert after.updated_at > before.updated_at
        event = (await store.facts.history(SCOPE, first))[-1]
        assert (event.action, event.by, event.version, event.category) == (FactAction.ADDED, SCOPE.user, 2, "hobby")
        assert await current_contents(store) == await known(store) == ["Swims.", "Fences."]
        assert (await store.facts.add(SCOPE, "dad", given)).new, "of somebody else nobody has said it"

    async def test_it_takes_the_category_that_it_is_given(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.", category=OTHER, metadata='{"category": "water"}')
        await store.facts.change(SCOPE, made, SHARE)
        await store.facts.add(SCOPE, THE_USER, new("Swims.", category="habit", metadata='{"a": 1}'))
        after = await fact_of(store, made)
        assert (after.category, after.metadata, after.version) == ("habit", '{"a": 1}', 3)
        assert after.visibility is SHARED, "it stays as visible as it is"
        told = await store.facts.known(SCOPE, THE_USER)
        assert (list(told.categories), told.versions.tolist()) == (["habit"], [3])
        assert await actions_of(store, made) == [FactAction.EXTRACTED, FactAction.SHARED, FactAction.ADDED]

    @pytest.mark.parametrize("first", [CONFIRM, edit("Swims.")], ids=["confirmed", "edited"])
    async def test_to_stand_for_a_fact_is_not_yet_to_add_it(self, store: Store, first: FactChange) -> None:
        (made,) = await learned(store, "Swims.")
        await store.facts.change(SCOPE, made, first)
        await store.facts.add(SCOPE, THE_USER, new("Swims."))
        assert (await actions_of(store, made))[-1] is FactAction.ADDED
        await delete(store, facts=True)
        assert await current_contents(store) == ["Swims."]

    async def test_what_is_kept_by_hand_already_is_left_as_it_is(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, THE_USER, new("Swims.", metadata='{"a": 1}'))
        (made,) = await learned(store, "Sings.")
        await store.facts.add(SCOPE, THE_USER, new("Sings."))
        before = await facts_snapshot(store, SCOPE)
        for number, content, metadata in ((added.id, "Swims.", '{"a": 1}'), (made, "Sings.", "{}")):
            for category in ("hobby", OTHER):
                again = new(content, category=category, metadata=metadata)
                assert await store.facts.add(SCOPE, THE_USER, again) == AddedFact(number, new=False)
        assert await facts_snapshot(store, SCOPE) == before

    @pytest.mark.parametrize("way", ["taken back", "erased", "deleted"])
    async def test_what_is_kept_by_hand_needs_no_evidence(self, store: Store, way: str) -> None:
        (made,) = await learned(store, "Swims.")
        await learned(store, "Sings.")
        await store.facts.add(SCOPE, THE_USER, new("Swims."))
        match way:
            case "taken back":
                await take_back(store, "c", 2)
            case "erased":
                await write(store, "c", erase=((0, 1),))
            case _:
                await delete(store, facts=True)
        assert (await current_contents(store), await said(store, made)) == (["Swims."], [])

    async def test_what_is_kept_by_hand_is_found_as_before(self, store: Store) -> None:
        facts = replace(MINE, kinds=frozenset({EntryKind.FACT}))
        await learned(store, "swims", "sings", category="city")
        await indexed(store, space=SPACE)
        await store.facts.add(SCOPE, THE_USER, new("swims", category="city"))
        assert await found(store, facts) == ["sings", "swims"]
        await store.facts.add(SCOPE, THE_USER, new("swims", category="city", single_valued=True))
        assert await found(store, facts) == ["swims"]
        await indexed(store, space=SPACE)
        assert (await found(store, facts), await waiting(store)) == (["swims"], [])

    async def test_what_is_said_again_keeps_what_was_added_by_hand(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, THE_USER, new("Swims."))
        assert await learned(store, "Swims.") == []
        found = await fact_of(store, added.id)
        assert (found.confirmed, found.confidence, found.repeated) == (True, 1.0, 1)
        assert await said(store, added.id) == [("c", 0)]
        assert await actions_of(store, added.id) == [FactAction.ADDED, FactAction.REPEATED]

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
