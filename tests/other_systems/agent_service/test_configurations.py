"""Configurations of agents: where they come from, what is wrong in them, and what they are put on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto import CrossSession, Memory
from hitherto.errors import InvalidInput, NotFound
from hitherto.other_systems.agent_files import digest_model
from hitherto.other_systems.agent_service import (
    AgentConfiguration,
    APIAgent,
    Provider,
    configure_agents,
    register_agent,
    register_tool,
)
from hitherto.store.store import Store
from tests.memories import open_on
from tests.other_systems.agent_service.conftest import BASIC, KNOWLEDGE, configured
from tests.providers.models.endpoint import Endpoint


def test_a_folder_of_configurations(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(BASIC))
    (tmp_path / "more.json").write_text(json.dumps([KNOWLEDGE]))
    (tmp_path / "notes.txt").write_text("not one")
    from hitherto.other_systems.agent_service.configuration import read_folder

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


async def test_what_is_not_there(store: Store, endpoint: Endpoint) -> None:
    with pytest.raises(InvalidInput, match="configure_agents"):
        APIAgent("x", "u", "s")
    with pytest.raises(InvalidInput, match="open memory"):
        configure_agents("memory:", tenant="acme")  # pyright: ignore[reportArgumentType]
    async with open_on(store) as memory:
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
    await memory.configure_agent(tenant="acme", agent="memory_enabled_agent", cross_session=CrossSession(latest=True))
    configured(memory, endpoint, BASIC)
    agent = APIAgent("memory_enabled_agent", "u", "s")
    await agent.initialize()
    assert agent.cross_session == CrossSession(latest=True)
    await agent.cleanup()


async def test_a_second_setup_is_for_later_agents(store: Store, endpoint: Endpoint) -> None:
    async with open_on(store) as first, hitherto.open("memory:") as second:
        configured(first, endpoint, {**KNOWLEDGE})
        agent = APIAgent("knowledge_memory_agent", "u", "s")
        configured(second, endpoint, {**KNOWLEDGE})
        await agent.initialize()
        await agent.save_memory("user", "Hello.")
        assert len((await first.conversations(tenant="acme")).conversations) == 1
        assert (await second.conversations(tenant="acme")).conversations == ()


async def test_the_settings_policy_where_nothing_is_configured(store: Store, endpoint: Endpoint) -> None:
    """Also for an agent that had a policy of its own before."""
    for policy, applies in ((None, "token_threshold"), ("rolling", "rolling")):
        async with open_on(store, policy=policy) as memory:
            provider = Provider(base_url=endpoint.url, api_key="none")
            configure_agents(memory, tenant="acme", configurations=[BASIC], providers={"azure_openai_cc": provider})
            agent = APIAgent("memory_enabled_agent", "u", "s")
            await agent.initialize()
            assert agent.memory is not None
            assert (await agent.governing() or await agent.memory.policy()).name == applies
            register_agent({**BASIC, "resource_config": {"memory": {}}})
            agent = APIAgent("memory_enabled_agent", "u", "s")
            await agent.initialize()
            assert agent.policy is not None
            assert agent.policy.name == "token_threshold"


async def test_what_another_process_is_configured_with_changes_nothing(store: Store, endpoint: Endpoint) -> None:
    """One has a policy in its settings, and one has none; both run the same agent of the same tenant."""
    async with open_on(store) as plain, open_on(store, policy="rolling") as rolling:
        agents = [
            APIAgent("memory_enabled_agent", "u", "s", setup=configured(one, endpoint, BASIC))
            for one in (plain, rolling)
        ]
        for agent in reversed(agents):
            await agent.initialize()
        for _ in range(2):
            for agent, applies in zip(agents, ("token_threshold", "rolling"), strict=True):
                run = (await agent.run("Hello.")).run
                assert run is not None
                assert run.strategy == applies
        await plain.configure_agent(tenant="acme", agent="memory_enabled_agent", policy="trim")
        for agent in agents:
            await agent.initialize()
            run = (await agent.run("Hello.")).run
            assert run is not None
            assert run.strategy == "trim", "what is stored for the agent is for every process"
            await agent.cleanup()


@pytest.mark.parametrize("given", ["model", "model_key", "model_provider", "model_base_url"])
def test_a_key_of_the_settings_goes_to_no_address_of_an_agent(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """The agent's own model makes the digests only where the settings say nothing of a model."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-agent")
    one = AgentConfiguration.read(BASIC | {"provider": "openai", "model": "small"}, "the configuration")
    own = {"model": "small", "model_provider": "openai", "model_base_url": "http://127.0.0.1:9/v1"}
    assert digest_model(one, {"budget": 1_000}) == own | {"model_key": "sk-agent"}
    assert digest_model(one, {given: "said"}) == {}
