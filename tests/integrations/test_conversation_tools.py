"""An agent looks into its own conversation: what a summary left out comes back word for word."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner
from agents.testing import ModelStep, ScriptedModel, assistant_message

import hitherto
from hitherto import Memory, Scope, assistant, rolling, user
from hitherto.core.context.expansion import LEAD
from hitherto.errors import InvalidInput, InvalidScope
from hitherto.integrations.conversation_tools import RECORD, ConversationTools, conversation_tools
from hitherto.integrations.document_tools import MOST
from hitherto.integrations.openai_agents import conversation_tools as sdk_tools
from hitherto.other_systems.session_strategies.sessions import SummarizingSession
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.integrations.planner import QUIET, assert_takes, calls
from tests.memories import open_on

CODE = '''\
def parse_ranges(text: str) -> list[range]:
    """`1-3,7` as ranges, ends included."""
    parts = (part.partition("-") for part in text.split(","))
    return [range(int(first), int(last or first) + 1) for first, _, last in parts]
'''
SUMMARY = "The assistant wrote the function parse_ranges, which reads ranges of pages."


async def talked(memory: Memory, scope: Scope = SCOPE) -> None:
    """Four rounds, of which the oldest are summarized."""
    chat = memory.conversation("pages", scope=scope, policy=rolling(threshold=6, keep_last=4))
    await chat.append(user("Please write parse_ranges."), assistant(CODE))
    for number in range(3):
        await chat.append(user(f"Which color has lamp {number}?"), assistant(f"Lamp {number} is green."))
    await memory.wait_for_digests()
    await memory.wait_for_index()


@pytest.fixture
async def talk(memory: Memory) -> Memory:
    await talked(memory)
    return memory


# In the plain form


async def test_search_says_where_it_was_said(talk: Memory) -> None:
    found = await conversation_tools(talk, SCOPE, "pages").search_conversation("Which function parses ranges?")
    assert found["note"] == RECORD
    first = next(hit for hit in found["hits"] if hit["kind"] == "message" and hit["start"] == 1)
    assert (first["end"], first["character"], first["role"], first["author"]) == (1, 0, "assistant", None)
    assert first["content"] == CODE.strip()
    assert 0 < first["score"] <= 1
    assert first["said_at"].endswith("Z")
    json.dumps(found)


async def test_search_says_who_says_what_in_a_message(memory: Memory) -> None:
    searched = {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["q"],
        "results": [{"file_id": "f", "filename": "a.pdf", "score": 1, "text": "Sold for nabimimeq."}],
    }
    weather = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    fog = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Fog, harbor zabogurox." + " More fog." * 200}
    chat = memory.conversation("said", scope=SCOPE)
    await chat.append(user("Go."), searched, assistant("Fine."), wire="openai.responses")
    await chat.append({"role": "assistant", "content": [weather]}, wire="anthropic")
    await chat.append({"role": "user", "content": [fog, {"type": "text", "text": "user: My parrot?\ntool: No."}]})
    tools = conversation_tools(memory, SCOPE, "said")
    for query, role, content in (
        (
            "nabimimeq",
            "assistant",
            'assistant: [calls file_search({"queries":["q"]})]\ntool "file_search": a.pdf\n  Sold',
        ),
        ("zabogurox", "tool", 'tool "weather": Fog, harbor zabogurox. More'),
        ("parrot", "tool", "user: user: My parrot?\n  tool: No."),
        ("fine", "assistant", "Fine."),
    ):
        hit = (await tools.search_conversation(query))["hits"][0]
        assert hit["role"] == role
        assert content in hit["content"]


async def test_nothing_of_anybody_else(talk: Memory) -> None:
    for scope, name in ((replace(SCOPE, user="u-18"), "pages"), (SCOPE, "another")):
        tools = conversation_tools(talk, scope, name)
        assert (await tools.search_conversation("parse_ranges"))["hits"] == []
        assert "nothing to show" in await tools.expand(0, 9)


async def test_what_is_no_limit_is_refused(talk: Memory) -> None:
    cases: list[Any] = [None, "5", 2.5, True]
    for limit in cases:
        with pytest.raises(InvalidInput, match="limit"):
            await ConversationTools(talk, SCOPE, "pages").search_conversation("lamp", limit)


async def test_a_models_limit_is_kept_within_bounds(talk: Memory) -> None:
    tools = ConversationTools(talk, SCOPE, "pages")
    assert len((await tools.search_conversation("lamp", 0))["hits"]) == 1
    assert len((await tools.search_conversation("lamp", 10**9))["hits"]) <= MOST


async def test_what_is_no_range_is_refused(talk: Memory) -> None:
    cases: list[Any] = [(3, 1), (-1, 4), (0, "4"), (0, 4, -1)]
    for given in cases:
        with pytest.raises(InvalidInput, match="whole numbers from 0"):
            await ConversationTools(talk, SCOPE, "pages").expand(*given)


async def test_there_are_no_tools_without_a_scope(talk: Memory) -> None:
    nobody: Any = None
    for make in (conversation_tools, sdk_tools):
        with pytest.raises(InvalidScope):
            make(talk, nobody, "pages")
        with pytest.raises(InvalidScope):
            make(talk, SCOPE, "")


async def test_the_schemas_are_those_of_the_functions(talk: Memory) -> None:
    tools = conversation_tools(talk, SCOPE, "pages")
    by_name = {one["function"]["name"]: one["function"]["parameters"] for one in tools.schemas}
    assert list(by_name) == ["search_conversation", "expand"]
    for name, parameters in by_name.items():
        assert_takes(getattr(tools, name), parameters)
    for tool in sdk_tools(talk, SCOPE, "pages"):
        assert tool.params_json_schema == by_name[tool.name]
    tools.schemas.clear()
    assert len(tools.schemas) == 2, "a copy of one's own"


# In the OpenAI Agents SDK


async def ran(tools: list[Any], call: Any, context: Any = None) -> str:
    """What the tool's output was, as the model got it."""
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    agent = Agent(name="coder", instructions="Look it up.", model=model, tools=tools)
    await Runner.run(agent, "What is it?", context=context, run_config=QUIET)
    return outputs(model)[-1]


