"""Facts about a legacy, which is a subject here: list them, share them, delete them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from hitherto import Fact, Facts, FactState, Memory, Right, Scope
from hitherto.errors import StaleVersion
from hitherto.http.server.callers import route_options
from hitherto.http.server.responses import answer
from hitherto.other_systems.request_scope import RequestScope

_MOST = 1_000
_LARGEST = 2**63 - 1

Visible = Literal["private", "shared"]
FactId = Annotated[int, Path(ge=1, le=_LARGEST)]
IfMatch = Annotated[str | None, Header(alias="If-Match", description="The ETag of the fact that was seen.")]


class LegacyFact(BaseModel):
    """A fact. `version` is its ETag, in quotation marks; `source_conversation_id` is told to its owner alone."""

    id: int
    legacy_id: str
    user_id: str
    category: str
    content: str
    visibility: Visible
    source_conversation_id: str | None
    extracted_at: datetime
    updated_at: datetime
    version: int


class VisibilityRequest(BaseModel):
    """Who is to see a fact."""

    model_config = ConfigDict(extra="forbid")

    visibility: Visible


def add_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get(
        "/api/ai/legacies/{legacy_id}/facts",
        response_model=list[LegacyFact],
        responses={200: {"headers": {"Link": {"schema": {"type": "string"}}}}},
        **route_options(
            "legacy_facts",
            "Legacy facts",
            Right.READ,
            "The user's own facts about a legacy, learned by any agent, and those that others who talk to the same "
            "agent share, in the order in which they were learned. Where there are more, the header Link names the "
            "next page.",
        ),
    )
    async def list_facts(
        request: Request,
        scope: RequestScope,
        legacy_id: Annotated[str, Path()],
        after: Annotated[int, Query(ge=0, le=_LARGEST, description="The id of the last fact of a page.")] = 0,
        limit: Annotated[int, Query(ge=1, le=_MOST)] = _MOST,
    ) -> Response:
        legacy = unquote(legacy_id)
        facts = _facts(request, scope, legacy)
        found = await facts.list(after=after, limit=limit)
        made = await answer([_legacy_fact(fact) for fact in found], list[LegacyFact])
        if len(found) == limit and await facts.list(after=found[-1].id, limit=1):
            path = f"/api/ai/legacies/{quote(legacy, safe='')}/facts"
            made.headers["Link"] = f'<{path}?after={found[-1].id}&limit={limit}>; rel="next"'
        return made

    @router.patch(
        "/api/ai/facts/{fact_id}/visibility",
        response_model=LegacyFact,
        responses={200: {"headers": {"ETag": {"schema": {"type": "string"}}}}},
        **route_options(
            "legacy_fact_visibility",
            "Legacy facts",
            Right.REVIEW,
            "Share one of the user's own facts with all members of its legacy, or stop sharing it.",
        ),
    )
    async def update_visibility(
        request: Request,
        scope: RequestScope,
        fact_id: FactId,
        body: VisibilityRequest,
        if_match: IfMatch = None,
    ) -> Response:
        facts = _facts(request, scope)
        expect = await _expected(facts, fact_id, if_match, scope.user)
        changed = await facts.set_visibility(fact_id, body.visibility, expect=expect)
        made = await answer(_legacy_fact(changed), LegacyFact)
        made.headers["ETag"] = f'"{changed.version}"'
        return made

    @router.delete(
        "/api/ai/facts/{fact_id}",
        status_code=204,
        response_class=Response,
        **route_options("delete_legacy_fact", "Legacy facts", Right.REVIEW, "Delete one of the user's own facts."),
    )
    async def delete_fact(
        request: Request,
        scope: RequestScope,
        fact_id: FactId,
        if_match: IfMatch = None,
    ) -> Response:
        facts = _facts(request, scope)
        expect = await _expected(facts, fact_id, if_match, scope.user)
        await facts.delete(fact_id, expect=expect)
        return Response(status_code=204)


def _facts(request: Request, scope: Scope, legacy: str | None = None) -> Facts:
    memory: Memory = request.scope["memory"]
    return memory.facts(scope, subject=legacy, all_agents=True)


async def _expected(facts: Facts, fact_id: int, if_match: str | None, user: str) -> int | None:
    """The version that a fact of the user's own must have. Raises StaleVersion where that is not its version now."""
    tags = [] if if_match is None else [tag.strip() for tag in if_match.split(",")]
    fact = await facts.get(fact_id) if tags and tags != ["*"] else None
    if fact is None or fact.user != user or fact.state is FactState.DELETED:
        return None  # the verb says what is wrong
    if f'"{fact.version}"' not in tags:
        raise StaleVersion(
            f"fact {fact_id} is at version {fact.version}, and If-Match names another; read it anew",
            actual=fact.version,
        )
    return fact.version


def _legacy_fact(fact: Fact) -> LegacyFact:
    return LegacyFact(
        id=fact.id,
        legacy_id=fact.subject,
        user_id=fact.user,
        category=fact.category,
        content=fact.content,
        visibility=fact.visibility.value,
        source_conversation_id=fact.evidence[0].conversation if fact.evidence else None,
        extracted_at=fact.extracted_at,
        updated_at=fact.updated_at,
        version=fact.version,
    )
