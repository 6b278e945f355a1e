"""What stands before the routes: the key, the rate, and the size and the time of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hitherto import logs
from hitherto.engine.memory import Memory
from hitherto.errors import (
    HithertoError,
    InvalidInput,
    ServiceUnavailable,
    TimedOut,
    TooLarge,
    TooManyRequests,
    UnsupportedMediaType,
)
from hitherto.http.server.callers import Caller, Doors
from hitherto.http.server.responses import problem

if TYPE_CHECKING:
    from hitherto.integrations.agents.setup import AgentSetup

log = logs.logger("hitherto.http")

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no key."""

MOST_VALUES = 200_000
"""The most signs that separate values in a JSON body. To read that many holds up others for some 10 ms."""

_SIGNS = (b",", b":", b"[", b"{")


class RequestGate:
    """The app, behind its gate. A request that comes through has its `Caller` in the scope, under "caller", and its
    body whole, but on the paths `streamed`, whose bodies the app reads itself. Their answers and those of the paths
    `lasting` may take any time. `agents` are those that the service runs."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        memory: Memory,
        doors: Doors,
        streamed: Collection[str],
        lasting: Collection[str] = (),
        agents: AgentSetup | None = None,
    ) -> None:
        self._app, self._memory, self._doors, self._streamed = app, memory, doors, streamed
        self._lasting, self._agents = lasting, agents
        self._rates = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answered, began = _Answered(send), time.perf_counter()
        scope["memory"], scope["doors"], scope["agents"] = self._memory, self._doors, self._agents
        try:
            await self._through(scope, receive, answered)
        except HithertoError as error:
            await problem(error)(scope, receive, answered)
        except asyncio.CancelledError:
            # The service stops, and this took longer than the grace. Part of an answer is cut off.
            if answered.status is None:
                await problem(ServiceUnavailable("the service is stopping; try again"))(scope, receive, answered)
        except Exception as error:
            log.error("A request failed", exc_info=_without_text(error), path=_route(scope))
            if not answered.whole:
                # Part of an answer is out: it is cut off, so that nobody takes it for a whole one.
                raise ConnectionAbortedError("an answer was cut off") from None
        finally:
            took = round((time.perf_counter() - began) * 1_000)
            caller: Caller | None = scope.get("caller")
            whose = {} if caller is None else {"tenant": caller.tenant, "key": caller.name}
            log.debug("%s %s: %s in %s ms", scope["method"], _route(scope), answered.status, took, **whose)

    async def _through(self, scope: Scope, receive: Receive, answered: _Answered) -> None:
        scope["path"] = path = _path(scope)
        if path in OPEN:
            await self._app(scope, receive, answered)
            return
        headers = Headers(scope=scope)
        scope["caller"] = caller = await self._doors.caller(headers)
        await self._count(caller)
        if headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise UnsupportedMediaType("bodies are read as they are; send them without Content-Encoding")
        if path in self._streamed:
            await self._app(scope, receive, answered)
            return
        seconds = caller.limits.seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                body = await _body(receive, headers, caller.limits.size)
                if path in self._lasting:
                    limit.reschedule(None)
                await self._app(scope, _replayed(body, receive), answered)
        except TimeoutError:
            if answered.status is not None:
                raise
            raise TimedOut(
                f"the request took longer than {seconds:g} seconds; what it had not done by then is not done"
            ) from None
        except _Left:
            log.debug("A client left before its request was whole")

    async def _count(self, caller: Caller) -> None:
        """Raises TooManyRequests."""
        if caller.limits.requests is None:
            return
        rate = RateLimitItemPerMinute(caller.limits.requests)
        if not await self._rates.hit(rate, caller.name):
            resets = (await self._rates.get_window_stats(rate, caller.name)).reset_time
            raise TooManyRequests(
                f"this key allows {caller.limits.requests} requests a minute",
                retry_after=max(1.0, resets - time.time()),
            )


class _Left(Exception):
    """The client has gone."""


class _Answered:
    """What is sent: the status that it began with, and whether it is whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.whole = not message.get("more_body", False)
        await self._send(message)


async def _body(receive: Receive, headers: Headers, size: int) -> bytes:
    """The whole body. Raises TooLarge, InvalidInput for a length that is no number, _Left."""
    announced = headers.get("Content-Length")
    if announced is not None and not announced.isdecimal():
        raise InvalidInput("the header Content-Length is not a number")
    parts, length, signs = list[bytes](), int(announced or 0), 0
    total = 0
    while length <= size:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Left
        part: bytes = message.get("body", b"")
        parts.append(part)
        total += len(part)
        length = max(length, total)
        signs += sum(part.count(sign) for sign in _SIGNS)
        if signs > MOST_VALUES:
            raise TooLarge(f"the body has more than {MOST_VALUES} values; send it in parts")
        if not message.get("more_body", False):
            return b"".join(parts)
    raise TooLarge(f"the body is larger than {size} bytes, which is what the key allows; send it in parts")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What gives the body once, and then what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _path(scope: Scope) -> str:
    """The path as routes read it: of each part, "/" and "%" are left encoded, so that a name may have them."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw.split(b"?")[0].split(b"/")]
    except UnicodeDecodeError:
        raise InvalidInput("the path is not UTF-8 once its % signs are decoded") from None
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def _route(scope: Scope) -> str:
    """The path's pattern: names in it are nobody's business in a log."""
    return getattr(scope.get("route"), "path", "an unknown path")


def _without_text(error: Exception) -> tuple[type[Exception], Exception, object]:
    """The kind of an error and where it happened: its text may quote a message."""
    kind = type(error)
    bare = Exception(kind.__name__)
    return Exception, bare, error.__traceback__
