"""A run and its events as JSON, as `hitherto agent --stdio` and the service tell them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from hitherto import Run

Write = Callable[[dict[str, Any]], None]


class RunObject(BaseModel):
    """A run. `end` is null as long as it runs, and if no message belongs to it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    status: Literal["running", "completed", "failed"]
    strategy: str | None
    memory_injection: bool
    start: int
    end: int | None
    freed: int
    events: int
    started_at: datetime
    ended_at: datetime | None


def run_json(run: Run) -> dict[str, Any]:
    """The run as a `RunObject` in JSON."""
    return {
        "id": str(run.id),
        "status": run.status.value,
        "strategy": run.strategy,
        "memory_injection": run.injection,
        "start": run.start,
        "end": run.end,
        "freed": run.freed,
        "events": run.events,
        "started_at": run.started_at.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
    }


def run_started(session_id: str) -> dict[str, Any]:
    return {"event": "run_started", "session_id": session_id}


def run_detail(one: Mapping[str, Any]) -> dict[str, Any]:
    """What `OnEvent` is called with."""
    return {"event": one["kind"], "name": one["name"], "call_id": one["call_id"], "payload": one["payload"]}


def run_completed(output: object, run: Run | None) -> dict[str, Any]:
    return {"event": "run_completed", "output": str(output), "run": None if run is None else run_json(run)}


def failed(error: BaseException, event: str = "run_failed") -> dict[str, Any]:
    """A run, or another command, has failed."""
    kind = type(error).__name__
    return {"event": event, "message": str(error) or kind, "type": kind}