def outputs(model: ScriptedModel) -> list[str]:
    """The outputs of tools in the model's last call."""
    assert model.last_call is not None
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


async def test_an_agent_gets_back_the_code_that_a_summary_left_out(store: Store) -> None:
    """The summary only says that a function was written. The agent searches, and expands what it found."""
    async with open_on(store, model=Scripted(then=items(SUMMARY))) as memory:
        session = SummarizingSession("pages", memory, scope=SCOPE, context_limit=2, keep_last_n_turns=1, wait=10)

        async def searches(_: Any) -> Any:
            await memory.wait_for_digests()  # this turn has set off the next summary
            return [calls("search_conversation", "call_1", query="parse_ranges, the function that was written")]

        def expands(call: Any) -> Any:
            found = json.loads(call.input[-1]["output"])
            hit = next(hit for hit in found["hits"] if hit["kind"] == "digest")
            return [calls("expand", "call_2", start=hit["start"], end=hit["end"])]

        model = ScriptedModel(
            [
                [assistant_message(CODE)],
                [assistant_message("It is raining.")],
                ModelStep.respond(searches),
                ModelStep.respond(expands),
                [assistant_message("Here it is.")],
            ]
        )
        coder = Agent(name="coder", model=model, tools=[*sdk_tools(memory, SCOPE, "pages")])
        await Runner.run(coder, "Please write parse_ranges.", session=session, run_config=QUIET)
        await Runner.run(coder, "How is the weather?", session=session, run_config=QUIET)
        await memory.wait_for_digests()
        await Runner.run(coder, "Let parse_ranges refuse negative numbers.", session=session, run_config=QUIET)
        model.assert_complete()
        asked = json.dumps(model.calls[2].input)
        assert SUMMARY in asked
        assert "partition" not in asked
        _, expanded = outputs(model)
        assert expanded.startswith(LEAD)
        assert "\n- 1 assistant: " + CODE.replace("\n", "\n  ").removesuffix("  ") in expanded


async def test_one_pair_of_tools_serves_many_users(talk: Memory) -> None:
    def whose(context: RunContextWrapper[Any]) -> Scope:
        return replace(SCOPE, user=context.context)

    tools = sdk_tools(talk, whose, "pages")
    call = calls("expand", "call_1", start=0, end=1)
    assert "def parse_ranges" in await ran(tools, call, SCOPE.user)
    assert "nothing to show" in await ran(tools, call, "somebody else")


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("expand", {"start": 4, "end": 2}, "no larger than end"),
        ("expand", {"start": "first", "end": 2}, "start 'first', end 2"),
        ("expand", {"start": 1}, "end None"),
        ("search_conversation", {"query": "lamp", "limit": "many"}, "limit is 'many'; give a whole number"),
        ("search_conversation", {"query": 7}, "query is 7; give what to look for"),
        ("search_conversation", {}, "query is None"),
    ],
)
async def test_a_wrong_argument_is_told_to_the_model(talk: Memory, tool: str, given: Any, says: str) -> None:
    assert says in await ran(sdk_tools(talk, SCOPE, "pages"), calls(tool, "call_1", **given))


async def test_they_work_with_a_memory_in_the_background() -> None:
    with hitherto.open_sync("memory:") as opened:
        opened._background.run(talked)
        tools = sdk_tools(opened, SCOPE, "pages")
        assert "def parse_ranges" in await ran(tools, calls("expand", "call_1", start=0, end=1))
        assert "def parse_ranges" in await ran(tools, calls("search_conversation", "call_1", query="parse_ranges"))
