"""Claims: one worker at a time holds a digest, until its lease ends, it gives it up, or a unit of work takes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Claim, DigestWork, Needs, Status
from hitherto.core.log.append import extended
from hitherto.core.log.message import storable
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.digests.samples import CALL, ELSEWHERE, begun, noted, row_of
from tests.store.digests.stage_samples import take_back
from tests.store.samples import (
    AT_ONCE,
    ENDS,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    claimed,
    clear,
    dialogue,
    digested,
    ending,
    fire,
    head_of,
    user,
    write,
)

MOMENT = timedelta(seconds=0.02)


async def end(store: Store, how: str, digest: int) -> None:
    """End a digest in progress of the conversation "c", in the way that `how` names."""
    if how == "cleared":
        await clear(store, "c")
    elif how == "taken back":
        await take_back(store, "c", 1)
    elif how == "deleted":
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
    else:
        await write(store, "c", outcomes=[ending(how, digest)])


class TestClaim:
    async def test_a_claim_takes_a_digest_in_hand(self, store: Store) -> None:
        made = await begun(store)
        before = await row_of(store, made)
        assert (before.attempt, before.tries, before.claimed) == (0, 0, False)
        work = await claimed(store, made)
        assert work.digest == await row_of(store, made)
        assert work.digest == replace(before, attempt=1, tries=1, claimed=True, due_at=work.digest.due_at)
        assert before.due_at is not None
        assert work.digest.due_at is not None
        assert work.digest.due_at >= before.due_at + HOUR
        assert work.claim == Claim(SCOPE.tenant, made, 1)
        assert [one.attempt for one in (await head_of(store, "c")).running] == [1]

    async def test_of_many_claims_one_gets_it(self, store: Store) -> None:
        made = [await begun(store, name) for name in "abcd"]
        claims = [store.claim(SCOPE.tenant, digest, lease=HOUR) for digest in made for _ in range(5)]
        got = [work.digest.id for work in await asyncio.gather(*claims) if work is not None]
        assert sorted(got) == made

    async def test_after_its_lease_another_gets_it(self, store: Store) -> None:
        made = await begun(store)
        for n in (1, 2, 3):
            work = await claimed(store, made, lease=AT_ONCE)
            assert (work.digest.attempt, work.digest.tries) == (n, n)
            assert await row_of(store, made) == work.digest

    async def test_a_claim_is_for_those_who_can_make_it(self, store: Store) -> None:
        free, model = await begun(store, "free"), await begun(store, "model", needs=Needs.MODEL)
        for able in ((), (Needs.COMPACTOR,)):
            assert await store.claim(SCOPE.tenant, model, lease=HOUR, able=able) is None
        assert (await row_of(store, model, name="model")).attempt == 0
        work = await store.claim(SCOPE.tenant, model, lease=HOUR, able=(Needs.COMPACTOR, Needs.MODEL))
        assert work is not None
        assert work.digest.needs is Needs.MODEL
        anybody = await store.claim(SCOPE.tenant, free, lease=HOUR, able=())
        assert anybody is not None
        assert anybody.digest.needs is None

    async def test_a_claim_needs_the_tenant(self, store: Store) -> None:
        made = await begun(store)
        assert await store.claim(ELSEWHERE.tenant, made, lease=HOUR) is None
        work = await claimed(store, made)
        assert await store.claim(ELSEWHERE.tenant, made, lease=HOUR) is None
        assert await store.prolong([replace(work.claim, tenant=ELSEWHERE.tenant)], lease=AT_ONCE) == frozenset()
        assert not await store.put_off(replace(work, scope=ELSEWHERE), wait=AT_ONCE)
        assert await row_of(store, made) == work.digest

    @pytest.mark.parametrize("how", [*ENDS, "cleared", "taken back", "deleted"])
    async def test_what_came_to_an_end_is_no_longer_held(self, store: Store, how: str) -> None:
        work = await claimed(store, await begun(store))
        await end(store, how, work.digest.id)
        before = await store.digests(SCOPE, "c")
        assert [(row.claimed, row.due_at) for row in before if row.id == work.digest.id] in ([], [(False, None)])
        assert await store.prolong([work.claim], lease=HOUR) == frozenset()
        assert not await store.put_off(work, wait=AT_ONCE, calls=[CALL])
        assert await store.claim(SCOPE.tenant, work.digest.id, lease=HOUR) is None
        assert await noted(store) == 1, "what was spent in vain"
        await write(store, "c", outcomes=[ending("completed", work.digest.id)])
        assert await store.digests(SCOPE, "c") == before

    async def test_a_conversation_made_anew_has_nothing_of_the_old_claims(self, store: Store) -> None:
        work = await claimed(store, await begun(store))
        await end(store, "deleted", work.digest.id)
        made = await begun(store)
        assert made != work.digest.id
        assert await store.prolong([work.claim], lease=HOUR) == frozenset()
        assert not await store.put_off(work, wait=AT_ONCE)
        assert (await row_of(store, made)).attempt == 0

    async def test_what_is_to_be_erased_first_is_said(self, store: Store) -> None:
        now = datetime.now(UTC)
        await write(store, "c", replace(user(), expires_at=now - HOUR), replace(user(), expires_at=now + HOUR))
        made = await fire(store, "c", 0, 1)
        assert (await claimed(store, made, lease=AT_ONCE)).expiring
        await write(store, "c", erase=((0, 0),), next_expiry=now + HOUR)
        work = await claimed(store, made)
        assert ([one.seq for one in work.messages], work.expiring) == ([1], False)
        assert not (await claimed(store, await begun(store, "d"))).expiring


class TestProlong:
    async def test_prolonged_it_is_held_from_now_on(self, store: Store) -> None:
        made = await begun(store)
        work = await claimed(store, made, lease=AT_ONCE)
        assert await store.prolong([work.claim], lease=HOUR) == {work.claim}, "nobody took it meanwhile"
        row = await row_of(store, made)
        assert row == replace(work.digest, due_at=row.due_at)
        assert work.digest.due_at is not None
        assert row.due_at is not None
        assert row.due_at >= work.digest.due_at + HOUR
        assert await store.claim(SCOPE.tenant, made, lease=HOUR) is None
        assert await store.prolong([work.claim], lease=AT_ONCE) == {work.claim}
        assert (await claimed(store, made)).digest.attempt == 2

    async def test_prolonged_are_those_that_are_held(self, store: Store) -> None:
        names = ["kept", "lost", "off", *ENDS]
        works = {name: await claimed(store, await begun(store, name), lease=AT_ONCE) for name in names}
        theirs = await claimed(store, await begun(store, scope=ELSEWHERE), tenant=ELSEWHERE.tenant)
        again = await claimed(store, works["lost"].digest.id)
        assert await store.put_off(works["off"], wait=AT_ONCE)
        for how in ENDS:
            await write(store, how, outcomes=[ending(how, works[how].digest.id)])
        waiting = await begun(store, "waiting")
        await claimed(store, await begun(store, "another's"))
        before = {name: await store.digests(SCOPE, name) for name in [*names[1:], "waiting", "another's"]}
        asked = [
            *(work.claim for work in works.values()),
            theirs.claim,
            replace(theirs.claim, tenant=SCOPE.tenant),
            Claim(SCOPE.tenant, waiting, 0),
            Claim(SCOPE.tenant, waiting + 1_000, 1),
        ]
        assert await store.prolong(asked, lease=HOUR) == {works["kept"].claim, theirs.claim}
        assert {name: await store.digests(SCOPE, name) for name in before} == before
        assert await store.prolong([again.claim, works["lost"].claim], lease=HOUR) == {again.claim}
        assert await store.prolong([], lease=HOUR) == frozenset()


class TestPutOff:
    async def test_who_put_it_off_has_lost_it(self, store: Store) -> None:
        work = await claimed(store, await begun(store))
        assert await store.put_off(work, wait=HOUR, error="busy")
        before = await row_of(store, work.digest.id)
        assert await store.prolong([work.claim], lease=HOUR) == frozenset()
        assert not await store.put_off(work, wait=AT_ONCE, error="again", counted=False)
        assert not await store.put_off(replace(work, digest=before), wait=AT_ONCE), "nobody has it now"
        assert await row_of(store, work.digest.id) == before
        assert [one.attempt for one in (await head_of(store, "c")).running] == [2], "the fence of its outcome"

    async def test_not_counted_it_was_no_try(self, store: Store) -> None:
        made = await begun(store)
        for n in (1, 3, 5):
            work = await claimed(store, made)
            assert (work.digest.attempt, work.digest.tries) == (n, 1)
            assert await store.put_off(work, wait=AT_ONCE, counted=False)
            assert (await row_of(store, made)).tries == 0
        assert await store.put_off(await claimed(store, made), wait=AT_ONCE)
        assert (await claimed(store, made)).digest.tries == 2

    async def test_the_reason_is_kept_until_there_is_another(self, store: Store) -> None:
        made = await begun(store)
        for error, told in (("busy", "busy"), (None, "busy"), ("a\x00\ud800", storable("a\x00\ud800"))):
            assert await store.put_off(await claimed(store, made), wait=AT_ONCE, error=error)
            assert (await row_of(store, made)).error == told
            assert [one.error for one in (await head_of(store, "c")).running] == [told]
        assert (await claimed(store, made)).digest.error == told
        await write(store, "c", outcomes=[ending("completed", made)])
        assert (await row_of(store, made)).error is None

    async def test_what_was_spent_is_noted_whether_it_was_held_or_not(self, store: Store) -> None:
        work = await claimed(store, await begun(store))
        calls = [replace(CALL, digest=work.digest.id), replace(CALL, digest=work.digest.id)]
        assert await store.put_off(work, wait=AT_ONCE, calls=calls)
        assert await noted(store) == 2
        assert not await store.put_off(work, wait=AT_ONCE, calls=[*calls, replace(CALL)])
        assert await noted(store) == 3


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
