"""Agents with memory, compression and cross-session context, at the paths for agents, over real HTTP: the examples of
the second seed."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx

from hitherto.providers.scripted.model import items
from tests.other_systems.served import served
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

MEMORY = {"agent_id": "memory_agent", "resources": ["memory"], "model": "gpt-4o-mini"}
COMPRESSED = {
    "agent_id": "research_agent",
    "resources": ["memory"],
    "model": "gpt-4o-mini",
    "resource_config": {"memory": {"compression": {"threshold_tokens": 200, "recent_messages_to_keep": 4}}},
}
KNOWLEDGE = {
    "agent_id": "knowledge_agent",
    "resources": ["memory", "knowledge_base"],
    "model": "gpt-4o-mini",
    "allowed_regular_tools": ["search_knowledge_base", "list_documents"],
    "resource_config": {
        "memory": {
            "compression": {"threshold_tokens": 60, "recent_messages_to_keep": 2, "archive_conversations": True}
        },
        "knowledge_base": {"enable_cross_session_context": True, "relevance_threshold": 0.0},
    },
}


def remembers(body: Body) -> Answer:
    """Knows what the request says, and nothing else."""
    texts = [str(one.get("content")) for one in body["messages"]]
    if body["model"] == "small":
        return said(items(("They build a REST API with JWT tokens.", [0, 1])))
    if "What's my name?" in texts[-1]:
        return said("Alice" if any("My name is Alice" in text for text in texts[:-1]) else "I do not know.")
    if "What did we discuss" in texts[-1]:
        return said("JWT tokens." if "JWT" in str(texts) else "Nothing.")
    return said(f"Noted. {'So it is. ' * 10}")


async def ask(client: httpx.AsyncClient, prompt: str, session: str) -> str:
    response = await client.post("/agent/run", json={"prompt": prompt, "session_id": session})
    assert response.status_code == 200, response.text
    return response.json()["output"]


async def test_the_examples(database: str) -> None:
    agents = [MEMORY, COMPRESSED, KNOWLEDGE]
    with Endpoint(remembers) as model, served(database, agents=agents, model=model) as service:
        # "Basic Memory-Enabled Agent", with "Session Isolation".
        async with service.client(user="user123") as client, service.client(user="user124") as other:
            await ask(client, "My name is Alice", "session456")
            assert await ask(client, "What's my name?", "session456") == "Alice"
            assert await ask(client, "What's my name?", "another") == "I do not know."
            assert await ask(other, "What's my name?", "session456") == "I do not know."

        # "Memory with Compression": "recent messages preserved, older messages summarized".
        async with service.client(user="user123", agent="research_agent") as client:
            for number in range(12):
                await ask(client, f"Research topic {number}", "long_session")
            (await client.post("/api/v1/wait/digests")).raise_for_status()
            session: dict[str, Any] = (await client.get("/api/chat/sessions/long_session")).json()
            assert "They build a REST API with JWT tokens." in session["summary"]
            assert session["summarizedCount"] >= 12
            await ask(client, "And now?", "long_session")
            sent = [str(one["content"]) for one in model.asked[-1]["messages"]]
            assert "Research topic 11" in sent[-3]
            assert len(sent) < 16, "older messages are summarized"
            whole = (await client.get("/api/chat/sessions/long_session/messages")).json()["messages"]
            assert len(whole) == 26, "the log keeps everything"

        # "Cross-Session Memory".
        async with service.client(user="user123", agent="knowledge_agent") as client:
            await ask(client, "I'm building a REST API with authentication", "session1")
            await ask(client, "Planning to use JWT tokens with 1-hour expiration", "session1")
            await ask(client, "Thank you.", "session1")
            await client.post("/api/v1/wait/digests")
            await client.post("/api/v1/wait/index")
            assert await ask(client, "What did we discuss about authentication?", "session2") == "JWT tokens."
