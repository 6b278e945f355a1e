"""What a person does to facts by hand is kept as his, and what cannot be done is told in words that help."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from hitherto import Facts, Memory
from hitherto.core.facts.fact import Visibility
from hitherto.errors import InvalidFact, NotFound
from hitherto.store.store import Store
from tests.acceptance.family import ANA, BEN, CAT, ROSA, dialogue, fact, opened
from tests.engine.facts.reviewing import CELLO, CITIES, added, one


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with opened(store, CELLO) as made:
        yield made


@pytest.fixture
def facts(memory: Memory) -> Facts:
    return memory.facts(ANA, subject=ROSA)


class TestCategories:
    @pytest.mark.parametrize("given", ["hoby", "diet", "x" * 300])
    async def test_an_edit_loses_none_by_a_slip(self, facts: Facts, given: str) -> None:
        (number,) = await added(facts, "Sang.", category="hobby")
        with pytest.raises(InvalidFact, match=r"stays in 'hobby'.*personality.*HITHERTO_FACT_CATEGORIES") as raised:
            await facts.edit(number, content="Sang well.", category=given)
        assert repr(given) in str(raised.value)
        found = await one(facts, number)
        assert (found.category, found.content, found.version) == ("hobby", "Sang.", 1)

    async def test_an_edit_may_name_a_category_that_only_another_program_defines(self, store: Store) -> None:
        async with opened(store, **CITIES) as theirs:
            (number,) = await added(theirs.facts(ANA), "Lives in Rome.", category="current city")
            async with opened(store) as memory:
                facts = memory.facts(ANA)
                changed = await facts.edit(number, content="Lives in Genoa.", category="Current_City")
                assert (changed.category, changed.content, changed.metadata) == (
                    "current city",
                    "Lives in Genoa.",
                    {},
                )
                assert (await facts.edit(number, content="Lives in Nervi.")).category == "current city"
                assert (await facts.edit(number, category="other")).category == "other"
                with pytest.raises(InvalidFact, match="stays in 'other'"):
                    await facts.edit(number, category="current city")

    async def test_what_was_given_goes_with_a_category_that_is_defined(self, facts: Facts) -> None:
        (number,) = await added(facts, "Was vegan.", category="diet")
        assert (await one(facts, number)).metadata == {"category": "diet"}
        assert (await facts.edit(number, content="Was a vegan.")).metadata == {"category": "diet"}
        assert (await facts.edit(number, category="habit")).metadata == {}

    async def test_one_value_at_a_time_however_the_category_is_spelt(self, store: Store) -> None:
        cities: dict[str, Any] = {**CITIES, "single_fact_categories": ("Current-City",)}
        async with opened(store, **cities) as memory:
            facts = memory.facts(ANA)
            await added(facts, "Lives in Rome.", "Lives in Genoa.", category="current_city")
            assert [found.content for found in await facts.list()] == ["Lives in Genoa."]


class TestWhatItReplaced:
    async def test_the_latest_last(self, store: Store) -> None:
        """By whatever agent of the user it was learned, and whatever its category is by now."""
        async with opened(store, **CITIES) as memory:
            facts = memory.facts(ANA)
            rome, nervi, genoa = await added(
                facts, "Is in Rome.", "Is in Nervi.", "Is in Genoa.", category="current city"
            )
            await facts.restore(rome)
            await facts.edit(rome, category="other")
            everywhere = memory.facts(replace(ANA, agent="other"), all_agents=True)
            assert [one.id for one in await everywhere.replaced(rome)] == [genoa]
            assert [one.id for one in await facts.replaced(genoa)] == [nervi]
            assert await facts.replaced(nervi) == []


class TestWhatAnotherIsTold:
    async def test_nothing_of_how_sure_it_is(self, memory: Memory, facts: Facts) -> None:
        await dialogue(memory, "c", CELLO.text)
        await dialogue(memory, "d", CELLO.text)
        mine = await facts.share((await fact(memory, CELLO.content)).id)
        assert (mine.confidence is not None, mine.confirmed, mine.repeated) == (True, False, 1)
        theirs = memory.facts(BEN)
        for seen in (*await theirs.list(), await one(theirs, mine.id)):
            assert (seen.content, seen.user, seen.visibility) == (CELLO.content, ANA.user, Visibility.SHARED)
            assert (seen.confidence, seen.confirmed, seen.repeated) == (None, None, None)
            assert (seen.updated_at, seen.evidence, seen.metadata) == (seen.extracted_at, (), {})


class TestWords:
    """An error says what is so, and what can be done."""

    VERBS = ("edit", "confirm", "restore", "share", "unshare", "delete", "history", "sources", "replaced")

    @staticmethod
    async def refused(facts: Facts, verb: str, number: int) -> str:
        given: dict[str, Any] = {"content": "Sang."} if verb == "edit" else {}
        with pytest.raises(NotFound) as raised:
            await getattr(facts, verb)(number, **given)
        return str(raised.value)

    async def test_one_that_is_not_there(self, memory: Memory, facts: Facts) -> None:
        for verb in self.VERBS:
            (number,) = await added(facts, "Sang.")
            for scope in (BEN, CAT, replace(ANA, agent="other"), replace(ANA, tenant="other")):
                said = await self.refused(memory.facts(scope), verb, number)
                assert f"has no fact {number}" in said
                assert "memory.facts(scope).list()" in said
                assert "hitherto facts list" in said
                assert all(name in said for name in (scope.tenant, scope.user, scope.agent))
                assert said == (await self.refused(memory.facts(scope), verb, 987_654)).replace("987654", str(number))

    async def test_who_is_no_member_learns_of_none(self, memory: Memory) -> None:
        """Neither their names, nor whether there are any; and what the hint shows as it stands drops nobody."""
        facts, told = memory.facts(ANA, subject="the dog"), set[str]()
        (number,) = await added(facts, "Barks.")
        for members in (None, [], ["ben", "o'neil"]):
            await memory.configure_subject(tenant=ANA.tenant, subject="the dog", members=members)
            with pytest.raises(InvalidFact) as raised:
                await facts.share(number)
            told.add(str(raised.value))
        (said,) = told
        assert "ben" not in said
        assert "neil" not in said
        assert "memory.configure_subject(tenant='acme', subject='the dog', members=[…])" in said
        command = shlex.split(said[said.index("hitherto facts") : said.index(" --member")])
        assert command[2:] == ["subject", "the dog", "--tenant", "acme"], "which shows them"
        await memory.configure_subject(tenant=ANA.tenant, subject="the dog", members=["ben", "o'neil", "ana"])
        assert (await facts.share(number)).visibility is Visibility.SHARED

    async def test_a_version_that_is_none(self, facts: Facts) -> None:
        cases: list[Any] = ["2", 2.0, True]
        for expect in cases:
            (number,) = await added(facts, "Sang.")
            for change in (facts.confirm, facts.delete, facts.restore, facts.share):
                with pytest.raises(
                    InvalidFact, match=rf"expect is {re.escape(repr(expect))}; give a whole number, the version"
                ):
                    await change(number, expect=expect)
            with pytest.raises(InvalidFact, match="expect is"):
                await facts.edit(number, content="x", expect=expect)
            with pytest.raises(InvalidFact, match="after is '1'; give a whole number, the number of the last fact"):
                await facts.list(after="1")  # pyright: ignore[reportArgumentType] (that is the test)

    async def test_what_cannot_be_seen_says_nothing(self, facts: Facts) -> None:
        cases: list[Any] = ["\u3164\u3164", "\u115f", "\u2800", "\ufffc", "\ufffd"]
        for content in cases:
            with pytest.raises(InvalidFact, match="says nothing"):
                await facts.add(content)

    async def test_a_sign_says_something(self, facts: Facts) -> None:
        (number,) = await added(facts, "🎻")
        assert (await one(facts, number)).content == "🎻"
