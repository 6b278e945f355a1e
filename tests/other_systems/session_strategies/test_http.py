"""Runs under a memory strategy, at the paths for agents, over real HTTP: what the fourth seed says of its API."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest
from pydantic import TypeAdapter

from hitherto.other_systems.session_strategies.events import EVENTS
from hitherto.providers.scripted import items
from tests.other_systems.served import Service, events_of
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

NAMED = {"Hitherto-Agent": "support"}


def reply(body: Body) -> Answer:
    """Sums up where it is asked to, else says how much it was sent."""
    if body["model"] == "small":
        return said(items(("Ana has a lamp.", [0, 1])))
    last = body["messages"][-1]
    if last["role"] == "user" and "order" in str(last["content"]):
        function = {"name": "get_order", "arguments": '{"number": "4711"}'}
        call = {"id": f"c{len(body['messages'])}", "type": "function", "function": function}
        return said(None, finish="tool_calls", tool_calls=[call])
    return said(f"Of {len(body['messages'])}.")


async def ask(client: httpx.AsyncClient, prompt: str, session: str = "s", **more: Any) -> dict[str, Any]:
    response = await client.post("/agent/run", json={"prompt": prompt, "session_id": session, **more})
    assert response.status_code == 200, response.text
    return response.json()


TRIM = {"max_turns": 3, "keep_last_n_turns": 1}


@pytest.mark.parametrize(
    "asked",
    [
        {"memoryTrimming": TRIM},
        {"memory_strategy": {"memoryTrimming": TRIM}},
        {"memoryStrategy": {"memoryTrimming": TRIM, "memoryInjection": False}},
        {"memory_strategy": "trim:max_turns=3,keep_turns=1", "memory_injection": False},
    ],
    ids=["switch", "switches", "memoryStrategy", "policy"],
)
async def test_trimming_in_all_its_forms(service: Service, model: Endpoint, asked: dict[str, Any]) -> None:
    """The session is trimmed; "we always keep the full raw history in our own database"."""
    async with service.client(user="ana") as client:
        for number in range(4):
            done = await ask(client, f"Question {number}", **asked)
            assert (done["run"]["strategy"], done["run"]["memory_injection"]) == ("trim", False)
        assert len(model.asked[-1]["messages"]) == 3, "the newest turn, and the prompt"
        log = (await client.get("/api/chat/sessions/s/messages")).json()["messages"]
        assert [one["content"] for one in log if one["role"] == "user"] == [f"Question {n}" for n in range(4)]


async def test_precedence(service: Service) -> None:
    """ "request > conversation > agent > none"."""
    async with service.client(user="ana") as client:
        assert (await ask(client, "One."))["run"]["strategy"] == "token_threshold", "the agent's"
        changed = await client.patch("/api/v1/conversations/s", json={"policy": "trim"}, headers=NAMED)
        changed.raise_for_status()
        assert (await ask(client, "Two."))["run"]["strategy"] == "trim"
        assert (await ask(client, "Three.", memoryCompacting=True))["run"]["strategy"] == "redact"
        assert (await ask(client, "Four.", memoryTrimming=False))["run"]["strategy"] == "none"
        assert (await ask(client, "Five."))["run"]["strategy"] == "trim"


async def test_summarization_and_injection(service: Service, model: Endpoint) -> None:
    """ "A summary is loaded and injected into the system instructions" of another session."""
    async with service.client(user="ana") as client:
        limit = {"memorySummarization": {"context_limit": 2, "keep_last_n_turns": 1}}
        for number in range(3):
            await ask(client, f"I have a lamp, {number}.", "s", **limit)
        (await client.post("/api/v1/wait/digests")).raise_for_status()
        assert "Ana has a lamp." in (await client.get("/api/chat/sessions/s")).json()["summary"]
        done = await ask(client, "What do I have?", "new", memoryInjection=True)
        assert done["run"]["memory_injection"]
        system = model.asked[-1]["messages"][0]
        assert system["role"] == "system"
        assert "Cross-session memory: " in system["content"]
        assert "Ana has a lamp." in system["content"]
        done = await ask(client, "And now?", "newer", memory_injection=False)
        assert not done["run"]["memory_injection"]


async def test_the_audit_trail(service: Service) -> None:
    """Tool calls and results are recorded, and streamed as the NDJSON loop writes them."""
    async with service.client(user="ana") as client:
        response = await client.post("/agent/run", json={"prompt": "Where is my order?", "stream": True})
        events = events_of(response.text)
        for event in events:
            TypeAdapter(EVENTS[event["event"]]).validate_python(event, strict=False)
        listed = (await client.get("/api/v1/conversations/default/runs", headers=NAMED)).json()
        assert [one["id"] for one in listed] == [events[-1]["run"]["id"]]
        recorded = (await client.get(f"/api/v1/runs/{listed[0]['id']}/events", headers=NAMED)).json()
        assert [one["kind"] for one in recorded] == ["model_call", "tool_call", "tool_result", "model_call", "message"]
        assert [(one["name"], one["call_id"]) for one in recorded] == [
            (one["name"], one["call_id"]) for one in events[1:-1]
        ]


async def test_compacting(service: Service, model: Endpoint) -> None:
    """ "Replaces tool results with compact placeholders": so there are results."""
    compacting: dict[str, Any] = {"memoryCompacting": {"trigger": {"turns": 1}, "keep": 1}}
    async with service.client(user="ana") as client:
        for _ in range(3):
            await ask(client, "Where is my order?", **compacting)
        sent = [str(one["content"]) for one in model.asked[-1]["messages"] if one["role"] == "tool"]
        assert ["⟦removed" in one for one in sent] == [True, False, False], sent
        log = (await client.get("/api/chat/sessions/s/messages")).json()["messages"]
        assert {one["role"] for one in log} == {"user", "assistant"}
