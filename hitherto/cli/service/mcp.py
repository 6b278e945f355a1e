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
from hitherto.cli.options import Target
from hitherto.core.key import Right
from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from hitherto.engine.memory import Memory

KEY = "HITHERTO_KEY"
"""The variable with the key to a service."""


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
        from hitherto.mcp.stdio import ClaimedStreams, LateMemory, rights_over_http, serve_stdio
    except ImportError as error:
        raise InvalidInput(f"this needs {error.name}: pip install 'hitherto[mcp]'") from error
    streams = ClaimedStreams()
    logs.plain_lines()

    async def connected() -> Memory:
        return await hitherto.connect(url or "", key=os.environ.get(KEY))

    async def opened() -> Memory:
        await asyncio.to_thread(import_module, "hitherto.wiring")  # while the client is answered
        return await hitherto.open(target.database)

    async def work() -> None:
        async with LateMemory(connected if url else opened) as memory:
            rights = await rights_over_http(await memory(), target.scope) if url else frozenset({Right.ADMIN})
            await serve_stdio(memory, target.scope, streams, rights=rights)

    run(work())
