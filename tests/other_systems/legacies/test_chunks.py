"""The third seed's conversation chunks, with its own numbers and wording: trigger and ranges.

Its ranges are exclusive (0 to 20), ours inclusive (0 to 19).
"""

from __future__ import annotations

import pytest

from hitherto import Conversation, Memory, chunks
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.policies import Chunk, LastMessages, Recalled, Undigested
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    each,
    fates,
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
        assert {row.status for row in await chat.digests()} == {Status.COMPLETED}


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
