"""A context of a conversation: what a model saw or would see, why, and what another policy would send."""

from __future__ import annotations

import json
from asyncio import gather
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from pydantic import BeforeValidator
from starlette.responses import Response

from hitherto.aside import aside, weight
from hitherto.core.context.manifest import ContextChanges, KeptContext, Manifest, changes_since
from hitherto.core.key import Right
from hitherto.core.log.message import CHAT, Logged, Wire
from hitherto.core.price import Price
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.errors import BudgetExceeded, InvalidInput, NotFound, NotReproducible
from hitherto.http.server.callers import needs
from hitherto.policies import PRESETS, parse
from hitherto.pricing import shipped
from hitherto.web.charts import Slice, slices_of
from hitherto.web.manifests import MISSING, ORIGINS, SECTIONS, FateLine, Sought, fate_lines, what_became
from hitherto.web.requests import Repeated, RequestPart, parts, repeated
from hitherto.web.templating import path
from hitherto.web.visit import HEADERS, InConversation
from hitherto.wire import CODECS

router = APIRouter(dependencies=[needs(Right.READ)])

KEPT = 6
"""Kept contexts that are listed."""

FIRST, PARTS = 8, 30
"""Parts of a request on a page; of a longer one, the first and the last."""

Number = Annotated[int | None, BeforeValidator(lambda given: None if given == "" else given)]
"""A number, or a field of a form that was left empty."""


class Asked(Sought):
    """What the address asks for: the context that was kept under an id, perhaps beside the one that its question would
    get otherwise, or the one that a question would get."""

    kept: int | None = None
    rev: Number = None
    question: str = ""
    budget: Number = None
    policy: str = ""
    other: str = ""
    recall: str = ""
    model: str = ""
    wire: str = ""
    start: int | None = None

    def but(self, **changes: object) -> dict[str, object]:
        """The query with some of it changed."""
        return {**self.model_dump(exclude_defaults=True), **changes}

    @property
    def tries(self) -> bool:
        """Whether something else than what was sent is asked for."""
        return any((self.question, self.budget, self.policy, self.recall, self.model))

    @property
    def pair(self) -> bool:
        """Whether two contexts stand beside each other."""
        return self.tries if self.kept is not None else bool(self.other)


@dataclass(frozen=True)
class ShownContext:
    """A context on the page, or why there is none: `wrong`. Without a `context`, a manifest may be there all the
    same."""

    name: str
    manifest: Manifest | None
    context: Context | None
    wrong: str
    bar: list[Slice]
    fates: list[FateLine]
    parts: list[RequestPart]
    repeated: Repeated | None
    changes: ContextChanges | None


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/context")
async def context(visit: InConversation, asked: Annotated[Asked, Query()]) -> Response:
    """The context that was kept under an id, beside what is tried; else the next one, or that for a question, beside
    another policy's. Where nothing is asked for, the one that was kept last."""
    chat = visit.chat
    head = await chat.head()
    if head is None:
        raise NotFound("there is no such conversation")
    listed, earlier_one = await _listed(chat, asked)
    if listed and not asked.but():
        return visit.to(path(visit.base, "context", kept=listed[0].id))
    if asked.kept is not None:
        before = listed[1] if len(listed) > 1 else earlier_one
        sent = listed[0].manifest
        names, making = ["what was sent" if asked.tries else ""], [rebuilt(chat, sent)]
        if asked.tries:
            names.append(asked.policy or "what is tried")
            making.append(built(chat, asked, asked.policy, sent.rev, sent, again=True))
    else:
        before = listed[0] if listed else None
        like = None if before is None else before.manifest
        rev = head.rev if asked.rev is None else asked.rev
        names = [asked.policy, *([asked.other] if asked.other not in ("", asked.policy) else [])]
        making = [built(chat, asked, policy, rev, like) for policy in names]
    (earlier, *_), *made = await gather(_earlier(chat, before), *making)
    shown = [await _shown(visit, name, one, before, earlier) for name, one in zip(names, made, strict=True)]
    return await visit.page(
        "context.html",
        asked=asked,
        head=head,
        listed=listed,
        more=earlier_one.id if earlier_one else None,
        kept=listed[0] if asked.kept is not None else None,
        before=before,
        shown=shown,
        rows=_rows(shown),
        size=PARTS,
        first=FIRST,
        question=question_of,
        became=_became(asked, listed, shown, await _message(chat, asked)),
        words={"origins": ORIGINS, "missing": MISSING, "sections": SECTIONS},
        policies=list(PRESETS),
        models=list(shipped().prices),
        wires=list(CODECS),
    )


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/context/request")
async def request(visit: InConversation, asked: Annotated[Asked, Query()]) -> Response:
    """The request alone, whole, as the API gets it."""
    head = await visit.chat.head()
    if head is None:
        raise NotFound("there is no such conversation")
    listed, _ = await _listed(visit.chat, asked)
    if asked.kept is not None:
        made, _, wrong = await rebuilt(visit.chat, listed[0].manifest)
    else:
        rev = head.rev if asked.rev is None else asked.rev
        like = listed[0].manifest if listed else None
        made, _, wrong = await built(visit.chat, asked, asked.policy, rev, like)
    if made is None:
        raise InvalidInput(wrong)
    size = max(4 * made.tokens, weight(made.request))
    return Response(
        await aside(size, json.dumps, made.request, indent=1), media_type="application/json", headers=HEADERS
    )


