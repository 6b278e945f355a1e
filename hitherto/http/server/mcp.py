"""The path /mcp: the tools of an agent's memory, behind the gate, for clients of the Model Context Protocol."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hitherto.core.key import Right
from hitherto.engine.memory import Memory
from hitherto.http.operations import MCP
from hitherto.http.problems import detail_of
from hitherto.http.server.callers import Caller
from hitherto.http.server.signatures import replayed
from hitherto.mcp.server import McpAccess, mcp_server
from hitherto.mcp.unreadable import unreadable_answer

MCP_HEADERS = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
"""Headers that clients send with each request."""


def add_mcp(router: APIRouter) -> None:
    """Add the path."""
    router.routes.append(Route(MCP, McpEndpoint(mcp_server(find_access))))


class McpEndpoint:
    """The path of a server. Each request stands for itself: any process may answer the next one. So there is nothing to
    listen to (GET) nor to end (DELETE)."""

    path = MCP

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self  # whose path logs and metrics name
        if scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        caller: Caller = scope["caller"]
        body = (await receive())["body"]  # the whole of it: the gate has read it
        if (error := unreadable_answer(body)) is not None:
            content = error.model_dump_json(by_alias=True, exclude_unset=True)
            await Response(content, 400, media_type="application/json")(scope, receive, send)
            return
        size = caller.limits.size
        sessions = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=size)
        async with sessions.run():
            await sessions.handle_request(scope, replayed(body, receive), send)


def find_access(ctx: ServerRequestContext[Any]) -> McpAccess:
    """What the key of a request allows: the tenant is the key's, user and agent are as for the API."""
    request: Any = ctx.request
    assert isinstance(request, Request)
    caller: Caller = request.scope["caller"]
    rights = frozenset({Right.ADMIN}) if caller.key is None else caller.key.rights

    async def open_memory() -> Memory:
        return request.scope["memory"]

    return McpAccess(open_memory, rights, lambda: caller.scope(request.headers), tell=detail_of)
