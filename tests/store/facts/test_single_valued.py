"""Single-valued categories: one fact is current, whatever is written at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.facts.fact import OTHER, FactAction, FactState, RepeatedFact, Visibility
from hitherto.core.facts.queries import AddedFact
from hitherto.core.scope import THE_USER
from hitherto.errors import InvalidFact
from hitherto.store.store import Store
from tests.store.facts.samples import (
    BEN,
    EVERYTHING,
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
)
from tests.store.samples import SCOPE, dialogue, user, write

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

    async def test_a_fact_that_is_learned_alone_ends_its_category(self, store: Store, cities: list[int]) -> None:
        before = await self._beside(store)
        await write(store, "d", user("I live in Bari."))
        (bari,) = await learn(store, "d", new("Bari.", 0, category=CITY, single_valued=True))
        assert await current_contents(store) == await known(store) == ["Swims.", "Bari."]
        for made in cities[:2]:
            old = await fact_of(store, made)
            assert (old.state, old.superseded_by, old.version) == (FactState.SUPERSEDED, bari, 1)
            assert old.ended_at is not None
            event = (await store.facts.history(SCOPE, made))[-1]
            assert (event.action, event.by) == (FactAction.SUPERSEDED, None)
        assert await self._beside(store) == before

    async def test_of_several_in_one_digest_the_last_stays(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        alone = {"category": CITY, "single_valued": True}
        made = await learn(store, "c", new("Rome.", 0, **alone), new("Milan.", 0, **alone), new("Bari.", 1, **alone))
        assert await current_contents(store) == ["Bari."]
        assert [(await fact_of(store, one)).superseded_by for one in made] == [made[1], made[2], None]

    async def test_it_ends_what_it_supersedes_too(self, store: Store, cities: list[int]) -> None:
        await write(store, "d", user("I live in Bari and swim no more."))
        (bari,) = await learn(
            store, "d", new("Bari.", 0, category=CITY, single_valued=True, supersedes=(cities[0], cities[2]))
        )
        assert await current_contents(store) == ["Bari."]
        assert [(await fact_of(store, one)).superseded_by for one in cities] == [bari] * 3
        assert [await actions_of(store, one) for one in cities] == [[FactAction.EXTRACTED, FactAction.SUPERSEDED]] * 3

    async def test_a_fact_that_is_added_alone_ends_its_category(self, store: Store, cities: list[int]) -> None:
        before = await self._beside(store)
        added = await store.facts.add(SCOPE, THE_USER, new("Bari.", category=CITY, single_valued=True))
        assert await current_contents(store) == ["Swims.", "Bari."]
        for made in cities[:2]:
            assert (await fact_of(store, made)).superseded_by == added.id
            event = (await store.facts.history(SCOPE, made))[-1]
            assert (event.action, event.by) == (FactAction.SUPERSEDED, SCOPE.user)
        assert await self._beside(store) == before

    async def test_what_is_there_already_is_added_alone(self, store: Store, cities: list[int]) -> None:
        before = await self._beside(store)
        rome, milan, _ = cities
        assert await store.facts.add(SCOPE, THE_USER, new("Milan.", category=CITY, single_valued=True)) == AddedFact(
            milan, new=False
        )
        assert await current_contents(store) == await known(store) == ["Milan.", "Swims."]
        old = await fact_of(store, rome)
        assert (old.state, old.superseded_by) == (FactState.SUPERSEDED, milan)
        event = (await store.facts.history(SCOPE, rome))[-1]
        assert (event.action, event.by) == (FactAction.SUPERSEDED, SCOPE.user)
        assert await actions_of(store, milan) == [FactAction.EXTRACTED, FactAction.ADDED]
        assert await self._beside(store) == before

    async def test_it_ends_what_is_in_the_category_that_it_is_given(self, store: Store, cities: list[int]) -> None:
        rome, milan, swims = cities
        await store.facts.add(SCOPE, THE_USER, new("Swims.", category=CITY, single_valued=True))
        assert await current_contents(store) == ["Swims."]
        assert [(await fact_of(store, one)).superseded_by for one in (rome, milan)] == [swims, swims]
        await learned(store, "Rows.", "Sings.", name="d", category=CITY)
        await store.facts.add(SCOPE, THE_USER, new("Rows.", category=OTHER, single_valued=True))
        assert await current_contents(store) == ["Rows."], "or that it keeps"

    async def test_what_was_added_so_before_only_ends_the_others(self, store: Store) -> None:
        added = await store.facts.add(SCOPE, THE_USER, new("Bari.", category=CITY))
        await learned(store, "Rome.", category=CITY)
        before = await fact_of(store, added.id)
        await store.facts.add(SCOPE, THE_USER, new("Bari.", category=CITY, single_valued=True))
        assert (await fact_of(store, added.id), await current_contents(store)) == (before, ["Bari."])

    @pytest.mark.parametrize("category", [None, CITY, "home"], ids=["as it is", "the same", "another"])
    async def test_what_is_said_again_alone_ends_its_category(
        self, store: Store, cities: list[int], category: str | None
    ) -> None:
        before = await self._beside(store)
        rome, milan, _ = cities
        (house,) = await learned(store, "A house.", name="h", category="home")
        await write(store, "d", user("I live in Rome."))
        again = RepeatedFact(fact=rome, seqs=(0,), confidence=0.9, category=category, single_valued=True)
        assert await learn(store, "d", repeated=[again]) == []
        ended, left = (milan, ["Swims.", "A house."]) if category != "home" else (house, ["Milan.", "Swims."])
        assert await current_contents(store) == await known(store) == ["Rome.", *left]
        old = await fact_of(store, ended)
        assert (old.state, old.superseded_by) == (FactState.SUPERSEDED, rome)
        event = (await store.facts.history(SCOPE, ended))[-1]
        assert (event.action, event.by) == (FactAction.SUPERSEDED, None)
        assert await actions_of(store, rome) == [FactAction.EXTRACTED, FactAction.REPEATED]
        assert await self._beside(store) == before

    async def test_what_is_said_again_takes_a_category(self, store: Store) -> None:
        given = '{"category": "town"}'
        (rome,) = await learned(store, "Rome.", category=OTHER, metadata=given)
        await write(store, "d", *dialogue(2))
        for at, (category, version) in enumerate(((None, 1), (OTHER, 1), (CITY, 2), (CITY, 2))):
            again = RepeatedFact(fact=rome, seqs=(at,), confidence=0.9, category=category)
            await learn(store, "d", repeated=[again])
            after = await fact_of(store, rome)
            kept = (OTHER, given) if version == 1 else (CITY, "{}")
            assert (after.category, after.metadata, after.version, after.repeated) == (*kept, version, at + 1)
            event = (await store.facts.history(SCOPE, rome))[-1]
            assert (event.action, event.category, event.version) == (FactAction.REPEATED, kept[0], version)
        told = await store.facts.known(SCOPE, THE_USER)
        assert (list(told.categories), told.versions.tolist()) == ([CITY], [2])

    async def test_what_nothing_new_says_again_stays_as_it_is(self, store: Store, cities: list[int]) -> None:
        before = await facts_snapshot(store, SCOPE)
        again = RepeatedFact(fact=cities[0], seqs=(0,), confidence=0.9, category="home", single_valued=True)
        assert await learn(store, "c", repeated=[again]) == []
        assert await learn(store, "c", new("Rome.", 0, category=CITY, single_valued=True)) == []
        assert await facts_snapshot(store, SCOPE) == before

    async def test_of_those_that_are_not_alone_all_stay(self, store: Store, cities: list[int]) -> None:
        await store.facts.add(SCOPE, THE_USER, new("Bari.", category=CITY))
        await store.facts.change(SCOPE, cities[2], edit("Genoa.", category=CITY))
        assert await current_contents(store) == ["Rome.", "Milan.", "Genoa.", "Bari."]

    async def test_of_many_that_are_added_at_once_one_stays(self, store: Store) -> None:
        facts = [new(f"City {n}.", category=CITY, single_valued=True) for n in range(8)]
        added = await asyncio.gather(*(store.facts.add(SCOPE, THE_USER, fact) for fact in facts))
        assert all(one.new for one in added)
        assert len(await current_contents(store)) == 1
        there = await store.facts.facts(SCOPE, EVERYTHING)
        assert sorted(one.id for one in there) == sorted(one.id for one in added)
        assert [one.state for one in there].count(FactState.SUPERSEDED) == 7
        assert {one.superseded_by for one in there} <= {None, *(one.id for one in there)}

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

    async def test_an_edit_ends_the_category_that_it_gives(self, store: Store, cities: list[int]) -> None:
        before = await self._beside(store)
        rome, milan, swims = cities
        await store.facts.change(SCOPE, milan, SHARE)
        after = await store.facts.change(SCOPE, swims, edit("Bari.", category=CITY, single_valued=True))
        assert (after.state, after.content, after.category, after.version) == (FactState.CURRENT, "Bari.", CITY, 2)
        assert await current_contents(store) == await known(store) == ["Bari."]
        for made in (rome, milan):
            assert (await fact_of(store, made)).superseded_by == swims
            event = (await store.facts.history(SCOPE, made))[-1]
            assert (event.action, event.by) == (FactAction.SUPERSEDED, SCOPE.user)
        assert (await fact_of(store, milan)).visibility is Visibility.SHARED
        assert await self._beside(store) == before

    async def test_an_edit_away_from_a_category_leaves_it(self, store: Store, cities: list[int]) -> None:
        await store.facts.change(SCOPE, cities[0], edit("Rows.", single_valued=True))
        assert await current_contents(store) == ["Rows.", "Milan."], "the hobby before it has ended"

    async def test_another_agents_edit_ends_what_is_in_its_book(self, store: Store, cities: list[int]) -> None:
        other = replace(SCOPE, agent="another")
        theirs = await learned(store, "Nice.", "Sings.", name="d", scope=other)
        await store.facts.change(SCOPE, theirs[0], edit("Nice.", category=CITY, single_valued=True), all_agents=True)
        assert await current_contents(store, scope=other) == ["Nice.", "Sings."]
        assert await current_contents(store) == ["Rome.", "Milan.", "Swims."]

    async def test_an_edit_that_is_refused_ends_nothing(self, store: Store, cities: list[int]) -> None:
        before = await facts_snapshot(store, SCOPE)
        with pytest.raises(InvalidFact):
            await store.facts.change(SCOPE, cities[2], edit("Rome.", category=CITY, single_valued=True))
        assert await facts_snapshot(store, SCOPE) == before

    async def test_a_fact_that_is_restored_alone_ends_its_category(self, store: Store, cities: list[int]) -> None:
        before = await self._beside(store)
        rome, milan, swims = cities
        await learned(store, "Bari.", name="d", category=CITY, supersedes=(rome,))
        after = await store.facts.change(SCOPE, rome, replace(RESTORE, single_valued=True))
        assert (after.state, after.superseded_by, after.ended_at) == (FactState.CURRENT, None, None)
        assert await current_contents(store) == await known(store) == ["Rome.", "Swims."]
        assert (await fact_of(store, milan)).superseded_by == rome
        assert await actions_of(store, swims) == [FactAction.EXTRACTED]
        event = (await store.facts.history(SCOPE, milan))[-1]
        assert (event.action, event.by) == (FactAction.SUPERSEDED, SCOPE.user)
        assert await self._beside(store) == before
