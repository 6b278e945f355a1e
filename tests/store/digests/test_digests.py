"""Digests: how they are set off and ended, and which summary stands."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome, Item, Needs, NewDigest, Status
from hitherto.core.log.append import extended
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import RunningDigest, StandingSummary
from hitherto.core.log.message import Sums, storable
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.samples import (
    ENDS,
    OTHER_STAGE,
    SCOPE,
    STAGE,
    clear,
    dialogue,
    digest_of,
    digested,
    ending,
    fire,
    head_of,
    snapshot,
    write,
)


async def rows_of(store: Store, name: str) -> dict[int, Digest]:
    return {row.id: row for row in await store.digests(SCOPE, name)}


class TestDigest:
    async def test_fired_it_is_in_progress(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        spec = '{"z": 1, "a": -0.0}'
        new = NewDigest(
            stage=STAGE,
            spec=spec,
            action=DigestAction.SUMMARIZE,
            start=1,
            end=5,
            base=None,
            policy='{"name": "b", "a": 1}',
            needs=Needs.MODEL,
        )
        written = await write(store, "c", fire=[new])
        head = await head_of(store, "c")
        (row,) = await store.digests(SCOPE, "c")
        assert row == Digest(
            id=written.fired[0],
            stage=STAGE,
            spec=spec,
            action=DigestAction.SUMMARIZE,
            start=1,
            end=5,
            base=None,
            status=Status.PROCESSING,
            attempt=0,
            items=(),
            text="",
            tokens=0,
            model=None,
            prompt_version=None,
            generation_time_ms=None,
            error=None,
            fired_rev=2,
            visible_rev=None,
            created_at=written.head.now,
            completed_at=None,
            due_at=row.due_at,
            policy='{"name": "b", "a": 1}',
            needs=Needs.MODEL,
        )
        assert row.due_at is not None
        assert row.due_at <= (await head_of(store, "c")).now, "due at once"
        assert head.running == (
            RunningDigest(id=row.id, stage=STAGE, attempt=0, start=1, end=5, created_at=row.created_at),
        )
        assert (head.digest, head.digest_sums) == (None, Sums())
        async with store.write(SCOPE, "c") as unit:
            assert unit.head.running == head.running
            assert await unit.digests() == [row]

    async def test_completed_it_stands(self, store: Store) -> None:
        await write(store, "c", *dialogue(3), tokens=[1, 2, 3, 4, 5, 6])
        made = await fire(store, "c", 0, 3)
        (before,) = await store.digests(SCOPE, "c")
        items = (Item("tea — чай", ((0, 0), (2, 3))), Item("no \x00 \ud800 sugar", ((1, 1),)))
        outcome = DigestOutcome(
            digest=made,
            items=items,
            text="tea — чай\nno sugar",
            tokens=7,
            model="gpt-x",
            prompt_version=3,
            generation_time_ms=1234,
        )
        written = await write(store, "c", outcomes=[outcome])
        (row,) = await store.digests(SCOPE, "c")
        assert row == replace(
            before,
            status=Status.COMPLETED,
            items=items,
            text=outcome.text,
            tokens=7,
            model="gpt-x",
            prompt_version=3,
            generation_time_ms=1234,
            visible_rev=2,
            completed_at=written.head.now,
            due_at=None,
        )
        head = await head_of(store, "c")
        assert head.digest == StandingSummary(
            id=made, start=0, end=3, text=outcome.text, spec=row.spec, tokens=outcome.tokens
        )
        assert head.digest_sums == Sums(tokens=10, turns=2, dialogue=4)
        assert head.running == ()

    @pytest.mark.parametrize(("how", "status"), [("failed", Status.FAILED), ("superseded", Status.SUPERSEDED)])
    async def test_failed_or_superseded_it_does_not_stand(self, store: Store, how: str, status: Status) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 3)
        written = await write(store, "c", outcomes=[ending(how, made)])
        (row,) = await store.digests(SCOPE, "c")
        assert (row.status, row.error, row.visible_rev) == (status, ENDS[how].error, None)
        assert row.completed_at == written.head.now
        head = await head_of(store, "c")
        assert (head.digest, head.running) == (None, ())

    @pytest.mark.parametrize("first", ENDS)
    @pytest.mark.parametrize("second", ENDS)
    async def test_the_fence_a_digest_ends_once(self, store: Store, first: str, second: str) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 3)
        await write(store, "c", outcomes=[ending(first, made)])
        before = await store.digests(SCOPE, "c")
        late = replace(ending(second, made), text="late", items=(Item("late", ((1, 1),)),), tokens=99)
        await write(store, "c", *dialogue(1), outcomes=[late])
        assert await store.digests(SCOPE, "c") == before
        assert (await head_of(store, "c")).next_seq == 8, "the rest of the unit is written"

    async def test_an_outcome_of_no_digest_here_has_no_effect(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await write(store, "d", *dialogue(1))
        other = await fire(store, "d", 0, 1)
        before = await store.digests(SCOPE, "d")
        await write(store, "c", outcomes=[ending("completed", other), ending("failed", other + 1_000)])
        assert await store.digests(SCOPE, "d") == before
        assert await store.digests(SCOPE, "c") == []

    async def test_one_in_progress_per_conversation_and_stage(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        first = await fire(store, "c", 0, 3)
        before = await snapshot(store, "c")
        async with store.write(SCOPE, "c", key="k") as unit:
            logged, head = extended(unit.head, dialogue(1), [1, 1])
            with pytest.raises(HithertoError):
                await unit.commit(Changes(head=head, messages=logged, fire=(digest_of(0, 5),)))
        assert await snapshot(store, "c") == before, "nothing of the unit is written"
        # Another stage and another conversation can each have a digest in progress too.
        other = await fire(store, "c", 0, 3, stage=OTHER_STAGE)
        await write(store, "d", *dialogue(1))
        await fire(store, "d", 0, 1)
        assert [one.id for one in (await head_of(store, "c")).running] == [first, other]

    async def test_of_many_that_fire_at_once_one_is_in_progress(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))

        async def try_it() -> tuple[int, ...]:
            async with store.write(SCOPE, "c") as unit:
                if unit.head.running:
                    return ()
                return await unit.commit(Changes(head=unit.head, fire=(digest_of(0, 5),)))

        fired = [made for ids in await asyncio.gather(*(try_it() for _ in range(10))) for made in ids]
        assert [row.id for row in await store.digests(SCOPE, "c")] == fired
        assert len(fired) == 1

    async def test_one_completed_per_conversation_stage_and_range(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        await digested(store, "c", 0, 3)
        await digested(store, "c", 0, 3, stage=OTHER_STAGE)
        await digested(store, "c", 0, 5)
        again = await fire(store, "c", 0, 3)
        before = await snapshot(store, "c")
        async with store.write(SCOPE, "c") as unit:
            with pytest.raises(HithertoError):
                await unit.commit(Changes(head=unit.head, outcomes=(ending("completed", again),)))
        assert await snapshot(store, "c") == before
        await write(store, "c", outcomes=[ending("failed", again)])
        assert (await rows_of(store, "c"))[again].status is Status.FAILED

    @pytest.mark.parametrize("how", ["failed", "superseded"])
    async def test_a_range_may_be_tried_again(self, store: Store, how: str) -> None:
        await write(store, "c", *dialogue(3))
        first = await fire(store, "c", 0, 3)
        await write(store, "c", outcomes=[ending(how, first)])
        second = await digested(store, "c", 0, 3)
        standing = (await head_of(store, "c")).digest
        assert standing is not None
        assert standing.id == second > first

    async def test_the_one_that_reaches_furthest_stands(self, store: Store) -> None:
        await write(store, "c", *dialogue(5))
        await digested(store, "c", 0, 3)
        furthest = await digested(store, "c", 2, 7)
        await digested(store, "c", 4, 5)
        failed = await fire(store, "c", 0, 9)
        await write(store, "c", outcomes=[ending("failed", failed)])
        await fire(store, "c", 0, 9)
        head = await head_of(store, "c")
        assert head.digest is not None
        assert (head.digest.id, head.digest.start, head.digest.end) == (furthest, 2, 7)
        assert head.digest_sums == Sums(tokens=80, turns=4, dialogue=8)
        newer = await digested(store, "c", 0, 7, stage=OTHER_STAGE)
        head = await head_of(store, "c")
        assert head.digest is not None
        assert head.digest.id == newer, "of two that reach equally far, the newer"

    async def test_a_clear_is_complete_at_once_and_never_stands(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        running = await fire(store, "c", 0, 3)
        await clear(store, "c")
        ended, hidden = await store.digests(SCOPE, "c")
        assert (ended.id, ended.status) == (running, Status.SUPERSEDED)
        assert (hidden.action, hidden.status, hidden.start, hidden.end) == (DigestAction.CLEAR, Status.COMPLETED, 0, 3)
        assert (hidden.fired_rev, hidden.visible_rev) == (2, 2)
        assert hidden.completed_at == hidden.created_at
        head = await head_of(store, "c")
        assert (head.digest, head.running) == (None, ())

    async def test_all_digests_in_order_of_their_ids(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        await write(store, "d", *dialogue(4))
        made: list[int] = []
        for how, end in (("completed", 1), ("failed", 3), ("superseded", 5)):
            made.append(await fire(store, "c", 0, end))
            await fire(store, "d", 0, end, stage=how)
            await write(store, "c", outcomes=[ending(how, made[-1])])
        await clear(store, "c")
        rows = await store.digests(SCOPE, "c")
        assert [row.id for row in rows] == sorted(row.id for row in rows)
        assert [row.id for row in rows[:3]] == made
        assert [row.action for row in rows] == [*[DigestAction.SUMMARIZE] * 3, DigestAction.CLEAR]
        assert len({row.id for name in "cd" for row in await store.digests(SCOPE, name)}) == 7
        async with store.write(SCOPE, "c") as unit:
            assert await unit.digests() == rows

    async def test_times_agree_to_the_microsecond(self, store: Store) -> None:
        """The head and the rows give the same times, whatever way a store reads them."""
        for n in range(20):
            await write(store, f"{n}", *dialogue(1), fire=[digest_of(0, 1)])
            (row,) = await store.digests(SCOPE, f"{n}")
            assert (await head_of(store, f"{n}")).running[0].created_at == row.created_at

    async def test_unstorable_text_of_a_model_is_no_obstacle(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        for end, outcome in enumerate(
            [DigestOutcome(digest=0, text="a\x00\ud800"), DigestOutcome(digest=0, error="a\x00\ud800")]
        ):
            made = await fire(store, "c", 0, end)
            await write(store, "c", outcomes=[replace(outcome, digest=made)])
        completed, failed = await store.digests(SCOPE, "c")
        assert completed.text in ("a\x00\ud800", storable("a\x00\ud800"))
        assert failed.error in ("a\x00\ud800", storable("a\x00\ud800"))
