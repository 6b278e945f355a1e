"""The events that the loop writes, for their JSON Schemas: `docs/agent-stdio.schema.json` has them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from hitherto.other_systems.session_strategies.commands import COMMANDS
from hitherto.other_systems.session_strategies.run_events import RunObject

Kind = Literal["model_call", "tool_call", "tool_result", "message", "freed", "error"]


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SessionObject(_Object):
    """A session as it is listed."""

    session_id: str
    title: str | None
    messages: int
    summary: str | None
    updated_at: datetime


class MessageObject(_Object):
    """A message of the log."""

    seq: int
    role: str
    kind: str
    content: str
    created_at: datetime


class _Event(_Object):
    id: str | int | None = Field(description="The command's; null where it had none.")


class RunStartedEvent(_Event):
    """A run begins, or is shown once more."""

    event: Literal["run_started"]
    session_id: str


class RunDetailEvent(_Event):
    """What happened in a run. `payload` is null once a message of the run is erased."""

    event: Kind
    name: str | None
    call_id: str | None
    payload: Any


class RunCompletedEvent(_Event):
    """A run has answered. `run` is null if it was deleted meanwhile, or its end could not be recorded."""

    event: Literal["run_completed"]
    output: str
    run: RunObject | None


class RunReplayedEvent(_Event):
    """All events of a run have been shown."""

    event: Literal["run_replayed"]
    run: RunObject


class FailedEvent(_Event):
    """A run, or another command, has failed: its last event."""

    event: Literal["run_failed", "command_failed"]
    message: str
    type: str


class StrategyEvent(_Event):
    """What a session's runs show of its memory: the policy's name and its JSON. Without `memory_injection` the agent's
    applies, or the setting's."""

    event: Literal["strategy"]
    session_id: str
    strategy: str
    policy: dict[str, Any]
    memory_injection: bool | None


class SessionsEvent(_Event):
    """A page of sessions. `next` is the cursor of the next page."""

    event: Literal["sessions"]
    sessions: list[SessionObject]
    next: str | None


class HistoryEvent(_Event):
    """The newest messages of a session's log, oldest first, and its runs, the last begun first."""

    event: Literal["history"]
    session_id: str
    messages: list[MessageObject]
    runs: list[RunObject]


class ClearedEvent(_Event):
    """A session begins anew. `messages` is how many it cleared."""

    event: Literal["cleared"]
    session_id: str
    messages: int


class HelpEvent(_Event):
    """The JSON Schemas of commands and events, by their names."""

    event: Literal["help"]
    commands: dict[str, Any]
    events: dict[str, Any]


EVENTS: dict[str, Any] = {
    "run_started": RunStartedEvent,
    **dict.fromkeys(("model_call", "tool_call", "tool_result", "message", "freed", "error"), RunDetailEvent),
    "run_completed": RunCompletedEvent,
    "run_replayed": RunReplayedEvent,
    "run_failed": FailedEvent,
    "command_failed": FailedEvent,
    "strategy": StrategyEvent,
    "sessions": SessionsEvent,
    "history": HistoryEvent,
    "cleared": ClearedEvent,
    "help": HelpEvent,
}
"""The type of each event. An `error` stands within a run, which goes on to its end or to `run_failed`."""


def schemas() -> dict[str, Any]:
    """The JSON Schema of each command and of each event."""
    return {
        "commands": {name: kind.model_json_schema() for name, kind in COMMANDS.items()},
        "events": {name: TypeAdapter(kind).json_schema() for name, kind in EVENTS.items()},
    }
