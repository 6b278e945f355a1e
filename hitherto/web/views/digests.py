"""The chain of a conversation's digests."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.digests.digest import Status
from hitherto.core.key import Right
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import InConversation

router = APIRouter()

PAGE = 100


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/digests", dependencies=[needs(Right.READ)])
async def digests(visit: InConversation, *, after: int | None = None) -> Response:
    """Each firing in its order: what it stands for, what it made, why it failed."""
    listed = await visit.chat.digests(after=after, limit=PAGE)
    waiting = any(one.status is Status.PROCESSING for one in listed)
    head = await visit.chat.head()
    rests = head.resume_at if head and head.resting else None
    more = bool(listed) and bool(await visit.chat.digests(after=listed[-1].id, limit=1))
    return await visit.page(
        "digests.html",
        listed=listed,
        head=head,
        failures=head.failures if head else 0,
        waiting=waiting,
        rests=rests,
        after=after,
        more=more,
    )


@router.post("/{tenant}/conversations/{user}/{agent}/{name}/digests", dependencies=[needs(Right.WRITE)])
async def retry(visit: InConversation) -> Response:
    """Begin what is due, such as a digest that failed, without waiting for more to be said."""
    await visit.form()
    await visit.chat.start_digests()
    return visit.to(path(visit.base, "digests"))
