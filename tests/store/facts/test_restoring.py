"""Facts that become current again: a person restores them, or their successor is withdrawn."""

from __future__ import annotations

from dataclasses import replace

from hitherto.core.facts.fact import FactAction, FactState
from hitherto.core.recall.filter import EntryKind
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    RESTORE,
    SHARE,
    actions_of,
    current_contents,
    fact_of,
    known,
    learned,
    listed,
    said,
)
from tests.store.recall.samples import MINE
from tests.store.samples import SCOPE

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
