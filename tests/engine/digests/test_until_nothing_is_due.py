"""When triggers are looked at: after an append and when a digest ends, until nothing is due. What `finish` does. Which
process makes a digest, and of what answers none is made."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import hitherto
from hitherto import Conversation, Memory, assistant, chunks, rolling, sliding_window, summarize, trim, user
from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Status
from hitherto.core.prompt import Prompt
from hitherto.engine.digests.fire import resumed
from hitherto.errors import InvalidPolicy, ModelUnavailable
from hitherto.providers.scripted import Gate, Scripted, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, answers, asks, each, made, opener, ranges, round_, says_each
from tests.conftest import SCOPE
from tests.faults.waiting import until

PAIRS = chunks(threshold=2, batch=2, context=2)
SOON: dict[str, Any] = {"lease_timeout": 1}
"""Settings with which a worker looks for what was left behind several times a second."""


def many(count: int) -> list[hitherto.Message]:
    """So many plain rounds."""
    return [one for number in range(1, count + 1) for one in (asks(number), answers(number))]


async def test_a_round_that_ends_while_a_digest_runs_is_digested_when_that_ends(store: Store) -> None:
    gate = Gate(says_each)
    async with opener(store, rolling(threshold=3, keep_last=2))(Scripted([gate], then=says_each)) as (memory, chat):
        await chat.append(*many(2))
        await gate.reached()
        for number in (3, 4):
            await round_(chat, number)
        gate.open()
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 1), (0, 5)]


async def test_the_facts_of_the_last_round_are_not_lost(store: Store) -> None:
    """The last round of a conversation ends while the chunk before it is made, and no append follows."""
    gate = Gate(items("They talk.", facts=[]))
    fact = items("Ana tells of her cello.", facts=[("hobby", "Plays the cello.")])
    async with opener(store, PAIRS)(Scripted([gate, fact])) as (memory, chat):
        await chat.append(*many(1), user("I play the cello."), answers(2))
        await gate.reached()
        await round_(chat, 3)
        gate.open()
        await memory.wait_for_digests()
        assert [one.content for one in await memory.facts(SCOPE).list()] == ["Plays the cello."]


async def test_an_import_is_chunked_to_its_end(store: Store) -> None:
    async with opener(store, chunks())(Scripted(then=says_each)) as (memory, chat):
        await chat.append(*many(300))
        await memory.wait_for_digests()
        rows = ranges(await chat.digests())
        assert rows == [(start, start + 19) for start in range(0, 580, 20)]
        assert 600 - (rows[-1][1] + 1) <= 30, "no more are left than the threshold"


LATE = hitherto.Call(id="job", name="job", arguments="{}")


@pytest.mark.parametrize(("threshold", "batch"), [(30, 20), (10, 4)])
@pytest.mark.parametrize("after", [3, 7, 12, 19])
async def test_a_result_that_comes_late_does_not_stop_chunks(
    store: Store, threshold: int, batch: int, after: int
) -> None:
    """The call and its result are in one chunk, if the call was in none when the result came."""
    policy = chunks(threshold=threshold, batch=batch, context=batch)
    async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
        await chat.append(user("Start the job."), assistant("It runs.", calls=[LATE]))
        for number in range(1, 61):
            if number == after + 1:
                await chat.append(hitherto.tool_result("job", "done"))
            await round_(chat, number)
            await memory.wait_for_digests()
        rows = ranges(await chat.digests())
        assert [start for start, _ in rows] == [0, *(end + 1 for _, end in rows[:-1])]
        head = await chat.head()
        assert head is not None
        assert head.next_seq - (rows[-1][1] + 1) <= threshold + 2
        result = 2 + 2 * after
        assert rows[0][1] >= result or result > threshold


async def test_a_seq_fires_only_when_a_round_ends(store: Store) -> None:
    """A digest that ends is not the end of a round: the seed's table has one line a round."""
    gate = Gate(says_each)
    async with opener(store, sliding_window(after_seq=1))(Scripted([gate], then=says_each)) as (memory, chat):
        await round_(chat, 1)
        await gate.reached()
        await round_(chat, 2)
        gate.open()
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 1)]
        await round_(chat, 3)
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 1), (0, 5)]


