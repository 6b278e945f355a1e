"""Whose memory a request for these paths is about."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Header, Request
from starlette.datastructures import Headers

from hitherto import Scope
from hitherto.http.server.callers import AGENT, USER, Caller

UserHeader = Annotated[str | None, Header(alias=USER, description="The user, percent-encoded.")]
AgentHeader = Annotated[
    str | None,
    Header(alias=AGENT, description="The agent, percent-encoded; without it, the first that the service runs."),
]


async def _scope_of(request: Request, header_user: UserHeader = None, header_agent: AgentHeader = None) -> Scope:
    """Raises as `Caller.scope` does."""
    caller: Caller = request.scope["caller"]
    headers, setup = request.headers, request.scope["agents"]
    if AGENT not in headers and setup is not None:
        first = quote(next(iter(setup.configurations)))
        headers = Headers(raw=[*headers.raw, (AGENT.lower().encode(), first.encode())])
    return caller.scope(headers)


RequestScope = Annotated[Scope, Depends(_scope_of)]
"""The scope of a request: as everywhere, but that it need not name an agent where the service runs one."""
