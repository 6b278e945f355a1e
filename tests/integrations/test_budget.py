"""Sessions with a token budget: what reaches the model fits, and every other verb works on all that is shown."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Memory
from hitherto.core.policy.parts import ShadowTurn
from hitherto.core.policy.presets import chunks, rolling, sliding_window
from hitherto.errors import InvalidBatch, InvalidBudget
from hitherto.integrations.openai_agents import HithertoSession
from hitherto.other_systems.session_strategies.sessions import (
    CompactingSession,
    DefaultSession,
    SummarizingSession,
    TrackingCompactingSession,
    TrimmingSession,
)
from hitherto.providers.scripted import Scripted, items
from hitherto.tokens import counter_for
from hitherto.wire import codec
from tests.conftest import SCOPE
from tests.databases import Databases
from tests.engine.logs import logs
from tests.integrations.planner import (
    QUIET,
    Item,
    assert_no_orphans,
    calls,
    dialogue,
    kinds,
    payloads,
    planner,
    questions,
    says,
    text,
)
from tests.integrations.test_compaction import COMPACTED, Plain, compacting, endpoint
from tests.lengths import examples, lasting
from tests.memories import open_on

Make = Callable[..., HithertoSession]

SESSIONS: dict[str, Make] = {
    "plain": lambda memory, **options: HithertoSession("trip", memory, scope=SCOPE, **options),
    "default": lambda memory, **options: DefaultSession("trip", memory, scope=SCOPE, **options),
    "trimming": lambda memory, **options: TrimmingSession(
        "trip", memory, scope=SCOPE, max_turns=4, keep_last_n_turns=2, **options
    ),
    "summarizing": lambda memory, **options: SummarizingSession(
        "trip", memory, scope=SCOPE, context_limit=3, keep_last_n_turns=1, wait=10, **options
    ),
    "compacting": lambda memory, **options: CompactingSession(
        "trip", memory, scope=SCOPE, trigger=3, keep=2, **options
    ),
    "tracking": lambda memory, **options: TrackingCompactingSession(
        "trip", memory, scope=SCOPE, trigger=3, keep=2, **options
    ),
}


def cost(shown: Sequence[Any]) -> int:
    """The tokens of the items, as contexts count them."""
    counter = counter_for("o200k_base")
    return sum(codec("openai.responses").tokens(item, counter) for item in shown)


def said(words: str) -> Any:
    return {"role": "user", "content": words}


def called(call: str) -> Any:
    return {"type": "function_call", "call_id": call, "name": "weather", "arguments": "{}"}


RESULT: Any = {"type": "function_call_output", "call_id": "late", "output": "Sunny."}


@function_tool
def archive(year: int) -> str:
    """Everything that was written in a year."""
    return "sunny " * 300_000


async def look_up(session: HithertoSession, **options: Any) -> None:
    """A run in which the tool's result is far larger than any budget here."""
    model = ScriptedModel(steps=[[calls("archive", "a1", year=1999)], [says("It was sunny.")]])
    agent = Agent(name="planner", model=model, tools=[archive], **options)
    await Runner.run(agent, "How was 1999?", session=session, run_config=QUIET)


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
async def test_a_result_of_300_000_words_is_not_sent_again(memory: Memory, make: Make) -> None:
    session = make(memory, budget=8_000)
    await dialogue(session, 1, tools=True)
    await look_up(session)

    sent = await dialogue(session, 1, start=1)

    assert cost(sent[:-1]) <= 8_000
    assert text(sent[-2]) == "It was sunny."
    assert_no_orphans(sent)
    assert questions(sent)[-1] == "Question 1"
    assert len(await session.messages()) == 10
    # The turns from here on are shown as always.
    assert questions(await dialogue(session, 1, tools=True, start=2))[-2:] == ["Question 1", "Question 2"]