async def test_after_a_failed_digest_it_goes_on_by_itself(store: Store) -> None:
    """No append follows, and the conversation is not told to finish again."""
    model = Scripted([ModelUnavailable("down")], then=says_each)
    async with opener(store, PAIRS)(model, backoff=0.3, **SOON) as (memory, chat):
        await chat.append(*many(3))
        await chat.finish()
        while len(await chat.digests()) < 4:  # noqa: ASYNC110 (a worker's doing, which tells nobody)
            await asyncio.sleep(0.05)
        await memory.wait_for_digests()
        rows = await chat.digests()
        assert [row.status for row in rows] == [Status.FAILED, *[Status.COMPLETED] * 3]
        assert ranges(rows)[1:] == [(0, 1), (2, 3), (4, 5)]
        assert await store.rested() == []


async def test_whoever_cannot_read_its_policy_leaves_it_to_others(store: Store) -> None:
    model = Scripted([ModelUnavailable("down")], then=says_each)
    settings: dict[str, Any] = {**ONE_TRY, "backoff": 600}
    async with opener(store, PAIRS)(model, **settings) as (memory, chat):
        await chat.append(*many(2))
        await memory.wait_for_digests()
        async with store.write(SCOPE, chat.id) as unit:
            elsewhere = PAIRS.text.replace('"chunk"', '"elsewhere"')
            head = replace(unit.head, policy=elsewhere, resume_at=unit.head.clock)
            await unit.commit(Changes(head=head, background=True))
        (failed,) = await store.rested()
        with pytest.raises(InvalidPolicy, match="cannot be read here"):
            await resumed(memory._services, failed)
        assert await store.rested() == [failed]
        await chat.configure(policy=PAIRS, create=True)  # as where it can be read
        await resumed(memory._services, failed)
        await memory.wait_for_digests()
        assert [row.status for row in await chat.digests()] == [Status.FAILED, Status.COMPLETED]


async def test_after_many_failures_it_waits_for_an_append(store: Store) -> None:
    """What is paid for in vain is bounded."""
    model = Scripted(then="Sure! Here is a summary: they talk.")
    async with opener(store, PAIRS)(model, backoff=0.01, **SOON) as (memory, chat):
        await chat.append(*many(3))
        head = None
        while head is None or head.failures < 6 or head.resume_at is not None:
            head = await chat.head()
            await asyncio.sleep(0.05)
        rows = await chat.digests()
        assert [row.status for row in rows] == [Status.FAILED] * 6
        assert len(model.calls) == 12
        await round_(chat, 4)
        await memory.wait_for_digests()
        assert len(await chat.digests()) >= 7


