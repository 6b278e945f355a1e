"""Recall: what a question finds among what a user and an agent have, and why in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.core.recall.filter import UNLIKELY
from hitherto.engine.recall.recall import Hit
from hitherto.http.server.callers import needs
from hitherto.web.charts import Slice, slices_of
from hitherto.web.manifests import MISSING
from hitherto.web.visit import Visiting

router = APIRouter(dependencies=[needs(Right.READ)])

SHOWN, MISSED = 10, 5
"""Hits that are shown, and how many more of what just missed."""

SPOKEN = 50
"""Conversations whose users and agents are proposed, those in which something was said last."""

LEAST = 0.005
"""What is less than this reads as 0."""

PARTS = {
    "lexical": "same words",
    "semantic": "similar meaning",
    "author": "who said it",
    "day": "said on the day asked for",
    "neighbors": "the messages next to it",
    "asking": "is a question itself",
}
"""The parts of a hit's score."""


@dataclass(frozen=True)
class FoundHit:
    """A hit on the page: its place in the order, where in its text the passage that matches best begins, and its parts
    of the score."""

    place: int
    hit: Hit
    start: int
    parts: list[Slice]


@router.get("/{tenant}/recall")
async def recall(
    visit: Visiting, *, user: str = "", agent: str = "", question: str = "", conversation: str = ""
) -> Response:
    """The hits for a question, as it is asked in a conversation, or anywhere."""
    user = visit.user(user)
    asked = question if user and agent else ""
    chat = None
    if user and agent and conversation:
        chat = visit.memory.conversation(conversation, scope=visit.scope(user, agent))
    if chat is None or await chat.info() is None:
        conversation = ""  # an address may name one that is not there
    result = None
    if asked.strip():
        result = await visit.memory.recall(asked, scope=visit.scope(user, agent), limit=SHOWN + MISSED)
    hits = _found(result.hits if result else ())
    spoken = (await visit.memory.conversations(tenant=visit.tenant, user=user or None, limit=SPOKEN)).conversations
    likely = [one for one in hits[:SHOWN] if one.hit.score >= UNLIKELY]
    return await visit.page(
        "recall.html",
        asked={"user": user, "agent": agent, "question": question, "conversation": conversation},
        result=result,
        hits=likely,
        missed=[one for one in hits if one not in likely][:MISSED],
        unlikely=UNLIKELY,
        users=list(dict.fromkeys(one.scope.user for one in spoken)),
        agents=list(dict.fromkeys(one.scope.agent for one in spoken)),
        parts=PARTS,
        missing=MISSING,
    )


def _found(hits: Sequence[Hit]) -> list[FoundHit]:
    """Those hits that have any score."""
    hits = [hit for hit in hits if hit.scores.fused >= LEAST]
    most = max((_sum(hit) for hit in hits), default=0.0)
    return [
        FoundHit(
            place,
            hit,
            hit.passages[0][0] if hit.passages else 0,
            slices_of({label: _part(hit, name) for name, label in PARTS.items()}, most),
        )
        for place, hit in enumerate(hits, 1)
    ]


def _part(hit: Hit, name: str) -> float:
    value = getattr(hit.scores, name) or 0.0
    return value if abs(value) >= LEAST else 0.0


def _sum(hit: Hit) -> float:
    return sum(max(_part(hit, name), 0.0) for name in PARTS)
