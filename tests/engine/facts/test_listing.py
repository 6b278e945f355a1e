"""Which facts are listed."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import Fact, Facts, Memory, chunks
from hitherto.core.facts.fact import FactState
from hitherto.errors import InvalidFact, InvalidInput, InvalidScope
from hitherto.providers.scripted.model import Scripted
from hitherto.store.store import Store
from tests.acceptance.family import (
    ANA,
    BEN,
    ROSA,
    dialogue,
    fact,
    listener,
    opened,
)
from tests.engine.facts.reviewing import CELLO, NURSE, added


class TestListing:
    async def test_whose_and_about_whom(self, memory: Memory) -> None:
        mine, theirs = memory.facts(ANA, subject=ROSA), memory.facts(BEN, subject=ROSA)
        a, b = await added(mine, "Played the cello.", "Was a nurse.")
        c, _ = await added(theirs, "Sang.", "Had a secret.")
        (d,) = await added(memory.facts(ANA, subject=""), "Is tired.")
        await theirs.share(c)
        await mine.share(a)
        assert [one.id for one in await mine.list()] == [a, b, c]
        assert [one.id for one in await mine.list(shared=False)] == [a, b]
        assert [one.id for one in await mine.list(mine=False)] == [c]
        with pytest.raises(InvalidFact, match="one of them True"):
            await mine.list(mine=False, shared=False)
        assert [one.id for one in await memory.facts(ANA).list()] == [a, b, c, d]
        assert [one.id for one in await memory.facts(ANA, subject="").list()] == [d]
        assert await memory.facts(ANA, subject="legacy-8").list() == []

    async def test_by_category_conversation_and_state(self, memory: Memory, facts: Facts) -> None:
        await dialogue(memory, "c", CELLO.text)
        await dialogue(memory, "d", NURSE.text, CELLO.text)
        (by_hand,) = await added(facts, "Sang.", category="hobby")
        cello, nurse = (await fact(memory, CELLO.content)).id, (await fact(memory, NURSE.content)).id
        assert [one.id for one in await facts.list(category="hobby")] == [cello, by_hand]
        assert [one.id for one in await facts.list(conversation="c")] == [cello]
        assert [one.id for one in await facts.list(conversation="d")] == [cello, nurse]
        assert [one.id for one in await facts.list(conversation="d", category="Occupation")] == [nurse]
        assert await facts.list(conversation="none") == []
        await facts.delete(nurse)
        assert [one.id for one in await facts.list(state="deleted")] == [nurse]
        assert [one.id for one in await facts.list(state=None)] == sorted([cello, nurse, by_hand])
        assert [one.id for one in await facts.list(state=FactState.CURRENT)] == sorted([cello, by_hand])

    @pytest.mark.parametrize("size", [1, 3, 7, 8, 1_000])
    async def test_pages(self, facts: Facts, size: int) -> None:
        await added(facts, *(f"Knew the song number {at}." for at in range(7)))
        found: list[Fact] = []
        while page := await facts.list(limit=size, after=found[-1].id if found else 0):
            assert len(page) <= size
            found += page
        assert found == await facts.list()
        assert [one.content for one in found] == [f"Knew the song number {at}." for at in range(7)]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"limit": 0},
            {"limit": 1_001},
            {"limit": True},
            {"limit": "10"},
            {"after": "1"},
            {"after": None},
            {"state": "gone"},
            {"state": 1},
            {"category": 1},
            {"conversation": ""},
        ],
    )
    async def test_what_cannot_be_asked_for(self, facts: Facts, wrong: dict[str, Any]) -> None:
        with pytest.raises((InvalidFact, InvalidScope)) as raised:
            await facts.list(**wrong)
        assert next(iter(wrong)) in str(raised.value)

    async def test_a_subject_that_cannot_be(self, memory: Memory) -> None:
        for subject in (" ", "x" * 201, "a\x00"):
            with pytest.raises(InvalidScope, match="subject"):
                memory.facts(ANA, subject=subject)
            with pytest.raises(InvalidScope):
                memory.conversation("c", scope=ANA, subject=subject)
            with pytest.raises(InvalidScope):
                await memory.configure_subject(tenant=ANA.tenant, subject=subject)
        with pytest.raises(InvalidInput, match="members"):
            await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, members="ana")
        with pytest.raises(InvalidScope):
            await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, members=["ana", ""])
        assert [one.members for one in await memory.subjects(tenant=ANA.tenant)] == [(ANA.user, BEN.user)]


class TestWithoutThem:
    async def test_a_policy_that_wants_none(self, store: Store) -> None:
        model = Scripted(then=listener(CELLO))
        async with opened(store, model=model, policy=chunks(2, 2, 2, facts=False)) as memory:
            await dialogue(memory, "c", CELLO.text)
            assert await memory.facts(ANA).list(state=None) == []
        assert "facts" not in model.calls[0].schema["properties"]
