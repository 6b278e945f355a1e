"""Confirmed facts whose messages are erased: the history forgets their earlier contents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.facts.fact import FactAction, RepeatedFact
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    CONFIRM,
    current_contents,
    edit,
    fact_of,
    learn,
    learned,
    version_of,
)
from tests.store.facts.test_evidence import told_of
from tests.store.samples import SCOPE, write


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
