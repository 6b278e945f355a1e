"""The service with the conformance suite's fixtures beside our tools: `python -m … DATABASE FOLDER`.

The fixtures are the SDK's example server, in FOLDER. With --sessions the endpoint keeps sessions, as that example does;
ours keeps none.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolRequestParams, ListToolsResult, PaginatedRequestParams
from starlette.types import Receive, Scope, Send

import hitherto
from hitherto.http.server import mcp as ours
from hitherto.http.server.app import MorePaths
from hitherto.http.server.serve import listening, serve
from hitherto.mcp.tools import TOOLS
from hitherto.settings import Settings

OURS = {tool.name for tool in TOOLS}


def beside(theirs: Server[Any], found: Server[Any]) -> Server[Any]:
    """The fixtures' server, which lists and calls our tools too."""
    lists, our_list = (cast(Any, one.get_request_handler("tools/list")) for one in (theirs, found))
    calls, our_call = (cast(Any, one.get_request_handler("tools/call")) for one in (theirs, found))

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        listed, added = await lists.handler(ctx, params), await our_list.handler(ctx, params)
        return ListToolsResult(tools=[*listed.tools, *added.tools])

    async def call_tool(ctx: Any, params: CallToolRequestParams) -> Any:
        return await (our_call if params.name in OURS else calls).handler(ctx, params)

    theirs.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    theirs.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    return theirs


async def main(database: str, *, sessions: bool) -> None:
    from mcp_everything_server.server import event_store  # pyright: ignore — in a folder that is named when it runs
    from mcp_everything_server.server import mcp as fixtures  # pyright: ignore

    make = ours.mcp_server
    theirs = cast("Server[Any]", fixtures._lowlevel_server)
    ours.mcp_server = lambda find: beside(theirs, make(find))
    manager = StreamableHTTPSessionManager(theirs, event_store=event_store, retry_interval=100)

    async def with_sessions(scope: Scope, receive: Receive, send: Send) -> None:
        await manager.handle_request(scope, receive, send)

    if sessions:
        ours.McpEndpoint.__call__ = lambda self, scope, receive, send: with_sessions(scope, receive, send)
    more = MorePaths(add=lambda _: None, lasting={ours.MCP}, scope={}) if sessions else None
    settings = Settings.load(database=database, port=0)
    with listening(settings) as at:
        async with hitherto.open(database) as memory, manager.run():
            sys.stdout.write(f"{at.getsockname()[1]}\n")
            sys.stdout.flush()
            await serve(memory, settings, at, keys=False, more=more)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    asyncio.run(main(sys.argv[1], sessions="--sessions" in sys.argv))
