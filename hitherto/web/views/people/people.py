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

PAGE, AGENTS = 25, 20
"""Users of a page, and how many agents of each; of one user alone, its agents."""


@dataclass(frozen=True)
class Row:
    """A user with an agent (None: all of them, where there are more than are listed; "" where there is none), and what
    is kept of them; None where the visitor is no operator."""

    user: str
    agent: str | None
    counts: ScopeCounts | None


@router.get("/{tenant}/people")
async def people(visit: Visiting, *, user: str = "", agent: str = "", cursor: str = "") -> Response:
    """The users, or one `user`, each with their agents. With an `agent` too, on to the facts of both."""
    user = visit.user(user)
    if user and agent:
        return visit.to(path(visit.tenant, "people", user, agent))
    rows, beyond = await (_all if visit.may("admin") else _spoken)(visit, user, cursor)
    return await visit.page("people/people.html", rows=rows, next=beyond, user=user, agent=agent)


async def _all(visit: Visit, user: str, cursor: str) -> tuple[list[Row], str | None]:
    """By name, a page of them. Only operators may list them."""
    if user:
        found = await visit.memory.scopes("agent", tenant=visit.tenant, user=user, limit=PAGE, cursor=cursor or None)
        return [Row(user, one.name, one) for one in found.scopes], found.next
    users = await visit.memory.scopes("user", tenant=visit.tenant, limit=PAGE, cursor=cursor or None)
    rows = list[Row]()
    for one in users.scopes:
        agents = await visit.memory.scopes("agent", tenant=visit.tenant, user=one.name, limit=AGENTS)
        rows += [Row(one.name, agent.name, agent) for agent in agents.scopes]
        rows += [Row(one.name, None if agents.next else "", one)] if agents.next or not agents.scopes else []
    return rows, users.next


async def _spoken(visit: Visit, user: str, _: str) -> tuple[list[Row], None]:
    """Those of the conversations in which something was said last."""
    found = await visit.memory.conversations(tenant=visit.tenant, user=user or None, limit=2 * PAGE)
    pairs = dict.fromkeys((one.scope.user, one.scope.agent) for one in found.conversations)
    return [Row(user, agent, None) for user, agent in pairs], None
