"""The fifth seed's rolling synopsis, with its own numbers and wording."""

from __future__ import annotations

import pytest

from hitherto import rolling
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelRejected, ModelUnavailable
from hitherto.other_systems.chat_store.policy import synopsis
from hitherto.policies import LastMessages, Messages, SystemMessage
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    asks,
    bodies,
    each,
    fates,
    looked_up,
    new_to,
    opener,
    ranges,
    rounds,
    said,
    says_each,
    summary_of,
)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, rolling())


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
        assert context.messages[0] == {"role": "system", "content": summary_of(0, 29)}
        assert bodies(context)[1:] == [*said(16, 21), "question 22"]
        assert fates(context) == [(0, 29, Fate.DIGESTED, Reason.SUMMARIZED), (30, 41, Fate.IN, Reason.VERBATIM)]


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
        assert bodies(context) == [summary_of(0, 7), *said(5, 10), "question 11"]
        assert context.manifest.digest == first.id
        assert context.manifest.missing == ["digest"]

        await rounds(memory, chat, range(11, 13))
        context = await chat.context(asks(13), budget=PLENTY)
        assert bodies(context) == [summary_of(0, 7), *said(5, 12), "question 13"]
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
