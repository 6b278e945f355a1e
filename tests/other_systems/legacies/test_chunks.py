"""The third seed's conversation chunks, with its own numbers and wording: trigger and ranges.

Its ranges are exclusive (0 to 20), ours inclusive (0 to 19).
"""

from __future__ import annotations

import asyncio

import pytest

import hitherto
from hitherto import Conversation, Memory, chunks
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelUnavailable
from hitherto.policies import Chunk, LastMessages, Recalled, Undigested
from hitherto.providers.scripted.model import Gate, Scripted
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
    said,
    says_each,
)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, chunks())


async def messages(memory: Memory, chat: Conversation, first: int, last: int) -> None:
    """Messages `first` to `last` by their seq, one append each, as the seed saves them."""
    for seq in range(first, last + 1):
        number = seq // 2 + 1
        await chat.append(answers(number) if seq % 2 else asks(number))
        await memory.wait_for_digests()


def texts(first: int, last: int) -> list[str]:
    """The bodies of messages `first` to `last` by their seq."""
    return said(1, last // 2 + 1)[first : last + 1]


def unfinished(rows: list[Digest]) -> list[Digest]:
    return [row for row in rows if row.status is not Status.COMPLETED]


def test_the_seeds_numbers() -> None:
    """SUMMARIZATION_THRESHOLD = 30, BATCH_SIZE = 20, a context window of 20 messages, top_k=3."""
    (stage,) = chunks().stages
    assert stage.trigger == Undigested(30)
    assert stage.keep == LastMessages(20)
    assert isinstance(stage.action, Chunk)
    assert stage.action.batch == 20
    assert stage.render == Recalled(3)


async def test_it_fires_above_the_threshold_and_takes_the_oldest_batch(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        # "if unsummarized_count <= SUMMARIZATION_THRESHOLD: return  # Not enough new messages yet"
        await messages(memory, chat, 0, 29)
        assert await chat.digests() == []

        # The 31st: messages_to_summarize = get_messages_in_range(0, 0 + 20).
        await messages(memory, chat, 30, 30)
        (first,) = await chat.digests()
        assert (first.start, first.end, first.base) == (0, 19, None)
        assert (first.action, first.status) == (DigestAction.CHUNK, Status.COMPLETED)
        assert first.text == each(0, 19)

        # unsummarized_count counts from last_summarized_end on: 50 - 20 is not more than 30, 51 - 20 is.
        await messages(memory, chat, 31, 49)
        assert len(await chat.digests()) == 1
        await messages(memory, chat, 50, 50)
        assert ranges(await chat.digests()) == [(0, 19), (20, 39)]
        await messages(memory, chat, 51, 70)
        assert ranges(await chat.digests()) == [(0, 19), (20, 39), (40, 59)]
        assert unfinished(await chat.digests()) == []


async def test_every_chunk_is_of_its_own_batch_alone(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await messages(memory, chat, 0, 70)
        assert [row.text for row in await chat.digests()] == [each(0, 19), each(20, 39), each(40, 59)]
    assert all(isinstance(prompt.task, DigestTask) and prompt.task.known == () for prompt in model.calls)
    assert new_to(model) == list(range(60))


async def test_the_context_shows_all_without_a_chunk_and_at_least_the_newest_20(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await messages(memory, chat, 0, 29)
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == texts(0, 29)
        assert fates(context) == [(0, 29, Fate.IN, Reason.VERBATIM)]

        # The newest 20 of 31 begin in the middle of a turn; that turn stays whole.
        await messages(memory, chat, 30, 30)
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == texts(10, 30)
        assert fates(context) == [(0, 9, Fate.DIGESTED, Reason.CHUNKED), (10, 30, Fate.IN, Reason.VERBATIM)]

        # Up to the next chunk nothing leaves the context.
        await messages(memory, chat, 31, 49)
        assert bodies(await chat.context(budget=PLENTY)) == texts(10, 49)

        await messages(memory, chat, 50, 50)
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == texts(30, 50)
        assert fates(context) == [(0, 29, Fate.DIGESTED, Reason.CHUNKED), (30, 50, Fate.IN, Reason.VERBATIM)]


async def test_between_two_chunks_the_start_does_not_change(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        before: hitherto.Context | None = None
        for seq in range(75):
            fired = len(await chat.digests())
            await messages(memory, chat, seq, seq)
            context = await chat.context(budget=PLENTY)
            if before is not None and len(await chat.digests()) == fired:
                check_begins_with(context, before)
            before = context


async def test_every_message_is_shown_or_in_a_chunk_at_every_moment(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        for seq in range(75):
            await messages(memory, chat, seq, seq)
            context = await chat.context(budget=PLENTY)
            shown = [(span.start, span.end) for span in context.manifest.fates if span.fate is Fate.IN]
            chunked = max((row.end for row in await chat.digests()), default=-1)
            ((start, end),) = shown
            assert end == seq
            assert start <= chunked + 1, "what has no chunk is shown"
            assert seq + 1 - start >= min(20, seq + 1), "and at least the newest 20 are"


async def test_while_a_chunk_is_made_everything_is_shown(opened: Opened) -> None:
    gate = Gate(says_each)
    async with opened(Scripted([gate], then=says_each)) as (memory, chat):
        await messages(memory, chat, 0, 29)
        await chat.append(asks(16))
        await gate.reached()
        for seq in range(31, 40):
            await chat.append(answers(seq // 2 + 1) if seq % 2 else asks(seq // 2 + 1))
        assert [(row.start, row.end, row.status) for row in await chat.digests()] == [(0, 19, Status.PROCESSING)]
        assert bodies(await chat.context(budget=PLENTY)) == texts(0, 39)
        gate.open()
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 19)]
        assert bodies(await chat.context(budget=PLENTY)) == texts(10, 39)


async def test_a_failed_chunk_is_tried_again_over_the_same_range(opened: Opened) -> None:
    """ "If the LLM returns malformed JSON, the summarization fails gracefully - messages stay unsummarized and get
    picked up on the next pass"."""
    malformed, nothing = '{"add": [{"te', ""
    model = Scripted([malformed, malformed, nothing, nothing, ModelUnavailable("no route")], then=says_each)
    async with opened(model) as (memory, chat):
        await messages(memory, chat, 0, 30)
        assert [(row.start, row.end, row.status, row.text) for row in await chat.digests()] == [
            (0, 19, Status.FAILED, "")
        ]
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == texts(0, 30), "messages stay unsummarized"
        assert context.manifest.missing == ["digest"]
        await messages(memory, chat, 31, 33)
        assert [(row.start, row.end, row.base, row.status) for row in await chat.digests()] == [
            *[(0, 19, None, Status.FAILED)] * 3,
            (0, 19, None, Status.COMPLETED),
        ]
        await messages(memory, chat, 34, 50)
        assert ranges(row for row in await chat.digests() if row.status is Status.COMPLETED) == [(0, 19), (20, 39)]


async def test_no_duplicates_however_many_save_at_once(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await chat.append(*(m for number in range(1, 16) for m in (asks(number), answers(number))))
        assert await chat.digests() == []
        await asyncio.gather(*(chat.append(asks(number), answers(number)) for number in range(16, 26)))
        await memory.wait_for_digests()
        await chat.append(asks(99))
        await memory.wait_for_digests()
        found = ranges(await chat.digests())
        assert len(set(found)) == len(found)
        assert found == [(0, 19), (20, 39)][: len(found)]
    shown = new_to(model)
    assert len(set(shown)) == len(shown), "no message is summarized twice"


async def test_a_long_history_is_caught_up_batch_by_batch(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await chat.append(*(m for number in range(1, 46) for m in (asks(number), answers(number))))
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 19), (20, 39), (40, 59)], "until nothing is due"
        for number in range(46, 52):
            await chat.append(asks(number), answers(number))
            await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 19), (20, 39), (40, 59), (60, 79)]
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == texts(int(fates(context)[-1][0]), 101)


async def test_tool_items_ride_along_and_do_not_count(opened: Opened) -> None:
    """20 messages are 10 turns: 40 items where each turn looks something up."""
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        for number in range(1, 16):
            await chat.append(*looked_up(number))
        assert await chat.digests() == []
        await chat.append(*looked_up(16))
        await memory.wait_for_digests()
        (first,) = await chat.digests()
        assert (first.start, first.end) == (0, 39)
    assert new_to(model) == list(range(40))
