"""`run_agent`: one run on a conversation, over real HTTP, with its audit trail."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from agents import (
    MaxTurnsExceeded,
    ModelBehaviorError,
    OpenAIProvider,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
)
from openai import BadRequestError

import hitherto
from hitherto import EventKind, Memory, RunStatus, assistant, user
from hitherto.errors import BudgetExceeded, DatabaseUnavailable, InvalidInput, InvalidPolicy
from hitherto.integrations.openai_agents import AgentSpec, run_agent, tool_timeout
from hitherto.integrations.openai_agents.recorder import json_of
from hitherto.stores.in_memory.store import InMemoryStore
from tests.conftest import SCOPE
from tests.providers.models.endpoint import Answer, Body, Endpoint, refused, said


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@function_tool
def broken() -> str:
    """Fails."""
    raise RuntimeError("the sensor is gone")


@function_tool(failure_error_function=None)
def fatal() -> str:
    """Fails for good."""
    raise RuntimeError("the sensor burns")


@function_tool
def large() -> str:
    """A megabyte."""
    return "word " * 200_000


@function_tool
def raw() -> bytes:
    """Bytes."""
    return b"\x00\xff"


@function_tool(timeout=0.05)
async def hanging() -> str:
    """Never ends."""
    await asyncio.sleep(3_600)
    return ""


@function_tool
async def stuck() -> str:
    """Never ends, and says of no timeout."""
    await asyncio.sleep(3_600)
    return ""


RELEASED = threading.Event()


@function_tool
def blocked() -> str:
    """Likewise, in a thread."""
    RELEASED.wait(60)
    return ""


@dataclass
class Station:
    name: str
    seen: datetime
    picture: bytes


@function_tool
def rich() -> list[Any]:
    """All that the SDK takes."""
    station = Station("Belém", datetime(2026, 5, 1, tzinfo=UTC), b"\x00\xff")
    return [ToolOutputText(text="Sunny."), ToolOutputImage(image_url="data:,x"), {"of": (station,)}]


TOOLS = [weather, broken, fatal, large, raw, hanging]


def calls(name: str, arguments: str = "{}", id: str = "c1") -> Answer:
    function = {"name": name, "arguments": arguments}
    return said(None, finish="tool_calls", tool_calls=[{"id": id, "type": "function", "function": function}])


def texts(body: Body) -> list[str]:
    return [str(one["content"]) for one in body["messages"]]


class Agents:
    """Runs an agent on a conversation, asking an endpoint that gives these answers."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.events: list[dict[str, Any]] = []
        self.asked: list[Body] = []

    async def __call__(
        self, message: Any, *answers: Any, spec: AgentSpec | None = None, name: str = "c", **options: Any
    ) -> Any:
        self.events = []
        with Endpoint(*answers) as endpoint:
            provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
            try:
                return await run_agent(
                    self.memory,
                    spec or AgentSpec(name="helper", model="small", tools=TOOLS),
                    message,
                    scope=SCOPE,
                    conversation=name,
                    on_event=lambda event: self.events.append(dict(event)),
                    model_provider=provider,
                    **options,
                )
            finally:
                self.asked = endpoint.asked
                await provider.aclose()

    async def runs(self, name: str = "c") -> list[Any]:
        return await self.memory.runs(SCOPE).list(name)


@pytest.fixture
def agents(memory: Memory) -> Agents:
    return Agents(memory)