class TestFinish:
    async def done(self, memory: Memory, chat: Conversation) -> list[tuple[int, int]]:
        await chat.finish()
        await memory.wait_for_digests()
        return ranges(await chat.digests())

    async def test_a_summary_of_all_that_is_left(self, store: Store) -> None:
        async with opener(store, summarize(context_limit=9, keep_turns=2))(Scripted(then=says_each)) as (memory, chat):
            await chat.append(*many(3))
            assert await self.done(memory, chat) == [(0, 5)]
            (row,) = await chat.digests()
            assert row.text == each(0, 5)

    async def test_chunks_of_all_that_is_left(self, store: Store) -> None:
        """25 messages in batches of ten, the last of five."""
        policy = chunks(threshold=100, batch=10, context=20)
        async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
            await chat.append(*many(12), user("And then it was over."))
            assert await self.done(memory, chat) == [(0, 9), (10, 19), (20, 24)]
            assert await self.done(memory, chat) == [(0, 9), (10, 19), (20, 24)], "nothing is left"

    async def test_appends_after_it_go_on_normally(self, store: Store) -> None:
        async with opener(store, rolling(threshold=3, keep_last=2))(Scripted(then=says_each)) as (memory, chat):
            await chat.append(*many(1))
            assert await self.done(memory, chat) == [(0, 1)]
            await round_(chat, 2)
            await memory.wait_for_digests()
            assert ranges(await chat.digests()) == [(0, 1)], "two messages are below the threshold again"
            await round_(chat, 3)
            await memory.wait_for_digests()
            assert ranges(await chat.digests()) == [(0, 1), (0, 3)]

    async def test_while_a_digest_is_in_progress(self, store: Store) -> None:
        """What was there when it was called is digested when that one ends, and what came after it is not."""
        gate = Gate(says_each)
        async with opener(store, rolling(threshold=3, keep_last=2))(Scripted([gate], then=says_each)) as (memory, chat):
            await chat.append(*many(2))
            await gate.reached()
            assert await chat.finish() is None
            await round_(chat, 3)
            gate.open()
            await memory.wait_for_digests()
            assert ranges(await chat.digests()) == [(0, 1), (0, 3)]

    async def test_a_call_that_waits_is_left(self, store: Store) -> None:
        """A group is whole in a digest or not in it."""
        async with opener(store, rolling())(Scripted(then=says_each)) as (memory, chat):
            waiting = assistant(calls=[hitherto.Call(id="a", name="look", arguments="{}")])
            await chat.append(*many(2), asks(3), waiting)
            assert await self.done(memory, chat) == [(0, 3)]

    @pytest.mark.parametrize("policy", ["none", trim(max_turns=2, keep_turns=1), "redact"])
    async def test_without_a_stage_that_digests_nothing_happens(
        self, store: Store, policy: hitherto.Policy | str
    ) -> None:
        async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
            await round_(chat, 1)
            assert await chat.finish() is None
            assert await self.done(memory, chat) == []
            await round_(chat, 2)
            assert all(one.action not in ("summarize", "chunk") for one in await chat.digests())

    async def test_an_empty_conversation(self, store: Store) -> None:
        async with opener(store, rolling())(Scripted(then=says_each)) as (memory, chat):
            assert await self.done(memory, chat) == []
            assert await chat.head() is None, "nothing was created"
            await round_(chat, 1)
            await chat.clear()
            assert await self.done(memory, chat) == [(0, 1)], "the clear alone"

    async def test_when_everything_was_taken_back(self, store: Store) -> None:
        async with opener(store, rolling())(Scripted(then=says_each)) as (memory, chat):
            await round_(chat, 1)
            assert await self.done(memory, chat) == [(0, 1)]
            await round_(chat, 2)
            await chat.pop()
            await chat.pop()
            assert await self.done(memory, chat) == [(0, 1)], "there is nothing to digest"
            await round_(chat, 3)
            assert await self.done(memory, chat) == [(0, 1), (0, 5)]

    async def test_twice_at_once(self, store: Store) -> None:
        async with opener(store, rolling())(Scripted(then=says_each)) as (memory, chat):
            await chat.append(*many(2))
            begun = await asyncio.gather(*(chat.finish() for _ in range(5)))
            assert len([one for one in begun if one is not None]) == 1
            await memory.wait_for_digests()
            assert ranges(await chat.digests()) == [(0, 3)]


async def test_only_a_process_with_a_model_makes_what_a_process_with_a_model_set_off(database: str) -> None:
    """Of two processes on one database, the other one has no model: it must not claim what it would make badly."""
    model = Scripted(then=items("They talk.", facts=[("hobby", "Plays the cello.")]))
    async with hitherto.open(database, model="extractive", **ONE_TRY) as without:
        async with hitherto.open(database, model=model, worker=False) as sets_off:
            chats = [sets_off.conversation(f"c{number}", scope=SCOPE, policy=PAIRS) for number in range(20)]
            for chat in chats:
                await chat.append(*many(2))
        mine = without.conversation("mine", scope=SCOPE, policy=PAIRS)
        await mine.append(*many(2))
        await without.wait_for_digests()
        assert [row.model for row in await mine.digests()] == ["extractive"]
        rows = [row for chat in chats for row in await without.conversation(chat.id, scope=SCOPE).digests()]
        assert [(row.status, row.attempt) for row in rows] == [(Status.PROCESSING, 0)] * 20
        async with hitherto.open(database, model=model, **ONE_TRY) as able:
            await made(able)
            rows = [row for chat in chats for row in await able.conversation(chat.id, scope=SCOPE).digests()]
            assert {row.model for row in rows} == {"scripted"}
            assert len(await able.facts(SCOPE).list()) == 1


