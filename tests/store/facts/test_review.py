"""The review of facts: changes by a person, versions, and what a deletion leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.facts.change import no_such_fact
from hitherto.core.facts.fact import Fact, FactAction, FactState
from hitherto.core.facts.queries import FactChange, FactFilter
from hitherto.core.log.message import storable
from hitherto.core.scope import THE_USER, Scope
from hitherto.errors import InvalidFact, NotFound, StaleVersion
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
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
    said,
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
    async def test_an_edit_is_what_is_known_from_then_on(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        before = await fact_of(store, made)
        change = edit("Swims in lakes.", category="habit", metadata='{"category": "water"}')
        after = await store.facts.change(SCOPE, made, change)
        assert after == await fact_of(store, made)
        assert after == replace(
            before,
            content="Swims in lakes.",
            category="habit",
            metadata='{"category": "water"}',
            confidence=1.0,
            confirmed=True,
            version=2,
            updated_at=after.updated_at,
        )
        assert after.updated_at > before.updated_at
        assert await current_contents(store) == await known(store) == await listed(store) == ["Swims in lakes."]
        told = await store.facts.known(SCOPE, THE_USER)
        assert (told.versions.tolist(), told.tokens.tolist(), told.categories[0]) == ([2], [6], "habit")

    async def test_each_change_is_one_version_on(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.", category="habit")
        steps = [
            (CONFIRM, "Swims.", "habit", PRIVATE),
            (CONFIRM, "Swims.", "habit", PRIVATE),
            (SHARE, "Swims.", "habit", SHARED),
            (edit("Dives.", category="other"), "Dives.", "other", SHARED),
            (edit("Dives.", category="other"), "Dives.", "other", SHARED),
            (UNSHARE, "Dives.", "other", PRIVATE),
        ]
        for at, (change, content, category, visibility) in enumerate(steps, 2):
            after = await store.facts.change(SCOPE, made, replace(change, expect=at - 1))
            assert after == await fact_of(store, made)
            assert (after.version, after.content, after.category, after.visibility) == (
                at,
                content,
                category,
                visibility,
            )
            assert (after.visibility, after.confirmed, after.confidence) == (visibility, True, 1.0)
            event = (await store.facts.history(SCOPE, made))[-1]
            assert (event.action, event.by, event.version) == (change.action, SCOPE.user, at)
            assert abs(event.at - after.updated_at).total_seconds() < 1
            assert (event.content, event.category, event.visibility) == (content, category, visibility)
        events = await store.facts.history(SCOPE, made)
        assert [one.action for one in events] == [FactAction.EXTRACTED, *(change.action for change, *_ in steps)]
        assert [one.version for one in events] == list(range(1, 8))
        assert [one.at for one in events] == sorted(one.at for one in events)

    async def test_sharing_alone_confirms_nothing(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        for change in (SHARE, UNSHARE):
            after = await store.facts.change(SCOPE, made, change)
            assert (after.confirmed, after.confidence) == (False, 0.5)

    async def test_to_share_what_is_shared_changes_nothing(self, store: Store) -> None:
        shared = await shared_by(store, "Swims.", subject=THE_USER)
        (private,) = await learned(store, "Fences.")
        before = await facts_snapshot(store, SCOPE)
        for made, change, version in ((shared, SHARE, 2), (private, UNSHARE, 1)):
            assert await store.facts.change(SCOPE, made, change) == await fact_of(store, made)
            assert await store.facts.change(SCOPE, made, replace(change, expect=version)) == await fact_of(store, made)
            with pytest.raises(StaleVersion):
                await store.facts.change(SCOPE, made, replace(change, expect=version + 1))
        assert await facts_snapshot(store, SCOPE) == before

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

    @any_change
    async def test_only_a_current_fact_changes(self, store: Store, change: FactChange) -> None:
        old, taken = await learned(store, "Old.", "Taken back.")
        await write(store, "d", *dialogue(1))
        await learn(store, "d", new("New.", 0, supersedes=(old,)))
        await take_back(store, "c", 1)
        before = await facts_snapshot(store, SCOPE)
        for made, state in ((old, FactState.SUPERSEDED), (taken, FactState.WITHDRAWN)):
            assert (await fact_of(store, made)).state is state
            with pytest.raises(StaleVersion):
                await store.facts.change(SCOPE, made, replace(change, expect=7))
            if change is UNSHARE:
                assert (await store.facts.change(SCOPE, made, change)).state is state
            elif change is not DELETE:
                with pytest.raises(InvalidFact, match=f"{made}"):
                    await store.facts.change(SCOPE, made, change)
                assert await facts_snapshot(store, SCOPE) == before
            else:
                after = await store.facts.change(SCOPE, made, change)
                assert (after.state, after.content, after.ended_at is not None) == (FactState.DELETED, "", True)

    async def test_two_current_facts_never_say_the_same(self, store: Store) -> None:
        swims, fences = await learned(store, "Swims.", "Fences.")
        await learned(store, "Rows.", name="dad", subject="dad")
        await learned(store, "Sails.", scope=BEN)
        before = await facts_snapshot(store, SCOPE)
        with pytest.raises(InvalidFact, match=f"{swims}|{fences}"):
            await store.facts.change(SCOPE, swims, edit("Fences."))
        assert await facts_snapshot(store, SCOPE) == before
        for content in ("Swims.", "Rows.", "Sails."):
            assert (await store.facts.change(SCOPE, swims, edit(content))).content == content
        await store.facts.change(SCOPE, fences, DELETE)
        assert (await store.facts.change(SCOPE, swims, edit("Fences."))).content == "Fences."
        assert not (await store.facts.add(SCOPE, THE_USER, new("Fences."))).new
        assert (await store.facts.add(SCOPE, THE_USER, new("Swims."))).new

    @any_change
    @pytest.mark.parametrize(
        "scope",
        [BEN, replace(SCOPE, tenant="another"), replace(SCOPE, agent="another")],
        ids=["member", "tenant", "agent"],
    )
    async def test_anothers_fact_is_not_found(self, store: Store, scope: Scope, change: FactChange) -> None:
        """The error does not even reveal that the fact exists: its message is that of an id that no fact has."""
        await set_whole(store, ADA.tenant, MUM)
        made = await shared_by(store, "Swims.")
        before = await facts_snapshot(store, ADA, MUM.id)
        all_agents = scope.user != ADA.user
        for one in (change, replace(change, expect=1)):
            with pytest.raises(NotFound) as theirs:
                await store.facts.change(scope, made, one, all_agents=all_agents)
            with pytest.raises(NotFound) as nobodys:
                await store.facts.change(scope, made + 1, one, all_agents=all_agents)
            assert f"{theirs.value}" == f"{nobodys.value}".replace(f"fact {made + 1}", f"fact {made}")
        assert await facts_snapshot(store, ADA, MUM.id) == before

    async def test_facts_of_all_agents_are_changed_where_that_is_asked_for(self, store: Store) -> None:
        other = replace(SCOPE, agent="another")
        (made,) = await learned(store, "Swims.", scope=other)
        after = await store.facts.change(SCOPE, made, edit("Dives."), all_agents=True)
        assert (after.agent, after.content, after.version) == ("another", "Dives.", 2)
        assert await current_contents(store, scope=other) == ["Dives."]
        assert await current_contents(store) == []
        assert await store.facts.history(SCOPE, made) == ()
        assert len(await store.facts.history(SCOPE, made, all_agents=True)) == 2

    @pytest.mark.parametrize("nobodys", NOBODYS)
    async def test_a_number_that_nobody_has_is_not_found(self, store: Store, nobodys: int) -> None:
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
        (made,) = await learned(store, "A secret.", metadata='{"category": "secret"}')
        await store.facts.change(SCOPE, made, edit("Another secret.", metadata='{"category": "secret"}'))
        before = await fact_of(store, made)
        after = await store.facts.change(SCOPE, made, replace(DELETE, expect=2))
        assert after == await fact_of(store, made)
        assert (after.state, after.version, after.content, after.metadata) == (FactState.DELETED, 3, "", "{}")
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

    async def test_what_was_deleted_can_be_said_anew(self, store: Store) -> None:
        (made,) = await learned(store, "Swims.")
        await store.facts.change(SCOPE, made, DELETE)
        again = await learned(store, "Swims.", name="d")
        assert again > [made]
        await store.facts.change(SCOPE, again[0], DELETE)
        added = await store.facts.add(SCOPE, THE_USER, new("Swims."))
        assert (added.new, added.id > again[0]) == (True, True)
        assert (await fact_of(store, made)).content == ""
        assert await said(store, again[0]) == []

    @pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
    async def test_an_edit_takes_any_content(self, store: Store, content: str) -> None:
        (made,) = await learned(store, "Swims.")
        after = await store.facts.change(SCOPE, made, edit(content))
        assert after.content == storable(content)
        assert await current_contents(store) == await known(store) == [storable(content)]
        assert await version_of(store, made, 2) == replace(after, evidence=())
