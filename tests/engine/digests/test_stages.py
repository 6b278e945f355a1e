"""Parts put together by hand, which no preset does, and what a manifest says of a stage that has nothing to do."""

from __future__ import annotations

import pytest

from hitherto import Call, Policy, assistant, rolling, summarize, tool_result, trim
from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.span import Fate, Reason
from hitherto.errors import ModelUnavailable
from hitherto.policies import (
    AnyOf,
    Chunk,
    Drop,
    Fraction,
    LastMessages,
    LastTurns,
    Messages,
    Nothing,
    Prefix,
    Stage,
    Summarize,
    Tokens,
    Turns,
    Undigested,
    Window,
)
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
    round_,
    rounds,
    said,
    says_each,
)


@pytest.fixture
def opened(store: Store) -> Opened:
    return opener(store)


def one_stage(*parts: object) -> Policy:
    return Policy("mine", (Stage(*parts),))  # pyright: ignore[reportArgumentType] (each test gives what fits)


# triggers


async def test_the_first_of_several_triggers(opened: Opened) -> None:
    policy = one_stage(AnyOf((Turns(20), Tokens(100))), LastTurns(2), Drop())
    async with opened(Scripted(), of=policy) as (_, chat):
        number = 0
        while not await chat.digests():
            number += 1
            await round_(chat, number)
        total = [one.tokens for one in await chat.messages()]
        assert sum(total) > 100 >= sum(total[:-2])
        assert number < 20


@pytest.mark.parametrize(
    "settings", [{"context_window": 100}, {"budget": 100}, {"context_window": 100, "budget": 9_999}]
)
async def test_a_fraction_of_the_models_window(opened: Opened, settings: dict[str, int]) -> None:
    """The setting `window`; the budget where it is not set."""
    async with opened(Scripted(), of=one_stage(Fraction(0.5), LastTurns(1), Drop()), **settings) as (_, chat):
        number = 0
        while not await chat.digests():
            number += 1
            await round_(chat, number)
            assert number < 20
        total = [one.tokens for one in await chat.messages()]
        assert sum(total) >= 50 > sum(total[:-2])


# keeps


async def test_a_summary_that_keeps_nothing_but_the_gap(opened: Opened) -> None:
    policy = one_stage(Turns(3), Nothing(), Summarize())
    async with opened(Scripted(then=says_each), of=policy) as (memory, chat):
        await rounds(memory, chat, [1, 2])
        await chat.append(asks(3))
        await memory.wait_for_digests()
        assert ranges(await chat.digests()) == [(0, 3)], "the turn that is not answered yet stays"
        await chat.append(answers(3))
        await rounds(memory, chat, [4])
        assert bodies(await chat.context(budget=PLENTY))[1:] == said(3, 4)
        await rounds(memory, chat, [5])
        assert ranges(await chat.digests()) == [(0, 3), (0, 9)]
        assert bodies(await chat.context(budget=PLENTY))[1:] == []


async def test_a_window_that_keeps_some_of_it_verbatim(opened: Opened) -> None:
    """What is older than the window leaves the digest; what is kept of the window is not digested yet."""
    model = Scripted(then=says_each)
    policy = one_stage(Turns(4), Window(8, LastTurns(1)), Summarize(), Prefix())
    async with opened(model, of=policy) as (memory, chat):
        await rounds(memory, chat, range(1, 5))
        assert ranges(await chat.digests()) == [(0, 5)]
        assert bodies(await chat.context(budget=PLENTY)) == [
            f"[Previous context: {each(0, 5)}]\n\nquestion 4",
            "answer 4",
        ]
        await rounds(memory, chat, range(5, 8))
        assert ranges(await chat.digests()) == [(0, 5), (6, 11)]
        context = await chat.context(budget=PLENTY)
        assert bodies(context) == [f"[Previous context: {each(6, 11)}]\n\nquestion 7", "answer 7"]
        assert fates(context) == [
            (0, 5, Fate.DROPPED, Reason.WINDOW),
            (6, 11, Fate.DIGESTED, Reason.SUMMARIZED),
            (12, 13, Fate.IN, Reason.VERBATIM),
        ]
        await rounds(memory, chat, range(8, 30))
    shown = new_to(model)
    assert shown == list(range(len(shown)))