async def test_a_run_with_a_tool(agents: Agents) -> None:
    outcome = await agents("How is it?", calls("weather", '{"city": "Lisbon"}'), said("Sunny."))
    assert outcome.output == "Sunny."
    assert outcome.run.status is RunStatus.COMPLETED
    assert (outcome.run.start, outcome.run.end, outcome.run.strategy) == (0, 3, "none")
    events = await agents.memory.runs(SCOPE).events(outcome.run.id)
    tokens = {"tokens_in": 91, "tokens_cached": 64, "tokens_out": 17}
    assert [(one.kind, one.name, one.call_id, one.payload) for one in events] == [
        ("model_call", "small", None, tokens),
        ("tool_call", "weather", "c1", {"city": "Lisbon"}),
        ("tool_result", "weather", "c1", "sunny in Lisbon"),
        ("model_call", "small", None, tokens),
        ("message", None, None, "Sunny."),
    ]
    assert [(one["kind"], one["payload"]) for one in agents.events] == [(one.kind, one.payload) for one in events]
    await agents("And tomorrow?", said("Rain."))
    assert texts(agents.asked[0])[0] == "How is it?"
    assert texts(agents.asked[0])[-2:] == ["Sunny.", "And tomorrow?"]


async def test_a_stored_question_is_not_appended_again(agents: Agents) -> None:
    chat = agents.memory.conversation("c", scope=SCOPE)
    await chat.append(user("How is it?"))
    outcome = await agents("How is it?", said("Sunny."))
    assert texts(agents.asked[0]) == ["How is it?"]
    assert [one.message.text for one in await chat.messages()] == ["How is it?", "Sunny."]
    assert (outcome.run.start, outcome.run.end) == (0, 1)
    await agents("How is it?", said("Sunny still."))
    assert [one.message.text for one in await chat.messages()][2:] == ["How is it?", "Sunny still."]


async def test_a_stored_question_that_came_with_others(agents: Agents) -> None:
    chat = agents.memory.conversation("c", scope=SCOPE)
    await chat.append(user("Pick a number."), assistant("42"), user("Which one?"))
    await agents("Which one?", said("42."))
    assert texts(agents.asked[0]) == ["Pick a number.", "42", "Which one?"]
    assert [one.message.text for one in await chat.messages()] == ["Pick a number.", "42", "Which one?", "42."]


@function_tool
def halves() -> str:
    """Half a character."""
    return "a\ud800b\x00c"


async def test_half_a_character_breaks_no_session(agents: Agents) -> None:
    """The log has it; requests have U+FFFD."""
    spec = AgentSpec(name="helper", model="small", instructions="Be \ud800 brief.", tools=[halves])
    await agents("x\ud800 \U0001f98a", calls("halves"), said("y\ud83e"), spec=spec)
    await agents("And now?", said("Yes."), spec=spec)
    assert texts(agents.asked[0])[:2] == ["Be \ufffd brief.", "x\ufffd \U0001f98a"]
    log = await agents.memory.conversation("c", scope=SCOPE).messages()
    assert "\\ud800" in log[0].message.raw


@pytest.mark.parametrize(
    ("tool", "payload"),
    [("broken", "An error occurred"), ("hanging", "timed out"), ("raw", "2 bytes"), ("large", "word word")],
)
async def test_what_tools_may_do(agents: Agents, tool: str, payload: str) -> None:
    outcome = await agents("Look.", calls(tool), said("Done."), budget=2_000)
    assert outcome.output == "Done."
    result = next(one for one in agents.events if one["kind"] == "tool_result")
    assert payload in json.dumps(result["payload"])
    assert "messages" in agents.asked[1]
    assert len(json.dumps(agents.asked[1])) < 12_000
    log = await agents.memory.conversation("c", scope=SCOPE).messages()
    assert len(log) == 4
    assert (tool != "large") or log[2].tokens > 190_000, "the log has all of it"


@pytest.mark.parametrize("tool", [stuck, blocked], ids=lambda tool: tool.name)
async def test_a_tool_that_hangs(agents: Agents, monkeypatch: pytest.MonkeyPatch, tool: Any) -> None:
    """Without a timeout of its own. The model is told, and the run goes on."""
    RELEASED.clear()
    monkeypatch.setattr(tool_timeout, "TOOL_TIMEOUT", 0.05)
    outcome = await agents(
        "Look.", calls(tool.name), said("Never mind."), spec=AgentSpec(name="helper", model="small", tools=[tool])
    )
    RELEASED.set()
    assert outcome.output == "Never mind."
    assert f"'{tool.name}' timed out" in texts(agents.asked[1])[-1]
    assert tool.timeout_seconds is None, "it is the application's"


