"""What has stood in the place of messages, and what is shown of it."""

from __future__ import annotations

from itertools import groupby

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.errors import InvalidInput
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import InConversation

router = APIRouter()

PAGE = 100


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/branches", dependencies=[needs(Right.READ)])
async def branches(visit: InConversation, *, after: int = -1) -> Response:
    """The places where there are several ways on, and each of these."""
    listed = await visit.chat.branches(after=after, limit=PAGE)
    head = await visit.chat.head()
    places = [
        (parent, list(ways))
        for parent, ways in groupby(sorted(listed, key=lambda one: one.parent), lambda one: one.parent)
    ]
    more = len(listed) == PAGE
    return await visit.page(
        "branches.html", places=places, rev=head.rev if head else 0, last=listed[-1].seq if listed else -1, more=more
    )


@router.post("/{tenant}/conversations/{user}/{agent}/{name}/branches", dependencies=[needs(Right.WRITE)])
async def switch(visit: InConversation) -> Response:
    """Show another branch, if nothing was written since the page was loaded."""
    form = await visit.form()
    try:
        seq, rev = int(form.get("seq", "")), int(form.get("rev", ""))
    except ValueError:
        raise InvalidInput("which branch? The form has no number") from None
    await visit.chat.switch(seq, expect=rev)
    return visit.to(path(visit.base))
