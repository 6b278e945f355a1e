"""The server in front of a service: it passes each request on to the service's /mcp, and says so where that is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    JSONRPCError,
    JSONRPCResponse,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Result,
    jsonrpc_message_adapter,
)

from hitherto.core.key import Right
from hitherto.errors import HithertoError, ServiceError, ServiceUnavailable
from hitherto.mcp.server import McpAccess, mcp_server, result_of, sendable

Post = Callable[[bytes], Awaitable[bytes]]
"""Sends a request to /mcp of a service. Gives the body of the answer, or raises HithertoError."""

Answer = TypeVar("Answer", bound=Result)

HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
}
"""What a request has besides the key and the scope."""

_LISTS: dict[str, type[Result]] = {
    "tools/list": ListToolsResult,
    "resources/list": ListResourcesResult,
    "resources/templates/list": ListResourceTemplatesResult,
    "prompts/list": ListPromptsResult,
}
_CALLS: dict[str, tuple[type[RequestParams], type[Result]]] = {
    "tools/call": (CallToolRequestParams, CallToolResult),
    "resources/read": (ReadResourceRequestParams, ReadResourceResult),
    "prompts/get": (GetPromptRequestParams, GetPromptResult),
}

_LISTING = 5.0
"""Seconds after which a list is that of all there is: clients do not wait for long."""


async def check_service(post: Post) -> None:
    """Raises HithertoError where the service refuses; not where it is away, which may come back."""
    try:
        async with asyncio.timeout(_LISTING):
            await _asked(post, "tools/list", None, ListToolsResult)
    except (ServiceUnavailable, TimeoutError):
        pass


def service_server(post: Post) -> Server[Any]:
    """A server that asks the service for everything. While that is away, it lists all there is, and answers calls with
    what to do."""
    server = mcp_server(lambda _: McpAccess(_no_memory, [Right.ADMIN], _no_scope))
    for method, answer in _LISTS.items():
        otherwise = server.get_request_handler(method)
        assert otherwise is not None
        server.add_request_handler(method, PaginatedRequestParams, _lister(post, method, answer, otherwise.handler))
    for method, (params, answer) in _CALLS.items():
        server.add_request_handler(method, params, _caller(post, method, answer))
    return server


def _lister(post: Post, method: str, answer: type[Result], otherwise: Any) -> Any:
    async def lists(ctx: ServerRequestContext[Any], params: PaginatedRequestParams) -> Any:
        try:
            async with asyncio.timeout(_LISTING):
                return await _asked(post, method, params, answer)
        except (HithertoError, TimeoutError):
            return await otherwise(ctx, params)

    return lists


def _caller(post: Post, method: str, answer: type[Result]) -> Any:
    async def calls(_: ServerRequestContext[Any], params: RequestParams) -> Any:
        try:
            return await _asked(post, method, params, answer)
        except HithertoError as error:
            if answer is CallToolResult:
                return result_of(str(error), is_error=True)
            raise MCPError(INTERNAL_ERROR, sendable(str(error))) from None

    return calls


async def _asked(post: Post, method: str, params: RequestParams | None, answer: type[Answer]) -> Answer:
    """What the service answers. Raises HithertoError, and MCPError where it answers with one."""
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        request["params"] = params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
    body = await post(json.dumps(request).encode())
    try:
        line = next(line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(_BEGINS))
        said = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if isinstance(said, JSONRPCError):
            raise MCPError(said.error.code, said.error.message)
        assert isinstance(said, JSONRPCResponse)
        return answer.model_validate(said.result)
    except (ValueError, AssertionError, StopIteration):
        raise ServiceError(
            f"the service does not answer {method} as Hitherto does; is this its address, and is it of this version?"
        ) from None


_BEGINS = (b"data:", b"{")
"""How the line of an answer begins: it comes as an event, or as it is."""


async def _no_memory() -> NoReturn:
    raise AssertionError("the service is asked")


def _no_scope() -> NoReturn:
    raise AssertionError("the service is asked")
