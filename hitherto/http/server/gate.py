"""What stands before the routes: the key, the rate and the time of a request, and the log of it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, nullcontext, suppress
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hitherto import logs
from hitherto.blocks import block
from hitherto.core.key import Right
from hitherto.engine.memory import Memory
from hitherto.errors import (
    DatabaseUnavailable,
    HithertoError,
    InvalidInput,
    ServiceUnavailable,
    TimedOut,
    TooManyRequests,
    UnsupportedMediaType,
)
from hitherto.http.operations import HEADERS, OPERATIONS, PREFIX
from hitherto.http.server.callers import Authentication, Caller
from hitherto.http.server.responses import problem
from hitherto.http.server.signatures import ClientLeft, ReceivedParts, check_type, replayed, whole_body
from hitherto.limiter import FairLimiter

log = logs.logger("hitherto.http")

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Paths that need no key."""

_READS = [
    compile_path(PREFIX + one.path)[0]
    for one in OPERATIONS
    if one.method == "POST" and (one.right is Right.READ or one.name == "documents_add")
]
"""Paths of a POST that only reads, or that may compute for long before it writes."""

_PATIENCE = 60.0
"""Seconds for which a part of an answer waits to be read."""

_PARAMETERS = 200
"""Query parameters of a request."""

_ONCE = frozenset(name.lower().encode() for name in ("Authorization", "Host", *HEADERS))
"""Headers that a request has once: of two, others might go by the other one."""

