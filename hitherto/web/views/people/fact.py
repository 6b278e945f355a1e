"""A fact of a person: what it says, where that comes from, who sees it, what became of it, and what is like it."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.facts.fact import Fact, FactState
from hitherto.core.key import Right
from hitherto.engine.facts.facts import Facts
from hitherto.errors import InvalidFact, InvalidInput, NotFound, StaleVersion
from hitherto.http.problems import problem_of
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.views.people.facts import categories
from hitherto.web.visit import OfPerson, PersonVisit, number_in

router = APIRouter(dependencies=[needs(Right.READ)])

SHOWN = 15
"""Sources, events of its history, and facts that it replaced, which a page shows of a fact."""
ALIKE, AT_LEAST, AT_LEAST_IN_WORDS = 5, 1.7, 1.0
"""The most facts that are shown as similar to one, and how much of it each must have, in words and meaning, or in words
alone: facts that share no more than a name have less."""


@router.get("/{tenant}/people/{user}/{agent}/facts/{id}")
async def fact(visit: OfPerson, id: int, *, events: int = 0) -> Response:
    """A fact of the person's, or one that others share with the person, with its history after so many events."""
    return await _page(visit, id, events)


@router.post("/{tenant}/people/{user}/{agent}/facts/{id}", dependencies=[needs(Right.REVIEW)])
async def change(visit: OfPerson, id: int) -> Response:
    """Change it as the form says, and show it. A form that cannot be followed is shown again, with why."""
    form = await visit.form()
    try:
        await changed(visit.facts, id, form)
    except (InvalidFact, NotFound, StaleVersion) as error:
        return await _page(visit, id, error=error, typed=form)
    return visit.to(path(visit.base, "facts", id))


@router.get("/{tenant}/people/{user}/{agent}/facts/{id}/similar")
async def similar(visit: OfPerson, id: int) -> Response:
    """Current facts about the same that are worded like it, or mean the same where an embedder is set up."""
    found = await _there(visit, id)
    hits = await visit.memory.recall(
        found.content, scope=visit.person, subject=found.subject, kinds=["fact"], limit=ALIKE + 1, rerank=False
    )
    least = AT_LEAST if hits.space else AT_LEAST_IN_WORDS
    ids = [hit.fact for hit in hits.hits if hit.fact != id and hit.scores.fused >= least]
    read = [await visit.facts.get(one) for one in ids if one is not None]
    return await visit.page("people/similar.html", fact=found, alike=[one for one in read if one][:ALIKE])


async def changed(facts: Facts, id: int, form: Mapping[str, str]) -> Fact | None:
    """What a form does to a fact that is still as the form showed it. Raises as the verbs of `Facts` do."""
    expect = number_in(form, "expect")
    match form.get("action"):
        case "confirm":
            return await facts.confirm(id, expect=expect)
        case "edit":
            edited = {"content": form.get("content", ""), "category": form.get("category") or None}
            return await facts.edit(id, **edited, expect=expect)
        case "restore":
            return await facts.restore(id, expect=expect)
        case "share":
            return await facts.share(id, expect=expect)
        case "unshare":
            return await facts.unshare(id, expect=expect)
        case "delete":
            await facts.delete(id, expect=expect)
            return None
        case _:
            raise InvalidInput("this form does nothing that can be done to a fact")


def why(error: InvalidFact | NotFound | StaleVersion) -> str:
    """Why a form was not followed, in words for who sent it."""
    return "there is no such fact of this person any more" if isinstance(error, NotFound) else str(error)


async def _there(visit: PersonVisit, id: int) -> Fact:
    found = await visit.facts.get(id)
    if found is None:
        raise NotFound("there is no such fact of this person")
    return found


async def _page(
    visit: PersonVisit,
    id: int,
    events: int = 0,
    *,
    error: InvalidFact | NotFound | StaleVersion | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    found = await _there(visit, id)
    own, there = found.user == visit.person.user, found.state is not FactState.DELETED
    history = await visit.facts.history(id, after=events, limit=SHOWN) if own else ()
    first = await visit.facts.history(id, limit=1) if own and events else history
    return await visit.page(
        "people/fact.html",
        status=problem_of(error)["status"] if error else 200,
        fact=found,
        own=own,
        subject=await subject_of(visit, found),
        sources=await visit.facts.sources(id) if own and there else [],
        history=history,
        first=first[0] if first else None,
        replaced=await visit.facts.replaced(id, limit=SHOWN) if own and there else [],
        events=events,
        shown=SHOWN,
        categories=await categories(visit),
        error=why(error) if error else "",
        typed=typed or {},
    )


async def subject_of(visit: PersonVisit, fact: Fact) -> object:
    """The subject of a fact with its members, for those who may know them: operators."""
    known = fact.subject and visit.may("admin")
    return await visit.memory.subject(fact.subject, tenant=visit.tenant) if known else None
