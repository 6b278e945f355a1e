"""`run_agent` for these tests: an agent with tools, and an endpoint that gives the answers it is told."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import OpenAIProvider, function_tool

from hitherto import Memory
from hitherto.integrations.openai_agents import AgentSpec, run_agent
from tests.conftest import SCOPE
from tests.providers.models.endpoint import Answer, Body, Endpoint, said


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@function_tool
def broken() -> str:
    """Fails."""
    raise RuntimeError("the sensor is gone")


@function_tool(failure_error_function=None)
def fatal() -> str:
    """Fails for good."""
    raise RuntimeError("the sensor burns")


@function_tool
def large() -> str:
    """A megabyte."""
    return "word " * 200_000


@function_tool
def raw() -> bytes:
    """Bytes."""
    return b"\x00\xff"


@function_tool(timeout=0.05)
async def hanging() -> str:
    """Never ends."""
    await asyncio.sleep(3_600)
    return ""


TOOLS = [weather, broken, fatal, large, raw, hanging]


def calls(name: str, arguments: str = "{}", id: str = "c1") -> Answer:
    function = {"name": name, "arguments": arguments}
    return said(None, finish="tool_calls", tool_calls=[{"id": id, "type": "function", "function": function}])


def texts(body: Body) -> list[str]:
    return [str(one["content"]) for one in body["messages"]]


class Agents:
    """Runs an agent on a conversation, asking an endpoint that gives these answers."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.events: list[dict[str, Any]] = []
        self.asked: list[Body] = []

    async def __call__(
        self, message: Any, *answers: Any, spec: AgentSpec | None = None, name: str = "c", **options: Any
    ) -> Any:
        self.events = []
        with Endpoint(*answers) as endpoint:
            provider = OpenAIProvider(base_url=endpoint.url, api_key="none", use_responses=False)
            try:
                return await run_agent(
                    self.memory,
                    spec or AgentSpec(name="helper", model="small", tools=TOOLS),
                    message,
                    scope=SCOPE,
                    conversation=name,
                    on_event=lambda event: self.events.append(dict(event)),
                    model_provider=provider,
                    **options,
                )
            finally:
                self.asked = endpoint.asked
                await provider.aclose()

    async def runs(self, name: str = "c") -> list[Any]:
        return await self.memory.runs(SCOPE).list(name)
