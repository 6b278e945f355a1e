"""Erasure: expired messages, digests that rest on them, and whole conversations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestOutcome, Item, RewrittenDigest, Status
from hitherto.core.log.append import extended
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.head import StandingSummary
from hitherto.core.log.message import Logged
from hitherto.core.log.probe import DialogueAt, Mark
from hitherto.core.log.ranges import Ranges
from hitherto.store.store import Store
from tests.store.samples import (
    HOUR,
    OTHER_STAGE,
    SCOPE,
    assistant,
    call,
    clear,
    conversations,
    dialogue,
    digested,
    fire,
    head_of,
    log_of,
    result,
    snapshot,
    user,
    write,
)

PAST = timedelta(seconds=-1)
DAY = timedelta(days=1)


async def expired(store: Store, name: str) -> tuple[Ranges, datetime | None]:
    async with store.write(SCOPE, name) as unit:
        return await unit.expired()


def without_content(logged: Logged) -> Logged:
    empty = replace(logged.message, raw="{}", text="", calls=(), answers=(), tools=(), raw_metadata="{}")
    return replace(logged, message=empty, erased=True)


class TestErasure:
    async def test_expired_tells_what_is_due_and_when_the_next_is(self, store: Store) -> None:
        now = datetime.now(UTC)
        assert await expired(store, "new") == ((), None)
        await write(store, "c", *dialogue(2))
        assert await expired(store, "c") == ((), None)
        times = [PAST, PAST, None, DAY, 2 * PAST, 2 * DAY, None, -1000 * DAY]
        await write(store, "c", *(replace(user(), expires_at=time and now + time) for time in times))
        assert await expired(store, "c") == (((4, 5), (8, 8), (11, 11)), now + DAY)
        await write(store, "c", erase=((4, 5), (8, 8)))
        assert await expired(store, "c") == (((11, 11),), now + DAY)
        await write(store, "c", erase=((7, 7),))
        assert await expired(store, "c") == (((11, 11),), now + 2 * DAY)
        await write(store, "c", erase=((9, 9), (11, 11)))
        assert await expired(store, "c") == ((), None)

    async def test_expired_goes_by_the_units_own_clock(self, store: Store) -> None:
        soon = datetime.now(UTC) + timedelta(seconds=0.05)
        await write(store, "c", replace(user(), expires_at=soon))
        async with store.write(SCOPE, "c") as unit:
            at = unit.head.clock
            await asyncio.sleep(0.06)
            assert await unit.expired() == (((), soon) if at < soon else (((0, 0),), None))
        assert await expired(store, "c") == (((0, 0),), None)

    async def test_a_clock_that_was_ahead_makes_nothing_expire(self, store: Store) -> None:
        """`now` is never before the newest message, but expiry goes by the clock itself."""
        ahead = datetime.now(UTC) + 2 * HOUR
        soon = datetime.now(UTC) + HOUR
        async with store.write(SCOPE, "c") as unit:
            batch = [replace(user(), expires_at=soon), replace(user(), expires_at=datetime.now(UTC) + PAST)]
            logged, head = extended(replace(unit.head, now=ahead), batch, [1, 1])
            await unit.commit(Changes(head=head, messages=logged))
        assert await expired(store, "c") == (((1, 1),), soon)
        head = await head_of(store, "c")
        past = await store.head(SCOPE, "c", at=head.rev)
        assert past is not None
        for one in (head, past):
            assert one.clock < soon
            assert one.now >= ahead

    async def test_erased_messages_leave_their_place_and_sums(self, store: Store) -> None:
        hidden = "attack at dawn"
        batch = [
            user("first"),
            replace(user(hidden), raw_metadata=f'{{"note": "{hidden}"}}', expires_at=datetime.now(UTC) + PAST),
            call(hidden, tool=hidden),
            result(hidden, hidden),
            assistant("last"),
        ]
        await write(store, "c", *batch, tokens=[1, 2, 3, 4, 5])
        await write(store, "d", *batch)
        other = (await snapshot(store, "d"))[:3]
        before = await log_of(store, "c")
        await write(store, "c", erase=((1, 3),))
        after = await log_of(store, "c")
        assert after == [before[0], *(without_content(logged) for logged in before[1:4]), before[4]]
        assert hidden not in repr(after)
        assert (await head_of(store, "c")).erased == ((1, 3),)
        assert (await snapshot(store, "d"))[:3] == other
        ref = (await head_of(store, "c")).ref
        assert (
            await store.messages(SCOPE, "c", ref, MessageRange(start=0, stop=5, tokens=3, tools_from=0, live_at=2))
            == after[1:]
        )
        async with store.write(SCOPE, "c") as unit:
            found = await unit.probe(DialogueAt(2))
            assert isinstance(found, Mark)
            assert (found.seq, found.sums, found.opens_turn) == (1, before[1].sums, True)

    async def test_a_digest_is_rewritten(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        kept, gone = Item("kept", ((0, 0),)), Item("secret", ((1, 1),))
        made = await digested(store, "c", 0, 3, kept, gone)
        (before,) = await store.digests(SCOPE, "c")
        rest = RewrittenDigest(digest=made, items=(kept,), text="kept", tokens=4)
        await write(store, "c", erase=((1, 1),), rewritten=[rest])
        (after,) = await store.digests(SCOPE, "c")
        assert after == replace(before, items=(kept,), text="kept", tokens=4)
        standing = StandingSummary(id=made, start=0, end=3, text="kept", spec=before.spec, tokens=4)
        assert (await head_of(store, "c")).digest == standing

    async def test_a_digest_that_cannot_do_without_is_superseded(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        first = await digested(store, "c", 0, 1, Item("first", ((0, 0),)))
        second = await digested(store, "c", 0, 3, Item("secret", ((2, 3),)), base=first)
        running = await fire(store, "c", 0, 3, stage=OTHER_STAGE)
        await write(
            store,
            "c",
            erase=((2, 2),),
            rewritten=[RewrittenDigest(digest=second, superseded=True)],
            outcomes=[DigestOutcome(digest=running, superseded=True, error="expired")],
        )
        rows = await store.digests(SCOPE, "c")
        assert [row.status for row in rows] == [Status.COMPLETED, Status.SUPERSEDED, Status.SUPERSEDED]
        assert "secret" not in repr(rows)
        head = await head_of(store, "c")
        assert head.digest == StandingSummary(id=first, start=0, end=1, text="first", spec=rows[0].spec, tokens=5)
        assert head.digest_sums.tokens == 20
        again = await digested(store, "c", 0, 3, Item("anew", ((3, 3),)), base=first)
        standing = StandingSummary(id=again, start=0, end=3, text="anew", spec=rows[0].spec, tokens=4)
        assert (await head_of(store, "c")).digest == standing

    async def test_an_erasure_of_a_user_is_recorded_until_it_ends(self, store: Store) -> None:
        other = replace(SCOPE, user="other")
        await write(store, "c", *dialogue(1))
        await write(store, "d", user(), scope=other)
        begun = await store.begin_erasure(tenant=SCOPE.tenant, user=SCOPE.user)
        assert await store.erasures() == [begun]
        assert [(one.scope, one.conversation) for one in await store.conversations_of(begun, limit=9)] == [(SCOPE, "c")]
        assert await store.conversations_of(begun, limit=0) == []
        async with store.write(SCOPE, "c") as unit:
            await unit.delete(facts=True)
        await write(store, "new", user())
        assert await store.conversations_of(begun, limit=9) == [], "it came later"
        await store.end_erasure(begun)
        assert await store.erasures() == []
        assert [one.conversation for one in await conversations(store)] == ["new"]
        assert [one.conversation for one in await conversations(store, other)] == ["d"]

    async def test_an_erasure_that_was_asked_for_again_has_not_ended(self, store: Store) -> None:
        first = await store.begin_erasure(tenant=SCOPE.tenant, user=None)
        second = await store.begin_erasure(tenant=SCOPE.tenant, user=None)
        assert first.requested_at < second.requested_at
        await store.end_erasure(first)
        assert await store.erasures() == [second]
        await store.end_erasure(second)
        assert await store.erasures() == []

    async def test_only_a_completed_digest_is_rewritten(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        failed = await fire(store, "c", 0, 1)
        await write(store, "c", outcomes=[DigestOutcome(digest=failed, error="down")])
        running = await fire(store, "c", 0, 3)
        before = await store.digests(SCOPE, "c")
        await write(store, "c", rewritten=[RewrittenDigest(digest=one, text="x") for one in (failed, running)])
        assert await store.digests(SCOPE, "c") == before

    async def test_delete_leaves_nothing(self, store: Store) -> None:
        for name in ("c", "d"):
            await write(store, name, *dialogue(3), replace(user(), expires_at=datetime.now(UTC) + PAST), key="k")
            base = await digested(store, name, 0, 3, Item("a", ((0, 0),)))
            await clear(store, name)
            await write(store, name, *dialogue(3))
            await fire(store, name, 7, 8, base=base)
        running = (await head_of(store, "c")).running[0].id
        ref = (await head_of(store, "c")).ref
        head, log, digests, _ = await snapshot(store, "d")
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        for at in (None, 0, 1):
            assert await store.head(SCOPE, "c", at=at) is None
        assert await store.messages(SCOPE, "c", ref, MessageRange(start=0, stop=100)) == []
        assert await store.digests(SCOPE, "c") == []
        assert await store.claim(SCOPE.tenant, running, lease=HOUR) is None
        assert [one.conversation for one in await conversations(store)] == ["d"]
        await asyncio.sleep(0.01)
        assert [one.conversation for one in await store.due()] == ["d"]
        assert (await snapshot(store, "d"))[:3] == (head, log, digests)

    async def test_after_delete_the_name_is_free(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        running = await fire(store, "c", 0, 5)
        old = (await head_of(store, "c")).ref
        async with store.write(SCOPE, "c") as unit:
            await unit.delete()
        written = await write(store, "c", user("anew"), outcomes=[DigestOutcome(digest=running, text="late")])
        assert written.head.rev == 1
        head = await head_of(store, "c")
        assert (head.next_seq, head.ref != old) == (1, True)
        assert await log_of(store, "c") == list(written.logged)
        assert await store.messages(SCOPE, "c", old, MessageRange(start=0, stop=10)) == []
        assert await store.digests(SCOPE, "c") == []

    async def test_who_waited_for_a_deleted_conversation_begins_anew(self, store: Store) -> None:
        await write(store, "c", *dialogue(3))
        async with store.write(SCOPE, "c") as unit:
            waiting = [asyncio.create_task(write(store, "c", user(f"{n}"))) for n in range(5)]
            await asyncio.wait(waiting, timeout=0.05)
            await unit.delete()
        written = await asyncio.gather(*waiting)
        assert sorted(one.logged[0].seq for one in written) == [0, 1, 2, 3, 4]
        assert len(await log_of(store, "c")) == 5

    async def test_writers_and_deleters_at_once(self, store: Store) -> None:
        """Units never overlap: a log has no gaps, and begins with the first append after a delete."""

        async def delete() -> None:
            async with store.write(SCOPE, "c") as unit:
                await unit.delete()

        async def append(n: int) -> None:
            await write(store, "c", user(f"{n}"))

        for _ in range(3):
            await asyncio.gather(*(delete() if n % 4 == 3 else append(n) for n in range(20)))
            await append(20)
            log = await log_of(store, "c")
            assert [logged.seq for logged in log] == list(range(len(log)))
            assert [logged.rev for logged in log] == list(range(1, len(log) + 1))
