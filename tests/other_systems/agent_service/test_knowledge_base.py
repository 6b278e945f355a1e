"""The embedder and the reranker of an agent's knowledge base."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from hitherto import Memory
from hitherto.errors import InvalidInput, InvalidSettings
from hitherto.other_systems.agent_service import BaseAgent, KnowledgeBaseResource, Provider, configure_agents
from hitherto.store.store import Store
from tests.memories import open_on
from tests.other_systems.agent_service.conftest import KNOWLEDGE, configured
from tests.providers.models.endpoint import Answer, Body, Endpoint, said


async def test_another_embedder_is_refused(store: Store, endpoint: Endpoint) -> None:
    async with open_on(store) as memory:
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
        as_json: dict[str, Any] = {"relevance_threshold": 0.5, "embedding_model": "wordllama"}
        await KnowledgeBaseResource("kb", as_json, scope=agent.scope).initialize()
        with pytest.raises(
            InvalidInput, match="relevance_treshold is not a known key; did you mean 'relevance_threshold'"
        ):
            KnowledgeBaseResource("kb", {"relevance_treshold": 0.5})
        with pytest.raises(InvalidInput, match="give a JSON object"):
            KnowledgeBaseResource("kb", cast(Any, ["kb"]))
        made.set_embedding_provider(Provider(kind="azure"), None)
        with pytest.raises(InvalidSettings, match=r"an embedder of 'azure', and names no model; the memory has"):
            await made.initialize()
        config["resource_config"]["knowledge_base"] |= {"embedding_provider": "azure_openai_c"}
        with pytest.raises(InvalidInput, match="there is no provider 'azure_openai_c'"):
            configured(memory, endpoint, config)


async def test_the_memorys_embedder_is_taken(store: Store, endpoint: Endpoint) -> None:
    """The seed's knowledge base, on a memory with the embedder that it names."""
    embedder: dict[str, Any] = {
        "embedder": "text-embedding-ada-002",
        "embedder_provider": "azure",
        "embedder_base_url": endpoint.root,
    }
    async with open_on(store, embedder_key="none", embedder_dimensions=8, **embedder) as memory:
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


async def test_a_reranker_of_ones_own(store: Store) -> None:
    """The provider and the model that a configuration names put what is found in another order."""

    def backwards(body: Body) -> Answer:
        count = str(body["messages"]).count("[")
        return said(", ".join(str(number) for number in range(count, 0, -1)))

    with Endpoint(backwards, path=None) as endpoint:
        async with open_on(store) as memory:
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


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("openai", {"OPENAI_BASE_URL": "url", "OPENAI_API_KEY": "key"}),
        ("azure_openai_cc", {"AZURE_OPENAI_ENDPOINT": "root", "AZURE_OPENAI_API_KEY": "key"}),
        ("ollama", {"OLLAMA_BASE_URL": "url"}),
    ],
)
async def test_a_reranker_is_where_the_environment_says(
    memory: Memory, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, kind: str, names: dict[str, str]
) -> None:
    """As the agent's own model is: passages go nowhere else."""
    config: dict[str, Any] = json.loads(json.dumps(KNOWLEDGE))
    config["resource_config"]["knowledge_base"] |= {"rerank_provider": kind, "rerank_model": "small"}
    setup = configure_agents(memory, tenant="acme", configurations=[config])
    agent = BaseAgent("knowledge_memory_agent", "u", "s", setup=setup)
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    if kind != "ollama":
        with pytest.raises(InvalidInput, match="api_key"):
            await agent.initialize()
    for name, what in names.items():
        monkeypatch.setenv(name, "sesame" if what == "key" else getattr(endpoint, what))
    await agent.initialize()
    for text in ("The first on tokens.", "The second on tokens."):
        await memory.documents(agent.scope).add(text)
    await memory.wait_for_index()
    assert agent.knowledge_base is not None
    assert len(await agent.knowledge_base.search("tokens")) == 2
    assert endpoint.asked[-1]["model"] == "small"
    assert ("2024-10-21" in endpoint.paths[-1]) == (kind == "azure_openai_cc")
    await agent.cleanup()
