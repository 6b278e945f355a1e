"""Facts shared with the members of their subject: the only way for a fact to leave a scope."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from hitherto.core.facts.fact import Subject
from hitherto.core.facts.queries import FactFilter, KnownFactsQuery
from hitherto.core.scope import THE_USER, Scope
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.facts.samples import (
    ADA,
    BEN,
    CAT,
    MUM,
    PRIVATE,
    SHARED,
    fact_of,
    known,
    learned,
    listed,
    seen,
    set_whole,
    shared_by,
    version_of,
)
from tests.store.samples import user, write

OUTSIDE = {
    "no member": CAT,
    "tenant": replace(BEN, tenant="another"),
    "agent": replace(BEN, agent="another"),
    "case": replace(BEN, user="BEN"),
    "space": replace(BEN, user="ben "),
    "wildcard": replace(BEN, user="%"),
    "list": replace(BEN, user=f"{ADA.user},{BEN.user}"),
}


class TestSharedFact:
    @pytest.fixture
    async def roses(self, store: Store) -> int:
        """Ada's fact about her mum, which Ben sees."""
        await set_whole(store, ADA.tenant, MUM)
        return await shared_by(store, "Grows roses.")

    async def test_it_is_told_from_ones_own(self, store: Store, roses: int) -> None:
        (bens,) = await learned(store, "Grows roses.", scope=BEN, subject=MUM.id)
        later = await shared_by(store, "Sings.", name="d")
        told = await store.facts.known(BEN, MUM.id)
        assert told.subject == MUM
        assert told.ids.tolist() == [roses, bens, later]
        assert told.own.tolist() == [False, True, False]
        assert told.shared.tolist() == [True, False, True]
        assert told.versions.tolist() == [2, 1, 2]
        assert list(told.contents) == ["Grows roses.", "Grows roses.", "Sings."]
        mine = await store.facts.known(ADA, MUM.id)
        assert (mine.ids.tolist(), mine.own.tolist(), mine.shared.tolist()) == ([roses, later], [True] * 2, [True] * 2)

    @pytest.mark.parametrize("outside", OUTSIDE.values(), ids=OUTSIDE.keys())
    async def test_it_is_shown_to_nobody_else(self, store: Store, roses: int, outside: Scope) -> None:
        await set_whole(store, "another", MUM)
        assert not await seen(store, roses, scope=outside)
        for version in (1, 2):
            assert await version_of(store, roses, version, scope=outside) is None
        assert await store.facts.history(outside, roses, all_agents=True) == ()
        assert (await store.facts.known(outside, MUM.id)).terms.tolist() == []

    async def test_who_is_no_member_is_told_neither_members_nor_name(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        for scope, told in ((ADA, MUM), (BEN, MUM), (CAT, Subject(id=MUM.id, name=MUM.id))):
            assert (await store.facts.current_facts(scope, MUM.id)).subject == told
            assert (await store.facts.known(scope, MUM.id)).subject == told
            _, found, _ = await store.head_and_known(scope, "c", KnownFactsQuery(subject=MUM.id))
            assert found.subject == told
        everybodys = await set_whole(store, ADA.tenant, replace(MUM, members=()))
        assert (await store.facts.known(CAT, MUM.id)).subject == everybodys, "without members, it is nobody's secret"

    async def test_facts_about_the_user_himself_are_his_own(self, store: Store) -> None:
        """Whatever their visibility says, and even if `THE_USER` was set as a subject with members."""
        with suppress(HithertoError):
            await set_whole(store, ADA.tenant, replace(MUM, id=THE_USER))
        made = await shared_by(store, "Is afraid of dogs.", subject=THE_USER)
        assert (await fact_of(store, made)).visibility is SHARED
        for scope in (BEN, CAT):
            assert await known(store, scope=scope) == await listed(store, scope=scope) == []
            assert await store.facts.fact(scope, made) is None
            assert await version_of(store, made, 2, scope=scope) is None
            head, told, _ = await store.head_and_known(scope, "c", KnownFactsQuery(subject=THE_USER))
            assert (head, told.ids.tolist()) == (None, [])
        (own,) = (await store.facts.known(ADA, THE_USER)).shared.tolist()
        assert own

    async def test_lists_of_ones_own_and_of_what_others_share(self, store: Store, roses: int) -> None:
        await learned(store, "Is ill.", "Sings.", scope=BEN, subject=MUM.id)
        dad = replace(MUM, id="dad")
        await set_whole(store, ADA.tenant, dad)
        await shared_by(store, "Fishes.", subject="dad", name="dad")
        every = ["Grows roses.", "Is ill.", "Sings.", "Fishes."]
        wanted: dict[str, tuple[dict[str, Any], list[str]]] = {
            "both": ({}, every),
            "mine": ({"shared": False}, ["Is ill.", "Sings."]),
            "shared": ({"mine": False}, ["Grows roses.", "Fishes."]),
            "none": ({"mine": False, "shared": False}, []),
            "about mum": ({"subject": MUM.id}, every[:3]),
            "shared about dad": ({"subject": "dad", "mine": False}, ["Fishes."]),
            "about himself": ({"subject": THE_USER}, []),
            "a page": ({"limit": 2}, every[:2]),
            "the next page": ({"after": roses, "limit": 2}, every[1:3]),
            "of a category": ({"category": "hobby"}, every),
            "of no category": ({"category": "habit"}, []),
            "of a conversation": ({"conversation": "c"}, ["Is ill.", "Sings."]),
        }
        for name, (asked, contents) in wanted.items():
            assert await listed(store, scope=BEN, **asked) == contents, name
        assert PRIVATE in {one.visibility for one in await store.facts.facts(BEN, FactFilter(mine=True))}

    async def test_a_context_shows_what_is_shared(self, store: Store, roses: int) -> None:
        await write(store, "mine", user("How is she?"), scope=BEN, subject=MUM.id)
        head, told, _ = await store.head_and_known(BEN, "mine", KnownFactsQuery(subject=THE_USER))
        assert head is not None
        assert (head.subject, list(told.contents), told.subject) == (MUM.id, ["Grows roses."], MUM)
