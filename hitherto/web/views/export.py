"""Exporting what is kept of the tenant, of a user, or of a user with an agent, as a file."""

from __future__ import annotations

from urllib.parse import quote
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Request
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.engine.memory import Memory
from hitherto.http.server.callers import needs
from hitherto.http.server.streams import exported
from hitherto.limiter import FairLimiter
from hitherto.web.visit import HEADERS, Visit, Visiting

router = APIRouter(dependencies=[needs(Right.ADMIN)])

DOWNLOAD = "/export"
"""Where the files are. The gate lets an answer from there take any time."""

_TURNS = WeakKeyDictionary[Memory, FairLimiter]()


@router.get("/{tenant}/export")
async def export(visit: Visiting, *, user: str = "", agent: str = "") -> Response:
    """How much an export would have, and the link to it."""
    if user:
        found = await visit.memory.scopes("agent" if agent else "user", tenant=visit.tenant, user=user, limit=1_000)
    else:
        found = await visit.memory.scopes("tenant", tenant=visit.tenant, limit=1)
    kept = [one for one in found.scopes if not (user and agent) or one.name == agent]
    return await visit.page("export.html", kept=kept[0] if kept else None, user=user, agent=agent)


@router.get(DOWNLOAD)
async def download(request: Request, tenant: str, *, user: str = "", agent: str = "") -> Response:
    """The file, as it is written."""
    visit = Visit(request, tenant)
    turns = _TURNS.setdefault(visit.memory, FairLimiter(2, most=1))
    answer = await exported(request, turns, tenant=visit.tenant, user=user or None, agent=agent or None)
    name = quote("-".join(filter(None, ("hitherto", tenant, user, agent))) + ".jsonl", safe="")
    answer.headers.update(HEADERS)
    answer.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{name}"
    return answer
