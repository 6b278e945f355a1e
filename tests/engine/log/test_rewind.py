"""`pop` and `clear`: what is shown changes, the log does not; on both stores."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import hitherto
from hitherto import Call, Conversation, assistant, chunks, compact, rolling, summarize, tool_result, trim, user
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import InvalidBatch
from hitherto.ports.store import Store
from hitherto.providers.scripted.model import Gate, Scripted
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    each,
    fates,
    looked_up,
    opener,
    ranges,
    round_,
    rounds,
    said,
    says_each,
)

SYNOPSIS = "Summary of the conversation so far:\n"


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store)


async def rev(chat: Conversation) -> int:
    head = await chat.head()
    assert head is not None
    return head.rev


# pop


async def test_pop_takes_back_the_newest_message(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        before = await rev(chat)
        assert await chat.pop() == answers(3).payload
        assert await chat.pop() == asks(3).payload
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == said(1, 2)
        assert fates(context) == [(0, 3, Fate.IN, Reason.VERBATIM), (4, 5, Fate.DROPPED, Reason.RETRACTED)]
        assert await rev(chat) == before + 2

        # It stays in the log, marked, and the past has it.
        log = await chat.messages()
        assert [logged.message.text for logged in log] == said(1, 3)
        assert [logged.retracted_rev for logged in log] == [None] * 4 + [before + 2, before + 1]
        assert bodies(await chat.context(budget=PLENTY, at=before)) == said(1, 3)
        assert bodies(await chat.context(budget=PLENTY, at=before + 1)) == said(1, 3)[:-1]

        # The next message gets a number of its own.
        assert (await chat.append(user("question 3, again"))).start == 6
        assert bodies(await chat.context(budget=PLENTY)) == [*said(1, 2), "question 3, again"]


async def test_pop_of_nothing(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        assert await chat.pop() is None
        assert await chat.head() is None, "and no conversation came to be"
        await rounds(memory, chat, [1])
        assert [await chat.pop(), await chat.pop()] == [answers(1).payload, asks(1).payload]
        at = await rev(chat)
        assert await chat.pop() is None
        assert await chat.pop() is None
        assert await rev(chat) == at, "nothing changed"
        await rounds(memory, chat, [2])
        await chat.clear()
        assert await chat.pop() is None
        assert bodies(await chat.context(asks(3))) == ["question 3"]


async def test_pop_gives_back_the_callers_own_item(opened: Opened) -> None:
    item: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "text", "text": "hé\x00"}],
        "zzz": -0.0,
        "a": [1, None],
    }
    async with opened(Scripted()) as (_, chat):
        await chat.append(item)
        assert str(await chat.pop()) == str(item), "keys in their order, to the sign of a zero"


async def test_a_popped_result_leaves_its_call_waiting(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        calls = [Call(id="a", name="look"), Call(id="b", name="look")]
        await chat.append(asks(1), assistant(calls=calls), tool_result("a", "one"), tool_result("b", "two"))
        assert await chat.pop() == tool_result("b", "two").payload
        with pytest.raises(InvalidBatch, match="'a'"):
            await chat.append(tool_result("a", "again"))
        await chat.append(tool_result("b", "other"))
        shown = [item["content"] for item in (await chat.context(budget=PLENTY)).messages if item["role"] == "tool"]
        assert shown == ["one", "other"]


async def test_a_popped_call_waits_no_more(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await chat.append(asks(1), assistant(calls=[Call(id="a", name="look")]))
        await chat.pop()
        with pytest.raises(InvalidBatch, match="'a'"):
            await chat.append(tool_result("a", "one"))
        # The id is free again.
        await chat.append(assistant(calls=[Call(id="a", name="fetch")]), tool_result("a", "one"))
        assert len((await chat.context(budget=PLENTY)).messages) == 3


async def test_pop_supersedes_the_digests_that_rest_on_it(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model, of=rolling(6, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 8))
        assert ranges(await chat.digests()) == [(0, 5), (0, 11)]
        # Seq 13 and 12 are in no digest; seq 11 is in the second, and in that alone.
        await chat.pop()
        await chat.pop()
        assert bodies(await chat.context(budget=PLENTY)) == [SYNOPSIS + each(0, 11)]
        assert await chat.pop() == answers(6).payload
        first, second = await chat.digests()
        assert (first.status, second.status) == (Status.COMPLETED, Status.SUPERSEDED)
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == [SYNOPSIS + each(0, 5), *said(4, 6)[:-1]], "the one before stands again"
        assert context.manifest.digest == first.id

        while await chat.pop() != answers(3).payload:
            pass
        assert [row.status for row in await chat.digests()] == [Status.SUPERSEDED] * 2
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 3)[:-1], "nothing is lost of what it stood for"

        # What comes after is digested anew, without what was taken back.
        await chat.append(assistant("answer 3, better"))
        await rounds(memory, chat, range(4, 7))
        last = (await chat.digests())[-1]
        assert (last.status, last.base) == (Status.COMPLETED, None)
        assert "<5>" not in last.text
        assert "<14>" in last.text
        await memory.wait_for_digests()
    shown = [seq for prompt in model.calls[-1:] for seq in (line.seq for line in getattr(prompt.task, "lines", ()))]
    assert 5 not in shown


async def test_the_superseded_digest_is_still_there_in_the_past(opened: Opened) -> None:
    async with opened(Scripted(then=says_each), of=rolling(6, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        before = await chat.context(asks(5), budget=PLENTY)
        for _ in range(4):
            await chat.pop()
        assert (await chat.digests())[0].status is Status.SUPERSEDED
        assert (await chat.rebuild(before.manifest)).request == before.request


async def test_pop_fences_a_digest_in_the_making(opened: Opened) -> None:
    gate = Gate(says_each)
    async with opened(Scripted([gate], then=says_each), of=rolling(6, 2)) as (memory, chat):
        for number in range(1, 5):
            await round_(chat, number)
        await gate.reached()
        assert ranges(await chat.digests()) == [(0, 5)]
        await chat.pop()
        await chat.pop()
        assert [row.status for row in await chat.digests()] == [Status.PROCESSING], "it does not rest on these"
        await chat.pop()
        gate.open()
        await memory.wait_for_digests()
        (row,) = await chat.digests()
        assert (row.status, row.text) == (Status.SUPERSEDED, ""), "it lost its claim"
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 3)[:-1]


async def test_triggers_do_not_count_what_was_taken_back(opened: Opened) -> None:
    async with opened(Scripted(), of=trim(4, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        await chat.pop()
        await chat.pop()
        await rounds(memory, chat, [4])
        assert await chat.digests() == [], "three turns are in view"
        await rounds(memory, chat, [5])
        assert ranges(await chat.digests()) == [(0, 5)]
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == said(4, 5)
        assert fates(context)[:2] == [(0, 3, Fate.DROPPED, Reason.TRIMMED), (4, 5, Fate.DROPPED, Reason.RETRACTED)]


async def test_pop_of_redacted_and_chunked_messages(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await chat.configure(policy=compact(2, 1))
        for number in range(1, 4):
            await chat.append(*looked_up(number))
        assert ranges(await chat.digests()) == [(0, 7)]
        for _ in range(4):
            await chat.pop()
        assert await chat.pop() == answers(2).payload
        assert [row.status for row in await chat.digests()] == [Status.SUPERSEDED]
        context = await chat.context(budget=PLENTY)
        assert context.messages == [one.payload for one in (*looked_up(1), *looked_up(2)[:-1])]

        other = memory.conversation("chunked", scope=chat.scope, policy=chunks(threshold=4, batch=2, context=2))
        await rounds(memory, other, range(1, 5))
        assert ranges(await other.digests()) == [(0, 1), (2, 3)]
        for _ in range(5):
            await other.pop()
        assert [row.status for row in await other.digests()] == [Status.COMPLETED, Status.SUPERSEDED]
        assert bodies(await other.context(budget=PLENTY))[-1:] == ["question 2"]


async def test_everything_can_be_popped_and_begun_anew(opened: Opened) -> None:
    async with opened(Scripted(then=says_each), of=summarize(4, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 10))
        popped: list[Any] = []
        while (item := await chat.pop()) is not None:
            popped.append(item["content"])
            context = await chat.context(budget=PLENTY)
            spans = context.manifest.fates
            assert [span.start for span in spans] == [0, *(span.end + 1 for span in spans[:-1])]
        assert popped == said(1, 9)[::-1]
        assert (await chat.context(asks(1))).messages == [asks(1).payload]
        head = await chat.head()
        assert head is not None
        assert (head.sums.turns, head.sums.dialogue, head.sums.tokens) == (0, 0, 0)
        await rounds(memory, chat, range(1, 5))
        last = (await chat.digests())[-1]
        assert last.status is Status.COMPLETED
        assert bodies(await chat.context(budget=PLENTY))[-4:] == said(3, 4)


async def test_many_pops_at_once_each_take_another(opened: Opened) -> None:
    async with opened(Scripted(then=says_each), of=rolling(6, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 9))
        taken = await asyncio.gather(*(chat.pop() for _ in range(6)))
        assert sorted(str(item) for item in taken) == sorted(
            str(one.payload) for number in (6, 7, 8) for one in (asks(number), answers(number))
        )
        assert [logged.seq for logged in await chat.messages() if logged.retracted_rev] == list(range(10, 16))


async def test_pop_after_a_clear_reaches_only_what_came_since(opened: Opened) -> None:
    async with opened(Scripted()) as (memory, chat):
        await rounds(memory, chat, range(1, 3))
        await chat.clear()
        await chat.append(asks(3))
        assert await chat.pop() == asks(3).payload
        assert await chat.pop() is None
        assert fates(await chat.context(asks(4)))[0] == (0, 3, Fate.DROPPED, Reason.CLEARED)


async def test_a_replayed_append_does_not_bring_back_what_was_popped(opened: Opened) -> None:
    async with opened(Scripted()) as (_, chat):
        await round_(chat, 1, key="k")
        await chat.pop()
        assert (await round_(chat, 1, key="k")).replayed
        assert bodies(await chat.context(budget=PLENTY)) == ["question 1"]


# clear


@pytest.mark.parametrize("policy", [trim(4, 2), summarize(4, 2), compact(4, 2), chunks(6, 4, 4), rolling(6, 2)])
async def test_after_a_clear_the_marks_count_from_nothing(opened: Opened, policy: hitherto.Policy) -> None:
    async with opened(Scripted(then=says_each), of=policy) as (memory, chat):

        async def turns(numbers: range) -> None:
            for number in numbers:
                await chat.append(*looked_up(number))
                await memory.wait_for_digests()

        await turns(range(1, 8))
        before = len(await chat.digests())
        assert before
        assert await chat.clear() == 28
        await turns(range(8, 11))
        rows = (await chat.digests())[before:]
        assert [row.action for row in rows] == [DigestAction.CLEAR], "three turns are below every mark"
        context = await chat.context(budget=PLENTY)
        assert context.messages == [one.payload for number in range(8, 11) for one in looked_up(number)]
        await turns(range(11, 14))
        fired = (await chat.digests())[before + 1 :]
        assert fired
        assert all(row.start >= 28 for row in fired)
        shown = str((await chat.context(budget=PLENTY)).messages)
        assert "question 7" not in shown
        assert "<27>" not in shown


async def test_a_clear_counts_what_it_hides(opened: Opened) -> None:
    async with opened(Scripted(), of=trim(4, 2)) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
        await chat.pop()
        assert await chat.clear() == 11, "what was taken back was hidden already"
        assert await chat.clear() == 0
        assert len(await chat.messages()) == 12
