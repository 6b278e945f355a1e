"""The conversations of a tenant, the one in which something was said last first."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from hitherto.core.key import Right
from hitherto.core.log.conversations import ConversationInfo
from hitherto.core.recall.filter import UNLIKELY
from hitherto.engine.memory import Memory
from hitherto.engine.recall.recall import Hit
from hitherto.errors import StoreError
from hitherto.http.server.callers import Caller, needs
from hitherto.web.templating import path
from hitherto.web.views.recall import LEAST
from hitherto.web.visit import HEADERS, Visit, Visiting

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50


@router.get("")
async def first(request: Request) -> Response:
    """To the conversations of the visitor's tenant. Without keys, one with conversations is chosen."""
    caller: Caller = request.scope["caller"]
    there = await _tenants(request.scope["memory"], caller)
    tenant = caller.tenant if caller.tenant in there or not there else there[0]
    return RedirectResponse(path(tenant, "conversations"), 303, HEADERS)


@router.get("/{tenant}/conversations")
async def conversations(
    visit: Visiting, *, user: str = "", agent: str = "", text: str = "", cursor: str = ""
) -> Response:
    """The list. With a text, those of the user (and the agent) in which a search finds it, the best first, with what it
    found; none without a user."""
    user = visit.user(user)
    hits, beyond = dict[tuple[str, str], Hit](), None
    if text:
        found, hits = await _with_text(visit, user, agent, text) if user else ([], hits)
    else:
        listed = await visit.memory.conversations(
            tenant=visit.tenant, user=user or None, agent=agent or None, limit=PAGE, cursor=cursor or None
        )
        found, beyond = listed.conversations, listed.next
    return await visit.page(
        "conversations.html",
        listed=found,
        hits=hits,
        twice={title for title, count in Counter(one.title for one in found).items() if title and count > 1},
        next=beyond,
        asked={"user": user, "agent": agent, "text": text},
        cursor=cursor,
        tenants=await _tenants(visit.memory, visit.caller),
    )


async def _tenants(memory: Memory, caller: Caller) -> list[str]:
    """The tenants among which a visitor without a key can choose; none where row-level security keeps them apart."""
    if caller.key is not None:
        return []
    try:
        return [one.name for one in (await memory.scopes("tenant")).scopes]
    except StoreError:
        return []


async def _with_text(
    visit: Visit, user: str, agent: str, text: str
) -> tuple[list[ConversationInfo], dict[tuple[str, str], Hit]]:
    """The conversations, and the best hit of each by its agent and name."""
    best = dict[tuple[str, str], Hit]()
    last = await visit.memory.conversations(tenant=visit.tenant, user=user, agent=agent or None, limit=1)
    if not last.conversations:
        return [], best
    scope = last.conversations[0].scope  # where no agent is named, one of them all
    found = await visit.memory.recall(text, scope=scope, all_agents=not agent, limit=PAGE, min_score=UNLIKELY)
    for hit in found.hits:
        matches = max(hit.scores.lexical, hit.scores.semantic or 0.0) >= LEAST  # and not its neighbors alone
        if hit.agent and hit.conversation is not None and matches:
            best.setdefault((hit.agent, hit.conversation), hit)
    there = [await visit.memory.conversation(name, scope=visit.scope(user, of)).info() for of, name in best]
    return [one for one in there if one is not None], best
