"""The review of what was learned: facts that nobody has confirmed yet, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.facts.fact import Fact
from hitherto.core.key import Right
from hitherto.errors import InvalidFact, NotFound, StaleVersion
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.views.people.fact import changed, subject_of, why
from hitherto.web.views.people.facts import categories
from hitherto.web.visit import OfPerson, PersonVisit, number_in

router = APIRouter(dependencies=[needs(Right.READ)])

SHOWN = 25
"""Facts of the list."""


@router.get("/{tenant}/people/{user}/{agent}/review")
async def review(visit: OfPerson, *, after: int = 0, at: int = 0, did: str = "", fact: int = 0) -> Response:
    """Those after the fact `after`, with the first one from `at` on in full, and what was done to the last (`fact`)."""
    return await _page(visit, after, at, did=did if did in ("confirm", "edit") and visit.told else "", done=fact)


@router.post("/{tenant}/people/{user}/{agent}/review", dependencies=[needs(Right.REVIEW)])
async def decide(visit: OfPerson) -> Response:
    """Change a fact as the form says, and go on with the next one."""
    form = await visit.form()
    fact, after, action = number_in(form, "fact"), number_in(form, "after"), form.get("action", "")
    if action == "add":  # what was deleted, anew
        about = visit.memory.facts(visit.person, subject=form.get("subject") or None)
        await about.add(form.get("content", ""), category=form.get("category") or None)
        return visit.to(path(visit.base, "review", after=after, at=fact))
    deleted = await visit.facts.get(fact) if action == "delete" else None
    try:
        await changed(visit.facts, fact, form)
    except (InvalidFact, NotFound, StaleVersion) as error:
        return await _page(visit, after, fact, error=why(error), typed=form)
    if deleted is not None:  # its text stands nowhere but in the form that would bring it back
        return await _page(visit, after, fact + 1, did="delete", done=fact, deleted=deleted)
    return visit.to_told(path(visit.base, "review", after=after, at=fact + 1, did=action, fact=fact))


async def _page(
    visit: PersonVisit,
    after: int,
    at: int,
    *,
    did: str = "",
    done: int = 0,
    deleted: Fact | None = None,
    error: str = "",
    typed: Mapping[str, str] | None = None,
) -> Response:
    found = await visit.facts.list(shared=False, confirmed=False, after=after, limit=SHOWN + 1)
    waiting, beyond = found[:SHOWN], found[SHOWN - 1].id if len(found) > SHOWN else None
    place = next((place for place, one in enumerate(waiting) if one.id >= at), None)
    fact = None if place is None else waiting[place]
    return await visit.page(
        "people/review.html",
        status=409 if error else 200,
        waiting=waiting,
        place=place,
        fact=fact,
        beyond=beyond,
        after=after,
        subject=await subject_of(visit, fact) if fact else None,
        sources=await visit.facts.sources(fact.id) if fact else [],
        categories=await categories(visit),
        did=did,
        done=done,
        deleted=deleted,
        error=error,
        typed=typed or {} if fact and fact.id == at else {},
    )
