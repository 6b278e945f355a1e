"""Single-valued categories: one fact is current, whatever is written at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.facts.samples import (
    BEN,
    MUM,
    RESTORE,
    current_contents,
    edit,
    facts_snapshot,
    learn,
    learned,
    listed,
    new,
)
from tests.store.samples import SCOPE, user, write

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
