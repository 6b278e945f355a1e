"""Facts that become current again: a person restores them, or their successor is withdrawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.changes import Changes
from hitherto.core.facts.fact import FactAction, FactState, Visibility
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import THE_USER, Scope
from hitherto.errors import InvalidFact, NotFound, StaleVersion
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    ADA,
    BEN,
    CONFIRM,
    DELETE,
    MUM,
    RESTORE,
    SHARE,
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
    seen,
    set_whole,
    shared_by,
)
from tests.store.recall.samples import MINE, SPACE, found, indexed, waiting
from tests.store.samples import SCOPE, user, write

FACTS = replace(MINE, kinds=frozenset({EntryKind.FACT}))


async def moved(store: Store, *cities: str) -> list[int]:
    """Learn facts of which each supersedes the one before; their ids."""
    made: list[int] = []
    for city in cities:
        made += await learned(store, city, supersedes=tuple(made[-1:]))
    return made


class TestRestoredFact:
    async def test_a_superseded_fact_is_restored(self, store: Store) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        await store.facts.change(SCOPE, milan, SHARE)
        before, standing = await fact_of(store, rome), await fact_of(store, milan)
        after = await store.facts.change(SCOPE, rome, replace(RESTORE, expect=1))
        assert after == await fact_of(store, rome)
        changes = {"state": FactState.CURRENT, "ended_at": None, "superseded_by": None, "updated_at": after.updated_at}
        assert after == replace(before, confirmed=True, confidence=1.0, version=2, **changes)
        assert after.updated_at > before.updated_at
        assert await actions_of(store, rome) == [FactAction.EXTRACTED, FactAction.SUPERSEDED, FactAction.RESTORED]
        event = (await store.facts.history(SCOPE, rome))[-1]
        assert (event.by, event.version, event.content) == (SCOPE.user, 2, "Rome.")
        assert await current_contents(store) == await known(store) == await listed(store) == ["Rome.", "Milan."]
        assert await fact_of(store, milan) == standing

    async def test_what_was_shared_is_restored_for_its_owner_alone(self, store: Store) -> None:
        rome, _ = await moved(store, "Rome.", "Milan.")
        (shared,) = await learned(store, "Bari.")
        await store.facts.change(SCOPE, shared, SHARE)
        await learned(store, "Turin.", supersedes=(shared,))
        assert (await store.facts.change(SCOPE, shared, RESTORE)).visibility is Visibility.PRIVATE
        assert (await store.facts.change(SCOPE, rome, RESTORE)).visibility is Visibility.PRIVATE

    async def test_a_withdrawn_fact_is_restored(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        await take_back(store, "c", 1)
        after = await store.facts.change(SCOPE, made, RESTORE)
        assert (after.state, after.version, after.confirmed, after.evidence) == (FactState.CURRENT, 2, True, ())
        assert await actions_of(store, made) == [FactAction.EXTRACTED, FactAction.WITHDRAWN, FactAction.RESTORED]
        assert await current_contents(store) == ["Swims."]
        await write(store, "c", erase=((0, 0),))
        assert await current_contents(store) == ["Swims."], "a person stands for it"

    async def test_what_is_restored_is_shown_to_others_once_it_is_shared_again(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        made = await shared_by(store, "Rome.")
        await learned(store, "Milan.", subject=MUM.id, supersedes=(made,))
        assert not await seen(store, made, scope=BEN)
        await store.facts.change(ADA, made, RESTORE)
        assert not await seen(store, made, scope=BEN)
        await store.facts.change(ADA, made, SHARE)
        assert await seen(store, made, scope=BEN)

    async def test_what_is_restored_can_be_changed_and_said_again(self, store: Store) -> None:
        rome, _ = await moved(store, "Rome.", "Milan.")
        await store.facts.change(SCOPE, rome, RESTORE)
        assert await learned(store, "Rome.", name="d") == []
        assert await said(store, rome) == [("c", 0), ("d", 0)]
        assert (await store.facts.change(SCOPE, rome, edit("Ostia.", expect=2))).version == 3
        assert await current_contents(store) == ["Ostia.", "Milan."]

    async def test_of_what_cannot_be_restored_nothing_changes(self, store: Store) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        (gone,) = await learned(store, "Swims.")
        await store.facts.change(SCOPE, gone, DELETE)
        (again,) = await learned(store, "Rome.", name="d", supersedes=(milan,))
        before = await facts_snapshot(store, SCOPE)
        for alone in (False, True):
            restore = replace(RESTORE, single_valued=alone)
            for number in (gone, 0, -1, 2**62, 2**63):
                with pytest.raises(NotFound):
                    await store.facts.change(SCOPE, number, restore)
            for number in (rome, milan, again):
                with pytest.raises(StaleVersion) as told:
                    await store.facts.change(SCOPE, number, replace(restore, expect=7))
                assert told.value.actual == 1
            with pytest.raises(InvalidFact, match=f"{again}"):
                await store.facts.change(SCOPE, again, restore)
            with pytest.raises(InvalidFact, match=f"{again}"):
                await store.facts.change(SCOPE, rome, restore)
        assert await facts_snapshot(store, SCOPE) == before
        await store.facts.change(SCOPE, again, DELETE)
        assert (await store.facts.change(SCOPE, rome, RESTORE)).state is FactState.CURRENT

    @pytest.mark.parametrize(
        "scope",
        [BEN, replace(SCOPE, tenant="another"), replace(SCOPE, agent="another")],
        ids=["member", "tenant", "agent"],
    )
    async def test_nobody_restores_what_is_anothers(self, store: Store, scope: Scope) -> None:
        await set_whole(store, ADA.tenant, MUM)
        made = await shared_by(store, "Rome.")
        await learned(store, "Milan.", subject=MUM.id, supersedes=(made,))
        before = await facts_snapshot(store, ADA, MUM.id)
        with pytest.raises(NotFound):
            await store.facts.change(scope, made, RESTORE)
        assert await facts_snapshot(store, ADA, MUM.id) == before
        if scope.agent != ADA.agent:
            after = await store.facts.change(scope, made, RESTORE, all_agents=True)
            assert (after.agent, after.state) == (ADA.agent, FactState.CURRENT)

    @pytest.mark.parametrize("way", ["restored", "taken back"])
    async def test_what_holds_again_is_found_again(self, store: Store, way: str) -> None:
        rome, _ = await moved(store, "rome", "milan")
        await indexed(store, space=SPACE)
        assert await found(store, FACTS) == ["milan"]
        if way == "restored":
            await store.facts.change(SCOPE, rome, RESTORE)
        else:
            await take_back(store, "c", 1)
        there = ["milan", "rome"] if way == "restored" else ["rome"]
        assert await found(store, FACTS) == there
        assert await waiting(store, FACTS) == ["rome"]
        told = await store.facts.known(SCOPE, THE_USER, space=SPACE)
        assert told.coded is None or not told.coded[0]
        await indexed(store, space=SPACE)
        assert await found(store, FACTS) == there
        assert await waiting(store) == []
        told = await store.facts.known(SCOPE, THE_USER, space=SPACE)
        assert told.coded is not None
        assert told.coded.all()

    async def test_what_takes_the_place_of_a_fact_is_taken_back(self, store: Store) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        before = await fact_of(store, rome)
        await take_back(store, "c", 1)
        after = await fact_of(store, rome)
        changes = {"state": FactState.CURRENT, "ended_at": None, "superseded_by": None, "updated_at": after.updated_at}
        assert after == replace(before, version=2, **changes)
        assert await current_contents(store) == await known(store) == await listed(store) == ["Rome."]
        assert (await fact_of(store, milan)).state is FactState.WITHDRAWN
        assert await actions_of(store, rome) == [FactAction.EXTRACTED, FactAction.SUPERSEDED, FactAction.RESTORED]
        event = (await store.facts.history(SCOPE, rome))[-1]
        assert (event.by, event.version, event.content) == (None, 2, "Rome.")
        assert await learned(store, "Rome.", name="d") == [], "it is known"

    async def test_what_holds_again_by_itself_is_its_owners_alone(self, store: Store) -> None:
        """It was shared before it was superseded; others see it again only after its owner shares it again."""
        await set_whole(store, ADA.tenant, MUM)
        rome = await shared_by(store, "Rome.", name="d")
        await learned(store, "Milan.", subject=MUM.id, supersedes=(rome,))
        await take_back(store, "c", 1)
        after = await fact_of(store, rome)
        assert (after.state, after.visibility, after.version) == (FactState.CURRENT, Visibility.PRIVATE, 3)
        assert not await seen(store, rome, scope=BEN)
        event = (await store.facts.history(SCOPE, rome))[-1]
        assert (event.action, event.visibility, event.version) == (FactAction.RESTORED, Visibility.PRIVATE, 3)
        await store.facts.change(ADA, rome, SHARE)
        assert await seen(store, rome, scope=BEN)

    async def test_all_that_it_took_the_place_of_holds_again(self, store: Store) -> None:
        rome, milan, swims = await learned(store, "Rome.", "Milan.", "Swims.")
        (other,) = await learned(store, "Sings.", name="d", supersedes=(swims,))
        await store.facts.change(SCOPE, milan, CONFIRM)
        await learned(store, "Bari.", supersedes=(rome, milan))
        await take_back(store, "c", 1)
        assert await current_contents(store) == ["Rome.", "Milan.", "Sings."]
        assert (await fact_of(store, milan)).confidence == 1.0
        assert (await fact_of(store, swims)).superseded_by == other, "what that took its place stands"

    async def test_it_does_not_hold_again_where_a_current_one_says_the_same(self, store: Store) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        (again,) = await learned(store, "Rome.", name="d")
        await take_back(store, "c", 1)
        assert (await fact_of(store, milan)).state is FactState.WITHDRAWN
        assert ((await fact_of(store, rome)).state, await current_contents(store)) == (FactState.SUPERSEDED, ["Rome."])
        assert (await fact_of(store, rome)).superseded_by == milan
        assert (await fact_of(store, again)).repeated == 0
        assert await actions_of(store, rome) == [FactAction.EXTRACTED, FactAction.SUPERSEDED]

    async def test_of_two_that_say_the_same_the_newest_holds_again(self, store: Store) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        (again,) = await learned(store, "Rome.", name="d")
        await write(store, "c", user("Milan, as I said."))
        assert await learn(store, "c", new("Milan.", 2, supersedes=(again,))) == []
        assert [(await fact_of(store, one)).superseded_by for one in (rome, again)] == [milan, milan]
        await take_back(store, "c", 2)
        assert [(await fact_of(store, one)).state for one in (rome, again)] == [FactState.SUPERSEDED, FactState.CURRENT]

    async def test_what_says_the_same_is_taken_back_with_it(self, store: Store) -> None:
        rome, _ = await moved(store, "Rome.", "Milan.")
        (again,) = await learned(store, "Rome.")
        await take_back(store, "c", 2)
        assert await current_contents(store) == ["Rome."]
        assert ((await fact_of(store, rome)).state, (await fact_of(store, again)).state) == (
            FactState.CURRENT,
            FactState.WITHDRAWN,
        )

    @pytest.mark.parametrize("at_once", [True, False])
    async def test_what_was_taken_back_itself_does_not_hold_again(self, store: Store, at_once: bool) -> None:
        """The fact that it had superseded becomes current instead."""
        rome, milan, bari = await moved(store, "Rome.", "Milan.", "Bari.")
        if at_once:
            await take_back(store, "c", 2)
        else:
            await _retract(store, 1)
            assert await current_contents(store) == ["Bari."]
            await _retract(store, 2)
        assert await current_contents(store) == ["Rome."]
        assert (await fact_of(store, bari)).state is FactState.WITHDRAWN
        assert (await fact_of(store, milan)).state is FactState.SUPERSEDED
        assert await actions_of(store, rome) == [FactAction.EXTRACTED, FactAction.SUPERSEDED, FactAction.RESTORED]
        assert await actions_of(store, milan) == [FactAction.EXTRACTED, FactAction.SUPERSEDED]

    async def test_one_after_the_other_is_taken_back(self, store: Store) -> None:
        made = await moved(store, "Rome.", "Milan.", "Bari.")
        for city in ("Milan.", "Rome."):
            await take_back(store, "c", 1)
            assert await current_contents(store) == [city]
        await take_back(store, "c", 1)
        assert await current_contents(store) == []
        assert {(await fact_of(store, one)).state for one in made} == {FactState.WITHDRAWN}

    async def test_what_a_deleted_conversation_said_holds_again(self, store: Store) -> None:
        (rome,) = await learned(store, "Rome.", name="gone")
        await learned(store, "Milan.", supersedes=(rome,))
        async with store.write(SCOPE, "gone") as unit:
            await unit.delete()
        await take_back(store, "c", 1)
        assert (await current_contents(store), await said(store, rome)) == (["Rome."], [])

    @pytest.mark.parametrize("way", ["confirmed", "said elsewhere", "deleted", "erased"])
    async def test_only_what_is_withdrawn_gives_its_place_back(self, store: Store, way: str) -> None:
        rome, milan = await moved(store, "Rome.", "Milan.")
        match way:
            case "confirmed":
                await store.facts.change(SCOPE, milan, CONFIRM)
            case "said elsewhere":
                await learned(store, "Milan.", name="d")
            case "deleted":
                await store.facts.change(SCOPE, milan, DELETE)
            case _:
                await write(store, "c", erase=((1, 1),))
        if way != "erased":
            await take_back(store, "c", 1)
        assert (await fact_of(store, rome)).state is FactState.SUPERSEDED
        assert await current_contents(store) == ([] if way in ("deleted", "erased") else ["Milan."])


async def _retract(store: Store, seq: int) -> None:
    """Take back one message, whatever came after it."""
    async with store.write(SCOPE, "c") as unit:
        await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=(seq,)))
