"""A service in the tests' own event loop: real HTTP over loopback, with keys."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast
from urllib.parse import unquote

from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from starlette.types import ASGIApp

import hitherto
from hitherto import Memory
from hitherto.http.client.remote import RemoteMemory
from hitherto.http.operations import TENANT
from hitherto.http.server.app import MorePaths, create_app
from hitherto.http.server.callers import Limits
from hitherto.http.server.serve import server
from tests.conftest import SCOPE
from tests.patience import PATIENCE

LIMITS = Limits(requests=None, size=2**24, seconds=PATIENCE)


@asynccontextmanager
async def serving(
    memory: Memory,
    *,
    keys: bool = True,
    limits: Limits = LIMITS,
    origins: Sequence[str] = (),
    more: MorePaths | None = None,
    port: int = 0,
) -> AsyncGenerator[str]:
    """The address of a service on the memory, at a free port or at this one."""
    async with listening(create_app(memory, keys=keys, limits=limits, origins=origins, more=more), port) as url:
        yield url


@asynccontextmanager
async def listening(app: ASGIApp, port: int = 0) -> AsyncGenerator[str]:
    """The address at which an app is served."""
    at = socket.create_server(("127.0.0.1", port))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=at.detach())
    made = server(app, grace=1)
    made.config.load()
    made.lifespan = made.config.lifespan_class(made.config)
    await made.startup(sockets=[listener])  # `serve` would look every 0.1 s whether it is to end
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await made.shutdown(sockets=[listener])


def _with_keys_of_tenants(memory: Memory) -> ClientMiddlewareType:
    """Gives each request the key of the tenant that it names."""
    keys = dict[str, str]()

    async def send(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        tenant = unquote(request.headers.get(TENANT, SCOPE.tenant))
        if tenant not in keys:
            keys[tenant] = (await memory.keys(tenant).create("tests", rights=["admin"])).secret
        request.headers["Authorization"] = f"Bearer {keys[tenant]}"
        return await handler(request)

    return send


@asynccontextmanager
async def over_http(memory: Memory, tenant: str | None = None) -> AsyncGenerator[Memory]:
    """The memory as a client of a service has it, with a key of the tenant, or else with one of each tenant that it
    asks for."""
    made = await memory.keys(tenant or SCOPE.tenant).create("tests", rights=["admin"])
    async with serving(memory) as url, hitherto.connect(url, key=made.secret) as remote:
        if tenant is None:
            cast(RemoteMemory, remote)._service._session._middlewares = (_with_keys_of_tenants(memory),)
        yield remote
