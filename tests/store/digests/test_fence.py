"""A digest that a unit of work holds: how a claim, a prolonging and a put-off fare meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestWork, Status
from hitherto.core.log.append import extended
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.digests.samples import CALL, begun, noted, row_of
from tests.store.samples import (
    AT_ONCE,
    ENDS,
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


async def _claimed_soon(store: Store, digest: int) -> DigestWork:
    """Claim a digest after its unit was left without a commit: it may become free only a moment after the block."""
    for _ in range(1_000):
        work = await store.claim(SCOPE.tenant, digest, lease=HOUR)
        if work is not None:
            return work
        await asyncio.sleep(0.01)
    raise AssertionError(f"the digest {digest} stays held")


class TestFence:
    @pytest.mark.parametrize("how", [*ENDS, "left"])
    async def test_a_claim_passes_over_what_a_unit_holds(self, store: Store, how: str) -> None:
        work = await claimed(store, await begun(store), lease=AT_ONCE)
        made = work.digest.id
        async with store.write(SCOPE, "c", digest=made) as unit:
            assert await store.claim(SCOPE.tenant, made, lease=HOUR) is None
            assert [one.attempt for one in unit.head.running] == [1]
            if how != "left":
                await unit.commit(Changes(head=unit.head, outcomes=(ending(how, made),)))
        if how == "left":
            assert (await _claimed_soon(store, made)).digest.attempt == 2
        else:
            assert await store.claim(SCOPE.tenant, made, lease=HOUR) is None

    @pytest.mark.parametrize("how", [*ENDS, "left"])
    async def test_who_prolongs_does_not_wait_either(self, store: Store, how: str) -> None:
        work = await claimed(store, await begun(store))
        async with store.write(SCOPE, "c", digest=work.digest.id) as unit:
            before = await row_of(store, work.digest.id)
            assert await store.prolong([work.claim], lease=2 * HOUR) == {work.claim}
            assert await row_of(store, work.digest.id) == before
            if how != "left":
                await unit.commit(Changes(head=unit.head, outcomes=(ending(how, work.digest.id),)))
        assert await store.prolong([work.claim], lease=HOUR) == ({work.claim} if how == "left" else frozenset())

    @pytest.mark.parametrize("how", [*ENDS, "left"])
    async def test_who_puts_off_waits(self, store: Store, how: str) -> None:
        work = await claimed(store, await begun(store))
        async with store.write(SCOPE, "c", digest=work.digest.id) as unit:
            putting_off = asyncio.create_task(store.put_off(work, wait=AT_ONCE, calls=[CALL]))
            done, _ = await asyncio.wait([putting_off], timeout=0.1)
            assert not done
            if how != "left":
                await unit.commit(Changes(head=unit.head, outcomes=(ending(how, work.digest.id),)))
        assert await putting_off == (how == "left")
        assert await noted(store) == 1

    async def test_a_unit_holds_no_other_digest(self, store: Store) -> None:
        made = await begun(store)
        other = await fire(store, "c", 0, 3, stage=OTHER_STAGE)
        elsewhere = await begun(store, "d")
        async with store.write(SCOPE, "c", digest=made):
            for digest in (other, elsewhere):
                work = await claimed(store, digest)
                assert await store.prolong([work.claim], lease=HOUR) == {work.claim}
                assert await store.put_off(work, wait=AT_ONCE)

    async def test_a_unit_sees_who_has_it_now(self, store: Store) -> None:
        made = await begun(store)
        first = await claimed(store, made, lease=AT_ONCE)
        second = await claimed(store, made)
        async with store.write(SCOPE, "c", digest=made) as unit:
            assert [one.attempt for one in unit.head.running] == [second.digest.attempt]
        assert second.digest.attempt > first.digest.attempt

    async def test_a_digest_that_is_gone_is_no_obstacle(self, store: Store) -> None:
        async with store.write(SCOPE, "c", digest=2**40) as unit:
            logged, head = extended(unit.head, dialogue(1), [1, 1])
            await unit.commit(Changes(head=head, messages=logged))
        assert (await head_of(store, "c")).next_seq == 2

    async def test_an_outcome_and_its_calls_land_together_or_not_at_all(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        await digested(store, "c", 0, 5)
        work = await claimed(store, await fire(store, "c", 0, 5))
        async with store.write(SCOPE, "c", digest=work.digest.id) as unit:
            changes = Changes(head=unit.head, outcomes=(ending("completed", work.digest.id),), calls=(CALL,))
            with pytest.raises(HithertoError):
                await unit.commit(changes)
        assert (await noted(store), await row_of(store, work.digest.id)) == (0, work.digest)
        assert await store.prolong([work.claim], lease=HOUR) == {work.claim}
        async with store.write(SCOPE, "c", digest=work.digest.id) as unit:
            outcome = ending("failed", work.digest.id)
            await unit.commit(Changes(head=unit.head, outcomes=(outcome,), calls=(CALL,)))
        assert (await noted(store), (await row_of(store, work.digest.id)).status) == (1, Status.FAILED)
