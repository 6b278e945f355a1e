"""Erasing a user, a subject or the tenant: what would go, and how far it is."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from fastapi import APIRouter
from starlette.responses import Response

from hitherto.core.key import Right
from hitherto.engine.log.erase_scope import ErasureReport
from hitherto.engine.memory import Memory
from hitherto.errors import HithertoError, InvalidInput
from hitherto.http.server.callers import needs
from hitherto.logs import logger
from hitherto.web.sessions import form_token, session_in
from hitherto.web.templating import path, plain
from hitherto.web.visit import Visit, Visiting

router = APIRouter(dependencies=[needs(Right.ADMIN)])
log = logger("hitherto.http")

KEPT = 100
"""Erasures that have ended and are remembered."""

_CODE = re.compile(re.escape(unicodedata.normalize("NFKC", plain("\u200b"))).replace("200B", "[0-9A-F]{4,6}"))
"""A sign that a page shows as its code."""


@dataclass
class Work:
    """An erasure that this process does. `before` is what was there when it began, by the session of this `token`;
    `report` is there once nothing shows what was erased."""

    before: ErasureReport
    token: str
    report: ErasureReport | None = None
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether the search index is rebuilt too, or it has failed."""
        return self.task is not None and self.task.done()

    @property
    def error(self) -> str:
        """Why it has failed."""
        if self.task is None or not self.task.done() or self.task.cancelled():
            return ""
        error = self.task.exception()
        if error is None or isinstance(error, HithertoError):
            return str(error or "")
        return "the service has failed; its log says why"


_WORK = WeakKeyDictionary[Memory, dict[tuple[str, str, str], Work]]()


@router.get("/{tenant}/erase")
async def erase(visit: Visiting, *, what: str = "", name: str = "") -> Response:
    """What would go of the user, the subject or the tenant (`what`) of this name."""
    return await _page(visit, what, name)


@router.post("/{tenant}/erase")
async def begin(visit: Visiting, *, what: str = "", name: str = "") -> Response:
    """Begin, and go on to how far it is. The name is in the address: in a field, browsers would change its newlines."""
    form = await visit.form()
    before = await _left(visit, what, name)
    if not is_typed(form, name):
        return await _page(visit, what, name, error="That is not the name. Nothing was erased.")
    work = _works(visit.memory)
    if (there := work.get((visit.tenant, what, name))) is None or there.ended:
        made = work[visit.tenant, what, name] = Work(before, form_token(session_in(visit.request.headers)))
        made.task = asyncio.create_task(_erase(visit.memory, visit.tenant, what, name, made))
        made.task.add_done_callback(_log)
    return visit.to(path(visit.tenant, "erase", "progress", what=what, name=name))


@router.get("/{tenant}/erase/progress")
async def progress(visit: Visiting, *, what: str, name: str) -> Response:
    """How far an erasure is."""
    left, work = await _left(visit, what, name), _works(visit.memory).get((visit.tenant, what, name))
    return await visit.page("erase_progress.html", what=what, name=name, left=left, work=work)


def own_tenant_erased(memory: Memory, session: str) -> tuple[str, Work] | None:
    """The tenant that this session erased, and its own key with it."""
    token = form_token(session) if session else ""
    works = _works(memory).items()
    return next(((name, work) for (_, what, name), work in works if what == "tenant" and work.token == token), None)


def is_typed(form: Mapping[str, str], name: str) -> bool:
    """Whether a form has a name as one reads it: blanks and signs that are not seen do not count, nor do the codes by
    which pages show these."""
    typed = form.get("typed", "")
    return bool(typed.strip()) and _seen(typed) in (_seen(name), _seen(plain(name)))


def _seen(name: str) -> str:
    shown = _CODE.sub("", unicodedata.normalize("NFKC", name))
    return "".join(sign for sign in shown if unicodedata.category(sign)[0] not in "CZ")


async def _page(visit: Visit, what: str, name: str, *, error: str = "") -> Response:
    left = await _left(visit, what, name) if what else None
    return await visit.page("erase.html", status=422 if error else 200, what=what, name=name, left=left, error=error)


async def _left(visit: Visit, what: str, name: str) -> ErasureReport:
    """What is kept of it. Raises InvalidInput for what cannot be erased here."""
    match what:
        case "user" if name:
            found = (await visit.memory.scopes("user", tenant=visit.tenant, user=name, limit=1)).scopes
        case "tenant" if name == visit.tenant:
            found = (await visit.memory.scopes("tenant", tenant=name, limit=1)).scopes
        case "subject" if name:
            return await visit.memory.kept_about(visit.tenant, name)
        case _:
            raise InvalidInput("say who or what is to be erased: a user, a subject, or this tenant, by name")
    return ErasureReport(
        conversations=sum(one.conversations for one in found),
        messages=sum(one.messages for one in found),
        documents=sum(one.documents for one in found),
        facts=sum(one.facts for one in found),
    )


async def _erase(memory: Memory, tenant: str, what: str, name: str, work: Work) -> None:
    match what:
        case "user":
            work.report = await memory.erase_user(tenant, name)
        case "subject":
            work.report = await memory.erase_subject(tenant, name)
        case _:
            work.report = await memory.erase_tenant(tenant)
    await memory.wait_for_erasure(tenant=tenant)


def _log(task: asyncio.Task[None]) -> None:
    """Of an error, its kind: its text may quote what was to be erased."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error(
            "An erasure failed: %s. Begin it again; a user's or a tenant's goes on by itself", type(error).__name__
        )


def _works(memory: Memory) -> dict[tuple[str, str, str], Work]:
    works = _WORK.setdefault(memory, {})
    for key in [key for key, work in works.items() if work.ended][:-KEPT]:
        del works[key]
    return works
