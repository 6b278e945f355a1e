"""The facts of a person: a list by category, and a fact that is added by hand."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.facts.fact import Fact
from hitherto.core.key import Right
from hitherto.errors import InvalidInput
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import OfPerson, PersonVisit, Visit

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50
EVERY = "every"
"""The state of any state, in an address."""


@router.get("/{tenant}/people/{user}/{agent}")
@router.get("/{tenant}/people/{user}/{agent}/facts")  # where a form that could not be followed is shown again
async def facts(
    visit: OfPerson, *, whose: str = "", subject: str = "", category: str = "", state: str = "current", after: int = 0
) -> Response:
    """Facts in the order in which they were learned, by category: of the person ("mine"), "shared" by others, or
    both."""
    asked = {"whose": whose, "subject": subject, "category": category, "state": state}
    return await _page(visit, asked, after)


@router.post("/{tenant}/people/{user}/{agent}/facts", dependencies=[needs(Right.REVIEW)])
async def add(visit: OfPerson) -> Response:
    """Add a fact, and go on to it."""
    form = await visit.form()
    try:
        about = visit.memory.facts(visit.person, subject=form.get("subject") or None)
        added = await about.add(form.get("content", ""), category=form.get("category") or None)
    except InvalidInput as error:
        return await _page(visit, {"state": "current"}, 0, error=str(error), typed=form)
    return visit.to(path(visit.base, "facts", added.id))


async def categories(visit: Visit) -> tuple[str, ...]:
    """Those that are defined."""
    return (await visit.memory.settings()).fact_categories


async def _page(
    visit: PersonVisit,
    asked: Mapping[str, str],
    after: int,
    *,
    error: str = "",
    typed: Mapping[str, str] | None = None,
) -> Response:
    whose, state = asked.get("whose", ""), asked["state"]
    found = await visit.memory.facts(visit.person, subject=asked.get("subject") or None).list(
        mine=whose != "shared",
        shared=whose != "mine",
        category=asked.get("category") or None,
        state=None if state == EVERY else state,  # pyright: ignore[reportArgumentType] — which it checks
        after=after,
        limit=PAGE,
    )
    defined, groups = await categories(visit), dict[str, list[Fact]]()
    for one in found:
        groups.setdefault(one.category, []).append(one)
    more = len(found) == PAGE
    order = {category: at for at, category in enumerate(defined)}
    return await visit.page(
        "people/facts.html",
        status=422 if error else 200,
        groups=sorted(groups.items(), key=lambda group: order.get(group[0], len(order))),
        asked={"whose": "", "subject": "", "category": "", **asked},
        after=after,
        next=found[-1].id if more else None,
        count=None if more or after else len(found),
        categories=defined,
        error=error,
        typed=typed or {},
    )
