"""A conversation: its log, and what a model sees of it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.aside import aside
from hitherto.core.context.manifest import Manifest
from hitherto.core.digests.digest import Digest
from hitherto.core.key import Right
from hitherto.core.log.group import Group, groups
from hitherto.core.log.message import Logged
from hitherto.core.log.ranges import Ranges, any_in
from hitherto.core.policy.span import Reason
from hitherto.engine.conversation import Conversation
from hitherto.errors import NotFound
from hitherto.http.server.callers import needs
from hitherto.web.charts import bar_of
from hitherto.web.manifests import Became, became, span_of
from hitherto.web.templating import pictures
from hitherto.web.views.context import Asked, built
from hitherto.web.visit import HEADERS, InConversation

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50


@dataclass(frozen=True)
class ShownMessage:
    """A message on the page: what became of it in the context, whether the chosen statement rests on it, and what is
    otherwise `now` than the context had it."""

    logged: Logged
    became: Became
    marked: bool
    now: str

    @property
    def failed(self) -> bool:
        """Whether it is the result of a call that failed, as far as the API tells."""
        return self.logged.message.text.startswith("[error]")


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
    message: int | None = None,
    digest: int | None = None,
    statement: int | None = None,
) -> Response:
    """The log from message `start` on, or around a `message`, else its end, as it is, or was at revision `rev`. It says
    of each message what became of it in the request that was kept last; without one, or at a revision, in the context
    then, without a recall."""
    chat = visit.chat
    head, info = await chat.head(), await chat.info()
    if head is None or info is None:
        raise NotFound("there is no such conversation")
    kept = await chat.contexts(limit=1)
    manifest = kept[0].manifest if kept else None
    if manifest is None or rev is not None:
        _, manifest, _ = await built(chat, Asked(recall="off"), "", head.rev if rev is None else rev, manifest)
        kept = []
    fates = manifest.fates if manifest else []
    stop = manifest.next_seq if manifest and not kept else head.next_seq
    digest = digest if digest is not None else manifest.digest if manifest else None
    made = None if digest is None else await digest_of(chat, digest)
    marked = made.items[statement] if made and statement is not None and 0 <= statement < len(made.items) else None
    rests = marked.rests if marked else ()
    message = rests[0][0] if rests and message is None else message
    if start is not None and start < stop:
        message = start
    elif message is not None and message < stop:
        start = message - 3
    else:
        start, message = stop - PAGE, stop - 1
    start, logged = await _with_message(chat, max(start, 0), max(message, 0), stop)
    next_seq = logged[-1].seq + 1 if logged else stop
    return await visit.page(
        "conversation.html",
        info=info,
        head=head,
        rev=head.rev if rev is None else rev,
        start=start,
        stop=stop,
        size=PAGE,
        next_seq=next_seq,
        turns=list(_turns(logged, head.retracted, manifest, rests, head.rev if rev is None else rev)),
        kept=kept[0] if kept else None,
        manifest=manifest,
        bar=bar_of(fates, stop, (start, next_seq - 1)),
        digest=made,
        statement=statement,
        cited=made is not None and marked is not None and marked.sources != ((made.start, made.end),),
    )


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/messages/{seq}")
async def message(visit: InConversation, seq: int, part: int = 0) -> Response:
    """One message, whole: in parts of 30,000 characters."""
    logged = await visit.chat.get(seq)
    if logged is None:
        raise NotFound("there is no such message")
    head = await visit.chat.head()
    return await visit.page("message.html", logged=logged, stop=head.next_seq if head else 0, part=part, size=30_000)


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/messages/{seq}/pictures/{no}")
async def picture(visit: InConversation, seq: int, no: int) -> Response:
    """A picture that a message has in itself, by its number from 1 on."""
    logged = await visit.chat.get(seq)
    found = [] if logged is None else await aside(len(logged.message.raw), pictures, logged.message)
    if not 1 <= no <= len(found):
        raise NotFound("there is no such picture")
    kind, data = found[no - 1]
    try:
        picture = await aside(len(data), b64decode, f"{data}==")  # some leave out the end, which browsers do not need
        return Response(picture, media_type=kind, headers=HEADERS)
    except ValueError:
        raise NotFound("what stands for this picture cannot be read") from None


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/news")
async def news(visit: InConversation, *, seen: int, told: int = 0) -> Response:
    """Part of a page: how many messages came since `seen` was the seq of the next one, if more than were `told`."""
    head = await visit.chat.head()
    new = head.next_seq - max(seen, 0) if head else 0
    return await visit.page("_news.html", seen=seen, told=new) if new > told else Response(None, 204, HEADERS)


async def _with_message(chat: Conversation, start: int, seq: int, stop: int) -> tuple[int, list[Logged]]:
    """The messages of a page from `start` on, or, where they are large, from so much nearer to message `seq` that it is
    among them; and where they begin."""
    while True:
        logged = (await chat.log_page(start=start, stop=stop, limit=PAGE)).messages
        if start >= seq or not logged or logged[-1].seq >= seq:
            return start, logged
        start = (start + seq + 1) // 2


async def digest_of(chat: Conversation, id: int) -> Digest | None:
    """A digest of a conversation by its id."""
    found = await chat.digests(after=max(id - 1, 0), limit=1)
    return found[0] if found and found[0].id == id else None


def _turns(
    logged: Sequence[Logged], retracted: Ranges, manifest: Manifest | None, rests: Ranges, rev: int
) -> Iterator[LogTurn]:
    def shown(one: Logged) -> ShownMessage:
        there = Became() if manifest is None else became(one, manifest)
        marked = any_in(rests, one.seq, one.seq) if rests else False
        return ShownMessage(one, there, marked, "" if manifest is None else _now(one, manifest, rev))

    made = groups(logged, retracted)
    erased = [Group(members=[one], first=one.seq, last=one.seq, open=set()) for one in logged if one.erased]
    ordered = sorted([*made, *erased], key=lambda group: group.first)
    for number, of in groupby(ordered, key=lambda group: group.members[0].sums.turns):
        yield LogTurn(number, [[shown(one) for one in group.members] for group in of])


def _now(logged: Logged, manifest: Manifest, rev: int) -> str:
    """What has changed about a message since the context: whether it is undone, or on another branch."""
    span = span_of(manifest.fates, logged.seq)
    then, now = span is not None and span.reason is Reason.RETRACTED, not logged.live(rev)
    if logged.erased or then == now:
        return ""
    return "now undone, or on another branch" if now else "on the current branch again"
