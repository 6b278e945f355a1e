"""Which facts are listed."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import Facts, Memory, chunks
from hitherto.errors import InvalidFact, InvalidInput, InvalidScope
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.family import (
    ANA,
    BEN,
    ROSA,
    dialogue,
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

    async def test_confirmed_or_not(self, memory: Memory, facts: Facts) -> None:
        """Of the user's own: whether what others share is confirmed is not told."""
        for name, said in (("c", CELLO), ("d", NURSE)):
            await dialogue(memory, name, said.text)
        cello, nurse = [one.id for one in await facts.list()]
        await facts.share((await facts.confirm(cello)).id)
        (theirs,) = await added(memory.facts(BEN, subject=ROSA), "Sang.")
        await memory.facts(BEN).share(theirs)
        assert [one.id for one in await facts.list()] == [cello, nurse, theirs]
        assert [one.id for one in await facts.list(confirmed=True)] == [cello]
        assert [one.id for one in await facts.list(confirmed=False)] == [nurse]
        assert [one.id for one in await facts.list(conversation="c", confirmed=False)] == []
        assert await memory.facts(BEN).list(mine=False, confirmed=True) == []

    async def test_what_cannot_be_asked_for(self, facts: Facts) -> None:
        cases: list[Any] = [
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
            {"confirmed": "no"},
        ]
        for wrong in cases:
            with pytest.raises((InvalidFact, InvalidInput, InvalidScope)) as raised:
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
