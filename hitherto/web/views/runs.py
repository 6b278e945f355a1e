"""What an agent did: its runs in a conversation, and the events of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast
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

PAGE, LOOKED_AT = 20, 100
"""Runs of a page, and events of each among which errors are counted."""
EVENTS = 200

_ABSURD = 10**12
"""Tokens that no call has."""
_LONGEST = 10_000
"""Characters of a result that is looked at for an error."""


@dataclass(frozen=True)
class Timed:
    """An event, what it says as text (None: it is erased), whether it tells of an error, how long after the run began
    it was recorded, and how long a tool took from a call to its result (None for other events), in units of the
    timeline too."""

    event: RunEvent
    text: str | None
    error: bool
    after: timedelta
    lasted: timedelta | None
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
    """The runs of a conversation, the newest first, with how many of their events tell of an error."""
    of = visit.memory.runs(visit.chat.scope)
    listed = await of.list(visit.chat.id, before=before, limit=PAGE)
    looked_at = [await of.events(one.id, limit=LOOKED_AT) if one.events else () for one in listed]
    errors = [(sum(map(is_error, events)), len(events)) for events in looked_at]
    info = await visit.chat.info()
    if info is None and not listed:
        raise NotFound("there is no such conversation")
    rows = [*zip(listed, errors, strict=True)]
    return await visit.page("runs.html", info=info, listed=rows, more=len(listed) == PAGE)


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/runs/{run}")
async def run(visit: InConversation, run: UUID, *, after: int = -1) -> Response:
    """The events of a run on a line of time."""
    of = visit.memory.runs(visit.chat.scope)
    found = await of.get(run)
    if found is None or found.conversation != visit.chat.id:
        raise NotFound("there is no such run in this conversation")
    events = await of.events(run, after=after, limit=EVENTS)
    more = bool(events) and bool(await of.events(run, after=events[-1].no, limit=1))
    calls = [one for one in map(_call, events) if one is not None]
    return await visit.page(
        "run.html",
        info=await visit.chat.info(),
        run=found,
        events=timed(found, events),
        more=more,
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
    """The events with their times."""
    if not events:
        return []
    end = max([one.created_at for one in events] + ([run.ended_at] if run.ended_at else []))
    scale = WIDTH / max((end - run.started_at).total_seconds(), 1e-6)
    found = list[Timed]()
    for at, one in enumerate(events):
        after, result = one.created_at - run.started_at, _result(one, events[at + 1 :])
        lasted = None if result is None else max(result.created_at - one.created_at, timedelta())
        width = 0.0 if lasted is None else lasted.total_seconds() * scale
        text = one.payload if one.raw is not None and one.raw.startswith('"') else one.raw
        found.append(Timed(one, text, is_error(one), after, lasted, after.total_seconds() * scale, max(width, 2)))
    return found


def _result(call: RunEvent, later: Sequence[RunEvent]) -> RunEvent | None:
    """The result of a tool call among the events after it."""
    if call.kind is not EventKind.TOOL_CALL:
        return None
    results = (one for one in later if one.kind is EventKind.TOOL_RESULT)
    return next((one for one in results if (one.call_id, one.name) == (call.call_id, call.name)), None)


def is_error(event: RunEvent) -> bool:
    """Whether it is an error, or the result of a tool that says that it is one: by `error` or `is_error`, or in its
    first words."""
    if event.kind is not EventKind.TOOL_RESULT or event.raw is None or len(event.raw) > _LONGEST:
        return event.kind is EventKind.ERROR
    said = event.payload
    if isinstance(said, str) and said.startswith("{"):
        said = _object(said) or said
    if isinstance(said, Mapping):
        answer = cast("Mapping[str, Any]", said)
        return bool(answer.get("error") or answer.get("is_error"))
    return isinstance(said, str) and said.lstrip().lower().startswith(("error", "an error occurred"))


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None
