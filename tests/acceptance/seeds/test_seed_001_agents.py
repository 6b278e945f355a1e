"""The examples of the documentation of agents with memory, as they stand there but for the import line, over real
HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import function_tool

import hitherto
from hitherto import Memory, RunStatus, Scope
from hitherto.errors import DatabaseUnavailable, InvalidInput, InvalidSettings, NotFound
from hitherto.integrations.agents import (
    AgentConfiguration,
    APIAgent,
    BaseAgent,
    KnowledgeBaseResource,
    Provider,
    configure_agents,
    register_agent,
    register_tool,
)
from hitherto.integrations.agents import setup as agents_setup
from hitherto.stores.in_memory.store import InMemoryStore
from tests.acceptance.dialogue import ONE_TRY
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

BASIC = {
    "agent_id": "memory_enabled_agent",
    "resources": ["memory"],
    "provider": "azure_openai_cc",
    "model": "gpt-4o-mini",
}
KNOWLEDGE = {
    "agent_id": "knowledge_memory_agent",
    "resources": ["memory", "knowledge_base"],
    "provider": "azure_openai_cc",
    "model": "gpt-4o-mini",
    "allowed_regular_tools": ["search_knowledge_base", "list_documents"],
    "resource_config": {
        "memory": {
            "compression": {
                "enabled": True,
                "threshold_tokens": 8000,
                "recent_messages_to_keep": 10,
                "archive_conversations": True,
            }
        },
        "knowledge_base": {
            "vector_provider": "pgvector",
            "chunk_size": 800,
            "chunk_overlap": 100,
            "enable_cross_session_context": True,
            "relevance_threshold": 0.7,
            "search_triggers": [
                "what did we discuss",
                "previous conversation",
                "last time",
                "remind me",
                "we mentioned",
                "earlier you said",
            ],
        },
    },
}


def remembers(body: Body) -> Answer:
    """Knows what the request says, and nothing else."""
    texts = [str(one.get("content")) for one in body["messages"]]
    if "What's my name?" in texts[-1]:
        return said("Alice" if any("My name is Alice" in text for text in texts[:-1]) else "I do not know.")
    if "What did we discuss" in texts[-1]:
        return said("JWT tokens." if any("JWT" in text for text in texts[:-1]) else "Nothing.")
    return said(f"Noted. {'So it is. ' * 30}")


@pytest.fixture(params=["inmemory", "postgres"])
async def memory(
    request: pytest.FixtureRequest, make_database: Callable[[], Coroutine[Any, Any, str]]
) -> AsyncIterator[Memory]:
    database = "memory:" if request.param == "inmemory" else await make_database()
    async with hitherto.open(database, **ONE_TRY) as opened:
        yield opened


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with Endpoint(remembers, path=None) as started:
        yield started


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    agents_setup._CURRENT.clear()


def configured(memory: Memory, endpoint: Endpoint, *configurations: dict[str, Any], **options: Any) -> None:
    provider = Provider(kind="azure", base_url=endpoint.root, api_key="none", api_version="2024-10-21")
    there = {"azure_openai_cc": provider, "openai": Provider(base_url=endpoint.url, api_key="none")}
    configure_agents(memory, tenant="acme", configurations=configurations, providers=there, **options)


def sent(endpoint: Endpoint) -> list[str]:
    return [str(one.get("content")) for one in endpoint.asked[-1]["messages"]]


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
    assert agent.memory is not None
    policy = (await agent.memory.policy()).to_json()
    (stage,) = policy["stages"]
    assert stage["trigger"]["n"] == 12_000
    assert stage["keep"]["k"] == 15
    assert (stage["action"]["archive"], stage["action"]["passage_tokens"]) == (True, 800)
    assert agent.knowledge_base is not None
    made = agent.knowledge_base.memory
    assert made is not None
    settings = made._services.settings
    assert (settings.relevance_threshold, settings.search_triggers[1]) == (0.8, "we talked about")
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


class Failing(InMemoryStore):
    """Away as long as `away`."""

    away = False

    async def head(self, *given: Any, **options: Any) -> Any:
        if self.away:
            raise DatabaseUnavailable("the database is away")
        return await super().head(*given, **options)

    async def defaults(self, *given: Any, **options: Any) -> Any:
        if self.away:
            raise DatabaseUnavailable("the database is away")
        return await super().defaults(*given, **options)


async def test_an_unavailable_memory(endpoint: Endpoint) -> None:
    store = Failing()
    await store.open()
    async with hitherto.open(store=store, worker=False) as memory:
        configured(memory, endpoint, BASIC)
        agent = APIAgent("memory_enabled_agent", "u", "s")
        await agent.initialize()
        store.away = True
        assert await agent.load_memory() == []
        with pytest.raises(DatabaseUnavailable):
            await agent.chat("Hello")
        late = APIAgent("memory_enabled_agent", "u", "s")
        await late.initialize()
        assert late.memory is None
        assert (await late.chat("Hello")).startswith("Noted.")
        for failing in (late.save_memory("user", "x"), late.run("Hello")):
            with pytest.raises(DatabaseUnavailable):
                await failing
        store.away = False
        await agent.cleanup()
        await late.cleanup()


# Configurations


def test_a_folder_of_configurations(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(BASIC))
    (tmp_path / "more.json").write_text(json.dumps([KNOWLEDGE]))
    (tmp_path / "notes.txt").write_text("not one")
    from hitherto.integrations.agents.configuration import read_folder

    assert [one.agent_id for one in read_folder(tmp_path)] == ["knowledge_memory_agent", "memory_enabled_agent"]
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InvalidInput, match=r"broken\.json"):
        read_folder(tmp_path)
    with pytest.raises(InvalidInput, match="there is no folder"):
        read_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=r"no configuration in .*empty; put a \.json file"):
        read_folder(tmp_path / "empty")


def test_defaults() -> None:
    config = AgentConfiguration.read(BASIC).resource_config
    assert config.memory.compression.model_dump() == {
        "enabled": True,
        "threshold_tokens": 10_000,
        "recent_messages_to_keep": 10,
        "archive_conversations": False,
    }
    base = config.knowledge_base
    assert (base.chunk_size, base.chunk_overlap, base.relevance_threshold) == (800, 100, 0.7)
    assert base.enable_cross_session_context is False
    assert "remind me" in base.search_triggers


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("agent_id", None, "agent_id"),
        ("agent_id", "", "agent_id"),
        ("agent_id", "x" * 10**6, "agent_id"),
        ("resource", ["memory"], "did you mean 'resources'"),
        ("resources", ["memorry"], "resources.0"),
        ("resources", "memory", "resources"),
        ("provider", 7, "provider"),
        ("model", "", "model"),
        ("resource_config.memory.compresion", {}, "did you mean 'compression'"),
        ("resource_config.memory.compression.treshold_tokens", 5, "did you mean 'threshold_tokens'"),
        ("resource_config.memory.compression.threshold_tokens", 0, "threshold_tokens"),
        ("resource_config.memory.compression.threshold_tokens", "8000", "threshold_tokens"),
        ("resource_config.memory.compression.threshold_tokens", 10**30, "threshold_tokens"),
        ("resource_config.memory.compression.recent_messages_to_keep", -1, "recent_messages_to_keep"),
        ("resource_config.memory.compression.enabled", "yes", "enabled"),
        ("resource_config.knowledge_base.vector_provider", "faiss", "pgvector"),
        ("resource_config.knowledge_base.chunk_overlap", 900, "cannot share"),
        ("resource_config.knowledge_base.relevance_threshold", 1.5, "relevance_threshold"),
        ("resource_config.knowledge_base.search_triggers", "remind me", "search_triggers"),
        ("resource_config.knowledge_base.rerank_model", "m", "rerank_provider"),
        ("resource_config.knowledge_base.surch_triggers", [], "did you mean 'search_triggers'"),
    ],
)
def test_wrong_configurations(path: str, value: Any, told: str) -> None:
    config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
    *parents, last = path.split(".")
    part = config
    for name in parents:
        part = part[name]
    part[last] = value
    with pytest.raises(InvalidInput, match=told) as found:
        AgentConfiguration.read(config)
    assert len(str(found.value)) < 1_000
    assert (path == "agent_id") or "of 'knowledge_memory_agent': " in str(found.value)


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_what_is_no_configuration(value: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON object"):
        AgentConfiguration.read(value)


async def test_what_is_not_there(in_memory: Any, endpoint: Endpoint) -> None:
    with pytest.raises(InvalidInput, match="configure_agents"):
        APIAgent("x", "u", "s")
    with pytest.raises(InvalidInput, match="open memory"):
        configure_agents("memory:", tenant="acme")  # pyright: ignore[reportArgumentType]
    async with hitherto.open(store=in_memory) as memory:
        with pytest.raises(InvalidInput, match="configured twice"):
            configured(memory, endpoint, BASIC, BASIC)
        with pytest.raises(InvalidInput, match="there is no provider 'azure_openai_c'; did you mean"):
            configured(memory, endpoint, {**BASIC, "provider": "azure_openai_c"})
        configured(memory, endpoint, BASIC, {"agent_id": "modelless"})
        with pytest.raises(NotFound, match="did you mean 'memory_enabled_agent'"):
            APIAgent("memory_enabled_agnt", "u", "s")
        agent = APIAgent("modelless", "u", "s")
        for early in (agent.chat("Hello"), agent.save_memory("user", "lost")):
            with pytest.raises(InvalidInput, match="is not initialized"):
                await early
        await agent.initialize()
        with pytest.raises(InvalidInput, match="a tool is 'x'"):
            register_tool("x")  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="has no knowledge base"):
            register_agent({**BASIC, "allowed_regular_tools": ["list_documents"]})
        with pytest.raises(InvalidInput, match="AZURE_OPENAI_ENDPOINT"):
            Provider(kind="azure", api_key="k").client()
        with pytest.raises(InvalidInput, match="names no model"):
            await agent.chat("Hello")


async def test_what_is_set_for_the_agent_stays(memory: Memory, endpoint: Endpoint) -> None:
    await memory.configure_agent(tenant="acme", agent="memory_enabled_agent", memory_injection=True)
    configured(memory, endpoint, BASIC)
    agent = APIAgent("memory_enabled_agent", "u", "s")
    await agent.initialize()
    stored = await memory._services.store.defaults(tenant="acme", agent="memory_enabled_agent")
    assert (stored.cross_session.latest, stored.cross_session.triggers) == (True, None)
    await agent.cleanup()


async def test_a_second_setup_is_for_later_agents(in_memory: Any, endpoint: Endpoint) -> None:
    async with hitherto.open(store=in_memory) as first, hitherto.open("memory:") as second:
        configured(first, endpoint, {**KNOWLEDGE})
        agent = APIAgent("knowledge_memory_agent", "u", "s")
        configured(second, endpoint, {**KNOWLEDGE})
        await agent.initialize()
        await agent.save_memory("user", "Hello.")
        assert len((await first.conversations(tenant="acme")).conversations) == 1
        assert (await second.conversations(tenant="acme")).conversations == ()


async def test_another_embedder_is_refused(in_memory: Any, endpoint: Endpoint) -> None:
    async with hitherto.open(store=in_memory) as memory:
        config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
        config["resource_config"]["knowledge_base"]["embedding_model"] = "text-embedding-ada-002"
        configured(memory, endpoint, config)
        agent = BaseAgent("knowledge_memory_agent", "u", "s")
        with pytest.raises(InvalidSettings, match="vectors of two cannot be compared"):
            await agent.initialize()
        made = KnowledgeBaseResource("kb", agent.configuration.resource_config.knowledge_base, scope=agent.scope)
        made.set_embedding_provider(None, "wordllama")
        await made.initialize()
        assert await made.search("anything") == []
        made.set_embedding_provider(Provider(kind="azure"), None)
        with pytest.raises(InvalidSettings, match=r"an embedder of 'azure', and names no model; the memory has"):
            await made.initialize()
        config["resource_config"]["knowledge_base"] |= {"embedding_provider": "azure_openai_c"}
        with pytest.raises(InvalidInput, match="there is no provider 'azure_openai_c'"):
            configured(memory, endpoint, config)


async def test_the_memorys_embedder_is_taken(in_memory: Any, endpoint: Endpoint) -> None:
    """The seed's knowledge base, on a memory with the embedder that it names."""
    embedder: dict[str, Any] = {
        "embedder": "text-embedding-ada-002",
        "embedder_provider": "azure",
        "embedder_base_url": endpoint.root,
    }
    async with hitherto.open(store=in_memory, embedder_key="none", embedder_dimensions=8, **embedder) as memory:
        for model in ("text-embedding-ada-002", None):
            config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
            config["resource_config"]["knowledge_base"] |= {
                "embedding_provider": "azure_openai_cc",
                "embedding_model": model,
            }
            configured(memory, endpoint, config)
            agent = BaseAgent("knowledge_memory_agent", "u", "s")
            await agent.initialize()
            assert agent.knowledge_base is not None
            await agent.cleanup()


