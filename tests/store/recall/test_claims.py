"""Claims on the index: one process at a time writes a scope's entries, and each gets its turn."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from hitherto.core.recall.index import IndexBacklog, IndexWork
from hitherto.store.recall.index import SearchIndex
from hitherto.store.store import Store
from tests.store.recall.samples import (
    ENOUGH,
    SPACE,
    found,
    indexed,
    keys_of,
    made,
    search_data,
    taken,
    vectors_of,
    waiting,
)
from tests.store.samples import AT_ONCE, HOUR, SCOPE, user, write

MOMENT = timedelta(seconds=0.02)
SCOPES = [replace(SCOPE, user=f"user {n}") for n in range(4)]


async def take(index: SearchIndex, *, lease: timedelta = HOUR) -> IndexWork | None:
    return await index.take(space=None, lease=lease, limit=ENOUGH)


async def writes_nothing(store: Store, work: IndexWork) -> bool:
    """Whether every write under this claim is refused and changes nothing."""
    index = store.index
    before = await search_data(store, spaces=[SPACE])
    done = [
        await index.add(work, made(work.sources)),
        await index.embed(work, SPACE, vectors_of(work)),
        await index.compact_index(work),
        await index.prolong(work, lease=HOUR),
        await index.more(work, space=SPACE, lease=HOUR, limit=ENOUGH) is not None,
    ]
    after = await search_data(store, spaces=[SPACE])
    same = (after.waiting, keys_of(after), after.embedded) == (before.waiting, keys_of(before), before.embedded)
    return same and not any(done)


class TestIndexClaim:
    async def test_nothing_to_be_done_is_nothing_to_take(self, store: Store) -> None:
        assert await take(store.index) is None
        await write(store, "c", user("tea"))
        await indexed(store, space=SPACE)
        assert await store.index.take(space=SPACE, lease=HOUR, limit=ENOUGH) is None

    async def test_of_many_takers_each_gets_another_scope(self, store: Store) -> None:
        for scope in SCOPES:
            for name in "cd":
                await write(store, name, user(f"of {scope.user}"), scope=scope)
        got = [work for work in await asyncio.gather(*(take(store.index) for _ in range(16))) if work is not None]
        assert len({(work.tenant, work.ref) for work in got}) == len(got)
        while (more := await take(store.index)) is not None:  # skipped while another task looked at them
            got.append(more)
        assert sorted(tuple(one.text for one in work.sources) for work in got) == [
            (f"of {scope.user}", f"of {scope.user}") for scope in SCOPES
        ]

    async def test_a_claim_says_whose_scope_it_is(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        work = await taken(store.index)
        assert (work.tenant, work.user, work.agent) == (SCOPE.tenant, SCOPE.user, SCOPE.agent)
        held = await store.index.more(work, space=None, lease=HOUR, limit=ENOUGH)
        assert held is not None
        assert (held.tenant, held.user, held.agent) == (work.tenant, work.user, work.agent)

    async def test_a_scope_in_hand_cannot_be_taken(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        work = await taken(store.index)
        assert await take(store.index) is None
        await store.index.release(work)
        again = await taken(store.index)
        assert (again.tenant, again.ref) == (work.tenant, work.ref)
        assert again.attempt > work.attempt
        assert again.sources == work.sources

    @pytest.mark.parametrize("how", ["more", "prolong"])
    async def test_a_claim_is_held_on_to(self, store: Store, how: str) -> None:
        await write(store, "c", user("tea"))
        work = await taken(store.index, lease=3 * MOMENT)
        if how == "more":
            held = await store.index.more(work, space=None, lease=HOUR, limit=ENOUGH)
            assert held is not None
            assert (held.ref, held.attempt, held.sources) == (work.ref, work.attempt, work.sources)
        else:
            assert await store.index.prolong(work, lease=HOUR)
        await asyncio.sleep(4 * MOMENT.total_seconds())
        assert await take(store.index) is None
        assert await store.index.add(work, made(work.sources))

    async def test_more_goes_on_from_what_was_done(self, store: Store) -> None:
        await write(store, "c", *(user(f"{at}") for at in range(5)))
        work = await taken(store.index, space=SPACE, limit=2)
        told: list[list[str]] = []
        for _ in range(9):
            told.append([one.text for one in work.sources])
            assert await store.index.add(work, made(work.sources))
            assert await store.index.embed(work, SPACE, vectors_of(work))
            following = await store.index.more(work, space=SPACE, lease=HOUR, limit=2)
            assert following is not None
            work = following
            if work.done:
                break
        assert work.done
        assert [texts for texts in told if texts] == [["0", "1"], ["2", "3"], ["4"]]
        assert (await search_data(store, spaces=[SPACE])).embedded == 5

    async def test_a_lost_claim_writes_nothing(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        await indexed(store)
        await write(store, "c", user("milk"))
        lost = await taken(store.index, space=SPACE, lease=AT_ONCE)
        assert (len(lost.sources), len(lost.unembedded)) == (1, 1)
        mine = await taken(store.index, space=SPACE)
        assert await writes_nothing(store, lost)
        await store.index.release(lost)
        assert await take(store.index) is None, "it is not the loser's to give back"
        assert await store.index.add(mine, made(mine.sources))
        assert await store.index.embed(mine, SPACE, vectors_of(mine))
        assert await writes_nothing(store, lost)
        assert await waiting(store) == []

    async def test_what_was_given_back_is_lost(self, store: Store) -> None:
        await write(store, "c", user("tea"))
        work = await taken(store.index, space=SPACE)
        await store.index.release(work)
        assert await writes_nothing(store, work)

    async def test_what_has_an_entry_gets_no_other(self, store: Store) -> None:
        await write(store, "c", user("tea"), user("milk"))
        work = await taken(store.index)
        for _ in range(2):
            assert await store.index.add(work, made(work.sources))
        assert len(keys_of(await search_data(store))) == 2
        assert await found(store) == ["milk", "tea"]

    async def test_what_comes_meanwhile_waits(self, store: Store) -> None:
        await write(store, "c", user("first"))
        work = await taken(store.index)
        await write(store, "c", user("second"))
        await write(store, "d", user("third"))
        assert await store.index.add(work, made(work.sources))
        assert await waiting(store) == ["second", "third"]
        await store.index.release(work)
        await indexed(store)
        assert await found(store) == ["first", "second", "third"]

    async def test_no_scope_keeps_others_waiting(self, store: Store) -> None:
        """Even if the work on it fails each time."""
        for scope in SCOPES:
            await write(store, "c", user("tea"), scope=scope)
        seen: set[int] = set()
        for _ in SCOPES:
            work = await taken(store.index)
            seen.add(work.ref)
            await store.index.release(work)
        assert len(seen) == len(SCOPES)

    async def test_the_work_of_one_tenant(self, store: Store) -> None:
        index, scopes = store.index, [*SCOPES, replace(SCOPE, tenant="another")]
        for scope in scopes:
            await write(store, "c", user("tea"), scope=scope)
        for tenant in ("nobody", "", SCOPE.tenant[:-1]):
            assert await index.take(space=None, lease=HOUR, limit=ENOUGH, tenant=tenant) is None
            assert await index.backlog(SPACE, tenant=tenant) == IndexBacklog()
        for tenant in (SCOPE.tenant, "another"):
            own = {(one.user, one.agent) for one in scopes if one.tenant == tenant}
            assert (await index.backlog(SPACE, tenant=tenant)).waiting == len(own)
            seen = set[tuple[str, str | None]]()
            while work := await index.take(space=SPACE, lease=HOUR, limit=ENOUGH, tenant=tenant):
                seen.add((work.user, work.agent))
                assert work.tenant == tenant
                assert await index.add(work, made(work.sources))
            assert seen == own
            load = await index.backlog(SPACE, tenant=tenant)
            assert (load.waiting, load.unembedded) == (0, len(own))

    async def test_the_load_is_told_in_scopes(self, store: Store) -> None:
        for scope in SCOPES:
            await write(store, "c", user("tea"), user("milk"), scope=scope)
        assert (await store.index.backlog(SPACE)).waiting == len(SCOPES)
        work = await taken(store.index, space=SPACE)
        assert await store.index.add(work, made(work.sources))
        load = await store.index.backlog(SPACE)
        assert (load.waiting, load.unembedded) == (len(SCOPES) - 1, 1)
        following = await store.index.more(work, space=SPACE, lease=HOUR, limit=ENOUGH)
        assert following is not None
        assert await store.index.embed(following, SPACE, vectors_of(following))
        load = await store.index.backlog(SPACE)
        assert (load.waiting, load.unembedded) == (len(SCOPES) - 1, 0)
