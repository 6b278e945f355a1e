"""Scopes in the search index: another scope's entries are never found, counted or named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hitherto.core.recall.filter import SearchFilter
from hitherto.core.recall.index import SearchData
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.conftest import AS_BOTH
from tests.store.recall.samples import (
    MINE,
    SPACE,
    candidates,
    found,
    having,
    indexed,
    keys_of,
    search_data,
    taken,
    waiting,
)
from tests.store.samples import HOUR, SCOPE, head_of, user, write

OTHERS = {
    "tenant": replace(SCOPE, tenant="another"),
    "user": replace(SCOPE, user="another"),
    "agent": replace(SCOPE, agent="another"),
    "case": replace(SCOPE, user=SCOPE.user.upper()),
    "space": replace(SCOPE, agent=SCOPE.agent + " "),
    "wildcard": replace(SCOPE, user="%"),
    "swapped": Scope(tenant=SCOPE.user, user=SCOPE.tenant, agent=SCOPE.agent),
}

waits = pytest.mark.parametrize("waits", [False, True], ids=["indexed", "waiting"])


async def planted(store: Store, *scopes: Scope) -> None:
    """Write into each scope messages that would rank first for "tea", in conversations named as those of the tests."""
    for scope in scopes:
        for name in "cd":
            await write(store, name, *(user("tea tea tea") for _ in range(3)), scope=scope)


pytestmark = [AS_BOTH, pytest.mark.slow]


class TestSearchScope:
    @waits
    async def test_a_search_sees_nothing_of_others(self, store: Store, waits: bool) -> None:
        await write(store, "c", user("tea for me"))
        await planted(store, *OTHERS.values())
        if not waits:
            await indexed(store, space=SPACE)
        criteria = replace(MINE, conversation="c", exclude_conversation="d", hidden={"e": 1})
        told = await search_data(store, criteria, words=["tea"], spaces=[SPACE])
        assert told.refs == {"c": (await head_of(store, "c")).ref}
        assert (told.entries, told.embedded) == ((0, 0) if waits else (1, 1))
        assert [one.text for one in told.waiting] == (["tea for me"] if waits else [])
        assert list(having(told, "tea").values()) == ([] if waits else [1])
        assert len({block.scope for block in told.blocks}) == len(keys_of(told))
        assert await found(store) == ["tea for me"]

    @waits
    async def test_others_see_nothing(self, store: Store, waits: bool) -> None:
        """Neither the numbers of entries nor those of conversations give access."""
        await planted(store, SCOPE)
        if not waits:
            await indexed(store, space=SPACE)
        keys = keys_of(await search_data(store))
        assert len(keys) == (0 if waits else 6)
        guessed = keys or [(scope, no) for scope in range(9) for no in range(9)]
        for other in OTHERS.values():
            criteria = SearchFilter(scope=other, conversation="c", hidden={"d": 0})
            assert await search_data(store, criteria, words=["tea"], spaces=[SPACE]) == SearchData()
            for one in (SearchFilter(scope=other), criteria):
                assert await candidates(store, one, keys=guessed, space=SPACE, around=9) == []
        for other in OTHERS.values():
            await write(store, "c", user("mine"), scope=other)
        await indexed(store)
        for other in OTHERS.values():
            (own,) = keys_of(await search_data(store, SearchFilter(scope=other)))
            told = await candidates(store, SearchFilter(scope=other), keys=[*keys, own], around=9)
            assert [one.source.text for one in told] == ["mine"]

    @waits
    async def test_all_agents_is_asked_for(self, store: Store, waits: bool) -> None:
        for name, scope in {"mine": SCOPE, **OTHERS}.items():
            await write(store, "c", user(f"tea of {name}"), scope=scope)
        if not waits:
            await indexed(store)
        everyone = replace(MINE, all_agents=True)
        assert await found(store) == ["tea of mine"]
        assert await found(store, everyone) == ["tea of agent", "tea of mine", "tea of space"]
        told = await search_data(store, everyone, words=["tea"])
        assert (told.entries, len(told.waiting)) == ((0, 3) if waits else (3, 0))
        assert len(having(told, "tea")) == told.entries
        agents = {one.agent for one in told.waiting} or {one.source.agent for one in await candidates(store, everyone)}
        assert agents == {SCOPE.agent, "another", SCOPE.agent + " "}

    async def test_conversations_are_named_within_the_scope(self, store: Store) -> None:
        """With all agents too: another agent's conversation of the same name is a different one."""
        await write(store, "c", user("theirs in c"), scope=OTHERS["agent"])
        await write(store, "c", user("mine in c"))
        await write(store, "c", user("others in c"), scope=OTHERS["space"])
        await write(store, "d", user("theirs in d"), scope=OTHERS["agent"])
        await indexed(store)
        rest = ["others in c", "theirs in c", "theirs in d"]
        for criteria, texts in (
            (replace(MINE, conversation="c"), ["mine in c"]),
            (replace(MINE, conversation="c", as_of=0), ["mine in c"]),
            (replace(MINE, conversation="d"), []),
            (replace(MINE, exclude_conversation="c"), rest),
            (replace(MINE, exclude_conversation="d"), ["mine in c", *rest]),
            (replace(MINE, hidden={"c": 0, "d": 0}), rest),
        ):
            everyone = replace(criteria, all_agents=True)
            assert sorted(one.source.text for one in await candidates(store, everyone)) == texts, criteria
        told = await search_data(store, replace(MINE, all_agents=True, conversation="c", exclude_conversation="d"))
        assert told.refs == {"c": (await head_of(store, "c")).ref}

    async def test_a_claim_on_an_index_needs_the_tenant(self, store: Store) -> None:
        await planted(store, SCOPE)
        work = await taken(store.index, space=SPACE)
        foreign = replace(work, tenant="another", sources=(), unembedded=(), seen=())
        assert not await store.index.add(foreign, [])
        assert not await store.index.compact_index(foreign)
        await store.index.release(foreign)
        assert await store.index.take(space=SPACE, lease=HOUR, limit=9) is None
        assert len(await waiting(store)) == 6
