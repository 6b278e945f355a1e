"""Agents of the OpenAI Agents SDK for these tests: real runners and tools, a model that says what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from hitherto.core.log.message import Logged
from hitherto.integrations.openai_agents import HithertoSession

Item = dict[str, Any]

QUIET = RunConfig(tracing_disabled=True)
LONG = "Lisbon in May: " + ", ".join(f"{day} May sunny, 24 degrees" for day in range(1, 31))


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: {LONG}"


@function_tool(needs_approval=True)
def book(hotel: str) -> str:
    """Books a hotel; a person has to agree."""
    return f"booked {hotel}"


def says(text: str) -> Any:
    return assistant_message(text)


def calls(tool: str, call_id: str, **arguments: Any) -> Any:
    return function_call(tool, arguments, call_id=call_id)


def planner(steps: Sequence[Any], **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    """An agent with tools whose model answers with `steps`, one each."""
    model = ScriptedModel(steps=steps)
    return Agent(name="planner", model=model, tools=[weather, book], **options), model


async def dialogue(session: HithertoSession, turns: int, *, tools: bool = False, start: int = 0) -> list[Item]:
    """So many runs with the session; returns what the model was sent last. With `tools`, each calls one first."""
    sent: list[Item] = []
    for turn in range(start, start + turns):
        steps = [[calls("weather", f"call_{turn}", city=f"City {turn}")]] if tools else []
        agent, model = planner([*steps, [says(f"Answer {turn}")]])
        await Runner.run(agent, f"Question {turn}", session=session, run_config=QUIET)
        model.assert_complete()
        assert model.last_call is not None
        sent = model.last_call.input
    return sent


def questions(items: Sequence[Any]) -> list[str]:
    """The user's texts among the items, in order."""
    return [text(item) for item in items if item.get("role") == "user"]


def text(item: Any) -> str:
    """The readable content of a message item."""
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def kinds(items: Sequence[Any]) -> list[str]:
    """What the items are, in order: a role or a type."""
    return [item.get("role") or item["type"] for item in items]


def payloads(log: Sequence[Logged]) -> list[Item]:
    return [logged.message.payload for logged in log]


def assert_no_orphans(items: Sequence[Any]) -> None:
    """Each result among the items has its call before it, and each call its result."""
    called: set[str] = set()
    answered: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call"):
            called.add(item["call_id"])
        if kind.endswith("_call_output"):
            assert item["call_id"] in called, f"a result without its call: {json.dumps(item)[:200]}"
            answered.add(item["call_id"])
    assert called == answered, f"calls without a result: {called - answered}"


def assert_takes(function: Callable[..., Any], parameters: dict[str, Any]) -> None:
    """The function has the schema's parameters, in order, with their types and defaults. Of a strict schema, those that
    may be null are None by default."""
    types: dict[str, Any] = {"string": str, "integer": int, "boolean": bool}
    given: dict[str, tuple[Any, Any]] = {}
    for name, of in parameters["properties"].items():
        if isinstance(of["type"], list):
            given[name] = types[of["type"][0]] | None, None
        else:
            given[name] = types[of["type"]], of.get("default", Parameter.empty)
    found = signature(function, eval_str=True).parameters
    assert {name: (one.annotation, one.default) for name, one in found.items()} == given
    assert list(found) == list(given)
    optional = {name for name, (_, default) in given.items() if default not in (None, Parameter.empty)}
    assert parameters["required"] == [name for name in given if name not in optional]
