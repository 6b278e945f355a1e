"""Evidence: what becomes of a fact when its messages are erased, taken back or deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hitherto.core.facts.fact import MOST_EVIDENCE, FactAction, RepeatedFact
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    CONFIRM,
    MUM,
    current_contents,
    edit,
    fact_of,
    facts_snapshot,
    learn,
    learned,
    new,
    said,
    version_of,
)
from tests.store.samples import SCOPE, clear, user, write


async def delete(store: Store, name: str = "c", *, facts: bool = False) -> None:
    async with store.write(SCOPE, name) as unit:
        await unit.delete(facts=facts)


async def told_of(store: Store) -> str:
    """Everything the store returns about facts, as one text to look for what must not be in it."""
    return repr(await facts_snapshot(store, SCOPE, MUM.id))


class TestFactEvidence:
    async def test_evidence_comes_in_the_order_of_its_time(self, store: Store) -> None:
        for _ in range(2):
            await write(store, "d", user("I swim."))
            await write(store, "c", user("I swim."))
        (made,) = await learn(store, "c", new("Swims.", 1, 0))
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(1,), confidence=0.6)])
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(0,), confidence=0.7)])
        assert await said(store, made) == [("d", 0), ("c", 0), ("d", 1), ("c", 1)]
        times = [one.said_at for one in (await fact_of(store, made)).evidence]
        assert times == sorted(times)

    async def test_of_much_evidence_the_first_is_shown(self, store: Store) -> None:
        said_often = range(MOST_EVIDENCE + 20)
        await write(store, "c", *(user("I swim.") for _ in said_often))
        (made,) = await learn(store, "c", new("Swims.", *said_often))
        assert await said(store, made) == [("c", seq) for seq in range(MOST_EVIDENCE)]

    async def test_evidence_tells_when_it_was_said(self, store: Store) -> None:
        """Not when it was appended: an import has its dates."""
        june, may = (datetime(2023, month, 1, tzinfo=UTC) for month in (6, 5))
        for name, at in (("c", june), ("d", may)):
            await write(store, name, replace(user("I swim."), said_at=at))
        (made,) = await learn(store, "c", new("Swims.", 0))
        await learn(store, "d", repeated=[RepeatedFact(fact=made, seqs=(0,), confidence=0.6)])
        assert [one.said_at for one in (await fact_of(store, made)).evidence] == [may, june]

    async def test_a_clear_leaves_facts(self, store: Store) -> None:
        await learned(store, "Swims.", "Sings.")
        before = await facts_snapshot(store, SCOPE)
        await clear(store, "c")
        assert await facts_snapshot(store, SCOPE) == before

    @pytest.mark.parametrize("now", [THE_USER, "dad"], ids=["himself", "another"])
    async def test_facts_are_about_the_subject_that_they_were_asked_for(self, store: Store, now: str) -> None:
        """Even if the conversation is about another subject by the time they come."""
        await write(store, "c", user("She swims."), subject=MUM.id)
        await write(store, "c", user("Now to something else."), subject=now)
        (known_before,) = await learned(store, "Swims.", name="d", subject=now)
        before = await fact_of(store, known_before)
        (made,) = await learn(store, "c", new("Swims.", 0), subject=MUM.id)
        assert ((await fact_of(store, made)).subject, await said(store, made)) == (MUM.id, [("c", 0)])
        assert (await current_contents(store, MUM.id), await current_contents(store, now)) == (["Swims."], ["Swims."])
        assert await fact_of(store, known_before) == before
        repeated = [RepeatedFact(fact=one, seqs=(1,), confidence=0.9) for one in (made, known_before)]
        fences = new("Fences.", 1, supersedes=(known_before,), single_valued=True)
        await learn(store, "c", fences, repeated=repeated, subject=MUM.id)
        assert await fact_of(store, known_before) == before
        assert await current_contents(store, MUM.id) == ["Fences."]
        await write(store, "c", erase=((0, 1),))
        assert await current_contents(store, MUM.id) == []


class TestFactErasure:
    @pytest.mark.parametrize("first", ["erased", "taken back"])
    async def test_what_a_confirmed_fact_said_before_is_forgotten_with_its_messages(
        self, store: Store, first: str
    ) -> None:
        made, other = await learned(store, "A secret.", "Fences.")
        await learn(store, "c", repeated=[RepeatedFact(fact=made, seqs=(1,), confidence=0.7)])
        await store.facts.change(SCOPE, made, edit("Another secret."))
        await store.facts.change(SCOPE, made, edit("Swims."))
        await store.facts.change(SCOPE, made, CONFIRM)
        await store.facts.change(SCOPE, other, CONFIRM)
        await write(store, "c", erase=((0, 0),))
        whole = ["A secret.", "A secret.", "Another secret.", "Swims.", "Swims."]
        assert await _contents(store, made) == whole, "one message says it still"
        if first == "taken back":
            await take_back(store, "c", 1)
            assert await _contents(store, made) == whole
        before = await fact_of(store, made)
        await write(store, "c", erase=((1, 1),))
        after = await fact_of(store, made)
        assert after == replace(before, evidence=(), updated_at=after.updated_at)
        assert (after.content, after.version) == ("Swims.", 4)
        assert await _contents(store, made) == ["", "", "", "Swims.", "Swims."]
        events = await store.facts.history(SCOPE, made)
        assert [(one.action, one.version) for one in events] == [
            (FactAction.EXTRACTED, 1),
            (FactAction.REPEATED, 1),
            (FactAction.EDITED, 2),
            (FactAction.EDITED, 3),
            (FactAction.CONFIRMED, 4),
        ]
        then = [await version_of(store, made, version) for version in range(1, 5)]
        assert [one and one.content for one in then] == [None, None, "Swims.", "Swims."]
        assert "secret" not in await told_of(store)
        assert await _contents(store, other) == ["Fences.", "Fences."]
        assert await current_contents(store) == ["Swims.", "Fences."]


async def _contents(store: Store, fact: int) -> list[str]:
    return [event.content for event in await store.facts.history(SCOPE, fact)]
