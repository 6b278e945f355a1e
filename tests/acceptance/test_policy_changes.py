"""A policy changed in mid-conversation, both ways: nothing is lost, and the model is shown no message as new twice."""

from __future__ import annotations

from itertools import accumulate, combinations_with_replacement

import pytest

import hitherto
from hitherto import (
    Call,
    Conversation,
    Policy,
    assistant,
    chunks,
    none,
    redact,
    rolling,
    sliding_window,
    summarize,
    token_threshold,
    tool_result,
    trim,
    user,
)
from hitherto.core.digests.digest import Status
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.policies import LastTurns, Redact, Stage, Turns
from hitherto.providers.scripted import Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    bodies,
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
    summary_of,
)
from tests.lengths import at_length, lasting

SUMMARIZE = summarize(4, 2)
ROLLING = rolling(6, 2)
TRIM = trim(4, 2)
REDACT = redact(4, 2)
CHUNKS = chunks(threshold=6, batch=4, context=4)
SLIDING = sliding_window(window=8, after_seq=3)
BY_TOKENS = token_threshold(60, 2)
SHADOW = "What have we talked about so far?"


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store)


async def check_whole(chat: Conversation, number: int) -> hitherto.Context:
    """Everything is accounted for, and what the manifest calls digested is in the digest's text."""
    context = await chat.context(asks(number), budget=PLENTY)
    spans = context.manifest.fates
    assert [span.start for span in spans] == [0, *(span.end + 1 for span in spans[:-1])]
    log = await chat.messages()
    assert spans[-1].end == log[-1].seq
    shown = "\n".join(str(item) for item in context.messages)
    for span in spans:
        for seq in range(span.start, span.end + 1):
            if span.fate is Fate.DIGESTED and span.reason is Reason.SUMMARIZED:
                assert f"<{seq}>" in shown, f"message {seq} counts as digested, and the digest does not have it"
            elif span.fate is Fate.IN:
                payload = log[seq].message.payload
                assert payload in context.messages or f"]\n\n{payload['content']}" in bodies(context)[0]
    return context


async def test_trim_then_summarize(opened: Opened) -> None:
    """What was trimmed was not digested: the summary gets it."""
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await chat.configure(policy=TRIM, create=True)
        await rounds(memory, chat, range(1, 7))
        assert ranges(await chat.digests()) == [(0, 3), (4, 7)]
        await chat.configure(policy=SUMMARIZE, create=True)
        assert bodies(await check_whole(chat, 7)) == [*said(1, 6), "question 7"]
        await rounds(memory, chat, [7])
        last = (await chat.digests())[-1]
        assert (last.action, last.start, last.end) == (DigestAction.SUMMARIZE, 0, 9)
        assert bodies(await check_whole(chat, 8)) == [SHADOW, each(0, 9), *said(6, 7), "question 8"]

        # And back: the trims made before count where they fit, behind the summary.
        await chat.configure(policy=TRIM, create=True)
        context = await check_whole(chat, 8)
        assert fates(context)[0] == (0, 9, Fate.DIGESTED, Reason.SUMMARIZED)
        await rounds(memory, chat, range(8, 10))
        context = await check_whole(chat, 10)
        assert fates(context)[:2] == [(0, 9, Fate.DIGESTED, Reason.SUMMARIZED), (10, 13, Fate.DROPPED, Reason.TRIMMED)]
    assert new_to(model) == list(range(10))


async def test_chunks_then_rolling(opened: Opened) -> None:
    """The synopsis begins with what the chunks say, and is shown only what has no chunk."""
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await chat.configure(policy=CHUNKS, create=True)
        await rounds(memory, chat, range(1, 7))
        assert ranges(await chat.digests()) == [(0, 3), (4, 7)]
        await chat.configure(policy=ROLLING, create=True)
        assert bodies(await check_whole(chat, 7)) == [*said(1, 6), "question 7"]
        await rounds(memory, chat, [7])
        last = (await chat.digests())[-1]
        assert (last.action, last.start, last.end) == (DigestAction.SUMMARIZE, 0, 11)
        assert last.text == each(0, 11), "the chunks' statements, oldest first, then the new ones"
        assert bodies(await check_whole(chat, 8)) == [summary_of(0, 11), *said(7, 7), "question 8"]

        # And back: chunks go on behind the synopsis.
        await chat.configure(policy=CHUNKS, create=True)
        await rounds(memory, chat, range(8, 12))
        assert ranges(await chat.digests())[3:] == [(12, 15)]
        await check_whole(chat, 12)
        await chat.configure(policy=ROLLING, create=True)
        await rounds(memory, chat, range(12, 15))
        await check_whole(chat, 15)
    shown = new_to(model)
    assert shown == list(range(len(shown)))


async def test_summarize_then_compact(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await chat.configure(policy=SUMMARIZE, create=True)
        for number in range(1, 6):
            await chat.append(*looked_up(number))
            await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 7)]
        await chat.configure(policy=REDACT, create=True)
        context = await check_whole(chat, 6)
        assert context.messages[:2] == [
            {"role": "user", "content": SHADOW},
            {"role": "assistant", "content": each(0, 7)},
        ], "the digest stays, shown as the stage that made it says"
        for number in range(6, 8):
            await chat.append(*looked_up(number))
            await memory.wait_for_digests()
        # Turns 3 to 7 are more than 4 in view; 3 to 5 are redacted.
        assert [(row.action, row.start, row.end) for row in await chat.digests()][1:] == [(DigestAction.REDACT, 8, 19)]
        context = await check_whole(chat, 8)
        assert [item["content"] for item in context.messages if item["role"] == "tool"][:3] == ["⟦removed: search⟧"] * 3

        await chat.configure(policy=SUMMARIZE, create=True)
        context = await check_whole(chat, 8)
        assert "removed" not in str(context.messages), "a policy that redacts nothing shows them again"
        await chat.append(*looked_up(8))
        await memory.wait_for_digests()
        assert ranges(await chat.digests())[2:] == [(0, 23)]
        await check_whole(chat, 9)
    assert new_to(model) == list(range(24))


