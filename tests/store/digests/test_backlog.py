"""The backlog of digests over all tenants: overdue and unsettled digests, and the figures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

from hitherto.core.digests.digest import Backlog, DigestJob, FailedDigest, Needs
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.digests.samples import ELSEWHERE, begun
from tests.store.samples import (
    AT_ONCE,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    claimed,
    dialogue,
    digested,
    ending,
    fire,
    head_of,
    write,
)


async def job_of(store: Store, name: str, *, scope: Scope = SCOPE) -> DigestJob:
    """Set off a digest over the messages of a new conversation; its job."""
    return DigestJob(scope.tenant, await begun(store, name, scope=scope))


async def figures(store: Store, *, tenant: str | None = None) -> Backlog:
    """The backlog without its seconds."""
    found = await store.backlog(tenant=tenant)
    assert found.lag_seconds >= 0
    return replace(found, lag_seconds=0.0)


class TestBacklog:
    async def test_due_digests_longest_first(self, store: Store) -> None:
        assert await store.due_digests() == []
        jobs = [await job_of(store, "c", scope=scope) for scope in (SCOPE, ELSEWHERE)]
        jobs.append(await job_of(store, "d"))
        assert await store.due_digests() == jobs
        assert await store.due_digests(limit=2) == jobs[:2]
        assert await store.due_digests(limit=0) == await store.due_digests(limit=-1) == []
        assert await store.put_off(await claimed(store, jobs[0].digest), wait=AT_ONCE)
        assert await store.due_digests() == [jobs[1], jobs[2], jobs[0]], "since when it was due again"

    async def test_due_digests_of_busy_tenants_come_last(self, store: Store) -> None:
        jobs = [await job_of(store, "c", scope=scope) for scope in (SCOPE, ELSEWHERE)]
        assert await store.due_digests(busy=[SCOPE.tenant]) == jobs[::-1]
        assert await store.due_digests(busy=[one.tenant for one in (SCOPE, ELSEWHERE)]) == jobs

    async def test_due_digests_are_those_that_nobody_has_in_hand(self, store: Store) -> None:
        jobs = {name: await job_of(store, name) for name in ("due", "held", "dead", "off", "later", "ended")}
        for name in ("held", "dead", "off", "later"):
            work = await claimed(store, jobs[name].digest, lease=AT_ONCE if name == "dead" else HOUR)
            if name in ("off", "later"):
                assert await store.put_off(work, wait=AT_ONCE if name == "off" else HOUR / 2)
        await write(store, "ended", outcomes=[ending("failed", jobs["ended"].digest)])
        assert await store.due_digests() == [jobs["due"], jobs["dead"], jobs["off"]]
        await claimed(store, jobs["due"].digest)
        assert await store.due_digests() == [jobs["dead"], jobs["off"]]

    async def test_due_digests_are_those_that_the_asker_can_make(self, store: Store) -> None:
        free = await job_of(store, "free")
        made = {need: DigestJob(SCOPE.tenant, await begun(store, need.value, needs=need)) for need in Needs}
        assert await store.due_digests(able=()) == [free]
        for need, job in made.items():
            assert await store.due_digests(able=(need,)) == [free, job]
        assert await store.due_digests() == [free, *made.values()]

    async def test_rested_are_conversations_whose_time_has_come(self, store: Store) -> None:
        assert await store.rested() == []
        await write(store, "now", *dialogue(1))
        now = (await head_of(store, "now")).now
        failed: dict[str, FailedDigest] = {}
        for name, at, needs in (
            ("long ago", now - 2 * HOUR, Needs.MODEL),
            ("now", now - HOUR, None),
            ("later", now + HOUR, None),
            ("never", None, None),
        ):
            digest = 0
            for _ in range(2):
                digest = await begun(store, name, needs=needs)
                await write(store, name, outcomes=[ending("failed", digest)], failures=2, resume_at=at)
            failed[name] = FailedDigest(scope=SCOPE, conversation=name, digest=digest)
        await write(store, "none failed", *dialogue(1), failures=1, resume_at=now - HOUR)
        assert await store.rested() == [failed["long ago"], failed["now"]], "the newest of each"
        assert await store.rested(limit=1) == [failed["long ago"]]
        assert await store.rested(able=()) == [failed["now"]]
        assert await store.rested(limit=0) == await store.rested(limit=-1) == []

    async def test_unread_are_conversations_that_rest(self, store: Store) -> None:
        """Written with the head, and never of a past one."""
        assert await store.unread() == []
        await write(store, "now", *dialogue(1))
        now = (await head_of(store, "now")).now
        for name, at in (("now", now - HOUR), ("long ago", now - 2 * HOUR), ("later", now + HOUR), ("never", None)):
            await write(store, name, *dialogue(1), facts_due_at=at)
            assert (await head_of(store, name)).facts_due_at == at
        assert await store.unread() == [(SCOPE, "long ago"), (SCOPE, "now")]
        assert await store.unread(limit=1) == [(SCOPE, "long ago")]
        assert await store.unread(limit=0) == await store.unread(limit=-1) == []
        past = await store.head(SCOPE, "now", at=1)
        assert past is not None
        assert past.facts_due_at is None

    async def test_those_that_cannot_go_on_go_behind_the_others(self, store: Store) -> None:
        await write(store, "a", *dialogue(1))
        now = (await head_of(store, "a")).now
        for name, ago in (("a", 2 * HOUR), ("b", HOUR)):
            digest = await begun(store, name)
            failed = ending("failed", digest)
            await write(store, name, outcomes=[failed], failures=2, resume_at=now - ago, facts_due_at=now - ago)
        await store.rest_longer(SCOPE, "a", wait=HOUR)
        assert await store.unread() == [(SCOPE, "b")]
        assert [one.conversation for one in await store.rested()] == ["b"]
        head = await head_of(store, "a")
        assert head.facts_due_at is not None
        assert head.facts_due_at > now
        assert head.facts_due_at == head.resume_at
        await write(store, "a", resume_at=None, facts_due_at=now + 3 * HOUR)
        await store.rest_longer(SCOPE, "a", wait=HOUR)
        head = await head_of(store, "a")
        assert (head.resume_at, head.facts_due_at) == (None, now + 3 * HOUR), "it is not due"
        async with store.write(SCOPE, "b"):
            await store.rest_longer(SCOPE, "b", wait=HOUR)
        assert await store.unread() == [(SCOPE, "b")], "nobody waits for whom it is held by"

    async def test_unsettled_are_those_that_are_due_or_claimed(self, store: Store) -> None:
        jobs = {name: await job_of(store, name) for name in ("due", "held", "dead", "off", "later", "ended", "gone")}
        theirs = await job_of(store, "theirs", scope=ELSEWHERE)
        for name in ("held", "dead", "off", "later"):
            work = await claimed(store, jobs[name].digest, lease=AT_ONCE if name == "dead" else HOUR)
            if name in ("off", "later"):
                assert await store.put_off(work, wait=AT_ONCE if name == "off" else HOUR / 2)
        await write(store, "ended", outcomes=[ending("completed", jobs["ended"].digest)])
        async with store.write(SCOPE, "gone") as unit:
            await unit.delete()
        others = [replace(theirs, tenant=SCOPE.tenant), replace(jobs["due"], tenant=ELSEWHERE.tenant)]
        found = await store.unsettled([*jobs.values(), theirs, *others, DigestJob(SCOPE.tenant, 2**40)])
        assert set(found) == {*(jobs[name] for name in ("due", "held", "dead", "off")), theirs}
        assert len(found) == 5
        assert await store.unsettled([]) == []

    async def test_load_counts_digests_by_what_they_wait_for(self, store: Store) -> None:
        assert await store.backlog() == Backlog()
        jobs = [
            await job_of(store, name, scope=scope) for name, scope in (("a", SCOPE), ("b", SCOPE), ("c", ELSEWHERE))
        ]
        assert await figures(store) == Backlog(due=3, lag_messages=6)
        await claimed(store, jobs[2].digest, tenant=ELSEWHERE.tenant)
        assert await figures(store) == Backlog(due=2, claimed=1, lag_messages=6)
        assert await figures(store, tenant=SCOPE.tenant) == Backlog(due=2, lag_messages=6)
        assert await figures(store, tenant=ELSEWHERE.tenant) == Backlog(claimed=1, lag_messages=6)
        assert await figures(store, tenant="nobody") == Backlog()
        assert await store.put_off(await claimed(store, jobs[0].digest), wait=HOUR / 2)
        assert await figures(store) == Backlog(due=1, claimed=1, put_off=1, lag_messages=6)
        work = await claimed(store, jobs[1].digest, lease=AT_ONCE)
        assert await figures(store) == Backlog(due=1, claimed=1, put_off=1, lag_messages=6), "its lease is over"
        await store.prolong([work.claim], lease=HOUR)
        assert await figures(store) == Backlog(claimed=2, put_off=1, lag_messages=6)
        for name, job in zip("ab", jobs, strict=False):
            await write(store, name, outcomes=[ending("failed", job.digest)])
        await write(store, "c", outcomes=[ending("completed", jobs[2].digest)], scope=ELSEWHERE)
        assert await store.backlog() == Backlog()

    async def test_load_counts_workers_that_show_themselves(self, store: Store) -> None:
        first, second = uuid4(), uuid4()
        for worker in (first, first, second):
            await store.show_worker(worker)
        assert (await store.backlog()).workers == 2
        assert (await store.backlog(tenant="nobody")).workers == 2, "every tenant's"
        await store.forget_worker(first)
        assert (await store.backlog()).workers == 1

    async def test_load_tells_how_far_behind_they_are(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        base = await digested(store, "c", 0, 3)
        assert (await figures(store)).lag_messages == 0, "none is in progress"
        await fire(store, "c", 0, 7, base=base)
        assert (await figures(store)).lag_messages == 4
        await write(store, "c", *dialogue(1))
        assert (await figures(store)).lag_messages == 6, "what came since counts too"
        await fire(store, "c", 8, 9, base=base, stage=OTHER_STAGE)
        await job_of(store, "d")
        assert (await figures(store)).lag_messages == 6, "the most of all"
        await asyncio.sleep(0.02)
        assert (await store.backlog()).lag_seconds >= 0.02

    async def test_load_counts_conversations_that_rest(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        now = (await head_of(store, "c")).now
        for name, at, failures in (("c", now + HOUR, 2), ("d", now - HOUR, 3), ("e", None, 3), ("f", now + HOUR, 1)):
            await write(store, name, *dialogue(1), failures=failures, resume_at=at)
        assert await figures(store) == Backlog(resting=1), "after one failure, the next append tries again"
        assert await figures(store, tenant=SCOPE.tenant) == Backlog(resting=1)
        assert await figures(store, tenant="nobody") == Backlog()
        await write(store, "c", failures=0, resume_at=None)
        assert await figures(store) == Backlog()
