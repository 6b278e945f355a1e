"""What the tools of a run may do: fail, hang, and answer with what JSON cannot hold."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from agents import ToolOutputImage, ToolOutputText, function_tool

from hitherto import EventKind
from hitherto.integrations.openai_agents import AgentSpec, tool_timeout
from hitherto.integrations.openai_agents.recorder import json_of
from tests.conftest import SCOPE
from tests.integrations.running import Agents, calls, texts
from tests.providers.models.endpoint import said


@function_tool
async def stuck() -> str:
    """Never ends, and says of no timeout."""
    await asyncio.sleep(3_600)
    return ""


RELEASED = threading.Event()


@function_tool
def blocked() -> str:
    """Likewise, in a thread."""
    RELEASED.wait(60)
    return ""


@dataclass
class Station:
    name: str
    seen: datetime
    picture: bytes


@function_tool
def rich() -> list[Any]:
    """All that the SDK takes."""
    station = Station("Belém", datetime(2026, 5, 1, tzinfo=UTC), b"\x00\xff")
    return [ToolOutputText(text="Sunny."), ToolOutputImage(image_url="data:,x"), {"of": (station,)}]


@pytest.mark.parametrize(
    ("tool", "payload"),
    [("broken", "An error occurred"), ("hanging", "timed out"), ("raw", "2 bytes"), ("large", "word word")],
)
async def test_what_tools_may_do(agents: Agents, tool: str, payload: str) -> None:
    outcome = await agents("Look.", calls(tool), said("Done."), budget=2_000)
    assert outcome.output == "Done."
    result = next(one for one in agents.events if one["kind"] == "tool_result")
    assert payload in json.dumps(result["payload"])
    assert "messages" in agents.asked[1]
    assert len(json.dumps(agents.asked[1])) < 12_000
    log = await agents.memory.conversation("c", scope=SCOPE).messages()
    assert len(log) == 4
    assert (tool != "large") or log[2].tokens > 190_000, "the log has all of it"


@pytest.mark.parametrize("tool", [stuck, blocked], ids=lambda tool: tool.name)
async def test_a_tool_that_hangs(agents: Agents, monkeypatch: pytest.MonkeyPatch, tool: Any) -> None:
    """Without a timeout of its own. The model is told, and the run goes on."""
    RELEASED.clear()
    monkeypatch.setattr(tool_timeout, "TOOL_TIMEOUT", 0.05)
    outcome = await agents(
        "Look.", calls(tool.name), said("Never mind."), spec=AgentSpec(name="helper", model="small", tools=[tool])
    )
    RELEASED.set()
    assert outcome.output == "Never mind."
    assert f"'{tool.name}' timed out" in texts(agents.asked[1])[-1]
    assert tool.timeout_seconds is None, "it is the application's"


async def test_rich_results_are_recorded_as_json(agents: Agents) -> None:
    spec = AgentSpec(name="helper", model="small", tools=[rich])
    outcome = await agents("Look.", calls("rich"), said("Sunny."), spec=spec)
    (result,) = [
        one for one in await agents.memory.runs(SCOPE).events(outcome.run.id) if one.kind is EventKind.TOOL_RESULT
    ]
    text, image, station = result.payload
    assert text == {"type": "text", "text": "Sunny."}
    assert (image["type"], image["image_url"]) == ("image", "data:,x")
    assert station == {"of": [{"name": "Belém", "seen": "2026-05-01 00:00:00+00:00", "picture": "⟦2 bytes⟧"}]}


def test_results_that_json_cannot_hold() -> None:
    round_: list[Any] = []
    round_.append(round_)
    for value in (round_, {(1, 2): 3}, float("nan"), {"n": float("inf")}):
        assert json_of(value) == str(value)


def test_results_that_are_nested_too_deep() -> None:
    deep = "[" * 101 + "]" * 101
    assert json_of(json.loads(deep[1:-1])) == json.loads(deep[1:-1])
    assert json_of(json.loads(deep)) == deep