async def _listed(chat: Conversation, asked: Asked) -> tuple[list[KeptContext], KeptContext | None]:
    """The kept contexts to list: the newest, or those from the one that is asked for on; and the one after them. Raises
    NotFound."""
    found = await kept_contexts(chat, before=None if asked.kept is None else asked.kept + 1, limit=KEPT)
    if asked.kept is not None and (not found[0] or found[0][0].id != asked.kept):
        raise NotFound("this context is not kept any more")
    return found


async def kept_contexts(
    chat: Conversation, *, before: int | None, limit: int
) -> tuple[list[KeptContext], KeptContext | None]:
    """The newest kept contexts, at most `limit` (fewer where they are large), and the one that was kept before them."""
    found = await chat.contexts(before=before, limit=limit + 1)
    if 0 < len(found) <= limit:
        return found, next(iter(await chat.contexts(before=found[-1].id, limit=1)), None)
    return found[:limit], next(iter(found[limit:]), None)


_Made = tuple[Context | None, Manifest | None, str]
"""A context, its manifest, and why there is none."""


async def rebuilt(chat: Conversation, manifest: Manifest) -> _Made:
    """A kept context, made again."""
    try:
        return await chat.rebuild(manifest), manifest, ""
    except NotReproducible as error:
        return None, manifest, str(error)


async def _earlier(chat: Conversation, before: KeptContext | None) -> _Made:
    return (None, None, "") if before is None else await rebuilt(chat, before.manifest)


async def built(
    chat: Conversation, asked: Asked, policy: str, rev: int, like: Manifest | None, *, again: bool = False
) -> _Made:
    """The context that the question would get; what is not asked for is as in the one that it is to be `like`, with
    `again` its question too. With a revision, which this always has, none is kept."""
    wire = cast(Wire, asked.wire or (like.wire if like else CHAT))
    budget = asked.budget or (like.budget if like else None)
    try:
        made = await chat.context(
            asked.question or ([json.loads(raw) for _, raw in like.request.incoming] if again and like else None),
            budget=budget,
            instructions=like.request.instructions if like else None,
            tools=[json.loads(one) for one in like.request.tools] if like and like.wire == wire else (),
            reserve=like.reserve if like and budget and like.reserve < budget else 0,
            wire=wire,
            model=asked.model or (like.request.model if like else None),
            policy=parse(policy) if policy else None,
            recall=cast(Any, asked.recall) or None,
            at=rev,
        )
    except (BudgetExceeded, InvalidInput) as error:
        return None, None, str(error)
    return made, made.manifest, ""


async def _shown(
    visit: InConversation,
    name: str,
    made: _Made,
    before: KeptContext | None,
    earlier: Context | None,
) -> ShownContext:
    context, manifest, wrong = made
    name = name or (str(manifest.policy["name"]) if manifest else "as it is")
    if manifest is None:
        return ShownContext(name, None, None, wrong, [], [], [], None, None)
    earlier = earlier if earlier is not None and earlier.manifest.wire == manifest.wire else None
    last = None if earlier is None else earlier.request
    compared = None
    if context is not None:
        price: Price | None = visit.request.scope["price"](manifest.request.model or "")
        compared = await aside(
            4 * manifest.total, repeated, manifest, context.request, last, CODECS[manifest.wire], price
        )
    size = max(4 * manifest.total, 0 if context is None else weight(context.request))
    made_of = [] if context is None else await aside(size, parts, context.request, last)
    free = max(manifest.budget - manifest.total - manifest.reserve, 0)
    sizes = {SECTIONS.get(one, one): manifest.sections.get(one, 0) for one in (*SECTIONS, *manifest.sections)}
    return ShownContext(
        name=name,
        manifest=manifest,
        context=context,
        wrong=wrong,
        bar=slices_of({**sizes, "Kept free for the answer": manifest.reserve, "Not used": free}),
        fates=fate_lines(manifest.fates),
        parts=made_of,
        repeated=compared,
        changes=None if before is None else changes_since(before.manifest, manifest),
    )


def question_of(manifest: Manifest) -> str:
    """What the user asked, "" where the request had no incoming message with a text."""
    texts = [CODECS[wire].read(json.loads(raw)).text for wire, raw in manifest.request.incoming]
    return next((text for text in reversed(texts) if text), "")


def _rows(shown: Sequence[ShownContext]) -> list[tuple[Slice, list[float]]]:
    """The sections that any of the contexts has, each with its tokens in all of them."""
    there = {one.tone: one for context in shown for one in context.bar}
    tokens = [{one.tone: one.value for one in context.bar} for context in shown if context.manifest is not None]
    return [(there[tone], [each.get(tone, 0) for each in tokens]) for tone in sorted(there)]


async def _message(chat: Conversation, asked: Asked) -> Logged | None:
    """The message that is sought, if it is one of this conversation."""
    own = asked.seq is not None and asked.digest is None and asked.of == chat.id
    return await chat.get(asked.seq) if own and asked.seq is not None else None


def _became(
    asked: Asked, listed: Sequence[KeptContext], shown: Sequence[ShownContext], logged: Logged | None
) -> list[tuple[str, bool, str]]:
    """Of what is sought, for each context that the page is about: which, whether it shows it, and why."""
    if not asked.there:
        return []
    if asked.kept is not None:
        names = ["in what was sent", f"in what is tried ({shown[-1].name})"] if asked.tries else ["in this request"]
    else:
        names = [f"in what this question gets now ({one.name})" for one in shown]
    now = [
        (name, *what_became(asked, one.manifest, logged))
        for name, one in zip(names, shown, strict=True)
        if one.manifest is not None
    ]
    last = (
        [("in the last request", *what_became(asked, listed[0].manifest, logged))]
        if listed and asked.kept is None
        else []
    )
    return [*last, *now]
