"""The knowledge base's tools (seed 001), called as an agent's framework does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner
from agents.testing import ScriptedModel, assistant_message

from hitherto import Memory, Scope, assistant, token_threshold, user
from hitherto.core.digests.prompts import ArchiveTask
from hitherto.core.prompt import Prompt
from hitherto.integrations.document_tools import DocumentTools, document_tools
from hitherto.integrations.openai_agents import documents as sdk
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.integrations.planner import QUIET, assert_takes, calls
from tests.memories import open_on

ARCHIVED = {
    "summary": "The walrus is called Bruno.",
    "topics": ["names"],
    "entities": ["Bruno"],
    "decisions": ["Call the walrus Bruno"],
    "questions": [],
}
ANOTHER = replace(SCOPE, agent="another")


def reply(prompt: Prompt) -> str:
    return json.dumps(ARCHIVED) if isinstance(prompt.task, ArchiveTask) else items("They named the walrus.")


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    """An archived conversation of another agent, and a document of the user's own; another user has one too."""
    async with open_on(store, model=Scripted(then=reply)) as opened:
        policy = token_threshold(threshold=40, keep_messages=2, archive=True)
        chat = opened.conversation("session_123", scope=ANOTHER, policy=policy)
        asked = [user(f"How shall we call the walrus, number {n}?") for n in range(3)]
        await chat.append(*(one for question in asked for one in (question, assistant("Bruno, I think."))))
        await opened.wait_for_digests()
        await opened.documents(SCOPE).add("# Alarm\nThe alarm code is 4711.", metadata={"source": "handbook"})
        theirs = opened.documents(replace(SCOPE, user="somebody else"))
        await theirs.add("The alarm code is 9999, and the walrus is called Bruno.")
        await opened.wait_for_index()
        yield opened


async def test_search_gives_passages_with_where_they_are_from(memory: Memory) -> None:
    tools = document_tools(memory, SCOPE)
    found = await tools.search_knowledge_base(query="how is the walrus called?", search_type="conversations", limit=5)
    first = found[0]
    assert first["content"].startswith("The walrus is called Bruno.\n"), "without headings"
    assert 0 <= first["score"] <= 1
    assert first["doc_type"] == "conversation"
    assert first["metadata"]["session_id"] == "session_123"
    assert first["metadata"]["agent_id"] == "another"
    assert first["metadata"]["decisions_made"] == ["Call the walrus Bruno"]
    json.dumps(found)


@pytest.mark.parametrize(
    ("search_type", "types"),
    [
        ("conversations", {"conversation"}),
        ("conversation", {"conversation"}),
        ("Conversations", {"conversation"}),
        ("document", {"document"}),
        ("all", {"conversation", "document"}),
        ("nonsense", set()),
    ],
)
async def test_both_tools_know_types(memory: Memory, search_type: str, types: set[str]) -> None:
    tools = DocumentTools(memory, SCOPE)
    found = await tools.search_knowledge_base("alarm code of the walrus", search_type, 20)
    assert {one["doc_type"] for one in found} == types
    listed = await tools.list_documents(search_type, 20)
    assert {one["doc_type"] for one in listed} == types


async def test_documents_are_listed_newest_first(memory: Memory) -> None:
    listed = await document_tools(memory, SCOPE).list_documents()
    assert listed[0]["title"] == "Alarm"
    assert listed[0]["metadata"] == {"source": "handbook"}
    assert listed[1]["namespace"] == "conversations:u-17"
    assert "9999" not in json.dumps(listed), "another user's"
    assert len(await document_tools(memory, SCOPE).list_documents(limit=1)) == 1
    long = await memory.documents(SCOPE).add("word " * 400)
    (newest,) = await document_tools(memory, SCOPE).list_documents("document", 1)
    assert newest["document_id"] == long.id
    assert len(newest["content"]) <= 301


async def test_the_schemas_are_those_of_the_functions(memory: Memory) -> None:
    tools = document_tools(memory, SCOPE)
    by_name = {one["function"]["name"]: one["function"]["parameters"] for one in tools.schemas}
    assert list(by_name) == ["search_knowledge_base", "list_documents"]
    for name, parameters in by_name.items():
        assert_takes(getattr(tools, name), parameters)
    for tool in sdk.document_tools(memory, SCOPE):
        assert tool.params_json_schema == by_name[tool.name]
    tools.schemas.clear()
    assert len(tools.schemas) == 2, "a copy of one's own"


# In the OpenAI Agents SDK


async def ran(tools: list[Any], call: Any, context: Any = None) -> Any:
    """What the tool's output was, as the model got it."""
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    agent = Agent(name="planner", instructions="Look it up.", model=model, tools=tools)
    done = await Runner.run(agent, "What is it?", context=context, run_config=QUIET)
    assert done.final_output == "Done."
    assert model.last_call is not None
    output = next(item for item in model.last_call.input if item.get("type") == "function_call_output")
    return output["output"]


async def test_an_agent_searches(memory: Memory) -> None:
    call = calls("search_knowledge_base", "call_1", query="alarm code")
    output = await ran(sdk.document_tools(memory, SCOPE), call)
    found = json.loads(output)
    assert "4711" in found[0]["content"]
    assert "9999" not in output


async def test_one_pair_of_tools_serves_many_users(memory: Memory) -> None:
    def whose(context: RunContextWrapper[Any]) -> Scope:
        return replace(SCOPE, user=context.context)

    tools = sdk.document_tools(memory, whose)
    call = calls("search_knowledge_base", "call_1", query="alarm code")
    assert "4711" in await ran(tools, call, SCOPE.user)
    assert "9999" in await ran(tools, call, "somebody else")


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("list_documents", {"limit": "many"}, "limit is 'many'; give a whole number"),
        ("list_documents", {"doc_type": 3}, "3 is no type of documents; give one as text"),
        ("search_knowledge_base", {"query": "code", "search_type": 3}, "3 is no type of documents; give one as text"),
        ("search_knowledge_base", {}, "query is None; give what to look for"),
    ],
)
async def test_a_wrong_argument_is_told_to_the_model(memory: Memory, tool: str, given: Any, says: str) -> None:
    assert says in await ran(sdk.document_tools(memory, SCOPE), calls(tool, "call_1", **given))
