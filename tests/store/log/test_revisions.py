"""Past revisions, each head as it was then; and messages that were taken back, which later views leave out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.log.conversations import MessageRange
from hitherto.core.log.message import Sums
from hitherto.core.log.probe import DialogueAt, Mark, SeqAt, TokensAt, ToolIds, ToolItem, ToolTokens, TurnAt
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.samples import (
    HOUR,
    SCOPE,
    assistant,
    call,
    clear,
    dialogue,
    digested,
    fire,
    head_of,
    log_of,
    result,
    user,
    write,
)


class TestRevision:
    async def test_revision_0_is_empty_and_none_lies_beyond_the_newest(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await digested(store, "c", 0, 3)
        head = await head_of(store, "c")
        assert head.rev == 2
        nothing = await store.head(SCOPE, "c", at=0)
        assert nothing is not None
        assert (nothing.rev, nothing.next_seq, nothing.sums, nothing.view_start) == (0, 0, Sums(), 0)
        assert (nothing.closed, nothing.digest, nothing.digest_sums, nothing.erased) == (False, None, Sums(), ())
        for at in (-1, 3, 2**31, 2**63, 2**70):
            assert await store.head(SCOPE, "c", at=at) is None
        assert await store.head(SCOPE, "none", at=0) is None

    async def test_closed_follows_the_last_message_of_the_revision(self, store: Store) -> None:
        for message in (user(), assistant(), call("a"), user(), assistant()):
            await write(store, "c", message)
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(6)]
        assert [head and head.closed for head in past] == [False, False, True, False, False, True]

    async def test_only_the_newest_head_says_how_often_digests_failed(self, store: Store) -> None:
        await write(store, "c", *dialogue(1))
        await write(store, "d", *dialogue(1))
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at, head.resting) == (0, None, False)
        until = head.now.replace(microsecond=123_456) + HOUR
        await write(store, "c", same_rev=True, failures=3, resume_at=until)
        await write(store, "c", *dialogue(1))
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at, head.resting) == (3, until, True)
        other = await head_of(store, "d")
        assert (other.failures, other.resume_at) == (0, None)
        async with store.write(SCOPE, "c") as unit:
            assert (unit.head.failures, unit.head.resume_at) == (3, until)
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(3)]
        assert [head and (head.failures, head.resume_at) for head in past] == [(0, None)] * 3
        await write(store, "c", same_rev=True, failures=4, resume_at=until - 2 * HOUR)
        assert not (await head_of(store, "c")).resting, "that was long ago"
        await write(store, "c", failures=0, resume_at=None)
        head = await head_of(store, "c")
        assert (head.failures, head.resume_at) == (0, None)

    async def test_only_the_newest_head_says_what_is_to_be_digested_in_any_case(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        assert (await head_of(store, "c")).finish_seq == 0
        await write(store, "c", same_rev=True, finish_seq=4)
        await write(store, "c", *dialogue(1))
        assert (await head_of(store, "c")).finish_seq == 4
        async with store.write(SCOPE, "c") as unit:
            assert unit.head.finish_seq == 4
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(3)]
        assert [head and head.finish_seq for head in past] == [0, 0, 0]

    async def test_what_was_erased_since_shows_in_the_past_as_far_as_it_reaches(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await write(store, "c", *dialogue(2))
        await write(store, "c", erase=((1, 2), (3, 5), (7, 7)))
        past = [await store.head(SCOPE, "c", at=rev) for rev in range(4)]
        assert [head and head.erased for head in past] == [
            (),
            ((1, 2), (3, 3)),
            ((1, 2), (3, 5), (7, 7)),
            ((1, 2), (3, 5), (7, 7)),
        ]
        assert [head and head.closed for head in past] == [False, True, True, True]


class TestRetraction:
    async def test_what_was_taken_back_stays_in_the_log(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        before = await log_of(store, "c")
        assert await take_back(store, "c", 2) == [2, 3]
        await write(store, "c", user("again"))
        log = await log_of(store, "c")
        assert log[:2] == before[:2]
        assert log[2:4] == [replace(one, retracted_rev=2) for one in before[2:]]
        assert (log[4].seq, log[4].sums, log[4].retracted_rev) == (4, Sums(tokens=30, turns=2, dialogue=3), None)
        head = await head_of(store, "c")
        assert (head.next_seq, head.rev, head.sums, head.retracted) == (5, 3, log[4].sums, ((2, 3),))
        async with store.write(SCOPE, "c") as unit:
            assert unit.head.retracted == ((2, 3),)

    async def test_a_message_is_taken_back_once(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await take_back(store, "c")
        async with store.write(SCOPE, "c") as unit:
            await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1), retract=((2, 3),)))
        assert [one.retracted_rev for one in await log_of(store, "c")] == [None, None, 3, 2]
        assert (await head_of(store, "c")).retracted == ((2, 3),)
        past = await store.head(SCOPE, "c", at=2)
        assert past is not None
        assert past.retracted == ((3, 3),)

    async def test_probes_skip_what_was_taken_back(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await take_back(store, "c", 3)
        await write(store, "c", assistant("other"), user(), tokens=[5, 5])
        async with store.write(SCOPE, "c") as unit:
            assert await unit.probe(DialogueAt(2)) == Mark(4, Sums(tokens=15, turns=1, dialogue=2), 5, False)
            assert await unit.probe(TurnAt(2)) == Mark(5, Sums(tokens=20, turns=2, dialogue=3), 5, True)
            assert await unit.probe(TokensAt(11)) == Mark(4, Sums(tokens=15, turns=1, dialogue=2), 5, False)
            assert await unit.probe(TokensAt(21)) is None
            assert await unit.probe(DialogueAt(4)) is None
            assert await unit.probe(SeqAt(3)) == Mark(0, Sums(tokens=10, turns=1, dialogue=1), 10, True)
            assert await unit.probe(SeqAt(9)) == Mark(5, Sums(tokens=20, turns=2, dialogue=3), 5, True)

    async def test_the_tail_has_the_newest_live_messages_of_the_view(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        await clear(store, "c")
        await write(store, "c", *dialogue(2))
        await take_back(store, "c", 3)
        await write(store, "c", *dialogue(1))

        async def tail(n: int) -> list[int]:
            async with store.write(SCOPE, "c") as unit:
                return [one.seq for one in await unit.tail(n)]

        assert [await tail(n) for n in (0, 1, 2, 3, 50)] == [[], [9], [8, 9], [4, 8, 9], [4, 8, 9]]

    async def test_the_audit_has_a_log_that_begins_with_what_was_taken_back(self, store: Store) -> None:
        batch = [user(), call("a"), result("a"), assistant()]
        await write(store, "c", *batch)
        await take_back(store, "c", 4)
        ref = (await head_of(store, "c")).ref

        async def seqs(reading: MessageRange) -> list[int]:
            return [one.seq for one in await store.messages(SCOPE, "c", ref, reading)]

        assert await seqs(MessageRange(start=0, stop=4)) == [0, 1, 2, 3], "with nothing live at all"
        assert await seqs(MessageRange(start=0, stop=4, live_at=2)) == []
        await write(store, "c", user(), call("b"), result("b"), assistant())
        assert await seqs(MessageRange(start=0, stop=8)) == [0, 1, 2, 3, 4, 5, 6, 7]
        assert await seqs(MessageRange(start=0, stop=8, live_at=3)) == [4, 5, 6, 7]
        assert await seqs(MessageRange(start=2, stop=8)) == [2, 3, 4, 5, 6, 7]
        assert await seqs(MessageRange(start=0, stop=3)) == [0, 1, 2]
        assert await seqs(MessageRange(start=0, stop=8, limit=2)) == [0, 1]
        assert await seqs(MessageRange(start=4, stop=8, tools_from=0)) == [1, 2, 4, 5, 6, 7]
        assert await seqs(MessageRange(start=7, stop=8, tools_from=2)) == [2, 5, 6, 7]
        assert await seqs(MessageRange(start=3, stop=6, tools_from=1, limit=3)) == [1, 2, 3]

    async def test_tool_tokens_are_those_of_live_results(self, store: Store) -> None:
        batch = [user(), call("a", tool="read"), result("a"), call("b", tool="ls"), result("b"), call("x"), result("x")]
        await write(store, "c", *batch, tokens=[1, 2, 4, 8, 16, 32, 64])
        await take_back(store, "c", 2)
        await write(store, "c", call("d", tool="read"), result("d"), tokens=[128, 256])
        await write(store, "c", erase=((4, 4),))
        async with store.write(SCOPE, "c") as unit:
            assert await unit.probe(ToolTokens(0, 8, False, (), 0)) == 4 + 256
            assert await unit.probe(ToolTokens(0, 8, True, (), 0)) == 2 + 4 + 8 + 128 + 256
            assert await unit.probe(ToolTokens(0, 8, True, ("ls", "none"), 0)) == 2 + 4 + 128 + 256
            assert await unit.probe(ToolTokens(0, 8, False, ("read",), 0)) == 0
            assert await unit.probe(ToolTokens(3, 7, True, (), 0)) == 8 + 128
            assert await unit.probe(ToolTokens(6, 5, True, (), 0)) == 0
            assert await unit.probe(ToolTokens(0, 8, True, (), 6)) == 2 + 122 + 250, "above 6 each"

    async def test_tool_ids_are_those_of_live_items(self, store: Store) -> None:
        await write(store, "c", user(), call("a"), result("a"), call("b"), result("b"), call("x"), result("x"))
        await take_back(store, "c", 2)
        await write(store, "c", user(), call("d"), result("d"))
        await write(store, "c", erase=((4, 4),))
        async with store.write(SCOPE, "c") as unit:
            live = [(2, (), ("a",)), (3, ("b",), ()), (8, ("d",), ()), (9, (), ("d",))]
            assert await unit.probe(ToolIds(2)) == tuple(ToolItem(*one) for one in live)
            assert await unit.probe(ToolIds(10)) == ()

    async def test_what_was_taken_back_expires_too(self, store: Store) -> None:
        late = datetime.now(UTC) - timedelta(days=1)
        await write(store, "c", user(), replace(assistant("secret"), expires_at=late))
        await take_back(store, "c")
        async with store.write(SCOPE, "c") as unit:
            assert (await unit.expired())[0] == ((1, 1),)
        await write(store, "c", erase=((1, 1),))
        erased = (await log_of(store, "c"))[1]
        assert (erased.erased, erased.retracted_rev, erased.message.text) == (True, 2, "")

    async def test_a_digest_in_progress_over_it_loses_its_claim(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        running = await fire(store, "c", 0, 3)
        await take_back(store, "c")
        (row,) = await store.digests(SCOPE, "c")
        assert (row.id, row.status, row.visible_rev, row.hidden_rev) == (running, Status.SUPERSEDED, None, None)
        assert await store.claim(SCOPE.tenant, running, lease=HOUR) is None
