"""A conversation: its log, and what a model sees of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.digests.digest import Digest
from hitherto.core.key import Right
from hitherto.core.log.group import Group, groups
from hitherto.core.log.message import Logged
from hitherto.core.log.ranges import Ranges, any_in
from hitherto.core.policy.span import Span
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.errors import BudgetExceeded, NotFound
from hitherto.http.server.callers import needs
from hitherto.web.charts import bar_of
from hitherto.web.manifests import span_of
from hitherto.web.visit import InConversation

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50


@dataclass(frozen=True)
class ShownMessage:
    """A message on the page: what became of it in the context, and whether the chosen statement rests on it."""

    logged: Logged
    span: Span | None
    marked: bool


@dataclass(frozen=True)
class LogTurn:
    """A turn's groups: each the messages that are sent together."""

    number: int
    groups: list[list[ShownMessage]]


@router.get("/{tenant}/conversations/{user}/{agent}/{name}")
async def conversation(
    visit: InConversation,
    *,
    rev: int | None = None,
    start: int | None = None,
    digest: int | None = None,
    statement: int | None = None,
) -> Response:
    """The log from message `start` on, as it is, or was at revision `rev`: what its context has of each message,
    without a recall."""
    chat = visit.chat
    head, info = await chat.head(), await chat.info()
    if head is None or info is None:
        raise NotFound("there is no such conversation")
    rev = head.rev if rev is None else rev
    try:
        context: Context | None = await chat.context(at=rev, recall=False)
    except BudgetExceeded:
        context = None
    fates = context.manifest.fates if context else []
    stop = context.manifest.next_seq if context else head.next_seq
    digest = digest if digest is not None else context.manifest.digest if context else None
    made = None if digest is None else await digest_of(chat, digest)
    rests = made.items[statement].rests if made and statement is not None and 0 <= statement < len(made.items) else ()
    if start is None:
        start = max(0, rests[0][0] - 3) if rests else max(0, stop - PAGE)
    logged = await chat.messages(start=start, stop=min(stop, start + PAGE))
    return await visit.page(
        "conversation.html",
        info=info,
        head=head,
        rev=rev,
        start=start,
        stop=stop,
        size=PAGE,
        turns=list(_turns(logged, head.retracted, fates, rests)),
        context=context,
        bar=bar_of(fates, stop, (start, min(stop, start + PAGE) - 1)),
        digest=made,
        statement=statement,
    )


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/messages/{seq}")
async def message(visit: InConversation, seq: int, part: int = 0) -> Response:
    """One message, whole: in parts of 50,000 characters."""
    logged = await visit.chat.get(seq)
    if logged is None:
        raise NotFound("there is no such message")
    head = await visit.chat.head()
    return await visit.page("message.html", logged=logged, stop=head.next_seq if head else 0, part=part, size=50_000)


async def digest_of(chat: Conversation, id: int) -> Digest | None:
    """A digest of a conversation by its id."""
    found = await chat.digests(after=max(id - 1, 0), limit=1)
    return found[0] if found and found[0].id == id else None


def _turns(logged: Sequence[Logged], retracted: Ranges, fates: Sequence[Span], rests: Ranges) -> Iterator[LogTurn]:
    def shown(one: Logged) -> ShownMessage:
        return ShownMessage(one, span_of(fates, one.seq), any_in(rests, one.seq, one.seq) if rests else False)

    made = groups(logged, retracted)
    erased = [Group(members=[one], first=one.seq, last=one.seq, open=set()) for one in logged if one.erased]
    ordered = sorted([*made, *erased], key=lambda group: group.first)
    for number, of in groupby(ordered, key=lambda group: group.members[0].sums.turns):
        yield LogTurn(number, [[shown(one) for one in group.members] for group in of])
