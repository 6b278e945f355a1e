"""`hitherto mcp`: the tools of an agent's memory for a client of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

import hitherto
from hitherto import logs
from hitherto.cli.memory import run
from hitherto.cli.options import LOCAL_TENANT, Target
from hitherto.core.key import Right
from hitherto.errors import InvalidInput, Unauthorized

if TYPE_CHECKING:
    from hitherto.core.scope import Scope
    from hitherto.engine.memory import Memory
    from hitherto.mcp.stdio import ClaimedStreams

KEY = "HITHERTO_KEY"
"""The variable with the key to a service."""

_PATIENCE = 60.0
"""Seconds that a service may take for an answer."""


def mcp(
    *,
    target: Target,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A service in place of a database; its key is in HITHERTO_KEY."),
    ] = None,
) -> None:
    """Serve the memory's tools to a coding agent, over standard input and output.

    The agent's program starts this command: see docs/mcp.md for the line that each needs.
    """
    if url and target.database:
        raise InvalidInput("--url and --database are two places; give one of them")
    try:
        from hitherto.mcp.server import McpAccess, mcp_server
        from hitherto.mcp.stdio import ClaimedStreams, LateMemory, serve_stdio
    except ImportError as error:
        raise InvalidInput(f"this needs {error.name}: pip install 'hitherto[mcp]'") from error
    streams = ClaimedStreams()
    logs.plain_lines()

    async def opened() -> Memory:
        await asyncio.to_thread(import_module, "hitherto.wiring")  # while the client is answered
        return await hitherto.open(target.database)

    async def of_database() -> None:
        async with LateMemory(opened) as memory:
            access = McpAccess(memory, [Right.ADMIN], lambda: target.scope)
            await serve_stdio(mcp_server(lambda _: access), streams)

    run(_of_service(url, target.scope, streams) if url else of_database())


async def _of_service(url: str, scope: Scope, streams: ClaimedStreams) -> None:
    """Serve what a service has at `url`, with or without the path of its tools. Its tenant is the key's: the default
    one is not named."""
    try:
        from hitherto.http.client.service import Service, scope_headers
    except ImportError as error:
        raise InvalidInput(f"--url needs {error.name}: pip install 'hitherto[mcp,client]'") from error
    from hitherto.http.operations import MCP, TENANT
    from hitherto.mcp.passing_on import HEADERS, check_service, service_server
    from hitherto.mcp.stdio import serve_stdio

    headers = scope_headers(scope) | HEADERS
    if scope.tenant == LOCAL_TENANT:
        del headers[TENANT]
    service = Service(url.rstrip("/").removesuffix(MCP), os.environ.get(KEY), timeout=_PATIENCE)

    async def post(body: bytes) -> bytes:
        return await service.request("POST", MCP, repeatable=False, first=True, data=body, headers=headers)

    try:
        try:
            await check_service(post)
        except Unauthorized as error:
            raise Unauthorized(f"{error}; it comes from the variable {KEY}") from None
        await serve_stdio(service_server(post), streams)
    finally:
        await service.aclose()