_NEEDLESS = re.compile(rb"%(?:2[DE]|3\d|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
"""Letters, digits and signs of names, percent-encoded."""

_DOTS = re.compile(rb"(?:\.|%2E)+", re.IGNORECASE)
"""A name that is dots alone, which must be encoded: as it is, it would stand for this part or the one above."""

_LINGER = 5.0
"""Seconds for which the rest of a body may come that was refused."""

_STRANGERS, _STRANGERS_SIZE = 10.0, 10_000
"""Seconds and bytes of a body on a path that needs no key."""

_LARGE = 65_536
"""Bytes of a body from which on few are kept, and fewer worked on, at once: it takes memory, and a processor."""

_PART = 262_144
"""Bytes of an answer that are sent at once."""


class RequestGate:
    """The app, behind its gate. A request that comes through has its `Caller` in the scope, under "caller", and its
    body whole, but on the paths `streamed`, whose bodies the app reads itself. Their answers and those of the paths
    `lasting` may take any time. A body is of the type `media`. On paths that are `open`, the app asks who it is itself.
    `refuse` writes the answer to a request that does not come through. `more` is put into the scope too.

    Of cookies, the app gets the one of the name `cookie`, if its value is plain: reading others can take seconds, and
    the framework reads what there is."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        memory: Memory,
        authentication: Authentication,
        streamed: Collection[str],
        lasting: Collection[str] = (),
        media: str = "application/json",
        open: Callable[[str], bool] = OPEN.__contains__,
        refuse: Callable[[Scope, HithertoError], Response] = lambda _, error: problem(error),
        cookie: str | None = None,
        more: Mapping[str, Any],
    ) -> None:
        self._cookie = None if cookie is None else re.compile(rf';\s*({cookie}="?[\w.=-]+"?)\s*;'.encode())
        self._app, self._memory, self._authentication, self._streamed = app, memory, authentication, streamed
        self._lasting, self._more, self._media, self._open, self._refuse = lasting, more, media, open, refuse
        self._watch = memory._services.watch  # pyright: ignore[reportPrivateUsage] — the service is part of Hitherto
        self._rates = MovingWindowRateLimiter(MemoryStorage())
        self._bodies, self._work = FairLimiter(32, most=8), FairLimiter(4, most=2)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answered, received, began = _SentAnswer(send), ReceivedParts(receive), time.perf_counter()
        scope.update(self._more, memory=self._memory, authentication=self._authentication)
        scope["headers"] = list(self._without_cookies(scope["headers"]))
        try:
            await self._handle(scope, received, answered)
        except HithertoError as error:
            scope["error"] = error
            if answered.status is not None:
                raise _cut_off() from None
            refusal = self._refuse(scope, error)
            if "caller" not in scope:  # nobody knows what else would come on this connection
                refusal.headers["Connection"] = "close"
            await _answer_while_body_comes(refusal(scope, receive, answered), received, answered)
        except ClientLeft:
            log.debug("A client left, or did not read on")
            if answered.status is not None and not received.left:
                raise _cut_off() from None
        except asyncio.CancelledError:
            # The service stops, and this took longer than the grace. Part of an answer is cut off.
            if answered.status is None:
                stopping = self._refuse(scope, ServiceUnavailable("the service is stopping; try again"))
                await stopping(scope, receive, answered)
        except Exception as error:  # the edge of a request: the log says where, the client that it failed
            cause = error.__cause__  # of the framework's error, when part of an answer is out
            why = cause if isinstance(cause, HithertoError) else error
            log.error("A request failed", exc_info=_without_text(why), path=_route(scope))
            if not answered.whole:
                raise _cut_off() from None
        finally:
            self._log(scope, answered.status, time.perf_counter() - began)

    def _without_cookies(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for name, value in headers:
            if name != b"cookie":
                yield name, value
            elif self._cookie is not None and (found := self._cookie.search(b";%b;" % value)):
                yield name, found[1]

    def _log(self, scope: Scope, status: int | None, seconds: float) -> None:
        """Count and log a request: what failed as a warning, what was refused as information. Of an error, its kind
        is told; its text only where it is about the database's address."""
        method, path = scope["method"], _route(scope)
        if status is not None:
            known = path and status != 405  # else a client could make up labels
            self._watch.answered(method=method if known else "", path=path, status=status, seconds=seconds)
        caller: Caller | None = scope.get("caller")
        error: HithertoError | None = scope.get("error")
        fields = {} if caller is None else {"tenant": caller.tenant, "key": caller.key_id}
        write = log.debug if status is None or status < 400 else log.info if status < 500 else log.warning
        why = "" if error is None else f": {type(error).__name__}"
        detail = f" ({error})" if isinstance(error, DatabaseUnavailable) else ""
        write("%s: %s in %d ms%s%s", f"{method} {path}".strip(), status, seconds * 1_000, why, detail, **fields)

    async def _handle(self, scope: Scope, receive: ReceivedParts, answered: _SentAnswer) -> None:
        scope["path"] = path = _path(scope)
        if self._open(path):
            try:
                async with asyncio.timeout(_STRANGERS):
                    body = await whole_body(receive, _checked_headers(scope), _STRANGERS_SIZE)
            except TimeoutError:
                raise TimedOut(f"the request's body took longer than {_STRANGERS:g} seconds") from None
            await self._app(scope, replayed(body, receive), answered)
            return
        if scope["query_string"].count(b"&") >= _PARAMETERS:
            raise InvalidInput(f"there are more than {_PARAMETERS} query parameters")
        headers = _checked_headers(scope)
        scope["caller"] = caller = await self._authentication.caller(headers)
        await self._check_rate(caller)
        if headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise UnsupportedMediaType("bodies are read as they are; send them without Content-Encoding")
        if path in self._streamed:
            await self._app(scope, receive, answered)
            return
        seconds = caller.limits.seconds
        try:
            async with asyncio.timeout(seconds) as limit, answered.turns as turns:
                large = _is_large(headers)
                if large:
                    await turns.enter_async_context(self._bodies.turn())
                body = await whole_body(receive, headers, caller.limits.size)
                if body:
                    check_type(headers, self._media)
                if path not in self._lasting:
                    reads = scope["method"] == "GET" or any(one.match(path) for one in _READS)
                    async with _while_client_stays(receive, answered, limit) if reads else nullcontext():
                        if large:
                            await turns.enter_async_context(self._work.turn())
                        await self._app(scope, replayed(body, receive), answered)
                    return
                await turns.aclose()
                limit.reschedule(None)
                await self._app(scope, replayed(body, receive), answered)
        except TimeoutError:
            if receive.left:
                raise ClientLeft from None
            if answered.status is not None:
                raise
            raise TimedOut(
                f"the request took longer than {seconds:g} seconds and was cut off; no step of it is half done, what "
                "was written or erased by then stays so, and an erasure that has begun goes on; ask again to finish"
            ) from None

    async def _check_rate(self, caller: Caller) -> None:
        """Raises TooManyRequests."""
        if caller.limits.requests is None:
            return
        rate = RateLimitItemPerMinute(caller.limits.requests)
        if not await self._rates.hit(rate, caller.key_id):
            resets = (await self._rates.get_window_stats(rate, caller.key_id)).reset_time
            raise TooManyRequests(
                f"this key allows {caller.limits.requests} requests a minute",
                retry_after=max(1.0, resets - time.time()),
            )


def _checked_headers(scope: Scope) -> Headers:
    """The headers of a request. Raises InvalidInput for those of which others may read something else."""
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    names = [name for name, _ in raw if name in _ONCE]
    if len(names) > len(set(names)):
        raise InvalidInput("a header is given twice, of which there can be only one")
    headers = Headers(scope=scope)
    upgrades = "upgrade" in headers.get("Connection", "").lower()
    if upgrades and (headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers):
        raise InvalidInput(
            "a body cannot come with a request for another protocol; send it without `Connection: Upgrade` (Java's "
            "HttpClient: version(HTTP_1_1))"
        )
    return headers


def _is_large(headers: Headers) -> bool:
    """Whether a body is large, or does not say how large it is."""
    length = headers.get("Content-Length", "0")
    return "Transfer-Encoding" in headers or not length.isdecimal() or int(length) >= _LARGE


@block
async def _while_client_stays(receive: Receive, answered: _SentAnswer, limit: asyncio.Timeout) -> AsyncGenerator[None]:
    """Ends the block as `limit` does if the client leaves before its answer begins. The body is there already."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if answered.status is None and not limit.expired():
            limit.reschedule(0)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def _cut_off() -> ConnectionAbortedError:
    """What ends an answer of which a part is out, so that nobody takes it for a whole one."""
    return ConnectionAbortedError("an answer was cut off")


class _SentAnswer:
    """What is sent: the status that it began with, and whether it is whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None
        self.whole = False
        self.ends = True
        """Whether it ends with its last part, or is held open after that."""
        self.turns = AsyncExitStack()
        """Turns that end when it begins: whoever does not read it must not keep them."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            await self.turns.aclose()
        if message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False) or not self.ends
            last = max(len(body) - 1, 0) // _PART * _PART
            for start in range(0, last, _PART):  # all at once, it would hold others up
                await self._sent({**message, "body": body[start : start + _PART], "more_body": True})
                await asyncio.sleep(0)
            message = {**message, "body": body[last:], "more_body": more}
            self.whole = not more
        await self._sent(message)

    async def _sent(self, message: Message) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._send(message)
        except TimeoutError:
            raise ClientLeft from None


async def _answer_while_body_comes(answer: Awaitable[None], received: ReceivedParts, answered: _SentAnswer) -> None:
    """Answer while the rest of a body comes, and leave that unread: to one who still sends, a connection that is closed
    at once looks broken, and the answer is lost."""
    answered.ends = False
    await answer
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while not received.ended:
                await received()
    answered.ends = True
    await answered({"type": "http.response.body", "body": b"", "more_body": False})


def _path(scope: Scope) -> str:
    """The path as routes read it: of each part, "/" and "%" are left encoded, so that a name may have them. Raises
    InvalidInput for one in which signs are encoded that need not be: whoever stands before the service may have rules
    for paths, and not know it by another spelling."""
    raw: bytes = (scope.get("raw_path") or quote(scope["path"]).encode()).split(b"?")[0]
    if found := next((part for part in raw.split(b"/") if _NEEDLESS.search(part) and not _DOTS.fullmatch(part)), None):
        raise InvalidInput(
            f"the path has {found[:80].decode('ascii', 'replace')!r}, in which letters, digits, '-', '.' or '_' are "
            "percent-encoded; send these as they are"
        )
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw.split(b"/")]
    except UnicodeDecodeError:
        raise InvalidInput("the path is not UTF-8 once its % signs are decoded") from None
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def _route(scope: Scope) -> str:
    """The path's pattern, empty where none was found or looked for: names in it are nobody's business in a log."""
    return getattr(scope.get("route"), "path", "")


def _without_text(error: Exception) -> tuple[type[Exception], Exception, object]:
    """The kind of an error and where it happened: its text may quote a message."""
    kind = type(error)
    bare = Exception(kind.__name__)
    return Exception, bare, error.__traceback__