async def test_rich_results_are_recorded_as_json(agents: Agents) -> None:
    spec = AgentSpec(name="helper", model="small", tools=[rich])
    outcome = await agents("Look.", calls("rich"), said("Sunny."), spec=spec)
    (result,) = [
        one for one in await agents.memory.runs(SCOPE).events(outcome.run.id) if one.kind is EventKind.TOOL_RESULT
    ]
    text, image, station = result.payload
    assert text == {"type": "text", "text": "Sunny."}
    assert (image["type"], image["image_url"]) == ("image", "data:,x")
    assert station == {"of": [{"name": "Belém", "seen": "2026-05-01 00:00:00+00:00", "picture": "⟦2 bytes⟧"}]}


def test_results_that_json_cannot_hold() -> None:
    round_: list[Any] = []
    round_.append(round_)
    for value in (round_, {(1, 2): 3}, float("nan"), {"n": float("inf")}):
        assert json_of(value) == str(value)


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


class Away(InMemoryStore):
    """Refuses this verb of runs once `away`."""

    away = False

    def __init__(self, verb: str) -> None:
        super().__init__()
        setattr(self.runs, verb, self._unless_away(getattr(self.runs, verb)))

    def _unless_away(self, verb: Callable[..., Awaitable[Any]]) -> Any:
        async def refusing(*given: Any, **options: Any) -> Any:
            if self.away:
                raise DatabaseUnavailable("the database is away")
            return await verb(*given, **options)

        return refusing


async def test_what_fails_while_the_store_is_away_is_what_is_raised(in_memory: Any) -> None:
    store = Away("add")
    await store.open()
    async with hitherto.open(store=store) as memory:
        agents = Agents(memory)

        def fails(body: Body) -> Answer:
            store.away = True
            return refused(400, "no such model")

        with pytest.raises(BadRequestError):
            await agents("Hello.", fails)
        (run,) = await agents.runs()
        assert run.status is RunStatus.FAILED


