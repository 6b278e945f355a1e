"""Stages: several rows in one commit, frontiers, superseded rows; and what a worker gets of them."""

from __future__ import annotations

import asyncio

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome, Item, RewrittenDigest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import RunningDigest
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.digests.stage_samples import stage_row, staged, superseded, take_back
from tests.store.samples import (
    ENDS,
    HOUR,
    OTHER_STAGE,
    SCOPE,
    assistant,
    call,
    claimed,
    dialogue,
    digest_of,
    digested,
    ending,
    fire,
    head_of,
    log_of,
    result,
    snapshot,
    system,
    user,
    write,
)

OPAQUE = '[{"type": "compaction", "encrypted": "\\u0000x", "n": -0.0}, {"b": 1, "a": 2}]'


async def row_of(store: Store, digest: int) -> Digest:
    return next(row for row in await store.digests(SCOPE, "c") if row.id == digest)


class TestStage:
    async def test_several_fire_in_one_commit(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        rows = [
            stage_row(DigestAction.REDACT, 0, 3),
            digest_of(0, 3),
            stage_row(DigestAction.DROP, 0, 1),
            stage_row(DigestAction.CHUNK, 0, 5, completed=False, kept_from=2),
        ]
        written = await write(store, "c", *dialogue(1), fire=rows)
        found = await store.digests(SCOPE, "c")
        assert len(set(written.fired)) == 4
        assert {row.id: row.stage for row in found} == dict(
            zip(written.fired, [row.stage for row in rows], strict=True)
        )
        by_stage = {row.stage: row for row in found}
        redact, chunk = by_stage["redact"], by_stage["chunk"]
        assert (redact.action, redact.status, redact.tokens) == (DigestAction.REDACT, Status.COMPLETED, 7)
        assert (redact.fired_rev, redact.visible_rev, redact.kept_from, redact.hidden_rev) == (2, 2, None, None)
        assert (chunk.action, chunk.status, chunk.visible_rev, chunk.kept_from) == (
            DigestAction.CHUNK,
            Status.PROCESSING,
            None,
            2,
        )
        running = {one.id: one for one in (await head_of(store, "c")).running}
        assert running[chunk.id] == RunningDigest(
            id=chunk.id,
            stage="chunk",
            attempt=0,
            start=0,
            end=5,
            created_at=chunk.created_at,
            action=DigestAction.CHUNK,
            kept_from=2,
        )
        assert set(running) == {row.id for row in found if row.status is Status.PROCESSING}

    async def test_of_several_that_fire_one_that_may_not_be_stops_all(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await fire(store, "c", 0, 3)
        before = await snapshot(store, "c")
        async with store.write(SCOPE, "c") as unit:
            with pytest.raises(HithertoError):
                await unit.commit(Changes(head=unit.head, fire=(stage_row(DigestAction.DROP, 0, 1), digest_of(0, 1))))
        assert await snapshot(store, "c") == before

    async def test_an_id_is_asked_for_and_nobody_else_gets_it(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await write(store, "d", *dialogue(2))

        async def ask(name: str) -> int:
            async with store.write(SCOPE, name) as unit:
                given = await unit.next_digest()
                assert given != await unit.next_digest()
                return given

        first = await ask("c")
        ids = await asyncio.gather(*(ask(name) for name in "cd" for _ in range(5)))
        other = await fire(store, "d", 0, 3)
        assert len({first, other, *ids}) == 12
        opaque = stage_row(DigestAction.COMPACT, 0, 3, given=first, opaque=OPAQUE)
        after = stage_row(DigestAction.CHUNK, 0, 3, completed=False, base=first)
        written = await write(store, "c", fire=[after, opaque])
        assert written.fired[1] == first
        assert (await row_of(store, written.fired[0])).base == first
        assert [row.id for row in await store.digests(SCOPE, "c")] == sorted(written.fired)

    async def test_a_range_is_free_again_within_the_commit_that_supersedes(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        (first,) = await staged(store, "c", stage_row(DigestAction.COMPACT, 0, 3, stage="replaced", opaque=OPAQUE))
        again = stage_row(DigestAction.COMPACT, 0, 3, stage="replaced", opaque="[]")
        written = await write(store, "c", fire=[again], supersede=[first])
        assert [row.id for row in await store.digests(SCOPE, "c") if row.visible(3)] == list(written.fired)
        assert [row.id for row in await store.digests(SCOPE, "c") if row.visible(2)] == [first]

    async def test_opaque_items_come_back_byte_for_byte(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made, plain = await staged(
            store,
            "c",
            stage_row(DigestAction.COMPACT, 0, 3, opaque=OPAQUE, family="f"),
            stage_row(DigestAction.DROP, 0, 1),
        )
        later = await write(store, "c", fire=[stage_row(DigestAction.COMPACT, 0, 5, completed=False)])
        await write(store, "c", outcomes=[DigestOutcome(digest=later.fired[0], opaque=OPAQUE, family="g", tokens=3)])
        rows = [await row_of(store, digest) for digest in (made, *later.fired)]
        assert [(row.opaque, row.family, row.tokens) for row in rows] == [(OPAQUE, "f", 7), (OPAQUE, "g", 3)]
        for digest in (made, *later.fired):
            assert repr(await store.opaque(SCOPE, "c", digest)) == repr(
                ({"type": "compaction", "encrypted": "\x00x", "n": -0.0}, {"b": 1, "a": 2})
            )
        assert await store.opaque(SCOPE, "c", plain) is None
        assert await store.opaque(SCOPE, "c", made + 1_000) is None
        assert await store.opaque(SCOPE, "none", made) is None
        head = await store.head(SCOPE, "c", at=4)
        assert head is not None
        assert (head.frontiers["compact"].digest, head.frontiers["compact"].family) == (later.fired[0], "g")
        await superseded(store, "c", made)
        assert len(await store.opaque(SCOPE, "c", made) or ()) == 2, "whatever the row's status"
        await write(store, "c", rewritten=[RewrittenDigest(digest=later.fired[0], superseded=True)])
        assert await store.opaque(SCOPE, "c", later.fired[0]) is None
        assert (await row_of(store, later.fired[0])).hidden_rev == 0

    async def test_a_failed_one_has_none(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        written = await write(store, "c", fire=[stage_row(DigestAction.COMPACT, 0, 3, completed=False)])
        await write(store, "c", outcomes=[ending("failed", written.fired[0])])
        assert await store.opaque(SCOPE, "c", written.fired[0]) is None
        assert dict((await head_of(store, "c")).frontiers) == {}


class TestWork:
    async def test_work_has_the_new_messages_in_order(self, store: Store) -> None:
        batch = [system("s"), user("u"), call("a"), result("a", "r"), assistant("b"), user("v")]
        await write(store, "c", *batch)
        made = await fire(store, "c", 1, 4)
        work = await claimed(store, made)
        assert [work.digest] == await store.digests(SCOPE, "c")
        assert (work.scope, work.conversation) == (SCOPE, "c")
        assert work.base == ()
        assert list(work.messages) == (await log_of(store, "c"))[1:5]
        assert work.opaque is None

    async def test_work_has_the_items_of_its_base_and_only_what_that_has_not_seen(self, store: Store) -> None:
        await write(store, "c", *dialogue(4))
        items = (Item("a", ((0, 0), (2, 2))), Item("b", ((3, 3),)))
        base = await digested(store, "c", 0, 3, *items)
        await digested(store, "c", 0, 1, Item("not the base", ((0, 0),)), stage=OTHER_STAGE)
        made = await fire(store, "c", 2, 7, base=base)
        work = await claimed(store, made)
        assert (work.digest.base, work.base) == (base, items)
        assert [one.seq for one in work.messages] == [4, 5, 6, 7]
        # A window that begins after its base ended leaves out what lies between.
        await write(store, "c", *dialogue(2), outcomes=[ending("failed", made)])
        made = await fire(store, "c", 9, 11, base=base)
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [9, 10, 11]

    async def test_work_leaves_out_what_was_erased(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        await write(store, "c", erase=((1, 2), (5, 5)))
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [0, 3, 4]

    @pytest.mark.parametrize("how", ENDS)
    async def test_there_is_no_work_once_it_ended(self, store: Store, how: str) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        await write(store, "c", outcomes=[ending(how, made)])
        assert await store.claim(SCOPE.tenant, made, lease=HOUR) is None

    async def test_there_is_no_work_for_others(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        made = await fire(store, "c", 0, 5)
        before = await store.digests(SCOPE, "c")
        for tenant in ("another", "", SCOPE.tenant.upper(), SCOPE.user):
            assert await store.claim(tenant, made, lease=HOUR) is None
        for digest in (made + 1, 0, -made, 2**63):
            assert await store.claim(SCOPE.tenant, digest, lease=HOUR) is None
        assert await store.digests(SCOPE, "c") == before

    async def test_work_on_chunks_has_the_statements_of_all_before(self, store: Store) -> None:
        """Back to the first base that is not a chunk, whose statements come first."""
        await write(store, "c", *dialogue(6))
        older = await digested(store, "c", 0, 1, Item("before the summary", ((0, 1),)))
        base = await digested(store, "c", 0, 3, Item("summary", ((0, 3),)), base=older)
        for start in (4, 6):
            row = stage_row(DigestAction.CHUNK, start, start + 1, completed=False, base=base)
            (base,) = (await write(store, "c", fire=[row])).fired
            items = (Item(f"chunk {start}", ((start, start),)), Item(f"more {start}", ((start + 1, start + 1),)))
            await write(store, "c", outcomes=[DigestOutcome(digest=base, items=items)])
        made = await fire(store, "c", 0, 11, base=base)
        work = await claimed(store, made)
        assert [item.text for item in work.base] == ["summary", "chunk 4", "more 4", "chunk 6", "more 6"]
        assert [one.seq for one in work.messages] == [8, 9, 10, 11]

    async def test_work_has_the_opaque_items_of_its_base(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        base = (
            await write(store, "c", fire=[stage_row(DigestAction.COMPACT, 0, 3, opaque='[{"b": 1, "a": 2}]')])
        ).fired[0]
        row = stage_row(DigestAction.COMPACT, 0, 5, completed=False, base=base)
        made = (await write(store, "c", fire=[row])).fired[0]
        work = await claimed(store, made)
        assert (work.base, work.opaque) == ((), '[{"b": 1, "a": 2}]')
        assert [one.seq for one in work.messages] == [4, 5]

    async def test_work_leaves_out_what_was_taken_back(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await take_back(store, "c", 3)
        await write(store, "c", *dialogue(1))
        made = await fire(store, "c", 0, 5)
        work = await claimed(store, made)
        assert [one.seq for one in work.messages] == [0, 4, 5]
