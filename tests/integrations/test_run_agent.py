"""`run_agent`: one run on a conversation, over real HTTP, with its audit trail."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import OpenAIProvider, function_tool

from hitherto import Memory, RunStatus, assistant, user
from hitherto.errors import InvalidInput
from hitherto.integrations.openai_agents import AgentSpec, run_agent
from tests.conftest import SCOPE
from tests.integrations.running import TOOLS, Agents, calls, texts
from tests.providers.models.endpoint import Endpoint, said


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


async def test_it_is_sent_nothing_of_other_conversations(agents: Agents) -> None:
    await agents.memory.conversation("home", scope=SCOPE).append(user("It is sunny in Lisbon."))
    await agents("Is it sunny in Lisbon?", said("Yes."))
    assert texts(agents.asked[0]) == ["Is it sunny in Lisbon?"]


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


async def test_it_begins_with_the_context(agents: Agents) -> None:
    """What a policy recalls, and where it puts a digest: on the first user message, which may be the new one."""
    chat = agents.memory.conversation("c", scope=SCOPE, policy="sliding_window:after_seq=1")
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
    await agents("Which bicycle is mine?", said("Green."), name="long", policy="balanced", budget=2_000)
    assert any("green one" in text for text in texts(agents.asked[0]))
    assert len(texts(agents.asked[0])) < 40


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


# What is stored


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