async def test_a_reranker_of_ones_own(in_memory: Any) -> None:
    """The provider and the model that a configuration names put what is found in another order."""

    def backwards(body: Body) -> Answer:
        count = str(body["messages"]).count("[")
        return said(", ".join(str(number) for number in range(count, 0, -1)))

    with Endpoint(backwards, path=None) as endpoint:
        async with hitherto.open(store=in_memory) as memory:
            config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
            config["resource_config"]["knowledge_base"] |= {"rerank_provider": "openai", "rerank_model": "gpt-4o-mini"}
            configured(memory, endpoint, config)
            agent = BaseAgent("knowledge_memory_agent", "u", "s")
            await agent.initialize()
            for text in ("The first on tokens.", "The second on tokens."):
                await memory.documents(agent.scope).add(text)
            await memory.wait_for_index()
            base = agent.knowledge_base
            assert base is not None
            assert len(await base.search("tokens")) == 2
            assert endpoint.asked[-1]["model"] == "gpt-4o-mini"
            await agent.cleanup()


async def test_the_settings_policy_where_nothing_is_configured(in_memory: Any, endpoint: Endpoint) -> None:
    """Also for an agent that had a policy of its own before."""
    for policy, applies in ((None, "token_threshold"), ("rolling", "rolling")):
        async with hitherto.open(store=in_memory, policy=policy) as memory:
            provider = Provider(base_url=endpoint.url, api_key="none")
            configure_agents(memory, tenant="acme", configurations=[BASIC], providers={"azure_openai_cc": provider})
            agent = APIAgent("memory_enabled_agent", "u", "s")
            await agent.initialize()
            assert agent.memory is not None
            assert (await agent.memory.policy()).name == applies
            register_agent({**BASIC, "resource_config": {"memory": {}}})
            agent = APIAgent("memory_enabled_agent", "u", "s")
            await agent.initialize()
            assert agent.memory is not None
            assert (await agent.memory.policy()).name == "token_threshold"
