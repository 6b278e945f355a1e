"""Stages that stack: redact old tool results, then summarize, then drop."""

from __future__ import annotations

from collections import defaultdict

import pytest

from hitherto import Conversation, Memory, Policy
from hitherto.core.digests.digest import Digest, Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelUnavailable
from hitherto.policies import Drop, LastTurns, Redact, Stage, Summarize, Tokens, Turns
from hitherto.providers.scripted import Gate, Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import (
    PLENTY,
    Opened,
    answers,
    asks,
    each,
    fates,
    looked_up,
    new_to,
    opener,
    says_each,
    summary_of,
)

REDACT = Stage(Turns(4), LastTurns(2), Redact())
SUMMARIZE = Stage(Turns(8), LastTurns(4), Summarize())
DROP = Stage(Turns(12), LastTurns(4), Drop())
POLICY = Policy("stacked", (REDACT, SUMMARIZE, DROP))


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


async def turns(memory: Memory, chat: Conversation, first: int, last: int) -> None:
    """Turns with a tool, 4 messages each, one append a turn."""
    for number in range(first, last + 1):
        await chat.append(*looked_up(number))
        await memory.wait_for_digests()


def by_kind(rows: list[Digest]) -> dict[DigestAction, list[tuple[int, int]]]:
    found: dict[DigestAction, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        found[row.action].append((row.start, row.end))
    return dict(found)


async def test_each_fires_at_its_own_mark(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await turns(memory, chat, 1, 3)
        assert await chat.digests() == []
        await turns(memory, chat, 4, 4)
        assert by_kind(await chat.digests()) == {DigestAction.REDACT: [(0, 7)]}
        await turns(memory, chat, 5, 7)
        assert by_kind(await chat.digests()) == {DigestAction.REDACT: [(0, 7), (8, 15)]}
        await turns(memory, chat, 8, 8)
        # Turns 1 to 4 are summarized, 5 and 6 redacted, 7 and 8 untouched.
        assert by_kind(await chat.digests()) == {
            DigestAction.REDACT: [(0, 7), (8, 15), (16, 23)],
            DigestAction.SUMMARIZE: [(0, 15)],
        }
        context = await chat.context(budget=PLENTY)
        assert context.messages[0]["content"] == summary_of(0, 15)
        shown = [item["content"] for item in context.messages if item["role"] == "tool"]
        assert shown[:2] == ["⟦removed: search⟧"] * 2
        assert shown[2:] == [looked_up(number)[2].text for number in (7, 8)]
        assert fates(context) == [
            (0, 15, Fate.DIGESTED, Reason.SUMMARIZED),
            (16, 17, Fate.IN, Reason.VERBATIM),
            (18, 18, Fate.REDACTED, Reason.REDACTED),
            (19, 21, Fate.IN, Reason.VERBATIM),
            (22, 22, Fate.REDACTED, Reason.REDACTED),
            (23, 31, Fate.IN, Reason.VERBATIM),
        ]


async def test_one_append_can_fire_several(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        appended = await chat.append(*(message for number in range(1, 9) for message in looked_up(number)))
        await memory.wait_for_digests()
        rows = await chat.digests()
        assert [row.id for row in rows] == list(appended.fired)
        assert by_kind(rows) == {DigestAction.REDACT: [(0, 23)], DigestAction.SUMMARIZE: [(0, 15)]}
        assert appended.digest == next(row.id for row in rows if row.action is DigestAction.SUMMARIZE)


async def test_the_summarizer_reads_the_full_text_of_what_was_redacted(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await turns(memory, chat, 1, 8)
        (prompt,) = model.calls
        assert isinstance(prompt.task, DigestTask)
        assert [line.text for line in prompt.task.lines if line.seq % 4 == 2] == [
            looked_up(number)[2].text for number in range(1, 5)
        ]
        assert "removed" not in prompt.user


async def test_the_drop_waits_for_the_summary_and_steps_in_when_it_fails(opened: Opened) -> None:
    model = Scripted([ModelUnavailable("no route")] * 5, then=says_each)
    async with opened(model, breaker_failures=6) as (memory, chat):
        await turns(memory, chat, 1, 11)
        rows = await chat.digests()
        assert {row.status for row in rows if row.action is DigestAction.SUMMARIZE} == {Status.FAILED}
        assert DigestAction.DROP not in by_kind(rows)
        await turns(memory, chat, 12, 12)
        rows = await chat.digests()
        assert by_kind(rows)[DigestAction.DROP] == [(0, 31)], "12 turns are in view; the newest 4 stay"
        context = await chat.context(budget=PLENTY)
        assert fates(context)[0] == (0, 31, Fate.DROPPED, Reason.TRIMMED)
        assert fates(context)[-1][1] == 47
        assert context.messages[0]["content"] == "question 9"

        # The summary still gets what was dropped, once it works again.
        await turns(memory, chat, 13, 16)
        done = [
            row
            for row in await chat.digests()
            if row.action is DigestAction.SUMMARIZE and row.status is Status.COMPLETED
        ]
        assert [(row.start, row.end) for row in done] == [(0, 47)]
        assert done[0].text == each(0, 47)
        context = await chat.context(budget=PLENTY)
        assert fates(context)[0] == (0, 47, Fate.DIGESTED, Reason.SUMMARIZED)


async def test_while_the_summary_is_made_redactions_go_on(opened: Opened) -> None:
    gate = Gate(says_each)
    async with opened(Scripted([gate], then=says_each)) as (memory, chat):
        for number in range(1, 11):
            await chat.append(*looked_up(number))
        await gate.reached()
        assert by_kind(await chat.digests()) == {
            DigestAction.REDACT: [(0, 7), (8, 15), (16, 23), (24, 31)],
            DigestAction.SUMMARIZE: [(0, 15)],
        }
        shown = [item["content"] for item in (await chat.context(budget=PLENTY)).messages if item["role"] == "tool"]
        assert [text for text in shown if "removed" not in text] == [looked_up(n)[2].text for n in (9, 10)]
        gate.open()
        await memory.wait_for_digests()
        assert fates(await chat.context(budget=PLENTY))[0] == (0, 15, Fate.DIGESTED, Reason.SUMMARIZED)


async def test_tokens_count_what_is_shown(store: Store) -> None:
    """Redactions that free enough spare the summary."""
    stages = (Stage(Turns(4), LastTurns(1), Redact()), Stage(Tokens(1_500), LastTurns(1), Summarize()))
    async with opener(store, Policy("spared", stages))(Scripted(then=says_each)) as (memory, chat):
        for number in range(1, 9):
            await chat.append(*looked_up(number, words=200))
            await memory.wait_for_digests()
        assert sum(one.tokens for one in await chat.messages()) > 2_000
        assert by_kind(await chat.digests()) == {DigestAction.REDACT: [(0, 11), (12, 23)]}
        assert (await chat.context(budget=PLENTY)).tokens < 1_500


async def test_a_redaction_spares_the_summary_of_the_same_append(store: Store) -> None:
    """It takes effect with the append, so a stage behind it counts what it left."""
    stages = (Stage(Turns(4), LastTurns(1), Redact()), Stage(Tokens(900), LastTurns(1), Summarize()))
    async with opener(store, Policy("spared", stages))(Scripted(then=says_each)) as (memory, chat):
        await chat.append(*(message for number in range(1, 5) for message in looked_up(number, words=200)))
        await memory.wait_for_digests()
        assert sum(one.tokens for one in await chat.messages()) > 1_000
        assert (await chat.context(budget=PLENTY, policy=Policy("redact", stages[:1]))).tokens < 600
        assert by_kind(await chat.digests()) == {DigestAction.REDACT: [(0, 11)]}


async def test_results_that_are_never_redacted_still_count(store: Store) -> None:
    """They are in view, so a trigger that counts the view's tokens counts them."""
    stages = (
        Stage(Turns(4), LastTurns(1), Redact(never=("search",))),
        Stage(Tokens(1_500), LastTurns(1), Summarize()),
    )
    async with opener(store, Policy("never", stages))(Scripted(then=says_each)) as (memory, chat):
        for number in range(1, 17):
            tool, words = ("search", 200) if number % 2 else ("fetch", 60)
            await chat.append(*looked_up(number, tool=tool, words=words))
            await memory.wait_for_digests()
            assert (await chat.context(budget=PLENTY)).tokens < 2_000, f"after turn {number}"


async def test_a_summary_of_a_range_that_was_dropped_first(store: Store) -> None:
    """The drop's mark is the lower one: the summary still gets every message, for it counts from its own."""
    stages = (Stage(Turns(4), LastTurns(2), Drop()), Stage(Tokens(150), LastTurns(1), Summarize()))
    model = Scripted(then=says_each)
    async with opener(store, Policy("early drop", stages))(model) as (memory, chat):
        for number in range(1, 20):
            await chat.append(asks(number), answers(number))
            await memory.wait_for_digests()
            spans = (await chat.context(budget=PLENTY)).manifest.fates
            assert [span.start for span in spans] == [0, *(span.end + 1 for span in spans[:-1])]
    shown = new_to(model)
    assert shown == list(range(len(shown)))