async def test_the_store_is_away_when_the_run_ends(in_memory: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The answer is in the log, and is returned."""
    store = Away("end")
    await store.open()
    async with hitherto.open(store=store) as memory:

        def leaves(event: Any) -> None:
            store.away = event["kind"] == "message"

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


async def test_what_summaries_free_is_counted_once(agents: Agents) -> None:
    strategy = {"memorySummarization": {"context_limit": 2, "keep_last_n_turns": 1}}
    freed, size = 0, 0
    for at in range(4):
        outcome = await agents(
            f"Question {at}.", said("An answer of quite some words. " * 20), memory_strategy=strategy
        )
        freed += outcome.run.freed
        await agents.memory.wait_for_digests()
    size = sum(one.tokens for one in await agents.memory.conversation("c", scope=SCOPE).messages())
    assert 0 <= freed < size


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


async def test_it_begins_with_the_context(agents: Agents) -> None:
    """What a policy recalls, and where it puts a digest: on the first user message, which may be the new one."""
    chat = agents.memory.conversation("c", scope=SCOPE, policy="sliding-window:after_seq=1")
    await chat.append(user("My bicycle is the green one."), assistant("Noted."))
    await agents.memory.wait_for_digests()
    await agents("What next?", said("Nothing."))
    (sent,) = texts(agents.asked[0])
    assert sent.startswith("[Previous context: ")
    assert sent.endswith("What next?")
    log = await chat.messages()
    assert [one.message.text for one in log][2:] == ["What next?", "Nothing."]

    long = agents.memory.conversation("long", scope=SCOPE)
    await long.append(
        user("My bicycle is the green one."), *(assistant(f"Of the sea, {at}. " * 20) for at in range(60))
    )
    await agents("Which bicycle is mine?", said("Green."), name="long", memory_strategy="balanced", budget=2_000)
    assert any("green one" in text for text in texts(agents.asked[0]))
    assert len(texts(agents.asked[0])) < 40


# Memory strategies


async def test_precedence(agents: Agents) -> None:
    """Request, conversation, agent, and in the end everything."""
    chat = agents.memory.conversation("c", scope=SCOPE)
    spec = AgentSpec(name="helper", model="small", memory_strategy="memoryTrimming")
    assert (await agents("1", said("a"))).run.strategy == "none"
    await agents.memory.configure_agent(tenant=SCOPE.tenant, agent=SCOPE.agent, policy="rolling")
    assert (await agents("2", said("a"))).run.strategy == "rolling"
    assert (await agents("3", said("a"), spec=spec)).run.strategy == "trim"
    await chat.configure(memory_strategy="summarize")
    assert (await agents("4", said("a"), spec=spec)).run.strategy == "summarize"
    compacting = {"memoryCompacting": {"trigger": 2, "keep": 1}}
    assert (await agents("5", said("a"), spec=spec, memory_strategy=compacting)).run.strategy == "redact"
    assert (await agents("6", said("a"), spec=spec)).run.strategy == "summarize", "a request's strategy is its own"


async def test_what_a_run_freed(agents: Agents) -> None:
    trimming = {"memoryTrimming": {"max_turns": 3, "keep_last_n_turns": 1}}
    freed = [
        (await agents(f"Question {at}", said("An answer of some words."), memory_strategy=trimming)).run.freed
        for at in range(4)
    ]
    assert [one > 0 for one in freed] == [False, False, True, False]
    assert "Question 0" not in texts(agents.asked[0])
    events = await agents.memory.runs(SCOPE).events((await agents.runs())[1].id)
    assert (events[-1].kind, events[-1].payload) == ("freed", {"tokens": freed[2]})


async def test_memory_injection(agents: Agents) -> None:
    rolling = {"memorySummarization": {"context_limit": 2, "keep_last_n_turns": 1}}
    for at in range(3):
        await agents(f"My bicycle has number {at}.", said("Noted."), name="monday", memory_strategy=rolling)
    await agents.memory.wait_for_digests()
    spec = AgentSpec(name="helper", model="small", instructions="Be brief.", memory_injection=True)
    off = {"memoryInjection": False}
    outcome = await agents("Hello.", said("Hi."), spec=spec, name="tuesday", memory_strategy=off)
    assert texts(agents.asked[0])[0] == "Be brief."
    assert not outcome.run.injection
    outcome = await agents("Hello.", said("Hi."), spec=spec, name="wednesday")
    assert texts(agents.asked[0])[0].startswith("Be brief.\n\nCross-session memory: ")
    assert outcome.run.injection


@pytest.mark.parametrize(
    ("strategy", "error"),
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
async def test_wrong_strategies(agents: Agents, strategy: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        await agents("Hello.", said("Never."), memory_strategy=strategy)
    assert await agents.runs() == []


# Others at the same conversation


async def test_two_runs_at_once(memory: Memory) -> None:
    async def one(number: int) -> str:
        spec = AgentSpec(name="helper", model="small", tools=TOOLS)
        with Endpoint(calls("weather", '{"city": "Lisbon"}', id=f"c{number}"), said(f"Sunny {number}.")) as endpoint:
            provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
            done = await run_agent(
                memory, spec, f"Question {number}", scope=SCOPE, conversation="c", model_provider=provider
            )
            await provider.aclose()
            return done.output

    assert sorted(await asyncio.gather(*map(one, range(4)))) == [f"Sunny {number}." for number in range(4)]
    log = await memory.conversation("c", scope=SCOPE).messages()
    assert len(log) == 16
    runs = await memory.runs(SCOPE).list("c")
    assert {one.status for one in runs} == {RunStatus.COMPLETED}
    assert {one.events for one in runs} == {5}


@pytest.mark.parametrize("verb", ["clear", "delete", "erase"])
async def test_what_happens_to_the_conversation_in_mid_run(agents: Agents, verb: str) -> None:
    chat = agents.memory.conversation("c", scope=SCOPE)

    @function_tool
    async def interrupting() -> str:
        """Clears, deletes or erases."""
        if verb == "erase":
            await chat.erase([0])
        else:
            await (chat.clear() if verb == "clear" else chat.delete())
        return "done"

    spec = AgentSpec(name="helper", model="small", tools=[interrupting])
    outcome = await agents("My secret is xyzzy.", calls("interrupting"), said("Gone."), spec=spec)
    assert outcome.output == "Gone."
    assert (outcome.run is None) is (verb == "delete")
    if verb == "delete":
        assert await chat.messages() == [], "it does not come back"
    outcome = await agents("And now?", said("All is well."))
    assert outcome.output == "All is well."
    assert "xyzzy" not in json.dumps(agents.asked[0])


PICTURE = {
    "role": "user",
    "content": [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
    ],
}


async def test_only_the_message_and_the_answer_are_stored(agents: Agents) -> None:
    chat = agents.memory.conversation("c", scope=SCOPE)
    await agents("How is it?", calls("weather", '{"city": "Lisbon"}'), said("Sunny."), stored="answer")
    outcome = await agents("And tomorrow?", said("Rain."), stored="answer", wait=True)
    assert texts(agents.asked[0]) == ["How is it?", "Sunny.", "And tomorrow?"]
    log = await chat.messages()
    assert [one.message.text for one in log] == ["How is it?", "Sunny.", "And tomorrow?", "Rain."]
    assert (outcome.run.start, outcome.run.end) == (2, 3)
    second, first = await agents.runs()
    kinds = [one.kind for one in await agents.memory.runs(SCOPE).events(first.id)]
    assert kinds == ["model_call", "tool_call", "tool_result", "model_call", "message"]
    assert second.id == outcome.run.id

    await chat.append(user("Still there?"))
    await agents("Still there?", said("Yes."), stored="answer")
    assert [one.message.text for one in await chat.messages()][4:] == ["Still there?", "Yes."]


async def test_of_a_run_that_fails_nothing_is_stored(agents: Agents) -> None:
    with pytest.raises(BadRequestError):
        await agents("Look.", calls("weather", '{"city": "Faro"}'), refused(400, "no"), stored="answer")
    assert await agents.memory.conversation("c", scope=SCOPE).head() is None
    (run,) = await agents.runs()
    assert (run.status, run.end) == (RunStatus.FAILED, None)


@pytest.mark.parametrize("stored", ["all", "answer"])
async def test_a_message_with_images(agents: Agents, stored: str) -> None:
    await agents(PICTURE, said("A cat."), stored=stored)
    (sent,) = agents.asked[0]["messages"]
    assert [part.get("image_url", {}).get("url") for part in sent["content"]] == [
        None,
        "data:image/png;base64,AAAA",
        "https://example.org/a.png",
    ]
    chat = agents.memory.conversation("c", scope=SCOPE)
    asked, answer = await chat.messages()
    assert asked.message.payload == PICTURE
    assert answer.message.text == "A cat."
    await chat.append(PICTURE)
    await agents(PICTURE, said("A cat."), stored=stored)
    assert len(await chat.messages()) == 4, "it was there"


@pytest.mark.parametrize("message", ["", 7, {"role": "assistant", "content": "x"}, {"role": "user"}, {}])
async def test_what_is_no_user_message(agents: Agents, message: Any) -> None:
    with pytest.raises(InvalidInput):
        await agents(message, said("Never."))
    with pytest.raises(InvalidInput, match="stored"):
        await agents("Hello.", said("Never."), stored="none")
    assert await agents.runs() == []


async def test_an_empty_answer_is_stored(agents: Agents) -> None:
    outcome = await agents("Hello.", said(""), stored="answer")
    assert outcome.output == ""
    assert len(await agents.memory.conversation("c", scope=SCOPE).messages()) == 2
