"""The chain of a conversation's digests."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.digests.digest import Digest, Status
from hitherto.core.key import Right
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import InConversation

router = APIRouter()

PAGE = 100

BEING_MADE, WAITING, PUT_OFF = "being made", "waits to be made", "put off"


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/digests", dependencies=[needs(Right.READ)])
async def digests(visit: InConversation, *, after: int | None = None, begun: int | None = None) -> Response:
    """Each firing in its order: what it stands for, what it made, why it failed."""
    listed = await visit.chat.digests(after=after, limit=PAGE)
    head = await visit.chat.head()
    states = [_state(one, head.clock if head else datetime.now(UTC)) for one in listed]
    rests = head.resume_at if head and head.resting else None
    more = bool(listed) and bool(await visit.chat.digests(after=listed[-1].id, limit=1))
    return await visit.page(
        "digests.html",
        listed=[*zip(listed, states, strict=True)],
        head=head,
        failures=head.failures if head else 0,
        making=bool({BEING_MADE, WAITING} & {*states}),
        put_off=PUT_OFF in states,
        begun=begun if visit.told else None,
        rests=rests,
        after=after,
        more=more,
    )


@router.post("/{tenant}/conversations/{user}/{agent}/{name}/digests", dependencies=[needs(Right.WRITE)])
async def retry(visit: InConversation) -> Response:
    """Begin what is due, such as a digest that failed, without waiting for more to be said. What was put off is tried
    again by itself, and not before its time: the model may be down, or a daily limit reached."""
    await visit.form()
    return visit.to_told(path(visit.base, "digests", begun=len(await visit.chat.start_digests())))


def _state(one: Digest, now: datetime) -> str:
    """What became of a digest; of one in progress, whether a worker makes it, none has it yet, or it was put off."""
    if one.status is not Status.PROCESSING:
        return one.status.value
    if one.claimed:
        return BEING_MADE
    return PUT_OFF if one.due_at is not None and one.due_at > now else WAITING
