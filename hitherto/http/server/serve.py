"""Serving an open memory over HTTP, until a signal."""

from __future__ import annotations

import asyncio
import gc
import socket
from ipaddress import ip_address
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hitherto import logs
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidSettings
from hitherto.http.server.app import MorePaths, create_app
from hitherto.http.server.callers import Limits
from hitherto.settings import Settings

log = logs.logger("hitherto.http")

_BACKLOG = 2_048
_IDLE = 130
"""Seconds that an idle connection is kept: longer than clients and proxies keep theirs (aiohttp 15, Caddy 120), so that
none sends a request into a connection that is just being closed."""

_LONGEST_HEAD = 65_536
"""Bytes of a request's path and headers, or of its trailers."""


class _Connection(HttpToolsProtocol):
    """Keeps no more than it must, where uvicorn's own would keep all that comes: refuses a head that goes on beyond
    `_LONGEST_HEAD`, and lets one request wait for the answer to the one before; of more, none is read, and the
    connection ends. It also ends after a request for another protocol, which there is none of."""

    _kept = 0
    """Bytes that have come since the parser last gave something out."""

    _in_head = False

    def data_received(self, data: bytes) -> None:
        self._kept += len(data)
        super().data_received(data)
        if self._kept > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        if self.pipeline:
            raise BlockingIOError("a request waits already")  # ends the parser's work
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer names no user, and is no key
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._kept, self._in_head = 0, False
        super().on_headers_complete()
        if b"upgrade" in dict(self.headers):  # the parser takes its body for the next request
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._kept = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self.pipeline:
            self.cycle.keep_alive = False  # what came before is answered
            self.flow.pause_reading()
        else:
            super().send_400_response(msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Would tell to install what WebSockets need."""


class _Server(uvicorn.Server):
    """Returns after a signal, where uvicorn's own lets it end the process; a second one ends at once what is under
    way. Logs `greeting` as soon as it serves and a signal is taken so."""

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log.info("%s", self._greeting)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        log.info("Service stopping: requests in progress get %s seconds", self.config.timeout_graceful_shutdown)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def listening(settings: Settings) -> socket.socket:
    """A socket that listens where the settings say. Raises InvalidSettings."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # The protocol's number is what makes asyncio send answers without delay.
        found = socket.socket(family, kind, protocol or socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
    except OSError as error:
        raise InvalidSettings(
            f"the service cannot listen at {settings.host}, port {settings.port}: {error.strerror or error}; see "
            "whether another process has the port and whether this machine has the address, or set other ones "
            "(HITHERTO_HOST, HITHERTO_PORT)"
        ) from error
    return found


def needs_keys(settings: Settings, at: socket.socket) -> bool:
    """Whether requests need a key: where the settings say so, and where not only this machine reaches the address."""
    return settings.require_keys or not ip_address(at.getsockname()[0].partition("%")[0]).is_loopback


def server(app: ASGIApp, *, grace: float, greeting: str = "Serving") -> uvicorn.Server:
    """What serves the app; when it is told to stop, requests have `grace` seconds to end. `greeting` is logged."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    return _Server(config, greeting)


async def serve(
    memory: Memory, settings: Settings, at: socket.socket, *, keys: bool, more: MorePaths | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way then have the setting `grace` to end. Digests in
    progress have theirs when the memory is closed."""
    host, port = at.getsockname()[:2]
    limits = Limits(requests=settings.requests_per_minute, size=settings.request_size, seconds=settings.request_seconds)
    app = create_app(memory, keys=keys, limits=limits, origins=settings.cors_origins, more=more)
    shown = f"[{host}]" if ":" in host else host
    asked = "each request needs a key (hitherto keys create)" if keys else "requests of this machine need no key"
    greeting = f"Serving at http://{shown}:{port}: {asked}; /openapi.json tells of all paths"
    serving = server(app, grace=settings.grace, greeting=greeting)
    services = memory._services  # pyright: ignore[reportPrivateUsage] — the service is part of Hitherto
    for counter in (services.canonical, services.counter(None)):
        counter.count("")  # loads its tables, for which the first request would hold up others
    # What is loaded by now stays. Looking through it again and again would hold up requests for 0.1 s each time.
    gc.collect()
    gc.freeze()
    await serving.serve(sockets=[at])
    if cut_off := list(serving.server_state.tasks):  # runs still record that they have failed
        await asyncio.wait(cut_off, timeout=max(1.0, settings.grace))
    if settings.worker:
        log.info("Service stopping: digests in progress get %s seconds", settings.grace)
