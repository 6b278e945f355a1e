"""The fifth seed's rolling synopsis, with its own numbers and wording."""

from __future__ import annotations

import pytest

import hitherto
from hitherto import Conversation, Memory, rolling
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelRejected, ModelUnavailable
from hitherto.other_systems.chat_store.policy import synopsis
from hitherto.policies import LastMessages, Messages, SystemMessage
from hitherto.providers.scripted.model import Delayed, Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    check_begins_with,
    each,
    fates,
    looked_up,
    new_to,
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
    return opener(store, rolling())


async def messages(memory: Memory, chat: Conversation, first: int, last: int) -> None:
    """Messages `first` to `last` by their seq, one append each."""
    for seq in range(first, last + 1):
        number = seq // 2 + 1
        await chat.append(answers(number) if seq % 2 else asks(number))
        await memory.wait_for_digests()


def test_the_seeds_defaults() -> None:
    """ "summaryThreshold (default 40)", "summaryKeepLast (default 12)"."""
    (stage,) = rolling().stages
    assert stage.trigger == Messages(40)
    assert stage.keep == LastMessages(12)
    assert isinstance(stage.render, SystemMessage)


async def test_when_the_messages_exceed_the_threshold(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 21))
        assert await chat.digests() == [], "40 messages do not exceed 40"
        assert bodies(await chat.context(asks(21), budget=PLENTY)) == [*said(1, 20), "question 21"]

        # 42: "everything except the most recent keepLast messages" is 30 messages.
        await rounds(memory, chat, [21])
        (row,) = await chat.digests()
        assert (row.start, row.end, row.base) == (0, 29, None)
        assert (row.action, row.status) == (DigestAction.SUMMARIZE, Status.COMPLETED)

        # "A system message containing the summary; the most recent unsummarized user/assistant turns".
        context = await chat.context(asks(22), budget=PLENTY)
        assert context.messages[0] == {"role": "system", "content": SYNOPSIS + each(0, 29)}
        assert bodies(context)[1:] == [*said(16, 21), "question 22"]
        assert fates(context) == [(0, 29, Fate.DIGESTED, Reason.SUMMARIZED), (30, 41, Fate.IN, Reason.VERBATIM)]


async def test_the_41st_message_by_itself(opened: Opened) -> None:
    """The newest 12 of 41 begin with an answer; its question stays with it."""
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await messages(memory, chat, 0, 39)
        assert await chat.digests() == []
        await messages(memory, chat, 40, 40)
        assert ranges(await chat.digests()) == [(0, 27)]


