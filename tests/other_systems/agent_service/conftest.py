"""Agents from configurations, and an endpoint that remembers what its requests say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hitherto import Memory
from hitherto.other_systems.agent_service import Provider, configure_agents
from hitherto.other_systems.agent_service import setup as agents_setup
from hitherto.other_systems.agent_service.setup import AgentSetup
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.memories import open_on
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


@pytest.fixture
async def memory(store: Store) -> AsyncIterator[Memory]:
    async with open_on(store, **ONE_TRY) as opened:
        yield opened


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with Endpoint(remembers, path=None) as started:
        yield started


@pytest.fixture(autouse=True)
def afterwards() -> Iterator[None]:
    yield
    agents_setup._CURRENT.clear()


def configured(memory: Memory, endpoint: Endpoint, *configurations: dict[str, Any], **options: Any) -> AgentSetup:
    provider = Provider(kind="azure", base_url=endpoint.root, api_key="none", api_version="2024-10-21")
    there = {"azure_openai_cc": provider, "openai": Provider(base_url=endpoint.url, api_key="none")}
    return configure_agents(memory, tenant="acme", configurations=configurations, providers=there, **options)


def sent(endpoint: Endpoint) -> list[str]:
    return [str(one.get("content")) for one in endpoint.asked[-1]["messages"]]
