"""Records what a run of the SDK does, as events of a run of Hitherto's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any
from uuid import UUID

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks, Tool
from agents.tool_context import ToolContext
from pydantic import BaseModel

from hitherto.core.log.message import RESPONSES, too_deep
from hitherto.core.run import EventKind
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import NotFound
from hitherto.integrations.openai_agents.event_loop import MemoryLoop
from hitherto.logs import logger
from hitherto.wire import codec

log = logger("hitherto.agents")

_RESPONSES = codec(RESPONSES)

OnEvent = Callable[[Mapping[str, Any]], None]
"""Takes an event as it happens: a dict with `kind`, `name`, `call_id` and `payload`."""


class Recorder(RunHooks[Any]):
    """Hooks for `Runner.run(hooks=…)` that record each model call, message, tool call and result in the run `run`.

    A run that is deleted while it goes on, with its conversation, is recorded no further (`deleted`), and the logger
    `hitherto.agents` warns. Other errors of the store end the run. What `on_event` raises is logged.
    """

    def __init__(self, home: MemoryLoop, scope: Scope, run: UUID, *, on_event: OnEvent | None = None) -> None:
        self._home, self._scope, self.run = home, scope, run
        self._on_event = on_event
        self.deleted = False
        self.asked: str | None = None
        """The model that is asked now."""

    async def on_llm_start(
        self, context: RunContextWrapper[Any], agent: Agent[Any], system_prompt: object, input_items: object
    ) -> None:
        self.asked = _model_of(agent)

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        self.asked = None
        usage = response.usage
        tokens = {
            "tokens_in": usage.input_tokens,
            "tokens_cached": usage.input_tokens_details.cached_tokens,
            "tokens_out": usage.output_tokens,
        }
        found: list[dict[str, Any]] = [{"kind": EventKind.MODEL_CALL, "name": _model_of(agent), "payload": tokens}]
        for one in response.to_input_items():
            item: Mapping[str, Any] = dict(one)
            if item.get("type") == "message" or item.get("role") == "assistant":
                found.append({"kind": EventKind.MESSAGE, "payload": _RESPONSES.spoken(_RESPONSES.read(item))})
            elif "call_id" in item or str(item.get("type", "")).endswith("_call"):
                found.append(_called(item))
        await self.add(*found)

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        call = context.tool_call_id if isinstance(context, ToolContext) else None
        event = {"kind": EventKind.TOOL_RESULT, "name": tool.name, "call_id": call, "payload": json_of(result)}
        await self.add(event)

    async def add(self, *events: Mapping[str, Any]) -> None:
        """Record events, and hand them to `on_event`."""

        async def work(memory: Memory) -> None:
            await memory.runs(self._scope).add(self.run, *events)

        if not self.deleted:
            try:
                await self._home.arun(work)
            except NotFound:
                self.deleted = True
                log.warning("The run %s was deleted while it went on, and is recorded no further", self.run)
        if self._on_event is not None:
            for one in events:
                try:
                    self._on_event({"name": None, "call_id": None, **one, "kind": str(one["kind"])})
                except Exception:  # the run does not depend on who watches it
                    log.exception("on_event failed for an event of the run %s", self.run)


def json_of(value: object) -> Any:
    """The value as JSON: pydantic models and dataclasses as objects, bytes as how many they are, what else JSON cannot
    hold as what `str` makes of it, and what is nested too deep for an event as its JSON text."""
    try:
        found = json.loads(text := json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return text if too_deep(found) else found


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(warnings=False)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, bytes | bytearray):
        return f"⟦{len(value):,} bytes⟧"
    return str(value)


def _model_of(agent: Agent[Any]) -> str | None:
    model = agent.model
    return model if isinstance(model, str | None) else getattr(model, "model", None) or type(model).__name__


def _called(item: Mapping[str, Any]) -> dict[str, Any]:
    arguments = item.get("arguments", item.get("input"))
    try:
        payload = json.loads(arguments, parse_constant=str) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        payload = arguments
    name = item.get("name") or str(item.get("type", "")).removesuffix("_call")
    return {"kind": EventKind.TOOL_CALL, "name": name, "call_id": item.get("call_id"), "payload": json_of(payload)}
