"""The examples of the documentation of agents with memory, as they stand there but for the import line, over real
HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import function_tool

from hitherto import CrossSession, Memory, RunStatus, Scope
from hitherto.errors import DatabaseUnavailable, InvalidInput
from hitherto.other_systems.agent_service import APIAgent, register_agent, register_tool
from hitherto.other_systems.settings_aliases import settings_of
from hitherto.store.store import Store
from tests.memories import open_on
from tests.other_systems.agent_service.conftest import BASIC, KNOWLEDGE, configured, sent
from tests.providers.models.endpoint import Endpoint


async def test_basic_memory_enabled_agent(memory: Memory, endpoint: Endpoint) -> None:
    configured(memory, endpoint, {**BASIC, "agent_id": "memory_agent"})

    # Create agent with memory
    agent = APIAgent("memory_agent", "user123", "session456")
    await agent.initialize()

    # Chat with persistent memory
    response1 = await agent.chat("My name is Alice")
    response2 = await agent.chat("What's my name?")
    # Agent remembers "Alice" from previous message

    await agent.cleanup()

    assert response1.startswith("Noted.")
    assert response2 == "Alice"
    assert endpoint.paths[-1].startswith("/openai/deployments/gpt-4o-mini/chat/completions")
    other = APIAgent("memory_agent", "user123", "session789")
    await other.initialize()
    assert await other.chat("What's my name?") == "I do not know."
    await other.cleanup()
    runs = await memory.runs(Scope(tenant="acme", user="user123", agent="memory_agent")).list("session456")
    assert [(one.status, one.strategy) for one in runs] == [(RunStatus.COMPLETED, "token_threshold")] * 2


async def test_memory_with_compression(memory: Memory, endpoint: Endpoint) -> None:
    configured(memory, endpoint)
    # Configure agent with compression
    agent_config = {
        "agent_id": "research_agent",
        "resources": ["memory"],
        "model": "gpt-4.1-mini",
        "resource_config": {
            "memory": {"compression": {"enabled": True, "threshold_tokens": 500, "recent_messages_to_keep": 8}}
        },
    }
    register_agent(agent_config)

    agent = APIAgent("research_agent", "user123", "long_session")
    await agent.initialize()

    # Have a long conversation
    for i in range(12):
        await agent.chat(f"Research topic {i}")
        await memory.wait_for_digests()

    # Compression happens automatically when threshold is reached
    # Recent messages preserved, older messages summarized
    history = await agent.load_memory()
    assert history[0]["role"] == "system"
    assert history[-1]["role"] == "assistant"
    assert history[-2]["content"] == "Research topic 11"
    assert 9 <= len(history) < 24
    assert sent(endpoint)[-1] == "Research topic 11"
    assert len(sent(endpoint)) < 22
    assert len(await agent.memory.messages() if agent.memory else []) == 24, "nothing is lost"
    await agent.cleanup()


async def test_cross_session_memory(memory: Memory, endpoint: Endpoint) -> None:
    config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
    config["resource_config"]["knowledge_base"]["relevance_threshold"] = 0.1
    configured(memory, endpoint, {**config, "agent_id": "knowledge_agent"})

    # Session 1: Initial conversation
    agent1 = APIAgent("knowledge_agent", "user123", "session1")
    await agent1.initialize()

    await agent1.chat("I'm building a REST API with authentication")
    await agent1.chat("Planning to use JWT tokens with 1-hour expiration")
    await agent1.cleanup()
    await memory.wait_for_index()

    # Session 2: Reference past conversation
    agent2 = APIAgent("knowledge_agent", "user123", "session2")
    await agent2.initialize()

    # This triggers cross-session context search
    response = await agent2.chat("What did we discuss about authentication?")
    # Agent automatically includes relevant context from session1

    assert response == "JWT tokens."
    assert {one["function"]["name"] for one in endpoint.asked[-1]["tools"]} == {
        "search_knowledge_base",
        "list_documents",
    }
    await agent2.chat("Thank you")
    assert not any("JWT" in text for text in sent(endpoint)[:-2] if "JWT tokens." not in text), "without a trigger"
    await agent2.cleanup()
    stranger = APIAgent("knowledge_agent", "another", "session2")
    await stranger.initialize()
    assert await stranger.chat("What did we discuss about authentication?") == "Nothing."
    await stranger.cleanup()


async def test_custom_memory_configuration(memory: Memory, endpoint: Endpoint) -> None:
    configured(memory, endpoint)
    # Agent with custom compression and archival settings
    memory_config = {
        "agent_id": "custom_agent",
        "resources": ["memory", "knowledge_base"],
        "resource_config": {
            "memory": {
                "compression": {
                    "enabled": True,
                    "threshold_tokens": 12000,
                    "recent_messages_to_keep": 15,
                    "archive_conversations": True,
                }
            },
            "knowledge_base": {
                "enable_cross_session_context": True,
                "relevance_threshold": 0.8,
                "search_triggers": ["remind me", "we talked about", "previous session"],
            },
        },
    }
    register_agent(memory_config)

    agent = APIAgent("custom_agent", "user123", "session789")
    await agent.initialize()
    # Agent will compress at 12k tokens, keep 15 recent messages,
    # archive to knowledge base, and provide cross-session context
    assert agent.policy is not None
    (stage,) = agent.policy.to_json()["stages"]
    assert stage["trigger"]["n"] == 12_000
    assert stage["keep"]["k"] == 15
    assert (stage["action"]["archive"], stage["action"]["passage_tokens"]) == (True, 800)
    assert agent.knowledge_base is not None
    assert agent.cross_session == CrossSession(
        triggers=True,
        search_triggers=("remind me", "we talked about", "previous session"),
        relevance_threshold=0.8,
    )
    await agent.cleanup()


async def test_memory_persistence(memory: Memory, endpoint: Endpoint) -> None:
    """Saving by hand around a chat stores nothing twice."""
    configured(memory, endpoint, BASIC)
    agent = APIAgent("memory_enabled_agent", "user123", "s")
    await agent.initialize()

    # Memory is automatically saved after each exchange
    user_message = "My name is Alice"
    await agent.save_memory("user", user_message)
    response = await agent.chat(user_message)
    await agent.save_memory("assistant", response)

    # Memory is automatically loaded when agents process requests
    conversation_history = await agent.load_memory()
    assert conversation_history == [
        {"role": "user", "content": "My name is Alice"},
        {"role": "assistant", "content": response},
    ]
    await agent.save_memory("assistant", response)
    assert len(await agent.load_memory()) == 3, "what is saved once more is meant"
    await agent.save_memory("system", "Be brief.")

    # API agents support clearing conversation history
    count = await agent.clear_conversation()
    # Returns number of messages cleared
    assert count == 4
    assert await agent.load_memory() == []
    assert await agent.chat("What's my name?") == "I do not know."
    with pytest.raises(InvalidInput, match="role is 'tool'"):
        await agent.save_memory("tool", "x")
    await agent.cleanup()


async def test_archived_conversations_are_searched(memory: Memory, endpoint: Endpoint) -> None:
    config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
    config["resource_config"]["memory"]["compression"] |= {"threshold_tokens": 300, "recent_messages_to_keep": 2}
    configured(memory, endpoint, config)
    agent = APIAgent("knowledge_memory_agent", "user123", "s")
    await agent.initialize()
    for number in range(5):
        await agent.chat(f"The authentication discussion, part {number}")
        await memory.wait_for_digests()
    await memory.wait_for_index()
    base = agent.knowledge_base
    assert base is not None
    found = await base.search("authentication discussion", search_type="conversations", limit=5)
    assert found[0]["doc_type"] == "conversation"
    assert (await base.list_documents(doc_type="conversations", limit=10))[0]["metadata"]["session_id"] == "s"
    await agent.cleanup()


async def test_without_resources(memory: Memory, endpoint: Endpoint) -> None:
    configured(memory, endpoint, {"agent_id": "plain", "model": "m"})
    agent = APIAgent("plain", "user123", "s")
    await agent.initialize()
    assert (agent.wants_memory(), agent.wants_knowledge_base()) == (False, False)
    assert (agent.memory, agent.knowledge_base) == (None, None)
    await agent.chat("My name is Alice")
    await agent.save_memory("user", "x")
    assert await agent.chat("What's my name?") == "I do not know."
    assert (await agent.load_memory(), await agent.clear_conversation()) == ([], 0)
    assert (await memory.conversations(tenant="acme")).conversations == ()
    await agent.cleanup()


async def test_tools_of_the_application(memory: Memory, endpoint: Endpoint) -> None:
    @function_tool
    def order(number: int) -> str:
        """An order."""
        return f"order {number}"

    configured(memory, endpoint, {**BASIC, "allowed_regular_tools": ["order"]}, tools=[order])
    agent = APIAgent("memory_enabled_agent", "u", "s")
    await agent.initialize()
    await agent.chat("Hello")
    assert [one["function"]["name"] for one in endpoint.asked[-1]["tools"]] == ["order"]
    await agent.cleanup()
    register_tool(order)
    with pytest.raises(InvalidInput, match="did you mean 'order'"):
        register_agent({**BASIC, "allowed_regular_tools": ["ordr"]})


# What is unavailable


def away() -> Any:
    """A verb of a store that is away."""

    async def refusing(*_: Any, **__: Any) -> Any:
        raise DatabaseUnavailable("the database is away")

    return refusing


async def test_an_unavailable_memory(store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_on(store, worker=False) as memory:
        configured(memory, endpoint, BASIC)
        agent = APIAgent("memory_enabled_agent", "u", "s")
        await agent.initialize()
        monkeypatch.setattr(store, "head", away())
        monkeypatch.setattr(store, "defaults", away())
        assert await agent.load_memory() == []
        assert (await agent.chat("Hello")).startswith("Noted.")
        late = APIAgent("memory_enabled_agent", "u", "s")
        await late.initialize()
        assert late.memory is None
        assert (await late.chat("Hello")).startswith("Noted.")
        for failing in (late.save_memory("user", "x"), late.run("Hello")):
            with pytest.raises(DatabaseUnavailable):
                await failing
        monkeypatch.undo()
        await agent.cleanup()
        await late.cleanup()


@pytest.mark.parametrize("away_from", ["begin", "add", "end"])
async def test_a_database_that_goes_away_while_it_answers(
    store: Store, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, away_from: str
) -> None:
    async with open_on(store, worker=False) as memory:
        configured(memory, endpoint, BASIC)
        agent = APIAgent("memory_enabled_agent", "u", "s")
        await agent.initialize()
        with monkeypatch.context() as patched:
            patched.setattr(store.runs, away_from, away())
            assert (await agent.chat("Hello")).startswith("Noted.")
        await agent.cleanup()


@pytest.mark.parametrize(
    ("names", "compression"),
    [
        ({}, {"enabled": False}),
        ({}, {"threshold_tokens": 5_000}),
        ({"summaryEnabled": False}, None),
        ({"summaryEnabled": True, "summaryThreshold": 40}, None),
    ],
    ids=["compression off", "late compression", "summaries off", "a late summary"],
)
async def test_what_is_cut_and_in_no_summary_is_said(
    store: Store,
    endpoint: Endpoint,
    caplog: pytest.LogCaptureFixture,
    names: dict[str, Any],
    compression: dict[str, Any] | None,
) -> None:
    async with open_on(store, budget=600, **settings_of(names)) as memory:
        resources = {} if compression is None else {"resource_config": {"memory": {"compression": compression}}}
        configured(memory, endpoint, {**BASIC, **resources})
        agent = APIAgent("memory_enabled_agent", "u", "s")
        await agent.initialize()
        told = list[int]()
        for _ in range(8):
            caplog.clear()
            await agent.chat("Hello.")
            told.append("in no summary" in caplog.text)
        assert (told[0], told[-1]) == (False, True)
        await agent.cleanup()