async def test_prose_where_json_was_asked_for_is_no_digest(store: Store) -> None:
    """It is asked for once more; then the digest fails, and what it was about is digested by the next."""
    refusals = ["I'm sorry, I can't help with that.", "<html><body><h1>502 Bad Gateway</h1></body></html>"]
    model = Scripted(refusals, then=items("They talk.", facts=[("hobby", "Plays the cello.")]))
    async with opener(store, PAIRS)(model) as (memory, chat):
        await chat.append(*many(2))
        await memory.wait_for_digests()
        (failed,) = await chat.digests()
        assert (failed.status, failed.text) == (Status.FAILED, "")
        assert "plain text where JSON was asked for" in str(failed.error)
        assert "sorry" not in str(failed.error)
        await round_(chat, 3)
        await memory.wait_for_digests()
        assert [(row.start, row.end, row.status) for row in (await chat.digests())[1:]] == [
            (0, 1, Status.COMPLETED),
            (2, 3, Status.COMPLETED),
        ]
        assert len(await memory.facts(SCOPE).list()) == 1


async def test_prose_for_ever_costs_two_calls_a_round(store: Store) -> None:
    """The ledger stays bounded: two calls each time an append fires, none in between."""
    model = Scripted(then="Sure! Here is a summary of the conversation: they talk.")
    async with opener(store, PAIRS)(model) as (memory, chat):
        await round_(chat, 1)
        for number in range(2, 12):
            await round_(chat, number)
            await memory.wait_for_digests()
        assert len(model.calls) == 20
        assert {row.status for row in await chat.digests()} == {Status.FAILED}
        assert sum(one.calls for one in await memory.costs("model")) == 20


async def test_a_tenant_with_many_due_digests_holds_up_no_other(store: Store) -> None:
    """With 40 of its digests due, another tenant's is among the next ones that are made."""
    made_of = list[str]()

    def answer(prompt: Prompt) -> str:
        made_of.append("theirs" if "theirs" in prompt.user else "ours")
        return says_each(prompt)

    gate, policy = Gate(answer), rolling(threshold=2, keep_last=1)
    async with opener(store)(Scripted([gate] * 4, then=answer)) as (memory, _):
        for number in range(40):
            chat = memory.conversation(f"c{number}", scope=replace(SCOPE, tenant="globex"), policy=policy)
            await chat.append(*(user("theirs") for _ in range(3)))
        await memory.conversation("ours", scope=SCOPE, policy=policy).append(*(user("ours") for _ in range(3)))
        gate.open()
        await memory.wait_for_digests()
        assert made_of.count("theirs") == 40
        assert made_of.index("ours") < 20


async def test_of_many_that_wait_one_asks_the_database(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, asked, at_once = Gate(says_each), list[int](), 0

    def spy(of: Any, name: str) -> None:
        verb = getattr(of, name)

        async def counted(*given: Any, **named: Any) -> Any:
            nonlocal at_once
            at_once += 1
            asked.append(at_once)
            try:
                return await verb(*given, **named)
            finally:
                at_once -= 1

        monkeypatch.setattr(of, name, counted)

    async with opener(store, rolling(threshold=2, keep_last=1))(Scripted([gate])) as (memory, chat):
        await chat.append(*many(2))
        await gate.reached()
        spy(memory._services.store, "unsettled")
        spy(memory._services.store.index, "backlog")
        for wait in (memory.wait_for_digests, memory.wait_for_index):
            waiting = [asyncio.create_task(wait()) for _ in range(20)]
            await until(lambda: len(asked) > 2, "the database is asked")
            gate.open()
            await asyncio.gather(*waiting)
            assert set(asked) == {1}
