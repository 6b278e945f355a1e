"""The second seed's memory compression, with its own numbers and wording."""

from __future__ import annotations

import json

import pytest

import hitherto
from hitherto import Conversation, Memory, assistant, token_threshold, user
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.render import SystemMessage
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelUnavailable
from hitherto.policies import LastMessages, Summarize, Tokens
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
from tests.conftest import SCOPE
from tests.memories import open_on

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
            "content": f"Summary of the conversation so far:\n{each(0, last - 4)}",
        }
        assert bodies(context)[1:] == [*said(number - 1, number), f"question {number + 1}"]
        assert fates(context) == [
            (0, last - 4, Fate.DIGESTED, Reason.SUMMARIZED),
            (last - 3, last, Fate.IN, Reason.VERBATIM),
        ]
        assert context.manifest.fates[0].digest == digest.id == context.manifest.digest


async def test_a_message_that_reaches_the_threshold_exactly_does_not_compress(store: Store) -> None:
    async with open_on(store, model=Scripted(then=says_each)) as memory:
        measured = memory.conversation("measured", scope=SCOPE)
        for number in range(1, 8):
            await measured.append(asks(number), answers(number))
        total = await tokens(measured)
        for threshold, fires in ((total, 0), (total - 1, 1)):
            policy = token_threshold(threshold=threshold, keep_messages=4)
            chat = memory.conversation(f"at-{threshold}", scope=SCOPE, policy=policy)
            for number in range(1, 8):
                await chat.append(asks(number), answers(number))
            await memory.wait_for_digests()
            assert len(await chat.digests()) == fires


