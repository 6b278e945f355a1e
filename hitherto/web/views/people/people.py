"""People: users, and the agents with whom they talk."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.core.log.conversations import ScopeCounts
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import Visit, Visiting

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50


@dataclass(frozen=True)
class Row:
    """A user, perhaps with an agent, and what is kept of them; None where the visitor is no operator."""

    user: str
    agent: str
    counts: ScopeCounts | None


@router.get("/{tenant}/people")
async def people(visit: Visiting, *, user: str = "", agent: str = "", cursor: str = "") -> Response:
    """The users, or the agents of one `user`. With an `agent` too, on to the facts of both."""
    user = visit.caller.user(user or None) or ""
    if user and agent:
        return visit.to(path(visit.tenant, "people", user, agent))
    rows, beyond = await (_all if visit.may("admin") else _spoken)(visit, user, cursor)
    return await visit.page("people/people.html", rows=rows, next=beyond, user=user, agent=agent)


async def _all(visit: Visit, user: str, cursor: str) -> tuple[list[Row], str | None]:
    """By name, a page of them. Only operators may list them."""
    of = {"tenant": visit.tenant, "user": user or None, "cursor": cursor or None}
    found = await visit.memory.scopes("agent" if user else "user", **of, limit=PAGE)
    return [Row(user or one.name, one.name if user else "", one) for one in found.scopes], found.next


async def _spoken(visit: Visit, user: str, _: str) -> tuple[list[Row], None]:
    """Those of the conversations in which something was said last."""
    found = await visit.memory.conversations(tenant=visit.tenant, user=user or None, limit=PAGE)
    pairs = dict.fromkeys((one.scope.user, one.scope.agent) for one in found.conversations)
    return [Row(user, agent, None) for user, agent in pairs], None
