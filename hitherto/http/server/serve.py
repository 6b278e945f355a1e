"""Serving an open memory over HTTP, until a signal."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

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

_HEADERS = 200
"""Headers of a request, trailers among them."""

_PARTS, _PART = 1_000, 64
"""Parts of a body that may be of any size; if there are more, they must have so many bytes on average. A part of one
byte takes as much time as one of many: connections that send nothing else would leave none to others."""

_LOOK = 30.0
"""Seconds that a head may take from its first byte, or from the connection's beginning, and that a client may take to
read the rest of what was sent to it on a connection that ends; a connection is looked at as often."""

_TOLD = 60.0
"""Seconds between two lines of the log that say that there are too many connections."""


_MOST = 100_000
"""Connections that are open at once, where no limit of open files says less."""


def most_connections() -> int:
    """The most connections that are open at once: what the limit of open files leaves beside the database's, and the
    files of exports and imports."""
    if sys.platform == "win32":  # which has no such limit
        return _MOST
    import resource

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST if limit == resource.RLIM_INFINITY else max(1, min(_MOST, limit - max(limit // 5, 50)))


_FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Connection(HttpToolsProtocol):
    """Keeps no more than it must, where uvicorn's own would keep all that comes: refuses a head that goes on beyond
    `_LONGEST_HEAD`, and lets one request wait for the answer to the one before; of more, none is read, and the
    connection ends. It also ends after a request for another protocol, which there is none of, and where a request has
    very many headers or its body very many small parts.

    Nor does it wait for ever where uvicorn's own would: see `_LOOK`. Where there are too many, the one that was silent
    longest goes; if all have requests in progress, the new one gets a 503."""

    _told = -_TOLD

    _kept = 0
    """Bytes that have come since the parser last gave something out."""

    _in_head = False

    _answering: RequestResponseCycle | None = None
    """The request that is answered while another one waits."""

    _header_count = _parts = _received = 0
    """Headers of the request; parts of its body, and their bytes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._since = self.loop.time()
        """When it was made, when the last answer was complete, or when the first byte came after that."""
        self._next_look = self.loop.call_later(_LOOK, self._look, False)
        if len(self.connections) > (most := most_connections()):
            self._make_room(most)

    def connection_lost(self, exc: Exception | None) -> None:
        self._next_look.cancel()
        super().connection_lost(exc)
        if self._answering is not None and self.pipeline:  # uvicorn tells only the one that waits
            self._answering.disconnected = True
            self._answering.message_event.set()

    @property
    def _waits(self) -> bool:
        """Whether no request is in progress."""
        return cast(object, self.cycle) is None or self.cycle.response_complete

    def _look(self, closing: bool) -> None:
        """End the connection if its time is over. `closing`: it was closed when it was looked at before."""
        late = self.loop.time() - self._since >= _LOOK
        idle = self.timeout_keep_alive_task is not None  # which ends it by itself
        if closing or (late and self._waits and not idle and not self.transport.is_closing()):
            log.debug("A connection was cut off: for %g seconds, nothing was asked or read on it", _LOOK)
            self.transport.abort()
        else:
            self._next_look = self.loop.call_later(_LOOK, self._look, self.transport.is_closing())

    def _make_room(self, most: int) -> None:
        silent = [one for one in self.connections if isinstance(one, _Connection) and one is not self]
        silent = [one for one in silent if one._waits and not one.transport.is_closing()]
        if self.loop.time() - _Connection._told >= _TOLD:
            _Connection._told = self.loop.time()
            log.warning(
                "All %d connections that the limit of open files leaves are in use: %s. Raise the limit (ulimit -n; "
                "LimitNOFILE= of systemd), or let a proxy in front limit the connections of each client",
                most,
                "the one that was silent longest is closed for each new one" if silent else "new ones get a 503",
            )
        if silent:
            min(silent, key=lambda one: one._since).transport.abort()
        else:
            self.transport.write(_FULL)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._since = self.loop.time()
        self._kept += len(data)
        super().data_received(data)
        if self._kept > _LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        if self.pipeline:
            raise BlockingIOError("a request waits already")  # ends the parser's work
        self._in_head, self._header_count = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count > _HEADERS:
            raise BlockingIOError("very many headers")  # ends the parser's work
        if self._in_head:  # a trailer names no user, and is no key
            super().on_header(name, value.rstrip(b" \t"))  # the parser leaves blanks at the end, which do not count

    def on_headers_complete(self) -> None:
        self._kept, self._in_head = 0, False
        self._parts = self._received = 0
        self._answering = self.cycle
        super().on_headers_complete()
        if b"upgrade" in dict(self.headers):  # the parser takes its body for the next request
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        self._parts += 1
        self._received += len(body)
        if self._parts > _PARTS and self._received < self._parts * _PART:
            raise BlockingIOError("a body in very small parts")  # ends the parser's work
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._kept = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        log.debug("A connection was ended: %s", msg)
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


def _by_path(app: ASGIApp, beside: Mapping[str, ASGIApp]) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        chosen = next((one for start, one in beside.items() if path == start or path.startswith(f"{start}/")), app)
        await chosen(scope, receive, send)

    return call


def server(app: ASGIApp, *, grace: float, greeting: str = "Serving") -> uvicorn.Server:
    """What serves the app; when it is told to stop, requests have `grace` seconds to end. `greeting` is logged."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        log_config=None,
        log_level="error",  # without a key, each request that is no HTTP would be a warning
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    return _Server(config, greeting)


async def serve(
    memory: Memory,
    settings: Settings,
    at: socket.socket,
    *,
    keys: bool,
    more: MorePaths | None = None,
    beside: Mapping[str, Callable[[Memory, bool, Limits], ASGIApp]] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way then have the setting `grace` to end. Digests in
    progress have theirs when the memory is closed. Apps `beside` the API take the paths that begin with theirs."""
    host, port = at.getsockname()[:2]
    limits = Limits(requests=settings.requests_per_minute, size=settings.request_size, seconds=settings.request_seconds)
    app = create_app(memory, keys=keys, limits=limits, origins=settings.cors_origins, more=more)
    app = _by_path(app, {path: make(memory, keys, limits) for path, make in (beside or {}).items()})
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
