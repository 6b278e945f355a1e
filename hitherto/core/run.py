"""Runs: what an agent did to answer, event by event, beside the log. An audit trail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from hitherto.core.log.message import LONGEST_CALL_ID, PAYLOAD, JsonText, shallow_json, storable
from hitherto.core.log.ranges import Ranges, any_in
from hitherto.core.scope import LONGEST_NAME
from hitherto.errors import InvalidMessage


class RunStatus(StrEnum):
    """The state of a run. One whose process ended before it did stays `running`."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class EventKind(StrEnum):
    """What happened. `freed`: tokens left what the model sees, by a digest or by a policy that drops or redacts."""

    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    MESSAGE = "message"
    FREED = "freed"
    ERROR = "error"

    @property
    def quotes(self) -> bool:
        """Whether its payload may have what messages say. Such payloads are erased with the messages."""
        return self not in (EventKind.MODEL_CALL, EventKind.FREED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of an agent in a conversation. `strategy` is the name of the policy that it ran under, `injection`
    whether the newest digest of another conversation was in its instructions. `start` and `end` (inclusive) are the
    messages that belong to it; `end` is None as long as it runs, and if there are none. `freed` are the tokens that
    left what the model sees during the run; `events` is how many events it has."""

    id: UUID
    conversation: str
    strategy: str | None
    injection: bool
    start: int
    end: int | None
    status: RunStatus
    freed: int
    events: int
    started_at: datetime
    ended_at: datetime | None

    def has(self, some: Ranges) -> bool:
        """Whether any message of `some` belongs to it."""
        end = some[-1][1] if some and self.status is RunStatus.RUNNING else self.end
        return end is not None and any_in(some, self.start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be recorded. `name` is the tool or the model, `call_id` the tool call's, `raw` the payload's JSON
    text."""

    kind: EventKind
    name: str | None
    call_id: str | None
    raw: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """An event of a run; `no` counts them from 0. `raw` is None if it was erased with a message of the run."""

    no: int
    kind: EventKind
    name: str | None
    call_id: str | None
    raw: Annotated[JsonText | None, PAYLOAD]
    created_at: datetime

    @property
    def payload(self) -> Any:
        """The payload, parsed anew at each access; None if it was erased."""
        return None if self.raw is None else json.loads(self.raw)


def new_event(kind: EventKind, payload: object, *, name: str | None = None, call_id: str | None = None) -> NewEvent:
    """An event with that payload. Raises InvalidMessage for a payload that is not JSON, or is nested deeper than 100
    levels, and for a name of more than 200 or a call id of more than 10,000 characters."""
    for what, value, most in (("name", name, LONGEST_NAME), ("call_id", call_id, LONGEST_CALL_ID)):
        if value is not None and len(value) > most:
            raise InvalidMessage(f"an event's {what} has {len(value):,} characters; at most {most:,} are kept")
    return NewEvent(
        kind=kind,
        name=None if name is None else storable(name),
        call_id=None if call_id is None else storable(call_id),
        raw=shallow_json(payload, what="an event's payload"),
    )