async def test_the_next_summary_builds_on_the_one_before(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        number, first = await until_it_fires(memory, chat, 1)
        again, second = await until_it_fires(memory, chat, number + 1)
        assert second.base == first.id
        assert (second.start, second.end) == (0, 2 * again - 5)
        assert second.text == each(0, second.end), "what the first said is carried over to the letter"
        # It counts what is not yet digested: again more than the threshold, and not a round earlier.
        assert await tokens(chat, first.end + 1) > 150
        assert sum(one.tokens for one in (await chat.messages(start=first.end + 1))[:-2]) <= 150
    assert new_to(model) == list(range(second.end + 1))


async def test_between_two_compressions_the_start_does_not_change(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, first = await until_it_fires(memory, chat, 1)
        before = await chat.context(asks(number + 1), budget=PLENTY, instructions="Be kind.")
        while True:
            number += 1
            await chat.append(asks(number), answers(number))
            await memory.wait_for_digests()
            if len(await chat.digests()) > 1:
                break
            context = await chat.context(asks(number + 1), budget=PLENTY, instructions="Be kind.")
            check_begins_with(context, before)
            assert context.manifest.digest == first.id
            before = context
        assert number > 5, "there were contexts to compare"


async def test_the_summary_follows_the_instructions(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, digest = await until_it_fires(memory, chat, 1)
        context = await chat.context(asks(number + 1), budget=PLENTY, instructions="Be kind.")
        assert [item["role"] for item in context.messages[:3]] == ["system", "system", "user"]
        assert bodies(context)[0] == "Be kind."
        responses = await chat.context(
            asks(number + 1), budget=PLENTY, instructions="Be kind.", wire="openai.responses"
        )
        assert responses.request["instructions"] == f"Be kind.\n\nSummary of the conversation so far:\n{digest.text}"


async def test_compressed_messages_are_soft_deleted(opened: Opened) -> None:
    """ "Older messages are soft-deleted": out of active use, and kept for the audit trail."""
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, digest = await until_it_fires(memory, chat, 1)
        log = await chat.messages()
        assert [logged.message.text for logged in log] == said(1, number)
        assert not any(logged.erased or logged.retracted_rev for logged in log)
        context = await chat.context(asks(number + 1), budget=PLENTY)
        assert not set(said(1, (digest.end + 1) // 2)) & set(bodies(context))
        past = await chat.context(budget=PLENTY, at=digest.fired_rev)
        assert bodies(past) == said(1, number), "as it was before the summary became visible"


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


async def test_the_summary_in_the_making_holds_up_nothing(opened: Opened) -> None:
    gate = Gate(says_each)
    async with opened(Scripted([gate], then=says_each)) as (memory, chat):
        number = 0
        while not await chat.digests():
            number += 1
            await chat.append(asks(number), answers(number))
        await gate.reached()
        context = await chat.context(asks(number + 1), budget=PLENTY)
        assert bodies(context) == [*said(1, number), f"question {number + 1}"]
        assert context.manifest.missing == []
        await chat.append(asks(number + 1), answers(number + 1))
        assert len(await chat.digests()) == 1, "one at a time"
        gate.open()
        await memory.wait_for_digests()
        (digest,) = await chat.digests()
        # Messages since the split are in neither: they are verbatim.
        assert bodies(await chat.context(budget=PLENTY))[1:] == said(digest.end // 2 + 2, number + 1)


async def test_it_degrades_gracefully_if_compression_fails(opened: Opened) -> None:
    model = Scripted([ModelUnavailable("no route"), "", "", '{"add": [{"te', '{"add": [{"te'], then=says_each)
    async with opened(model) as (memory, chat):
        number, failed = await until_it_fires(memory, chat, 1)
        assert failed.status is Status.FAILED
        context = await chat.context(asks(number + 1), budget=PLENTY)
        assert bodies(context) == [*said(1, number), f"question {number + 1}"], "the full history"
        assert context.manifest.missing == ["digest"], "and the receipt says what is missing"
        tight = await chat.context(asks(number + 1), budget=90)
        assert tight.tokens <= 90
        assert bodies(tight)[-1] == f"question {number + 1}"
        assert fates(tight)[0][2:] == (Fate.DROPPED, Reason.BUDGET)

        # It is tried again with every message that follows, until it works: nothing is lost by then.
        for again in range(number + 1, number + 4):
            await chat.append(asks(again), answers(again))
            await memory.wait_for_digests()
        rows = await chat.digests()
        assert [row.status for row in rows] == [Status.FAILED] * 3 + [Status.COMPLETED]
        assert all(row.base is None and row.start == 0 for row in rows)
        assert rows[-1].text == each(0, rows[-1].end)
        context = await chat.context(asks(number + 4), budget=PLENTY)
        assert context.manifest.missing == []
        assert context.manifest.digest == rows[-1].id


async def test_a_marked_archive(store: Store) -> None:
    """ "If configured, compressed conversations are archived": its digests carry the mark."""
    for archive in (True, False):
        policy = token_threshold(threshold=60, keep_messages=2, archive=archive)
        async with opener(store, policy)(Scripted(then=says_each)) as (memory, _):
            chat = memory.conversation(f"archive-{archive}", scope=SCOPE, policy=policy)
            _, digest = await until_it_fires(memory, chat, 1)
            assert json.loads(digest.spec)["action"]["archive"] is archive


async def test_the_seeds_own_example(store: Store) -> None:
    """ "Have a long conversation … Compression happens automatically when threshold is reached. Recent messages
    preserved, older messages summarized", without any model."""
    policy = token_threshold(threshold=5_000, keep_messages=8)
    async with open_on(store) as memory:
        chat = memory.conversation("long_session", scope=SCOPE, policy=policy)
        for i in range(20):
            topic = user(f"Research topic {i}")
            context = await chat.context(topic, budget=PLENTY)
            assert context.messages[-1] == {"role": "user", "content": f"Research topic {i}"}
            await chat.append(topic, assistant(f"Topic {i} is settled: it was number {i}. " + "We looked at it. " * 60))
            await memory.wait_for_digests()
        (digest,) = [row for row in await chat.digests() if row.status is Status.COMPLETED]
        context = await chat.context(user("And now?"), budget=PLENTY)
        assert context.messages[0]["role"] == "system"
        assert digest.text in bodies(context)[0]
        assert "Research topic 19" in bodies(context)
        assert len(context.messages) < 41
        assert ranges([digest]) == [(0, digest.end)]
        assert len(await chat.messages()) == 40


async def test_sessions_are_apart(opened: Opened) -> None:
    """ "Messages are organized by user_id, session_id, and agent_id"."""
    async with opened(Scripted(then=says_each)) as (memory, chat):
        number, _ = await until_it_fires(memory, chat, 1)
        theirs = hitherto.Scope(tenant=SCOPE.tenant, user="somebody-else", agent=SCOPE.agent)
        for other in (
            memory.conversation("conv_456", scope=SCOPE, policy=POLICY),
            memory.conversation("conv_123", scope=theirs, policy=POLICY),
        ):
            await other.append(asks(1), answers(1))
            assert await other.digests() == []
            assert bodies(await other.context(asks(2), budget=PLENTY)) == [*said(1, 1), "question 2"]
        assert len(await chat.messages()) == 2 * number
