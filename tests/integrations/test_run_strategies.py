"""Under which policy `run_agent` runs, and what that freed."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto import trim
from hitherto.errors import InvalidInput, InvalidPolicy
from hitherto.integrations.openai_agents import AgentSpec
from hitherto.other_systems.session_strategies.memory_strategy import strategy
from tests.conftest import SCOPE
from tests.integrations.running import Agents, texts
from tests.providers.models.endpoint import said


async def test_precedence(agents: Agents) -> None:
    """Request, conversation, agent, and in the end everything."""
    chat = agents.memory.conversation("c", scope=SCOPE)
    spec = AgentSpec(name="helper", model="small", policy="trim")
    assert (await agents("1", said("a"))).run.strategy == "none"
    await agents.memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy="rolling")
    assert (await agents("2", said("a"))).run.strategy == "rolling"
    assert (await agents("3", said("a"), spec=spec)).run.strategy == "trim"
    await chat.configure(policy="summarize", create=True)
    assert (await agents("4", said("a"), spec=spec)).run.strategy == "summarize"
    assert (await agents("5", said("a"), spec=spec, policy="redact:trigger_turns=2,keep=1")).run.strategy == "redact"
    assert (await agents("6", said("a"), spec=spec)).run.strategy == "summarize", "a request's policy is its own"


async def test_what_a_run_freed(agents: Agents) -> None:
    trimming = trim(3, keep_turns=1)
    freed = [
        (await agents(f"Question {at}", said("An answer of some words."), policy=trimming)).run.freed for at in range(4)
    ]
    assert [one > 0 for one in freed] == [False, False, True, False]
    assert "Question 0" not in texts(agents.asked[0])
    events = await agents.memory.runs(SCOPE).events((await agents.runs())[1].id)
    assert (events[-1].kind, events[-1].payload) == ("freed", {"tokens": freed[2]})


async def test_a_strategy_that_is_asked_for_late_applies_at_once(agents: Agents) -> None:
    """A conversation is long when `trim` is asked for: what is sent is what it would be with `trim` from the start."""
    sent = list[list[str]]()
    for name, before in (("late", None), ("early", trim(3, keep_turns=2))):
        for at in range(10):
            await agents(f"Question {at}", said("An answer."), name=name, policy=before)
        await agents("Question 10", said("An answer."), name=name, policy=trim(3, keep_turns=2))
        sent.append(texts(agents.asked[0]))
    assert sent[0] == sent[1]
    assert [one for one in sent[0] if "Question" in one] == ["Question 8", "Question 9", "Question 10"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"memoryTrimming": True, "memoryCompacting": True}, InvalidInput),
        ({"memoryTrimming": {"turns": 1}}, InvalidPolicy),
        ({"memoryTrimming": {"max_turns": 0}}, InvalidPolicy),
        ({"memoryTriming": True}, InvalidInput),
        ({}, InvalidInput),
        ({"memoryTrimming": 3}, InvalidInput),
        ({"memoryInjection": "yes"}, InvalidInput),
        ({"memoryInjection": 1}, InvalidInput),
        ("nothing", InvalidPolicy),
        (7, InvalidPolicy),
    ],
    ids=repr,
)
def test_wrong_strategies(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        strategy(given)
