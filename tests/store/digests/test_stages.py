"""Stages: several rows in one commit, frontiers, and superseded rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, Item, Status
from hitherto.core.digests.work import DigestOutcome, RewrittenDigest
from hitherto.core.log.frontier import DigestAction, Frontier
from hitherto.core.log.head import RunningDigest
from hitherto.core.log.message import Sums
from hitherto.errors import HithertoError
from hitherto.store.store import Store
from tests.store.digests.stage_samples import reach, stage_row, staged, superseded
from tests.store.samples import (
    SCOPE,
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

    async def test_frontiers_come_back_as_they_were_committed(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        sums = Sums(tokens=20, turns=1, dialogue=2, results=3)
        frontiers = {
            "a": Frontier(
                action=DigestAction.DROP, start=0, end=1, sums=sums, kept_from=2, kept_sums=sums, freed=12, since=3
            ),
            "replaced": Frontier(
                action=DigestAction.COMPACT,
                start=0,
                end=5,
                sums=sums,
                kept_from=0,
                kept_sums=Sums(),
                digest=9,
                family="f",
                tokens=11,
            ),
        }
        await write(store, "c", frontiers=frontiers, late=((1, 3), (2, 5)))
        head = await head_of(store, "c")
        assert (dict(head.frontiers), head.late) == (frontiers, ((1, 3), (2, 5)))
        async with store.write(SCOPE, "c") as unit:
            assert (dict(unit.head.frontiers), unit.head.late) == (frontiers, ((1, 3), (2, 5)))

    async def test_frontiers_before_the_view_are_none(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        await staged(store, "c", stage_row(DigestAction.DROP, 0, 3), stage_row(DigestAction.REDACT, 0, 5))
        await clear(store, "c")
        await write(store, "c", *dialogue(1))
        await staged(store, "c", stage_row(DigestAction.DROP, 6, 7))
        past = [await store.head(SCOPE, "c", at=at) for at in range(6)]
        reached = [head and {stage: one.end for stage, one in head.frontiers.items()} for head in past]
        assert reached == [{}, {}, {"drop": 3, "redact": 5}, {}, {}, {"drop": 7}]
        assert dict((await head_of(store, "c")).frontiers) == (past[5] and dict(past[5].frontiers))
        async with store.write(SCOPE, "c") as unit:
            back = replace(unit.head, rev=6, frontiers=past[2].frontiers if past[2] else {})
            await unit.commit(Changes(head=back))
        assert dict((await head_of(store, "c")).frontiers) == {}

    async def test_a_frontier_tells_what_its_row_does(self, store: Store) -> None:
        """The tokens that the stage has taken out and where that began; for opaque items, the tokens that they take."""
        await write(store, "c", *dialogue(4), tokens=[4, 8, 16, 32, 64, 128, 256, 512])
        await staged(
            store,
            "c",
            stage_row(DigestAction.DROP, 0, 1, tokens=12, freed=12),
            stage_row(DigestAction.REDACT, 1, 3, tokens=30, freed=30, since=4),
            stage_row(DigestAction.CHUNK, 1, 2, tokens=6),
            stage_row(DigestAction.COMPACT, 1, 2, tokens=8, opaque=OPAQUE),
        )
        (last,) = await staged(store, "c", stage_row(DigestAction.REDACT, 4, 5, tokens=50, freed=80, since=4))
        later = await write(store, "c", fire=[stage_row(DigestAction.COMPACT, 2, 3, tokens=1, completed=False)])
        await write(store, "c", outcomes=[DigestOutcome(digest=later.fired[0], opaque="[]", tokens=9)])
        await reach(store, "c")
        found = [await store.head(SCOPE, "c", at=at) for at in (2, 3, 5)]
        told = [head and {name: (f.tokens, f.freed, f.since) for name, f in head.frontiers.items()} for head in found]
        first = {"drop": (0, 12, 0), "redact": (0, 30, 4), "chunk": (0, 0, 0), "compact": (8, 0, 0)}
        assert told == [first, {**first, "redact": (0, 80, 4)}, {**first, "redact": (0, 80, 4), "compact": (9, 0, 0)}]
        assert found[2] is not None
        assert found[2].frontiers == (await head_of(store, "c")).frontiers
        await superseded(store, "c", last)
        head = await head_of(store, "c")
        assert (head.frontiers["redact"].freed, head.frontiers["redact"].end) == (30, 3)
        (row,) = [one for one in await store.digests(SCOPE, "c") if one.id == last]
        assert (row.tokens, row.freed, row.since) == (50, 80, 4)

    async def test_what_is_superseded_is_hidden_from_its_revision_on(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        first = await digested(store, "c", 0, 1, Item("first", ((0, 0),)))
        second = await digested(store, "c", 0, 3, Item("second", ((0, 0),)))
        running = await fire(store, "c", 0, 5)
        (drop,) = await staged(store, "c", stage_row(DigestAction.DROP, 0, 1))
        await superseded(store, "c", second, drop, running)
        await superseded(store, "c", second)
        row = await row_of(store, second)
        assert (row.status, row.visible_rev, row.hidden_rev) == (Status.SUPERSEDED, 3, 5)
        assert [item.text for item in row.items] == ["second"], "what it says is kept"
        assert (await row_of(store, running)).status is Status.PROCESSING, "only completed rows are superseded so"
        past = [await store.head(SCOPE, "c", at=at) for at in range(7)]
        standing = [head and head.digest and head.digest.id for head in past]
        assert standing == [None, None, first, second, second, first, first]
        assert [head and set(head.frontiers) for head in past] == [set(), set(), set(), set(), {"drop"}, set(), set()]
        head = await head_of(store, "c")
        assert head.digest is not None
        assert head.digest.id == first

    async def test_a_clear_is_taken_back(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        made = await digested(store, "c", 0, 1)
        await clear(store, "c")
        cleared = (await store.digests(SCOPE, "c"))[-1].id
        await superseded(store, "c", cleared, view_start=0)
        past = [await store.head(SCOPE, "c", at=at) for at in range(5)]
        assert [head and head.view_start for head in past] == [0, 0, 0, 4, 0]
        assert [head and head.digest and head.digest.id for head in past] == [None, None, made, None, made]
        head = await head_of(store, "c")
        assert head.digest is not None
        assert (head.view_start, head.digest.id) == (0, made)

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
