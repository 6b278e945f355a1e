"""The inspector as an app beside the API: its routes behind a gate of their own, signing in, static files, errors."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from html import escape
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hitherto.core.scope import checked_name
from hitherto.engine.memory import Memory
from hitherto.errors import (
    Forbidden,
    HithertoError,
    InvalidInput,
    InvalidScope,
    NotFound,
    ServiceError,
    TooLarge,
    Unauthorized,
)
from hitherto.http.problems import headers_of, problem_of
from hitherto.http.server.callers import Caller, Limits, check_site
from hitherto.http.server.gate import RequestGate
from hitherto.web.sessions import COOKIE, Sessions, form_token, session_in
from hitherto.web.templating import HERE, ROOT, name_in
from hitherto.web.views import ROUTES
from hitherto.web.views.erase import own_tenant_erased
from hitherto.web.views.export import DOWNLOAD
from hitherto.web.views.health import Doctor
from hitherto.web.visit import HEADERS, Visit, form_of, here_of, keep_session, templates

SIGN_IN = f"{ROOT}/sign-in"
_FILES = {
    "inspector.css": "text/css",
    "inspector.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}

_DOTS = re.compile(r"(?:\.|%2E){1,2}", re.IGNORECASE)
"""What browsers read as this part of an address or the one above."""

_OPEN = frozenset({SIGN_IN, *(f"{ROOT}/static/{name}" for name in _FILES)})
"""Paths that need no session."""


_TITLES = {403: "Not allowed", 404: "Not found", 413: "Too long", 422: "Not possible"}
"""What pages of errors are headed with, by status: what errors say of themselves is for who calls the API."""

_LARGEST_FORM = 100_000
"""Bytes. Names, facts and what is typed to confirm take a few thousand."""


def create_inspector(memory: Memory, keys: bool, limits: Limits, *, doctor: Doctor | None = None) -> ASGIApp:
    """The pages on an open memory, for paths that begin with `ROOT`. With `keys`, visitors sign in with one. `doctor`
    checks the database and the models."""
    limits = replace(limits, size=min(limits.size, _LARGEST_FORM))
    services = memory._services  # pyright: ignore[reportPrivateUsage] — the service is part of Hitherto
    gate = RequestGate(
        _application(),
        memory=memory,
        authentication=Sessions(services.store.keys if keys else None, limits),
        streamed=(),
        lasting=(ROOT + DOWNLOAD,),
        media="application/x-www-form-urlencoded",
        open=_OPEN.__contains__,
        refuse=_refusal,
        cookie=COOKIE,
        more={"doctor": doctor, "price": services.price},
    )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        """HEAD is answered as GET, of which the server leaves the body out, but for an export, which would be made."""
        head = scope.get("method") == "HEAD" and scope["path"] != ROOT + DOWNLOAD
        await gate({**scope, "method": "GET"} if head else scope, receive, send)

    return answer


def _application() -> FastAPI:
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.include_router(ROUTES)
    app.include_router(_entrance, prefix=ROOT)
    app.add_api_route("/", _first_page)
    app.add_exception_handler(HithertoError, _own_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(Exception, _unexpected_error)
    return app


async def _first_page() -> Response:
    """For who left the path out, where nothing else is served beside the pages."""
    return RedirectResponse(ROOT, 303, HEADERS)


_entrance = APIRouter()


@_entrance.get("/sign-in")
async def sign_in_page(request: Request, to: str = ROOT) -> Response:
    """Where a visitor signs in, and then goes on at `to`."""
    sessions: Sessions = request.scope["authentication"]
    if not sessions.needed:
        return RedirectResponse(_own(to), 303, HEADERS)
    return _sign_in(request, to)


@_entrance.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Begin a session."""
    try:
        check_site(request.headers, ())
    except Forbidden:
        raise Forbidden("a page of another site has sent this; sign in on the page of this service") from None
    found = dict(parse_qsl((await request.body()).decode(errors="replace")))
    to = _own(found.get("to", ROOT))
    sessions: Sessions = request.scope["authentication"]
    if not sessions.needed:
        return RedirectResponse(to, 303, HEADERS)
    try:
        session = await sessions.sign_in(found.get("key", ""))
    except Unauthorized as error:
        return _sign_in(request, to, error=str(error), status=401)
    answer = RedirectResponse(to, 303, HEADERS)
    keep_session(answer, session, request)
    return answer