async def test_the_synopsis_rolls_on(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await rounds(memory, chat, range(1, 61))
        rows = await chat.digests()
        # 12 are kept, so 15 rounds later there are 42 again.
        assert ranges(rows) == [(0, 29), (0, 59), (0, 89)]
        assert [row.base for row in rows] == [None, rows[0].id, rows[1].id]
        assert rows[-1].text == each(0, 89)
        # "summarized_count: number of messages covered by the summary".
        assert [row.end + 1 for row in rows] == [30, 60, 90]
    assert new_to(model) == list(range(90))
    assert len(model.calls) == 3, "call the LLM once to update the stored summary"
    tasks = [prompt.task for prompt in model.calls if isinstance(prompt.task, DigestTask)]
    assert [len(task.known) for task in tasks] == [0, 30, 60]


async def test_between_two_summaries_the_start_does_not_change(store: Store) -> None:
    policy = synopsis(True, summaryThreshold=10, summaryKeepLast=4)
    async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
        before: hitherto.Context | None = None
        compared = 0
        for number in range(1, 31):
            fired = len(await chat.digests())
            context = await chat.context(asks(number), budget=PLENTY, instructions="Be kind.")
            if before is not None:
                check_begins_with(context, before)
                compared += 1
            await rounds(memory, chat, [number])
            before = context if len(await chat.digests()) == fired else None
        fired = len(await chat.digests())
        assert fired == 7
        assert compared == 30 - 1 - fired + (before is None)


async def test_a_failure_leaves_the_summary_and_falls_back_to_the_transcript(store: Store) -> None:
    """ "Summarization failures (e.g. LLM error) leave the existing summary untouched and fall back to the full
    transcript"; the budget bounds it."""
    policy = synopsis(True, summaryThreshold=10, summaryKeepLast=4)
    errors = [ModelUnavailable("no route"), "", "", ModelRejected("no credit")]
    model = Scripted([says_each, *errors], then=says_each)
    async with opener(store, policy)(model) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
        (first,) = await chat.digests()
        assert (first.start, first.end) == (0, 7)

        await rounds(memory, chat, range(7, 11))
        failed = (await chat.digests())[1:]
        assert [(row.status, row.base, row.start, row.end) for row in failed] == [(Status.FAILED, first.id, 0, 15)]
        context = await chat.context(asks(11), budget=PLENTY)
        assert bodies(context) == [SYNOPSIS + each(0, 7), *said(5, 10), "question 11"]
        assert context.manifest.digest == first.id
        assert context.manifest.missing == ["digest"]

        await rounds(memory, chat, range(11, 13))
        context = await chat.context(asks(13), budget=PLENTY)
        assert bodies(context) == [SYNOPSIS + each(0, 7), *said(5, 12), "question 13"]
        tight = await chat.context(asks(13), budget=context.tokens - 20)
        assert tight.tokens <= context.tokens - 20
        assert fates(tight)[0] == (0, 7, Fate.DIGESTED, Reason.SUMMARIZED)
        assert fates(tight)[1][2:] == (Fate.DROPPED, Reason.BUDGET)
        assert fates(tight)[-1][1:] == (23, Fate.IN, Reason.VERBATIM)

        # Once the model is back, the summary catches up with all of it.
        await rounds(memory, chat, [13])
        last = (await chat.digests())[-1]
        assert (last.base, last.text) == (first.id, each(0, last.end))
        assert last.end == 21
    assert [new for new in new_to(model) if new < 8] == list(range(8))


async def test_with_no_summary_yet_a_failure_leaves_the_full_transcript(opened: Opened) -> None:
    async with opened(Scripted(then=ModelUnavailable("no route"))) as (memory, chat):
        await rounds(memory, chat, range(1, 24))
        assert bodies(await chat.context(budget=PLENTY)) == said(1, 23)
        assert {row.status for row in await chat.digests()} == {Status.FAILED}
        assert ranges(await chat.digests()) == [(0, 29), (0, 31), (0, 33)]


async def test_who_wants_the_summary_first_waits_for_it(opened: Opened) -> None:
    """The seed's order: summarize, then answer."""
    async with opened(Scripted([Delayed(0.2, says_each)], then=says_each)) as (_, chat):
        for number in range(1, 22):
            await round_(chat, number)
        context = await chat.context(asks(22), budget=PLENTY, wait=True)
        assert bodies(context) == [SYNOPSIS + each(0, 29), *said(16, 21), "question 22"]


async def test_a_summary_that_does_not_come_is_not_waited_for_without_end(opened: Opened) -> None:
    gate = Gate(says_each)
    async with opened(Scripted([gate])) as (memory, chat):
        for number in range(1, 22):
            await round_(chat, number)
        context = await chat.context(asks(22), budget=PLENTY, wait=0.05)
        assert bodies(context) == [*said(1, 21), "question 22"]
        gate.open()
        await memory.wait_for_digests()


async def test_tool_chatter_does_not_count(store: Store) -> None:
    """ "only the user prompt and the final assistant response for each turn": the others ride along."""
    policy = synopsis(True, summaryThreshold=10, summaryKeepLast=4)
    async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
        for number in range(1, 6):
            await chat.append(*looked_up(number))
        assert await chat.digests() == []
        await chat.append(*looked_up(6))
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 15)]
        assert len((await chat.context(budget=PLENTY)).messages) == 1 + 8


async def test_memory_across_restarts(store: Store) -> None:
    """ "The agent keeps memory across restarts": another process on the same store goes on."""
    model = Scripted(then=says_each)
    async with opener(store, rolling(10, 4))(model) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
    async with opener(store)(model) as (memory, chat):
        assert await chat.policy() == rolling(10, 4), "the stored policy counts"
        await rounds(memory, chat, range(7, 11))
        assert ranges(await chat.digests()) == [(0, 7), (0, 15)]
        assert bodies(await chat.context(budget=PLENTY)) == [SYNOPSIS + each(0, 15), *said(9, 10)]
    assert new_to(model) == list(range(16))
