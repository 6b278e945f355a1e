"""The app: the routes of the API, health, readiness and metrics, behind the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp

from hitherto.core.key import Right, hash_of
from hitherto.engine.memory import Memory
from hitherto.errors import DatabaseUnavailable, HithertoError, InvalidInput, ServiceError
from hitherto.http.operations import HEADERS, OPERATIONS
from hitherto.http.problems import MEDIA_TYPE
from hitherto.http.server import endpoints
from hitherto.http.server.callers import Authentication, Limits, needs
from hitherto.http.server.gate import RequestGate
from hitherto.http.server.mcp import MCP_HEADERS, add_mcp
from hitherto.http.server.responses import encoded, problem
from hitherto.http.server.streams import PATHS, add_streams
from hitherto.http.shapes import LEFT_OUT
from hitherto.watching import CONTENT_TYPE

if TYPE_CHECKING:
    from hitherto.store.keys import KeyStore

_ABOUT = """Conversation memory for LLM agents: every message kept, every turn within its token budget.

The tenant of a request is that of its key; user and agent are named in the headers Hitherto-User and Hitherto-Agent,
percent-encoded. Errors are problem details (RFC 9457), whose `type` ends with the name of the error."""


_READY = 2.0
"""Seconds within which a ready database answers."""

_PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "What is wrong, as RFC 9457 has it.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "urn:hitherto: and the name of the error."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


@dataclass(frozen=True, kw_only=True)
class MorePaths:
    """Paths beside the API's own. `add` adds their routes to a router; the answers of those in `lasting` may take any
    time; `scope` is put into the scope of each request."""

    add: Callable[[APIRouter], None]
    lasting: Collection[str]
    scope: Mapping[str, Any]


def create_app(
    memory: Memory, *, keys: bool, limits: Limits, origins: Sequence[str] = (), more: MorePaths | None = None
) -> ASGIApp:
    """The service on an open memory. With `keys`, every request but for health and readiness needs one. Web pages of
    these `origins` may call it from a browser."""
    app = application(more and more.add)
    app.state.document()  # made now: it takes long
    store = memory._services.store  # pyright: ignore[reportPrivateUsage] — the service is part of Hitherto
    gate = RequestGate(
        app,
        memory=memory,
        authentication=Authentication(store.keys if keys else None, limits, origins),
        streamed=PATHS,
        lasting=more.lasting if more else (),
        more={**(more.scope if more else {}), "readiness": _Readiness(store.keys)},
    )
    if not origins:
        return gate
    return CORSMiddleware(
        gate,
        allow_origins=origins,
        allow_methods=["*"],
        allow_headers=[*HEADERS, *MCP_HEADERS, "Authorization", "Content-Type", "If-Match"],
        expose_headers=["ETag", "Link", "Retry-After"],
    )


@cache
def application(add: Callable[[APIRouter], None] | None = None) -> FastAPI:
    """The routes of the service, and those that `add` adds. Which memory they are for, the gate puts into a request's
    scope."""
    app = FastAPI(
        title="Hitherto",
        version=version("hitherto"),
        description=_ABOUT,
        redirect_slashes=False,
        openapi_url=None,
        responses=_problems(),
        separate_input_output_schemas=True,
    )
    for operation in OPERATIONS:
        endpoints.add(app.router, operation)
    add_streams(app.router)
    add_mcp(app.router)
    if add is not None:
        add(app.router)

    @app.get("/healthz", tags=["Service"], operation_id="service_health", summary="Whether the process is up")
    async def healthz() -> dict[str, str]:
        """The process is up."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["Service"], operation_id="service_ready", summary="Whether the database can be reached")
    async def readyz(request: Request) -> dict[str, str]:
        """The process is up and reaches its database: 503 if not."""
        readiness: _Readiness = request.scope["readiness"]
        await readiness.check()
        return {"status": "ok"}

    @app.get(
        "/metrics",
        tags=["Service"],
        operation_id="service_metrics",
        summary="Metrics for Prometheus",
        response_class=Response,
        dependencies=[needs(Right.ADMIN)],
    )
    async def metrics(request: Request) -> Response:
        """The counters of this process and the digest backlog, for Prometheus. Needs the right `admin`."""
        memory: Memory = request.scope["memory"]
        return Response(await memory.metrics(), media_type=CONTENT_TYPE)

    app.add_exception_handler(HithertoError, _own_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(Exception, _unexpected_error)
    app.openapi = partial(_document, app)
    app.state.document = document = cache(lambda: encoded(app.openapi()))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(document(), media_type="application/json")

    return app


class _Readiness:
    """Whether the database can be reached. All who ask while it is asked get its one answer: many wait no longer than
    one."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys
        self._asking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raises StoreError."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_READY):
                await self._keys.find(hash_of(""))
        except TimeoutError:
            raise DatabaseUnavailable(f"the database has given no answer for {_READY:g} seconds") from None


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what FastAPI does not know of: keys, and the form of problems."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        parts = document.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = _PROBLEM
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        message = parts["schemas"]["Message"]
        message["required"].remove("text")
        message["properties"]["text"]["description"] = " ".join(LEFT_OUT.split())
        for name, schema in parts["schemas"].items():
            schema["title"] = name  # each its own: generators name their types by it
            for field in schema.get("properties", {}).values():
                if field.get("type") == "object" and not isinstance(field.get("default", {}), dict):
                    field["default"] = {}  # which a text of JSON stands for
    return app.openapi_schema or {}


async def _own_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HithertoError)
    request.scope["error"] = error
    return problem(error)


async def _unexpected_error(_: Request, error: Exception) -> Response:
    return problem(ServiceError("the service has failed; its log says why"))


async def _invalid_request(_: Request, error: Exception) -> Response:
    """What a request lacks or has too much of: where, and why. What it says there is not repeated."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {"where": ".".join(map(str, wrong["loc"])), "why": wrong["msg"].removeprefix("Value error, ")}
        for wrong in error.errors()
    ]
    return problem(InvalidInput("; ".join(f"{wrong['where']}: {wrong['why']}" for wrong in errors[:5])), errors=errors)


async def _http_exception(request: Request, error: Exception) -> Response:
    """A path or a method that there is not, a body that is no JSON."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return problem(ServiceError("the service has no such path; /openapi.json tells of all that it has"), status=404)
    made = problem(InvalidInput(error.detail), status=error.status_code)
    if error.status_code == 405:
        made.headers["Allow"] = ", ".join(_methods(request))
    return made


def _methods(request: Request) -> list[str]:
    """The methods that the path knows: each is a route of its own."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    known = (methods for pattern, methods in paths.items() if compile_path(pattern)[0].match(request.scope["path"]))
    return sorted({method.upper() for methods in known for method in methods})


def _problems() -> dict[int | str, dict[str, Any]]:
    """The problems that any request can get, for the document."""
    descriptions = {
        400: "The request is not one that the service can read.",
        401: "There is no key, or not a usable one.",
        403: "The key does not allow this.",
        404: "There is no such thing in this scope, or no such path.",
        405: "The path does not know this method.",
        408: "The request took too long.",
        409: "Another call got there first, or the idempotency key was used otherwise.",
        413: "The body is too large.",
        415: "The body is in a form that is not read here.",
        422: "What was given cannot be used.",
        429: "The key allows no more requests for now.",
        500: "The service has failed.",
        503: "The database or a model is away: try again after Retry-After.",
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": text, "content": content} for status, text in descriptions.items()}
