"""Erasing a conversation, or some of its messages."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.core.log.message import Logged
from hitherto.errors import NotFound
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.views.erase import is_typed
from hitherto.web.visit import ConversationVisit, InConversation, number_in

router = APIRouter(dependencies=[needs(Right.WRITE)])

SHOWN = 20
"""Messages to be erased of which the page shows the beginning."""
MOST_FACTS = 1_000


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/erase")
async def erase(
    visit: InConversation, *, first: int | None = None, last: int | None = None, erased: int | None = None
) -> Response:
    """What would go with the messages `first` to `last`, or with all; or how many messages were `erased`."""
    return await _page(visit, first, last, erased=erased)


@router.post("/{tenant}/conversations/{user}/{agent}/{name}/erase")
async def begin(visit: InConversation) -> Response:
    """Erase what the form says, if it has the conversation's name."""
    form = await visit.form()
    some = None if form.get("what") == "conversation" else (number_in(form, "first"), number_in(form, "last"))
    if not is_typed(form, visit.chat.id):
        wrong = "That is not the conversation's name. Nothing was erased."
        return await _page(visit, *(some or (None, None)), error=wrong, facts_too="facts" in form)
    if some is None:
        erased = await visit.chat.delete(facts="facts" in form)
    else:
        erased = await visit.chat.erase(range(some[0], some[1] + 1))
    return visit.to_told(path(visit.base, "erase", erased=erased))


async def _page(
    visit: ConversationVisit,
    first: int | None,
    last: int | None,
    *,
    erased: int | None = None,
    error: str = "",
    facts_too: bool = True,
) -> Response:
    head, info = await visit.chat.head(), await visit.chat.info()
    if (head is None or info is None) and erased is None:
        raise NotFound("there is no such conversation")
    stop = head.next_seq if head else 0
    chosen = range(max(first or 0, 0), min(stop, stop if last is None else last + 1))
    reads = visit.may("read")  # who may only write is told how much there is, and nothing that it says
    shown = list[Logged]()
    if first is not None and reads:
        shown = (await visit.chat.log_page(start=chosen.start, stop=chosen.stop, limit=SHOWN)).messages
    facts = await visit.memory.facts(visit.chat.scope).list(shared=False, conversation=visit.chat.id, limit=MOST_FACTS)
    return await visit.page(
        "erase_conversation.html",
        status=422 if error else 200,
        info=info,
        stop=stop,
        chosen=chosen if first is not None else None,
        shown=shown,
        facts=len(facts),
        most=MOST_FACTS,
        erased=erased if visit.told else None,
        error=error,
        facts_too=facts_too,
    )
