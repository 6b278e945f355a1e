"""Units of work: all or nothing, one at a time in a conversation, and the head they see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hitherto.core.changes import Changes
from hitherto.core.cross_session import CrossSession
from hitherto.core.log.append import extended
from hitherto.core.log.head import Head, LatestDigest, OpenCall, RunningDigest, StandingSummary
from hitherto.core.log.message import Sums
from hitherto.core.policy.parts import Prefix, Summarize, Window
from hitherto.core.policy.policy import Policy, Stage, policy_json
from hitherto.core.policy.trigger import Seq
from hitherto.store.store import Store
from tests.store.samples import (
    LONG_AGO,
    SCOPE,
    assistant,
    call,
    conversations,
    dialogue,
    digest_of,
    head_of,
    log_of,
    reasoning,
    snapshot,
    timeless,
    user,
    write,
)

AT_ONCE = 20
SHORT = 0.05
"""Seconds after which a task that is not done counts as waiting."""
POLICY = policy_json(Policy("window", (Stage(Seq(5), Window(14), Summarize(900), Prefix("[{text}]")),)))


class TestUnit:
    async def test_the_first_commit_makes_the_conversation(self, store: Store) -> None:
        assert await store.head(SCOPE, "new") is None
        async with store.write(SCOPE, "new") as unit:
            fresh = unit.head
            assert (fresh.rev, fresh.next_seq, fresh.sums, fresh.view_start) == (0, 0, Sums(), 0)
            assert (fresh.digest, fresh.policy, fresh.running, fresh.erased, fresh.retracted) == (
                None,
                None,
                (),
                (),
                (),
            )
            assert (fresh.closed, fresh.awaited, fresh.next_expiry) == (False, (), None)
            assert unit.receipt is None
            assert await unit.digests() == []
            logged, head = extended(fresh, dialogue(1), [7, 8])
            assert await unit.commit(Changes(head=head, messages=logged)) == ()
        made = await head_of(store, "new")
        assert timeless(made) == timeless(replace(head, ref=made.ref))
        assert await log_of(store, "new") == list(logged)

    async def test_leaving_without_a_commit_changes_nothing(self, store: Store) -> None:
        async with store.write(SCOPE, "never"):
            pass
        assert await store.head(SCOPE, "never") is None
        assert await conversations(store) == []
        await write(store, "there", *dialogue(1))
        before = await snapshot(store, "there")
        async with store.write(SCOPE, "there", key="k"):
            pass
        assert await snapshot(store, "there") == before

    @pytest.mark.parametrize("name", ["there", "never"])
    async def test_an_exception_changes_nothing(self, store: Store, name: str) -> None:
        await write(store, "there", *dialogue(1))
        before = await snapshot(store, name)
        with pytest.raises(ZeroDivisionError):
            async with store.write(SCOPE, name, key="k"):
                raise ZeroDivisionError
        assert await snapshot(store, name) == before
        async with asyncio.timeout(5), store.write(SCOPE, name, key="k") as unit:
            assert unit.receipt is None

    @pytest.mark.parametrize("name", ["there", "never"])
    async def test_a_cancelled_unit_changes_nothing_and_lets_go(self, store: Store, name: str) -> None:
        await write(store, "there", *dialogue(1))
        before = await snapshot(store, name)
        begun = asyncio.Event()

        async def linger() -> None:
            async with store.write(SCOPE, name):
                begun.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(linger())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await snapshot(store, name) == before
        async with asyncio.timeout(5):
            await write(store, name, user())

    async def test_a_second_commit_is_refused_and_writes_nothing(self, store: Store) -> None:
        async with store.write(SCOPE, "once") as unit:
            logged, head = extended(unit.head, dialogue(1), [1, 1])
            await unit.commit(Changes(head=head, messages=logged))
            more, further = extended(head, dialogue(1), [1, 1])
            with pytest.raises(AssertionError, match="commits once"):
                await unit.commit(Changes(head=further, messages=more))
        assert (await head_of(store, "once")).rev == 1
        assert await log_of(store, "once") == list(logged)

    @pytest.mark.parametrize("there", [True, False])
    async def test_units_on_one_conversation_wait(self, store: Store, there: bool) -> None:
        if there:
            await write(store, "one", *dialogue(1))
        before = await store.head(SCOPE, "one")
        second = asyncio.create_task(asyncio.sleep(0))
        async with store.write(SCOPE, "one") as unit:
            second = asyncio.create_task(write(store, "one", assistant("second")))
            done, _ = await asyncio.wait([second], timeout=SHORT)
            assert not done, "the second unit waits while the first is held"
            logged, head = extended(unit.head, [user("first")], [1])
            assert timeless(await store.head(SCOPE, "one")) == timeless(before), "reading neither waits nor sees it"
            await unit.commit(Changes(head=head, messages=logged))
        written = await second
        assert written.logged[0].seq == logged[0].seq + 1, "the second begins where the first ended"
        assert [one.message.text for one in await log_of(store, "one")][-2:] == ["first", "second"]

    async def test_units_on_other_conversations_do_not_wait(self, store: Store) -> None:
        async with store.write(SCOPE, "busy"):
            waiting = [asyncio.create_task(write(store, "busy", user(f"{n}"))) for n in range(AT_ONCE)]
            await asyncio.wait(waiting, timeout=SHORT)
            async with asyncio.timeout(5):
                await write(store, "quiet", *dialogue(1))
                await write(store, "busy", *dialogue(1), scope=replace(SCOPE, user="somebody else"))
                assert (await head_of(store, "quiet")).next_seq == 2
            assert not any(task.done() for task in waiting)
        await asyncio.gather(*waiting)
        assert (await head_of(store, "busy")).next_seq == AT_ONCE

    async def test_a_head_comes_back_as_it_was_committed(self, store: Store) -> None:
        soon = datetime.now(UTC) + timedelta(days=1)
        batch = [user(), reasoning(), call('a"\\{}', "b")]
        async with store.write(SCOPE, "whole") as unit:
            logged, head = extended(unit.head, batch, [3, 4, 5])
            head = replace(
                head,
                policy=POLICY,
                view_start=1,
                view_sums=logged[0].sums,
                erased=((0, 0),),
                next_expiry=soon,
            )
            opened = {
                'a"\\{}': OpenCall(seq=2, group=1, turn=1, tool="look_up"),
                "b": OpenCall(seq=2, group=1, turn=1, tool="look_up"),
            }
            assert (dict(head.open_calls), head.awaited) == (opened, ((1, 2),))
            await unit.commit(Changes(head=head, messages=logged))
        made = await head_of(store, "whole")
        assert timeless(made) == timeless(replace(head, ref=made.ref))
        async with store.write(SCOPE, "whole", calls=["b", "c"]) as unit:
            assert unit.head.open_calls == {"b": opened["b"]}

    async def test_what_is_not_read_of_a_committed_head(self, store: Store) -> None:
        """Fields that the store sets itself, and fields that follow from other rows."""
        await write(store, "other", *dialogue(1))
        await write(store, "own", *dialogue(1))
        before = await head_of(store, "own")
        foreign = (await head_of(store, "other")).ref
        fake = RunningDigest(id=99, stage="x", attempt=1, start=0, end=0, created_at=LONG_AGO)
        async with store.write(SCOPE, "own") as unit:
            after = replace(
                unit.head,
                rev=2,
                ref=foreign,
                digest=StandingSummary(id=99, start=0, end=0, text="x"),
                digest_sums=Sums(tokens=99),
                running=(fake,),
                retracted=((0, 0),),
                agent_policy=POLICY,
                agent_cross_session=CrossSession(latest=True),
                latest=LatestDigest(conversation="x", text="x"),
                now=LONG_AGO,
            )
            await unit.commit(Changes(head=after, fire=(digest_of(0, 1),)))
        head = await head_of(store, "own")
        assert timeless(replace(head, running=())) == timeless(replace(before, rev=2))
        (digest,) = await store.digests(SCOPE, "own")
        assert digest.created_at > LONG_AGO
        assert all(one.updated_at > LONG_AGO for one in await conversations(store))
        assert (await head_of(store, "other")).rev == 1

    async def test_now_is_never_behind_the_newest_message(self, store: Store) -> None:
        """As after the clock was an hour ahead and was corrected."""
        ahead = datetime.now(UTC) + timedelta(hours=1)
        async with store.write(SCOPE, "ahead") as unit:
            logged, head = extended(replace(unit.head, now=ahead), [user()], [1])
            await unit.commit(Changes(head=head, messages=logged))
        async with store.write(SCOPE, "ahead") as unit:
            assert unit.head.now >= ahead
            logged, head = extended(unit.head, [assistant()], [1])
            await unit.commit(Changes(head=head, messages=logged))
        assert (await head_of(store, "ahead")).now >= ahead
        times = [logged.created_at for logged in await log_of(store, "ahead")]
        assert times == sorted(times)

    async def test_now_is_read_after_the_conversation_is_held(self, store: Store) -> None:
        heads: list[Head] = []

        async def second() -> None:
            async with store.write(SCOPE, "held") as unit:
                heads.append(unit.head)

        async with store.write(SCOPE, "held") as unit:
            waiting = asyncio.create_task(second())
            await asyncio.wait([waiting], timeout=SHORT)
            logged, head = extended(unit.head, [user()], [1])
            await unit.commit(Changes(head=head, messages=logged))
            earliest = unit.head.now + timedelta(seconds=SHORT * 0.9)
        await waiting
        assert heads[0].now >= earliest

    async def test_closing_twice_is_allowed(self, database: str) -> None:
        store = Store(database)
        await store.open()
        await write(store, "last", *dialogue(1))
        await store.aclose()
        await store.aclose()