async def test_a_window_smaller_than_what_came_since(opened: Opened) -> None:
    """New messages start at the base's end + 1, or at the window's start if that is later."""
    model = Scripted(then=says_each)
    async with opened(model, of=one_stage(Turns(6), Window(6, LastTurns(1)), Summarize())) as (memory, chat):
        await rounds(memory, chat, range(1, 12))
        assert ranges(await chat.digests()) == [(6, 9), (16, 19)]
        context = await chat.context(budget=PLENTY)
        assert fates(context) == [
            (0, 15, Fate.DROPPED, Reason.WINDOW),
            (16, 19, Fate.DIGESTED, Reason.SUMMARIZED),
            (20, 21, Fate.IN, Reason.VERBATIM),
        ]
    assert new_to(model) == [6, 7, 8, 9, 16, 17, 18, 19]


async def test_two_stages_that_summarize(opened: Opened) -> None:
    """One digest at a time, whichever stage is due, and each builds on the other's."""
    policy = Policy(
        "two", (Stage(Turns(5), LastTurns(3), Summarize(800)), Stage(Tokens(60), LastMessages(2), Summarize(300)))
    )
    model = Scripted(then=says_each)
    async with opened(model, of=policy) as (memory, chat):
        await rounds(memory, chat, range(1, 25))
        rows = await chat.digests()
        assert [row.base for row in rows] == [None, *(row.id for row in rows[:-1])]
        assert {row.action for row in rows} == {DigestAction.SUMMARIZE}
    shown = new_to(model)
    assert shown == list(range(len(shown)))


async def test_chunks_and_a_summary_of_them(opened: Opened) -> None:
    """What is in a chunk is not new to the summary, also where both are due with the same append."""
    policy = Policy(
        "both",
        (
            Stage(Undigested(6), LastMessages(2), Chunk(4)),
            Stage(Messages(6), LastMessages(2), Summarize()),
        ),
    )
    model = Scripted(then=says_each)
    async with opened(model, of=policy) as (memory, chat):
        await rounds(memory, chat, range(1, 25))
    shown = new_to(model)
    assert len(set(shown)) == len(shown), "no message is new to the model twice"


# what a manifest calls missing


async def test_a_stage_that_is_due_and_has_nothing_to_do_misses_nothing(opened: Opened) -> None:
    """Five messages are more than four, but the newest four begin in the first turn."""
    async with opened(Scripted(then=says_each), of=rolling(4, 4)) as (memory, chat):
        await rounds(memory, chat, [1, 2])
        await chat.append(asks(3))
        await memory.wait_for_digests()
        assert await chat.digests() == []
        assert (await chat.context(budget=PLENTY)).manifest.missing == []


async def test_a_result_that_holds_the_cut_back_misses_nothing(opened: Opened) -> None:
    async with opened(Scripted(then=says_each), of=summarize(3, 1)) as (memory, chat):
        await chat.append(asks(1), assistant(calls=[Call(id="late", name="look")]))
        await round_(chat, 2)
        await chat.append(asks(3), tool_result("late", "found"), answers(3))
        await memory.wait_for_digests()
        assert await chat.digests() == [], "nothing can go without parting the call from its result"
        assert (await chat.context(budget=PLENTY)).manifest.missing == []


async def test_a_digest_that_failed_is_missing(opened: Opened) -> None:
    async with opened(Scripted(then=ModelUnavailable("no route")), of=summarize(3, 1)) as (memory, chat):
        await rounds(memory, chat, range(1, 4))
        assert (await chat.context(budget=PLENTY)).manifest.missing == ["digest"]
        assert (await chat.context(budget=PLENTY, policy=trim(3, 1))).manifest.missing == []
