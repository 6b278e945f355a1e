"""The second seed's memory compression, with its own numbers and wording."""

from __future__ import annotations

import pytest

from hitherto import Conversation, Memory, token_threshold
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.parts import SystemMessage
from hitherto.core.policy.span import Fate, Reason
from hitherto.policies import LastMessages, Summarize, Tokens
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
    fates,
    looked_up,
    opener,
    said,
    says_each,
    summary_of,
)

POLICY = token_threshold(threshold=150, keep_messages=4)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


async def tokens(chat: Conversation, start: int = 0) -> int:
    """The canonical tokens of the log from `start` on."""
    return sum(logged.tokens for logged in await chat.messages(start=start))


async def until_it_fires(memory: Memory, chat: Conversation, first: int) -> tuple[int, Digest]:
    """Rounds from number `first` on, until one more digest has been made; the last one's number, and the digest."""
    before = len(await chat.digests())
    for number in range(first, first + 100):
        await chat.append(asks(number), answers(number))
        await memory.wait_for_digests()
        rows = await chat.digests()
        if len(rows) > before:
            return number, rows[-1]
    raise AssertionError("nothing fired")


def test_the_seeds_defaults() -> None:
    """ "compression.threshold_tokens (integer, default: 10000)", "recent_messages_to_keep (integer, default: 10)",
    "archive_conversations (boolean, default: false)"."""
    (stage,) = token_threshold().stages
    assert stage.trigger == Tokens(10_000)
    assert stage.keep == LastMessages(10)
    assert isinstance(stage.action, Summarize)
    assert stage.action.archive is False
    assert isinstance(stage.render, SystemMessage)


async def test_compression_begins_above_the_threshold(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, digest = await until_it_fires(memory, chat, 1)
        last = 2 * number - 1
        assert await tokens(chat) > 150, "token counts exceed the threshold"
        assert sum(one.tokens for one in (await chat.messages())[:-2]) <= 150, "and did not a round before"

        # The conversation is split: the newest 4 messages stay, the older ones are compressed.
        assert (digest.start, digest.end, digest.base) == (0, last - 4, None)
        assert (digest.action, digest.status) == (DigestAction.SUMMARIZE, Status.COMPLETED)
        context = await chat.context(asks(number + 1), budget=PLENTY)
        assert context.messages[0] == {
            "role": "system",
            "content": summary_of(0, last - 4),
        }
        assert bodies(context)[1:] == [*said(number - 1, number), f"question {number + 1}"]
        assert fates(context) == [
            (0, last - 4, Fate.DIGESTED, Reason.SUMMARIZED),
            (last - 3, last, Fate.IN, Reason.VERBATIM),
        ]
        assert context.manifest.fates[0].digest == digest.id == context.manifest.digest


async def test_the_summary_follows_the_instructions(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, digest = await until_it_fires(memory, chat, 1)
        context = await chat.context(asks(number + 1), budget=PLENTY, instructions="Be kind.")
        assert [item["role"] for item in context.messages[:3]] == ["system", "system", "user"]
        assert bodies(context)[0] == "Be kind."
        responses = await chat.context(
            asks(number + 1), budget=PLENTY, instructions="Be kind.", wire="openai.responses"
        )
        assert responses.request["instructions"] == f"Be kind.\n\n{summary_of(0, digest.end)}"


async def test_recent_messages_are_kept_from_the_start_of_their_turn(store: Store) -> None:
    """An odd number, and turns with tools in them: the tool items ride along and do not count."""
    policy = token_threshold(threshold=600, keep_messages=3)
    async with opener(store, policy)(Scripted(then=says_each)) as (memory, chat):
        number = 0
        while not await chat.digests():
            number += 1
            await chat.append(*looked_up(number))
        await memory.wait_for_digests()
        (digest,) = await chat.digests()
        assert digest.end == 4 * (number - 2) - 1, "two whole turns stay, which hold 4 messages and 4 tool items"
        context = await chat.context(asks(number + 1), budget=PLENTY)
        roles = [item["role"] for item in context.messages]
        assert roles == ["system", *["user", "assistant", "tool", "assistant"] * 2, "user"]
