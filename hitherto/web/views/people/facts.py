"""The facts of a person: a list by category, and a fact that is added by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.facts.fact import LONGEST_FACT, Fact
from hitherto.core.key import Right
from hitherto.core.plain_text import plain
from hitherto.errors import InvalidFact, InvalidInput
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
        added = await about.add(sentence_in(form), category=form.get("category") or None)
    except InvalidInput as error:
        return await _page(visit, {"state": "current"}, 0, error=str(error), typed=form)
    return visit.to(path(visit.base, "facts", added.id))


def sentence_in(form: Mapping[str, str]) -> str:
    """The fact that a form has. Raises InvalidFact for one that is too long."""
    said = form.get("content", "")
    if (length := len(plain(said))) > LONGEST_FACT:
        raise InvalidFact(
            f"the fact has {length:,} characters; a fact is one sentence of at most {LONGEST_FACT}: what is longer "
            "belongs into a document"
        )
    return said


async def categories(visit: Visit) -> tuple[str, ...]:
    """Those that are defined."""
    return (await visit.memory.settings()).fact_categories


async def subject_names(visit: Visit, facts: Iterable[Fact]) -> dict[str, str]:
    """The names of what the facts are about, for those who may know them: operators."""
    ids = {one.subject for one in facts if one.subject} if visit.may("admin") else ()
    known = [await visit.memory.subject(one, tenant=visit.tenant) for one in ids]
    return {one.id: one.name for one in known if one is not None}


async def _known(visit: PersonVisit) -> int | None:
    """How many facts of the person's own hold now. Only operators may count them."""
    if not visit.may("admin"):
        return None
    person = visit.person
    found = await visit.memory.scopes("agent", tenant=person.tenant, user=person.user, limit=1_000)
    return next((one.facts for one in found.scopes if one.name == person.agent), None)


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
        paged=bool(more or after),
        count=await _known(visit) if more or after else len(found),
        subjects=await subject_names(visit, found),
        categories=defined,
        error=error,
        typed=typed or {},
    )
