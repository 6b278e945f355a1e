"""Facts that supersede others, one at a time in single-valued categories; and facts that become current again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.facts.fact import FactAction, FactState, RepeatedFact
from hitherto.core.facts.queries import AddedFact
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    BEN,
    MUM,
    PRIVATE,
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
)
from tests.store.facts.test_evidence import delete
from tests.store.recall.samples import MINE
from tests.store.samples import SCOPE, dialogue, user, write


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
        given = new("Fences.", 0, category="habit", confidence=0.2, metadata={"a": 1})
        added = await store.facts.add(SCOPE, MUM.id, given)
        assert added == AddedFact(added.id, new=True)
        found = await fact_of(store, added.id)
        assert (found.confirmed, found.confidence, found.evidence, found.version) == (True, 1.0, (), 1)
        assert (found.subject, found.category, found.metadata) == (MUM.id, "habit", {"a": 1})
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

    async def test_what_a_deleted_conversation_said_holds_again(self, store: Store) -> None:
        (rome,) = await learned(store, "Rome.", name="gone")
        await learned(store, "Milan.", supersedes=(rome,))
        async with store.write(SCOPE, "gone") as unit:
            await unit.delete()
        await take_back(store, "c", 1)
        assert (await current_contents(store), await said(store, rome)) == (["Rome."], [])


CITY = "current city"


class TestSingleValuedFact:
    @pytest.fixture
    async def cities(self, store: Store) -> list[int]:
        """The ids of two cities and a hobby of Ada's. Others have cities too, which her changes must not end."""
        made = await learned(store, "Rome.", "Milan.", category=CITY)
        made += await learned(store, "Swims.")
        await learned(store, "Turin.", name="mum", subject=MUM.id, category=CITY)
        await learned(store, "Paris.", scope=BEN, category=CITY)
        await learned(store, "Lyon.", scope=replace(SCOPE, agent="another"), category=CITY)
        await learned(store, "Oslo.", scope=replace(SCOPE, tenant="another"), category=CITY)
        return made

    async def _beside(self, store: Store) -> object:
        others = [BEN, replace(SCOPE, agent="another"), replace(SCOPE, tenant="another")]
        return [await facts_snapshot(store, scope, MUM.id) for scope in others], await current_contents(store, MUM.id)

    async def test_of_all_ways_at_once_one_stays(self, store: Store) -> None:
        old, _ = await learned(store, "Rome.", "Milan.", category=CITY, single_valued=True)
        hobbies = await learned(store, "Swims.", "Sings.", "Rows.")
        names = [f"d{n}" for n in range(3)]
        for name in names:
            await write(store, name, user("I have moved."))
        await asyncio.gather(
            *(store.facts.add(SCOPE, THE_USER, new(f"{n}.", category=CITY, single_valued=True)) for n in range(3)),
            *(
                store.facts.change(SCOPE, one, edit(f"Moved {one}.", category=CITY, single_valued=True))
                for one in hobbies[:2]
            ),
            *(learn(store, name, new(f"{name}.", 0, category=CITY, single_valued=True)) for name in names),
            store.facts.change(SCOPE, old, replace(RESTORE, single_valued=True)),
            return_exceptions=True,  # an edit may find that another one has ended its fact
        )
        assert len(await listed(store, category=CITY)) == 1
        assert "Rows." in await current_contents(store)

    async def test_another_agents_edit_ends_what_is_in_its_book(self, store: Store, cities: list[int]) -> None:
        other = replace(SCOPE, agent="another")
        theirs = await learned(store, "Nice.", "Sings.", name="d", scope=other)
        await store.facts.change(SCOPE, theirs[0], edit("Nice.", category=CITY, single_valued=True), all_agents=True)
        assert await current_contents(store, scope=other) == ["Nice.", "Sings."]
        assert await current_contents(store) == ["Rome.", "Milan.", "Swims."]
