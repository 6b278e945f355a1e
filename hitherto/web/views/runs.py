"""What an agent did: its runs in a conversation, and the events of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.core.run import EventKind, Run, RunEvent
from hitherto.errors import NotFound
from hitherto.http.server.callers import needs
from hitherto.web.charts import WIDTH, columns_of
from hitherto.web.visit import InConversation

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50
EVENTS = 200

_ABSURD = 10**12
"""Tokens that no call has."""


@dataclass(frozen=True)
class Timed:
    """An event, how long after the run began, and how long until the next one, in units of the timeline too."""

    event: RunEvent
    after: timedelta
    lasted: timedelta
    x: float
    width: float


@dataclass(frozen=True)
class ModelCallTokens:
    """What a provider said of a call: the tokens it was sent, those that its cache had, and those of the answer."""

    event: RunEvent
    sent: int
    cached: int | None
    answered: int | None


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/runs")
async def runs(visit: InConversation, *, before: UUID | None = None) -> Response:
    """The runs of a conversation, the newest first."""
    listed = await visit.memory.runs(visit.chat.scope).list(visit.chat.id, before=before, limit=PAGE)
    return await visit.page("runs.html", listed=listed)


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/runs/{run}")
async def run(visit: InConversation, run: UUID, *, after: int = -1) -> Response:
    """The events of a run on a line of time."""
    of = visit.memory.runs(visit.chat.scope)
    found = await of.get(run)
    if found is None or found.conversation != visit.chat.id:
        raise NotFound("there is no such run in this conversation")
    events = await of.events(run, after=after, limit=EVENTS)
    calls = [one for one in map(_call, events) if one is not None]
    return await visit.page(
        "run.html",
        run=found,
        events=timed(found, events),
        more=len(events) == EVENTS,
        calls=calls,
        chart=columns_of([one.sent for one in calls], parts=[one.cached for one in calls]),
    )


def _call(event: RunEvent) -> ModelCallTokens | None:
    """The tokens of a model call, where its event has them: an application may have recorded anything."""
    payload = event.payload if event.kind is EventKind.MODEL_CALL else None
    given = cast("dict[str, object]", payload) if isinstance(payload, dict) else {}
    sent, cached, answered = (
        value if isinstance(value := given.get(name), int) and 0 <= value < _ABSURD else None
        for name in ("tokens_in", "tokens_cached", "tokens_out")
    )
    return None if sent is None else ModelCallTokens(event, sent, cached, answered)


def timed(run: Run, events: Sequence[RunEvent]) -> list[Timed]:
    """The events with their times; the last one lasts until the run ended."""
    if not events:
        return []
    ends = [one.created_at for one in events[1:]] + [run.ended_at or events[-1].created_at]
    whole = max((max(ends) - run.started_at).total_seconds(), 1e-6)
    return [
        Timed(
            one,
            one.created_at - run.started_at,
            max(end - one.created_at, timedelta()),
            WIDTH * (one.created_at - run.started_at).total_seconds() / whole,
            max(WIDTH * (end - one.created_at).total_seconds() / whole, 2),
        )
        for one, end in zip(events, ends, strict=True)
    ]