@_entrance.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    await form_of(request)
    sessions: Sessions = request.scope["authentication"]
    sessions.sign_out(session_in(request.headers))
    answer = RedirectResponse(SIGN_IN, 303, HEADERS)
    answer.delete_cookie(COOKIE, path=ROOT)
    return answer


@_entrance.get("/static/{name}")
async def static(name: str) -> Response:
    """A file that pages need."""
    if name not in _FILES:
        raise NotFound("there is no such file")
    kept = {**HEADERS, "Cache-Control": "max-age=3600"}
    return Response((HERE / "static" / name).read_bytes(), media_type=_FILES[name], headers=kept)


def _sign_in(request: Request, to: str, *, error: str = "", status: int = 200) -> Response:
    # Only the session that did it is told: a link could say anything.
    erased = own_tenant_erased(request.scope["memory"], session_in(request.headers))
    page = templates().get_template("sign_in.html").render(to=to, error=error, erased=erased)
    return HTMLResponse(page, status, HEADERS)


def _own(address: str) -> str:
    """An address of these pages, else their first: a link must not lead elsewhere by way of them."""
    inside = address == ROOT or address.startswith((f"{ROOT}/", f"{ROOT}?"))
    above = any(_DOTS.fullmatch(part) for part in re.split("[?#]", address)[0].split("/"))
    return address if inside and not above and "\\" not in address and address.isprintable() else ROOT


def _page_of_form(headers: Headers) -> str:
    """The address of the page on which a form stands, by what the browser says of it."""
    _, _, page = headers.get("Referer", "").partition("://")
    host, slash, address = page.partition("/")
    return slash + address if host == headers.get("Host") else ROOT


def _refusal(scope: Scope, error: HithertoError) -> Response:
    """An error as a page. Who has no session is led to where they sign in."""
    if isinstance(error, Unauthorized):
        headers = dict[bytes, bytes](scope["headers"])
        here = here_of(scope) if scope["method"] == "GET" else _page_of_form(Headers(scope=scope))
        if b"hx-request" in headers:  # a part of a page, which is to be loaded again as a whole
            return Response(status_code=401, headers=HEADERS | {"HX-Refresh": "true"})
        if headers.get(b"sec-fetch-site") == b"cross-site" and COOKIE.encode() not in headers.get(b"cookie", b""):
            # A link on another site's page: the browser leaves the session out, and has it with a page's own request.
            again = f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(_own(here))}"><title>…</title>'
            return HTMLResponse(again, 200, HEADERS)
        return RedirectResponse(f"{SIGN_IN}?to={quote(_own(here), safe='')}", 303, HEADERS)
    problem = problem_of(error)
    status = problem["status"]
    title = _TITLES.get(status, problem["title"])
    detail = "what the form has sent is too long for it" if isinstance(error, TooLarge) else problem["detail"]
    page = templates().get_template("error.html").render(title=title, detail=detail, **_around(scope))
    return HTMLResponse(page, status, HEADERS | headers_of(error))


def _around(scope: Scope) -> dict[str, object]:
    """What the frame of an error's page needs: the pages of the visitor's tenant, where it is known who that is."""
    caller: Caller | None = scope.get("caller")
    if caller is None:
        return {"frame": "layout.html", "visit": None}
    tenant, parts = caller.tenant, scope["path"].split("/")
    if caller.key is None and len(parts) > 3:
        with suppress(InvalidScope):
            tenant = checked_name(name_in(parts[2]), "tenant")
    request = Request(scope)
    token = form_token(session_in(request.headers))
    visit = Visit(request, tenant)
    return {"frame": "page.html", "visit": visit, "tenant": tenant, "form_token": token, "here": here_of(scope)}


async def _own_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HithertoError)
    request.scope["error"] = error
    return _refusal(request.scope, error)


async def _unexpected_error(request: Request, error: Exception) -> Response:
    return _refusal(request.scope, ServiceError("the service has failed; its log says why"))


async def _invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = error.errors()[0]
    return _refusal(request.scope, InvalidInput(f"{wrong['loc'][-1]}: {wrong['msg']}"))


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _refusal(request.scope, NotFound("there is no such page"))
    return _refusal(request.scope, Forbidden(f"this page cannot be asked for so: {error.detail}"))
