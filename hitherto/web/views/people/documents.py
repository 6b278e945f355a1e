"""The documents of a person: what the user added, and what was archived of conversations."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.errors import NotFound
from hitherto.http.server.callers import needs
from hitherto.web.templating import path
from hitherto.web.visit import OfPerson

router = APIRouter(dependencies=[needs(Right.READ)])

PAGE = 50
PART = 25_000
"""Characters of a document's text that a page shows."""


@router.get("/{tenant}/people/{user}/{agent}/documents")
async def documents(
    visit: OfPerson, *, doc_type: str = "", before: int | None = None, removed: bool = False
) -> Response:
    """The documents, the last stored first."""
    kept, of_type = visit.memory.documents(visit.person), doc_type or None
    found = await kept.list(doc_type=of_type, before=before, limit=PAGE)
    more = bool(found) and await kept.list(doc_type=of_type, before=found[-1].id, limit=1)
    return await visit.page(
        "people/documents.html",
        listed=found,
        next=found[-1].id if more else None,
        doc_type=doc_type,
        before=before,
        removed=removed and visit.told,
    )


@router.get("/{tenant}/people/{user}/{agent}/documents/{id}")
async def document(visit: OfPerson, id: int, *, part: int = 0) -> Response:
    """A document, a part of its text at a time."""
    found = await visit.memory.documents(visit.person).get(id)
    if found is None:
        raise NotFound("there is no such document of this person")
    return await visit.page("people/document.html", document=found, part=max(part, 0), size=PART)


@router.post("/{tenant}/people/{user}/{agent}/documents/{id}", dependencies=[needs(Right.WRITE)])
async def remove(visit: OfPerson, id: int) -> Response:
    """Remove it."""
    await visit.form()
    if not await visit.memory.documents(visit.person).remove(id):
        raise NotFound("there is no such document of this person any more")
    return visit.to_told(path(visit.base, "documents", removed=True))
