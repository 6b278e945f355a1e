"""A chat store with a rolling synopsis: its settings by their names, and its runs, over real HTTP."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool

import hitherto
from hitherto import Memory, assistant, user
from hitherto.other_systems.settings_aliases import settings_of
from hitherto.other_systems.views import create_views
from hitherto.providers.scripted import items
from tests.conftest import SCOPE
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

SESSION = "chat-1"


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def primary(body: Body) -> Answer:
    """The agent's model: asks the tool once, then says how many messages it was sent."""
    if body["messages"][-1]["role"] == "user":
        function = {"name": "weather", "arguments": '{"city": "Lisbon"}'}
        return said(None, finish="tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": function}])
    return said(f"Sunny, of {len(body['messages'])} messages.")


def synopsis(body: Body) -> Answer:
    return said(items(("They talk of the weather.", [0, 1])))


async def agent_run(memory: Memory, prompt: str, provider: OpenAIProvider) -> str:
    """Load, summarize if it is due, run, then store only the prompt and the final answer."""
    chat = memory.conversation(SESSION, scope=SCOPE)
    context = await chat.context(prompt, wire="openai.responses", wait=True)
    sent: Any = context.request["input"]
    agent = Agent(name="a", instructions=context.request.get("instructions"), model="big", tools=[weather])
    result = await Runner.run(agent, sent, run_config=RunConfig(model_provider=provider, tracing_disabled=True))
    await chat.append(user(prompt), assistant(result.final_output))
    return result.final_output


async def test_runs_keep_the_prompt_and_the_final_answer(database: str) -> None:
    with Endpoint(primary) as big, Endpoint(synopsis) as small:
        names = {
            "summaryEnabled": True,
            "summaryThreshold": 4,
            "summaryKeepLast": 2,
            "openai": {
                "model": "big",
                "baseURL": big.url,
                "summaryModel": "small",
                "summaryBaseURL": small.url,
            },
        }
        async with hitherto.open(database, **settings_of(names), model_key="none") as memory:
            provider = OpenAIProvider(base_url=big.url, api_key="none", use_responses=False)
            for number in range(4):
                assert (await agent_run(memory, f"Question {number}", provider)).startswith("Sunny")
                await memory.wait_for_digests()
            await provider.aclose()
            chat = memory.conversation(SESSION, scope=SCOPE)
            log = await chat.messages()
            assert [one.message.role.value for one in log] == ["user", "assistant"] * 4, "no tool chatter"
            (listed,) = (await memory.conversations(SCOPE)).conversations
            context = await chat.context(wire="openai.chat")
        await create_views(database)
        async with await psycopg.AsyncConnection.connect(database) as connection:
            query = "select id, summary, summarized_count from other_systems.chat_sessions"
            assert await (await connection.execute(query)).fetchall() == [
                (SESSION, "They talk of the weather.", listed.summarized_count)
            ]
            kept = "select role, content from other_systems.chat_messages where session_id = %s order by seq"
            assert len(await (await connection.execute(kept, [SESSION])).fetchall()) == 8
    assert {one["model"] for one in small.asked} == {"small"}
    assert {one["model"] for one in big.asked} == {"big"}
    assert (listed.summary, listed.summarized_count) == ("They talk of the weather.", 4)
    sent: list[Any] = context.messages
    assert sent[0]["role"] == "system"
    assert "They talk of the weather." in sent[0]["content"]
    assert len(sent) == 5, json.dumps(sent)
