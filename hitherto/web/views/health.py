"""Whether the memory is well: what waits, who works, and what the checks of `hitherto doctor` say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.errors import NotFound
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import Visiting

router = APIRouter(dependencies=[needs(Right.ADMIN)])


LAST = 50
"""Conversations among which failed digests are looked for: those in which something was said last, or before these."""

Doctor = Callable[[], Awaitable[Sequence[Any]]]
"""What the checks of `hitherto doctor` have found: each has its name, its state, what was found, and what to do."""


@router.get("/{tenant}/health")
async def health(visit: Visiting, *, check: bool = False, cursor: str = "") -> Response:
    """The digests that wait, why they do, and the conversations in which some failed. With `check`, what the checks
    say: they are about the whole database, so that they are for those who need no key."""
    doctor: Doctor | None = visit.request.scope["doctor"] if visit.caller.key is None else None
    if check and doctor is None:
        raise NotFound("the checks are for who runs the service: run `hitherto doctor` there")
    looked_at = await visit.memory.conversations(tenant=visit.tenant, limit=LAST, cursor=cursor or None)
    backlog = await visit.memory.backlog(tenant=visit.tenant)
    settings = await visit.memory.settings()
    return await visit.page(
        "health.html",
        failed=[one for one in looked_at.conversations if one.failures],
        looked_at=len(looked_at.conversations),
        cursor=cursor,
        older=looked_at.next,
        backlog=backlog,
        limited=settings.daily_cost is not None or settings.daily_tokens is not None,
        checks=await doctor() if check and doctor else None,
        checkable=doctor is not None,
        address=path(visit.tenant, "health", check="true"),
    )
