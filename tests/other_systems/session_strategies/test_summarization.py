"""The fourth seed's summarization: "When user turns ≥ context_limit: split history into prefix + tail. Summarize
prefix; remove the prefix; insert a shadow user line + assistant summary, then append the unsummarized tail"."""

from __future__ import annotations

import pytest

from hitherto import Policy
from hitherto.core.digests.digest import Status
from hitherto.core.digests.prompts import DigestTask
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.other_systems.session_strategies.policies import summarizing
from hitherto.policies import LastTurns, ShadowTurn, Stage, Summarize, Turns
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
    looked_up,
    new_to,
    opener,
    ranges,
    rounds,
    said,
    says_each,
)

POLICY = summarizing(context_limit=6, keep_last_n_turns=2)
SHADOW = "What have we talked about so far?"


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store, POLICY)


async def test_at_the_limit_the_prefix_becomes_a_summary_turn(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 6))
        assert await chat.digests() == []
        await chat.append(asks(6))
        await memory.wait_for_digests()
        (row,) = await chat.digests()
        assert (row.start, row.end, row.base) == (0, 7, None), "turns 1 to 4; turns 5 and 6 are the tail"
        assert (row.action, row.status) == (DigestAction.SUMMARIZE, Status.COMPLETED)

        context = await chat.context(budget=PLENTY)
        assert context.messages == [
            {"role": "user", "content": SHADOW},
            {"role": "assistant", "content": each(0, 7)},
            {"role": "user", "content": "question 5"},
            {"role": "assistant", "content": "answer 5"},
            {"role": "user", "content": "question 6"},
        ]
        assert fates(context) == [(0, 7, Fate.DIGESTED, Reason.SUMMARIZED), (8, 10, Fate.IN, Reason.VERBATIM)]
        assert await chat.items(wire="openai.chat") == context.messages
        assert context.manifest.sections["digest"] > 0


async def test_below_the_limit_nothing_goes_but_what_the_budget_demands(opened: Opened) -> None:
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 6))
        assert bodies(await chat.context(asks(6), budget=PLENTY)) == [*said(1, 5), "question 6"]
        tight = await chat.context(asks(6), budget=60)
        assert tight.tokens <= 60
        assert fates(tight)[0] == (0, 0, Fate.IN, Reason.BEGINNING)
        assert fates(tight)[1][2:] == (Fate.DROPPED, Reason.BUDGET)
        assert fates(tight)[-1] == (fates(tight)[-1][0], 9, Fate.IN, Reason.VERBATIM)
        assert bodies(tight)[-1] == "question 6"
        assert await chat.digests() == [], "a context never fires a stage"


async def test_the_next_summary_builds_on_the_one_before(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        await rounds(memory, chat, range(1, 19))
        rows = await chat.digests()
        # Two turns are kept, so every fourth turn there are six again.
        assert [(row.start, row.end) for row in rows] == [(0, 7), (0, 15), (0, 23), (0, 31)]
        assert [row.base for row in rows] == [None, *(row.id for row in rows[:-1])]
        assert rows[-1].text == each(0, 31)
        assert bodies(await chat.context(asks(19), budget=PLENTY)) == [
            SHADOW,
            each(0, 31),
            *said(17, 18),
            "question 19",
        ]
    assert new_to(model) == list(range(32))
    tasks = [prompt.task for prompt in model.calls if isinstance(prompt.task, DigestTask)]
    assert [len(task.known) for task in tasks] == [0, 8, 16, 24]
    assert not any(task.leaving for task in tasks)


async def test_the_tail_keeps_its_tool_messages(opened: Opened) -> None:
    model = Scripted(then=says_each)
    async with opened(model) as (memory, chat):
        for number in range(1, 7):
            await chat.append(*looked_up(number))
        await memory.wait_for_digests()
        context = await chat.context(budget=PLENTY)
        assert context.messages[2:] == [message.payload for message in (*looked_up(5), *looked_up(6))]
        assert ranges(await chat.digests()) == [(0, 15)]
    assert new_to(model) == list(range(16)), "the summarizer reads the tool results too"


async def test_the_shadow_turn_in_other_words(store: Store) -> None:
    stage = Stage(Turns(4), LastTurns(1), Summarize(), ShadowTurn("Recap, please.", "Recap:\n{text}"))
    async with opener(store, Policy("mine", (stage,)))(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        assert bodies(await chat.context(budget=PLENTY)) == ["Recap, please.", f"Recap:\n{each(0, 5)}", *said(4, 4)]


async def test_where_the_summary_does_not_fit_the_newest_messages_still_do(opened: Opened) -> None:
    """What gives way, in order: the oldest verbatim groups, then the digest; the incoming message never."""
    async with opened(Scripted(then=says_each)) as (memory, chat):
        await rounds(memory, chat, range(1, 7))
        full = await chat.context(asks(7), budget=PLENTY)
        with_digest = await chat.context(asks(7), budget=full.tokens - 1)
        assert bodies(with_digest)[:2] == [SHADOW, each(0, 7)]
        assert bodies(with_digest)[-1] == "question 7"
        tiny = await chat.context(asks(7), budget=30)
        assert SHADOW not in bodies(tiny)
        assert bodies(tiny)[-1] == "question 7"
        assert tiny.manifest.digest is None
        assert fates(tiny)[0] == (0, fates(tiny)[0][1], Fate.DROPPED, Reason.BUDGET)
        assert answers(7).text not in bodies(tiny)
