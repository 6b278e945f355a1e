"""Tokens by turn: how large each kept context of a conversation is, and what of it repeats the one before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.aside import aside
from hitherto.core.context.manifest import KeptContext
from hitherto.core.key import Right
from hitherto.engine.context.context import Context
from hitherto.engine.conversation import Conversation
from hitherto.http.server.callers import needs
from hitherto.web.charts import columns_of
from hitherto.web.requests import repeated
from hitherto.web.views.context import kept_contexts, question_of, rebuilt
from hitherto.web.visit import InConversation
from hitherto.wire import CODECS

router = APIRouter(dependencies=[needs(Right.READ)])

TURNS = 8
"""Contexts on a page."""

_COMPARED = 150_000
"""Tokens of contexts that are made again, to be compared: beyond, what they repeat is not told."""


@router.get("/{tenant}/conversations/{user}/{agent}/{name}/tokens")
async def tokens(visit: InConversation, *, before: int | None = None) -> Response:
    """The last kept contexts, or the last before one of an id."""
    shown, after = await kept_contexts(visit.chat, before=before, limit=TURNS)
    same = (await _as_before(visit.chat, [*shown, *([after] if after else [])]))[: len(shown)]
    return await visit.page(
        "tokens.html",
        turns=[*zip(shown, same, strict=True)],
        question=question_of,
        chart=columns_of([one.manifest.total for one in reversed(shown)], parts=same[::-1]),
        before=before,
        next=shown[-1].id if after else None,
    )


async def _as_before(chat: Conversation, listed: Sequence[KeptContext]) -> list[int | None]:
    """How many of the first tokens of each are as in the next one of the list, which was made before it; None where
    that cannot be told."""
    made, left = list[Context | None](), _COMPARED
    for one in listed:
        left -= one.manifest.total
        made.append((await rebuilt(chat, one.manifest))[0] if left >= 0 else None)
    size = sum(4 * one.manifest.total for one in listed)
    return await aside(size, _compared, made)


def _compared(made: Sequence[Context | None]) -> list[int | None]:
    return [
        repeated(now.manifest, now.request, before.request, CODECS[now.manifest.wire], None).tokens
        if now is not None and before is not None and now.manifest.wire == before.manifest.wire
        else None
        for now, before in pairwise([*made, None])
    ]