async def test_where_not_even_the_newest_items_fit_the_run_goes_on_without_them(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    session = DefaultSession("trip", memory, scope=SCOPE, budget=8_000)
    await dialogue(session, 1)
    await look_up(session, tool_use_behavior="stop_on_first_tool")

    with caplog.at_level(logging.WARNING, logger="hitherto.session"):
        sent = await dialogue(session, 1, start=1)

    assert questions(sent) == ["Question 1"]
    assert len(sent) == 1
    [told] = caplog.records
    assert "more than the session's budget of 8000" in told.getMessage()
    assert kinds(await session.get_items()) == ["user", "assistant"]


@pytest.mark.parametrize("policy", [rolling(4, 2), sliding_window()], ids=["system message", "prefix"])
@pytest.mark.parametrize("words", [1, 1_000], ids=["cut", "nothing else"])
async def test_a_digest_that_is_no_turn_of_its_own_is_an_item(policy: Any, words: int) -> None:
    model = Scripted([items("Ada wants to see Lisbon.")], then=items())
    async with hitherto.open("memory:", model=model) as memory:
        whole = HithertoSession("trip", memory, scope=SCOPE, policy=policy, wait=10)
        session = HithertoSession("trip", memory, scope=SCOPE, policy=policy, wait=10, budget=150)
        await dialogue(whole, 3)
        for call, length in (("c1", 200), ("c2", words)):
            await whole.add_items([{"type": "function_call", "call_id": call, "name": "look", "arguments": "{}"}])
            await whole.add_items([{"type": "function_call_output", "call_id": call, "output": "word " * length}])
        assert cost(await whole.get_items()) > 150

        shown = await session.get_items()

        assert text(shown[0]).count("Ada wants to see Lisbon.") == 1
        newest = ["function_call", "function_call_output"] if words == 1 else []
        assert kinds(shown) == ["system", *newest]
        assert cost(shown) <= 150


async def test_chunks_are_not_recalled_for_a_question_that_is_not_known() -> None:
    policy = chunks(threshold=4, batch=2, context=2, top_k=2)
    async with hitherto.open("memory:") as memory:
        whole = HithertoSession("trip", memory, scope=SCOPE, policy=policy, wait=10)
        for turn in range(6):
            await whole.add_items([{"role": "user", "content": f"The weather in Lisbon, part {turn}?"}])
            await whole.add_items([{"role": "assistant", "content": f"The weather in Lisbon, part {turn}: sunny."}])
        await memory.wait_for_digests()
        await memory.wait_for_index()
        shown = await whole.get_items()
        session = HithertoSession("trip", memory, scope=SCOPE, policy=policy, wait=10, budget=cost(shown))
        assert (await memory.conversation("trip", scope=SCOPE).context(policy=policy, budget=400)).manifest.recalled
        cut = await session.get_items()
        assert cut
        assert cut == shown[-len(cut) :]


@pytest.mark.parametrize(("added", "popped"), [(1, 0), (1, 2), (2, 1), (2, 4)])
async def test_items_put_in_the_place_of_all_are_cut_too(memory: Memory, added: int, popped: int) -> None:
    """Whether or not a message that they stand for is still there."""
    session = DefaultSession("trip", memory, scope=SCOPE, budget=100)
    await dialogue(session, added)
    for _ in range(popped):
        await session.pop_item()
    conversation = memory.conversation("trip", scope=SCOPE)
    await conversation.replace([said("word " * 5_000)])
    assert await session.get_items() == []
    await conversation.replace([said("word")])
    assert list(map(text, await session.get_items())) == ["word"]


async def test_what_is_no_budget_is_refused(memory: Memory) -> None:
    cases: list[Any] = [0, -1, True, "8000", 8_000.0]
    for budget in cases:
        for make in SESSIONS.values():
            with pytest.raises(InvalidBudget, match="budget is"):
                make(memory, budget=budget)


async def test_tokens_are_counted_as_the_model_counts_them(memory: Memory) -> None:
    await DefaultSession("trip", memory, scope=SCOPE).add_items([{"role": "user", "content": "größer 日本語 " * 20}])
    shown = {
        model: await DefaultSession("trip", memory, scope=SCOPE, model=model, budget=100).get_items()
        for model in ("gpt-4o", "gpt-4")
    }
    assert [len(one) for one in shown.values()] == [1, 0]


async def test_cache_breakpoints_are_not_in_items(memory: Memory) -> None:
    """Contexts have them for this model; a session's items are those of the log."""
    session = DefaultSession("trip", memory, scope=SCOPE, model="gpt-5.6", budget=60)
    await dialogue(session, 6)
    shown = await session.get_items()
    assert shown == payloads(await session.messages())[-len(shown) :]


# Verbs that change what is shown work on all of it.


@pytest.mark.parametrize("of", [DefaultSession, HithertoSession, TrimmingSession])
async def test_what_was_shown_before_a_clear_brings_back_all_of_it(memory: Memory, of: Any) -> None:
    """The SDK's compaction clears, adds, and where that fails clears again and adds what `get_items` gave before."""
    session, whole = of("trip", memory, scope=SCOPE, budget=60), of("trip", memory, scope=SCOPE)
    await dialogue(session, 6)
    before, everything = await session.get_items(), await whole.get_items()
    assert 1 < len(before) < len(everything)

    for shown in (before, everything):
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(shown)
        assert await whole.get_items() == everything
        assert await session.get_items() == before
    assert payloads(await session.messages()) == everything

    await session.clear_session()
    await session.add_items(COMPACTED)
    await session.clear_session()
    await session.add_items(before)
    assert await whole.get_items() == everything
    assert payloads(await session.messages()) == everything
    await dialogue(session, 1, start=6)
    assert len(await session.messages()) == len(everything) + 2


async def test_a_compaction_that_fails_half_way_changes_nothing(memory: Memory) -> None:
    session = Plain("trip", memory, scope=SCOPE, budget=60)
    await dialogue(session, 6)
    before, log = await session.get_items(), payloads(await session.messages())
    wizard = [{"type": "message", "role": "wizard", "content": "?"}]
    with pytest.raises(ValueError, match="wizard"):
        await compacting(session, endpoint(wizard)).run_compaction({"force": True, "compaction_mode": "input"})
    assert await session.get_items() == before
    assert await HithertoSession("trip", memory, scope=SCOPE).get_items() == log
    assert payloads(await session.messages()) == log


async def test_automatic_compaction_replaces_what_the_model_saw_and_no_more(memory: Memory) -> None:
    session = HithertoSession("trip", memory, scope=SCOPE, budget=60)
    await dialogue(session, 6)
    seen = questions(await session.get_items())
    wrapped = compacting(session, endpoint([COMPACTED[1]]), should_trigger_compaction=lambda _: True)
    agent, _ = planner([[says("Lisbon.")]])
    await Runner.run(agent, "Where to?", session=wrapped, run_config=QUIET)
    shown = await HithertoSession("trip", memory, scope=SCOPE).get_items()
    assert shown[-1] == COMPACTED[1]
    assert questions(shown) == [one for one in (f"Question {turn}" for turn in range(6)) if one not in seen]
    assert len(await session.messages()) == 14


@pytest.mark.parametrize("name", ["plain", "trimming", "summarizing", "compacting"])
@lasting
@settings(max_examples=examples(4))
@given(log=logs(wire="openai.responses", max_turns=8), budget=st.integers(1, 2_000))
async def test_whatever_the_history_the_items_fit_and_are_the_newest(
    databases: Databases, name: str, log: tuple[str, list[list[Item]]], budget: int
) -> None:
    """Within the budget, whole groups, in order: what stands for the older part, then the end of the view."""

    async with open_on(await databases.store()) as memory:
        without, session = SESSIONS[name](memory), SESSIONS[name](memory, budget=budget)
        logged: list[Item] = []
        for batch in log[1]:
            try:
                await without.add_items(batch)  # pyright: ignore[reportArgumentType] — plain dicts
            except InvalidBatch:
                continue
            logged += batch
            whole: list[Any] = await without.get_items()
            shown: list[Any] = await session.get_items()
            assert cost(shown) <= budget
            waiting = unanswered(logged)
            assert_no_orphans([one for one in shown if one.get("call_id") not in waiting])
            assert_newest(shown, whole)
            if whole == logged and not waiting and cost(whole) + 3 <= budget:
                assert shown == whole


def assert_newest(shown: list[Item], whole: list[Item]) -> None:
    """The messages and calls that are shown are a digest's turn, if there is one, and the end of the view's. A result
    that came late may be the newest item, and then its call is shown and what stands between them may be not."""
    said, all_said = but_results(shown), but_results(whole)
    following = iter(all_said)
    assert all(item in following for item in said)
    turn = 2 if said and said[0].get("content") == ShadowTurn().user else 0
    if "output" not in whole[-1]:
        assert said[turn:] == all_said[len(all_said) - len(said) + turn :]
    # Only a call without a result has a placeholder.
    made_up = [item for item in shown if item not in whole]
    assert {item["call_id"] for item in made_up} <= unanswered(whole)


def but_results(of: list[Item]) -> list[Item]:
    return [item for item in of if item.get("type") != "function_call_output"]


def unanswered(of: list[Item]) -> set[str]:
    called = {item["call_id"] for item in of if item.get("type") == "function_call"}
    return called - {item["call_id"] for item in of if item.get("type") == "function_call_output"}
