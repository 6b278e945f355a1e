"""The review of facts: changes by a person, versions, and what a deletion leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactState
from hitherto.core.facts.queries import FactChange, FactFilter
from hitherto.core.log.message import storable
from hitherto.errors import NotFound, StaleVersion
from hitherto.store.store import Store
from tests.store.facts.samples import (
    ADA,
    BEN,
    CONFIRM,
    DELETE,
    EVERYTHING,
    MUM,
    PRIVATE,
    SHARE,
    SHARED,
    UNSHARE,
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
    set_whole,
    shared_by,
    version_of,
)
from tests.store.facts.test_facts import HOSTILE
from tests.store.samples import SCOPE, dialogue, write

CHANGES = {"edit": edit("Something else."), "confirm": CONFIRM, "share": SHARE, "unshare": UNSHARE, "delete": DELETE}
NOBODYS = (0, -1, 2**62, 2**63, -(2**80))

any_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


class TestFactReview:
    async def test_every_version_can_be_read(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.", category="habit")
        await store.facts.change(SCOPE, made, edit("Dives.", category="other"))
        await store.facts.change(SCOPE, made, SHARE)
        await write(store, "d", *dialogue(1))
        await learn(store, "d", new("Dives.", 0))
        await learn(store, "d", new("Sinks.", 0, supersedes=(made,)))
        now = await fact_of(store, made)
        assert (now.state, now.version, now.repeated) == (FactState.SUPERSEDED, 3, 1)
        for version, content, category, visibility in (
            (1, "Swims.", "habit", PRIVATE),
            (2, "Dives.", "other", PRIVATE),
            (3, "Dives.", "other", SHARED),
        ):
            then = {"version": version, "content": content, "category": category, "visibility": visibility}
            assert await version_of(store, made, version) == replace(now, evidence=(), **then)
        for version in (0, 4, -1, 2**40):
            assert await version_of(store, made, version) is None

    async def test_versions_come_in_the_order_in_which_they_are_asked_for(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        swims, fences = await learned(store, "Swims.", "Fences.")
        bens = await shared_by(store, "Sings.", scope=BEN)
        await store.facts.change(SCOPE, swims, edit("Dives."))
        asked = [(fences, 1), (swims, 2), (2**63, 1), (bens, 2), (swims, 1), (fences, 2**31), (bens, 1), (swims, 2)]
        told = await store.facts.versions(SCOPE, asked)
        assert [one and one.content for one in told] == [
            *("Fences.", "Dives.", None, "Sings.", "Swims.", None, None, "Dives.")
        ]
        assert [one and (one.id, one.version) for one in told] == [
            pair if one else None for pair, one in zip(asked, told, strict=True)
        ]
        assert await store.facts.versions(SCOPE, []) == []

    @any_change
    async def test_of_two_reviewers_at_once_one_wins(self, store: Store, change: FactChange) -> None:
        (made,) = await learned(store, "Swims.")
        await store.facts.change(SCOPE, made, SHARE if change is UNSHARE else CONFIRM)
        reviewers = [
            store.facts.change(SCOPE, made, replace(one, expect=2)) for one in (change, edit("Floats."), CONFIRM)
        ]
        ended = await asyncio.gather(*reviewers, return_exceptions=True)
        assert len([one for one in ended if isinstance(one, Fact)]) == 1
        lost = [one for one in ended if not isinstance(one, Fact)]
        assert all(isinstance(one, StaleVersion | NotFound) for one in lost), lost
        assert {one.actual for one in lost if isinstance(one, StaleVersion)} <= {3}
        assert len(await actions_of(store, made)) == 3
        assert (await fact_of(store, made)).version == 3

    @any_change
    async def test_what_was_changed_meanwhile_is_left_alone(self, store: Store, change: FactChange) -> None:
        (made,) = await learned(store, "Swims.")
        await store.facts.change(SCOPE, made, SHARE)
        before = await facts_snapshot(store, SCOPE)
        with pytest.raises(StaleVersion, match="2") as told:
            await store.facts.change(SCOPE, made, replace(change, expect=1))
        assert told.value.actual == 2
        assert await facts_snapshot(store, SCOPE) == before

    async def test_facts_of_all_agents_are_changed_where_that_is_asked_for(self, store: Store) -> None:
        other = replace(SCOPE, agent="another")
        (made,) = await learned(store, "Swims.", scope=other)
        after = await store.facts.change(SCOPE, made, edit("Dives."), all_agents=True)
        assert (after.agent, after.content, after.version) == ("another", "Dives.", 2)
        assert await current_contents(store, scope=other) == ["Dives."]
        assert await current_contents(store) == []
        assert await store.facts.history(SCOPE, made) == ()
        assert len(await store.facts.history(SCOPE, made, all_agents=True)) == 2

    async def test_a_number_that_nobody_has_is_not_found(self, store: Store) -> None:
        for nobodys in NOBODYS:
            facts = store.facts
            await learned(store, "Swims.")
            for all_agents in (False, True):
                with pytest.raises(NotFound) as told:
                    await facts.change(SCOPE, nobodys, CONFIRM, all_agents=all_agents)
                assert f"{told.value}" == f"{no_such_fact(SCOPE, nobodys, all_agents=all_agents)}"
            assert await facts.fact(SCOPE, nobodys) is None
            assert await facts.fact(SCOPE, nobodys, all_agents=True) is None
            assert await version_of(store, nobodys, 1) is None
            assert await facts.history(SCOPE, nobodys) == ()
            after = await facts.facts(SCOPE, FactFilter(after=nobodys))
            assert len(after) == (nobodys <= 0)

    async def test_of_a_deleted_fact_nothing_is_left_but_that_it_was(self, store: Store) -> None:
        (made,) = await learned(store, "A secret.", metadata={"category": "secret"})
        await store.facts.change(SCOPE, made, edit("Another secret.", metadata={"category": "secret"}))
        before = await fact_of(store, made)
        after = await store.facts.change(SCOPE, made, replace(DELETE, expect=2))
        assert after == await fact_of(store, made)
        assert (after.state, after.version, after.content, after.metadata) == (FactState.DELETED, 3, "", {})
        assert (after.evidence, after.category, after.extracted_at) == ((), "hobby", before.extracted_at)
        assert after.ended_at == after.updated_at > before.updated_at
        assert await actions_of(store, made) == [FactAction.EXTRACTED, FactAction.EDITED, FactAction.DELETED]
        events = await store.facts.history(SCOPE, made)
        assert [(one.version, one.content) for one in events] == [(1, ""), (2, ""), (3, "")]
        assert [await version_of(store, made, version) for version in range(5)] == [None] * 5
        assert await current_contents(store) == await known(store) == await listed(store) == []
        assert await store.facts.facts(SCOPE, EVERYTHING) == [after]
        assert "secret" not in repr(await facts_snapshot(store, SCOPE))
        for change in CHANGES.values():
            with pytest.raises(NotFound, match=f"fact {made} is deleted"):
                await store.facts.change(SCOPE, made, replace(change, expect=7))
            with pytest.raises(NotFound) as theirs:
                await store.facts.change(BEN, made, change)
            assert f"{theirs.value}" == f"{no_such_fact(BEN, made)}", "that he had it is told to nobody else"

    @pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
    async def test_an_edit_takes_any_content(self, store: Store, content: str) -> None:
        (made,) = await learned(store, "Swims.")
        after = await store.facts.change(SCOPE, made, edit(content))
        assert after.content == storable(content)
        assert await current_contents(store) == await known(store) == [storable(content)]
        assert await version_of(store, made, 2) == replace(after, evidence=())
