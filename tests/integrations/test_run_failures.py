"""Runs that fail, are cancelled, or whose store is away: what is raised, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import MaxTurnsExceeded, ModelBehaviorError, OpenAIProvider
from openai import BadRequestError

from hitherto import Memory, RunStatus
from hitherto.errors import BudgetExceeded, DatabaseUnavailable
from hitherto.integrations.openai_agents import AgentSpec, run_agent
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.integrations.running import TOOLS, Agents, calls
from tests.memories import open_on
from tests.providers.models.endpoint import Answer, Body, Endpoint, refused, said


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([calls("nothing_of_that_name")], ModelBehaviorError),
        ([calls("fatal")], Exception),
        ([calls("weather", '{"city": "Lisbon"}')], MaxTurnsExceeded),
        ([refused(400, "no such model")], BadRequestError),
    ],
    ids=["unknown tool", "a tool that raises", "for ever", "refused"],
)
async def test_what_fails_is_recorded_and_raised(agents: Agents, answers: list[Any], error: type[Exception]) -> None:
    spec = AgentSpec(name="helper", model="small", tools=TOOLS, max_turns=3)
    with pytest.raises(error):
        await agents("Look.", *answers, spec=spec)
    (run,) = await agents.runs()
    assert run.status is RunStatus.FAILED
    events = await agents.memory.runs(SCOPE).events(run.id)
    assert events[-1].kind == "error"
    assert {"type", "message"} == set(events[-1].payload)
    assert events[-1].name == ("small" if error is BadRequestError else None), "the model that was asked"
    outcome = await agents("And now?", said("All is well."))
    assert outcome.output == "All is well."


async def test_a_message_that_does_not_fit(agents: Agents) -> None:
    with pytest.raises(BudgetExceeded):
        await agents("word " * 3_000, said("Never."), budget=1_000)
    assert agents.asked == []
    (run,) = await agents.runs()
    assert run.status is RunStatus.FAILED


class Away:
    """Has a verb of a store's runs refuse once `now`."""

    def __init__(self, store: Store, verb: str) -> None:
        self.now = False
        setattr(store.runs, verb, self._unless_away(getattr(store.runs, verb)))

    def _unless_away(self, verb: Callable[..., Awaitable[Any]]) -> Any:
        async def refusing(*given: Any, **options: Any) -> Any:
            if self.now:
                raise DatabaseUnavailable("the database is away")
            return await verb(*given, **options)

        return refusing


async def test_what_fails_while_the_store_is_away_is_what_is_raised(store: Store) -> None:
    away = Away(store, "add")
    async with open_on(store) as memory:
        agents = Agents(memory)

        def fails(body: Body) -> Answer:
            away.now = True
            return refused(400, "no such model")

        with pytest.raises(BadRequestError):
            await agents("Hello.", fails)
        (run,) = await agents.runs()
        assert run.status is RunStatus.FAILED


async def test_the_store_is_away_when_the_run_ends(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """The answer is in the log, and is returned."""
    away = Away(store, "end")
    async with open_on(store) as memory:

        def leaves(event: Any) -> None:
            away.now = event["kind"] == "message"

        with Endpoint(said("Hi.")) as endpoint:
            provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
            spec = AgentSpec(name="helper", model="small")
            done = await run_agent(
                memory,
                spec,
                "Hello.",
                scope=SCOPE,
                conversation="c",
                on_event=leaves,
                model_provider=provider,
            )
            await provider.aclose()
        assert (done.output, done.run) == ("Hi.", None)
        assert [one.message.text for one in await memory.conversation("c", scope=SCOPE).messages()] == ["Hello.", "Hi."]
    assert "could not be recorded" in caplog.text


async def test_what_on_event_raises_changes_nothing(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_: Any) -> None:
        raise BrokenPipeError("nobody listens")

    with Endpoint(said("Hi.")) as endpoint:
        provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
        done = await run_agent(
            memory,
            AgentSpec(name="helper", model="small"),
            "Hello.",
            scope=SCOPE,
            conversation="c",
            on_event=breaks,
            model_provider=provider,
        )
        await provider.aclose()
    assert done.output == "Hi."
    assert done.run is not None
    assert done.run.status is RunStatus.COMPLETED
    assert "on_event failed" in caplog.text


async def test_a_cancelled_run(agents: Agents) -> None:
    with Endpoint(Answer(silent=True)) as endpoint:
        provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
        spec = AgentSpec(name="helper", model="small")
        running = asyncio.create_task(
            run_agent(agents.memory, spec, "Wait.", scope=SCOPE, conversation="c", model_provider=provider)
        )
        await asyncio.to_thread(endpoint.reached.wait)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    (run,) = await agents.runs()
    assert run.status is RunStatus.FAILED
    assert [one.payload["type"] for one in await agents.memory.runs(SCOPE).events(run.id)] == ["CancelledError"]


async def test_of_a_run_that_fails_nothing_is_stored(agents: Agents) -> None:
    with pytest.raises(BadRequestError):
        await agents("Look.", calls("weather", '{"city": "Faro"}'), refused(400, "no"), stored="answer")
    assert await agents.memory.conversation("c", scope=SCOPE).head() is None
    (run,) = await agents.runs()
    assert (run.status, run.end) == (RunStatus.FAILED, None)
