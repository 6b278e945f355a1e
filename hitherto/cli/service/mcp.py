"""`hitherto mcp`: the tools of an agent's memory for a client of the Model Context Protocol."""

from __future__ import annotations

import os
from typing import Annotated

import typer

import hitherto
from hitherto import logs
from hitherto.cli.memory import run
from hitherto.cli.options import Target
from hitherto.core.key import Right
from hitherto.errors import InvalidInput

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
        from hitherto.mcp.stdio import ClaimedStreams, rights_over_http, serve_stdio
    except ImportError as error:
        raise InvalidInput(f"this needs {error.name}: pip install 'hitherto[mcp]'") from error
    streams = ClaimedStreams()
    logs.plain_lines()

    async def work() -> None:
        if url:
            async with hitherto.connect(url, key=os.environ.get(KEY)) as memory:
                rights = await rights_over_http(memory, target.scope)
                await serve_stdio(memory, target.scope, streams, rights=rights)
        else:
            async with hitherto.open(target.database) as memory:
                await serve_stdio(memory, target.scope, streams, rights=frozenset({Right.ADMIN}))

    run(work())