async def test_a_digest_in_progress_while_the_policy_changes(opened: Opened) -> None:
    """It is finished and used where it fits; nobody begins another of the kind meanwhile."""
    gate = Gate(says_each)
    model = Scripted([gate], then=says_each)
    async with opened(model) as (memory, chat):
        await chat.configure(policy=SUMMARIZE, create=True)
        for number in range(1, 5):
            await round_(chat, number)
        await gate.reached()
        await chat.configure(policy=ROLLING, create=True)
        for number in range(5, 8):
            await round_(chat, number)
        assert [row.status for row in await chat.digests()] == [Status.PROCESSING]
        gate.open()
        await memory.wait_for_digests()
        await check_whole(chat, 8)
        await rounds(memory, chat, range(8, 10))
        rows = await chat.digests()
        assert rows[1].base == rows[0].id
        await check_whole(chat, 10)
    shown = new_to(model)
    assert shown == list(range(len(shown)))


@pytest.mark.parametrize(("first", "end", "then"), [(CHUNKS, 3, ROLLING), (ROLLING, 5, CHUNKS)])
async def test_a_digest_in_progress_while_another_kind_comes_to_count(
    opened: Opened, first: Policy, end: int, then: Policy
) -> None:
    """What it is being made of is not new to the digest of another kind that becomes due meanwhile."""
    gate = Gate(says_each)
    model = Scripted([gate], then=says_each)
    async with opened(model) as (memory, chat):
        await chat.configure(policy=first, create=True)
        for number in range(1, 5):
            await round_(chat, number)
        await gate.reached()
        assert [(row.start, row.end, row.status) for row in await chat.digests()] == [(0, end, Status.PROCESSING)]
        await chat.configure(policy=then, create=True)
        await round_(chat, 5)
        gate.open()
        await memory.wait_for_digests()
        await rounds(memory, chat, range(6, 12))
        await check_whole(chat, 12)
    shown = new_to(model)
    assert len(set(shown)) == len(shown), "no message is new to the model twice"


ALL = [SUMMARIZE, ROLLING, TRIM, REDACT, CHUNKS, SLIDING, BY_TOKENS, none()]


EVERY = [*combinations_with_replacement(ALL, 2)]
PAIRS = EVERY if at_length() else [*zip(ALL, (*ALL[1:], ALL[0]), strict=True), (ALL[0], ALL[4]), (ALL[1], ALL[5])]


@lasting
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda policy: policy.name)
async def test_every_change_there_and_back(store: Store, first: Policy, second: Policy) -> None:
    model = Scripted(then=says_each)
    async with opener(store)(model) as (memory, chat):
        number = 0
        for policy in (first, second, first, second):
            await chat.configure(policy=policy, create=True)
            for _ in range(6):
                number += 1
                await chat.append(asks(number), answers(number))
                await memory.wait_for_digests()
                await check_whole(chat, number + 1)
        # Under `none` everything is there, whatever was made of it.
        context = await chat.context(asks(number + 1), budget=PLENTY, policy=none())
        assert bodies(context) == [*said(1, number), f"question {number + 1}"]
        completed = [row for row in await chat.digests() if row.status is Status.COMPLETED]
        for done in (DigestAction.SUMMARIZE, DigestAction.CHUNK):
            ends = [row.end for row in completed if row.action is done]
            assert ends == sorted(set(ends)), "each reaches further than the one before"
    shown = new_to(model)
    assert len(set(shown)) == len(shown), "no message is new to the model twice"
    assert shown == sorted(shown)


async def test_a_past_context_is_rebuilt_after_the_change(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        made: list[hitherto.Context] = []
        for at, policy in enumerate((CHUNKS, ROLLING, TRIM, REDACT, SLIDING, none(), SUMMARIZE)):
            await chat.configure(policy=policy, create=True)
            for number in range(5 * at + 1, 5 * at + 6):
                await rounds(memory, chat, [number])
                made.append(await chat.context(asks(number + 1), budget=PLENTY))
        for context in made:
            again = await chat.rebuild(context.manifest)
            assert again.request == context.request
            assert again.manifest == context.manifest


async def test_one_redaction_after_another_counts_what_both_freed(opened: Opened) -> None:
    """What the stage before took out is still out of the view: triggers and budgets go by both."""
    first = Policy("results", (Stage(Turns(3), LastTurns(1), Redact()),))
    then = Policy("calls too", (Stage(Turns(3), LastTurns(1), Redact(calls=True)),))
    async with opened(Scripted()) as (_, chat):
        for policy, numbers in ((first, range(3)), (then, range(3, 6))):
            await chat.configure(policy=policy, create=True)
            for number in numbers:
                call = Call(id=f"c{number}", name="look")
                result = tool_result(call.id, "much that it gave back " * 20)
                await chat.append(user(f"question {number}"), assistant(calls=[call]), result, assistant("so it is"))
        rows = await chat.digests()
        assert [row.action for row in rows] == [DigestAction.REDACT] * len(rows)
        assert len({row.stage for row in rows}) == 2
        assert [row.freed for row in rows] == list(accumulate(row.tokens for row in rows))
        assert {row.since for row in rows} == {0}
