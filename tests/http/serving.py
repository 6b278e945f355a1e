"""A service in the tests' own event loop: real HTTP over loopback, with keys."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import hitherto
from hitherto import Memory
from hitherto.http.server.app import create_app
from hitherto.http.server.callers import Limits
from hitherto.http.server.serve import server
from tests.conftest import SCOPE

LIMITS = Limits(requests=None, size=2**24, seconds=60.0)


@asynccontextmanager
async def serving(
    memory: Memory, *, keys: bool = True, limits: Limits = LIMITS, origins: Sequence[str] = ()
) -> AsyncGenerator[str]:
    """The address of a service on the memory."""
    app = create_app(memory, keys=keys, limits=limits, origins=origins)
    at = socket.create_server(("127.0.0.1", 0))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=at.detach())
    made = server(app, grace=1)
    running = asyncio.create_task(made.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        made.should_exit = True
        await running


@asynccontextmanager
async def over_http(memory: Memory, tenant: str = SCOPE.tenant) -> AsyncGenerator[Memory]:
    """The memory as a client of a service has it, with a key of the tenant."""
    made = await memory.keys(tenant).create("tests", rights=["admin"])
    async with serving(memory) as url, hitherto.connect(url, key=made.secret) as remote:
        yield remote
