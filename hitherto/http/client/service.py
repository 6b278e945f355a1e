"""Requests to a service: sent, sent again where that is safe, and their answers read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from io import BytesIO
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    ServerTimeoutError,
    TCPConnector,
)
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_before_delay
from tenacity.wait import wait_base
from yarl import URL

from hitherto.addresses import http_parts, shown_address
from hitherto.blocks import block
from hitherto.core.scope import Scope
from hitherto.errors import (
    HithertoError,
    InvalidInput,
    NotFound,
    ServiceError,
    ServiceUnavailable,
    TooManyRequests,
)
from hitherto.http.operations import AGENT, IDEMPOTENCY_KEY, MESSAGES, PREFIX, TENANT, USER, Operation
from hitherto.http.problems import error_of
from hitherto.http.shapes import answer_from_json, argument_to_json, messages_of

_SECRET = re.compile("[!-~]+")
_AWAY = frozenset({502, 503, 504})
_LONGEST_PAUSE = 10.0
_CONNECTING = 10.0
"""Seconds that making a connection may take."""

_AT_ONCE = 100
"""Requests that are under way at once, each on a connection of its own. The others wait in the order of their coming;
aiohttp's own limit would let those that just had a connection have the next one."""

PATIENT = ClientTimeout(sock_connect=_CONNECTING)
"""How long an answer may take that the service itself bounds."""


class Service:
    """The service at `url`. Requests carry the key, and are tried for at most `timeout` seconds."""

    def __init__(self, url: str, key: str | None, *, timeout: float) -> None:
        if not _is_address(url):
            raise InvalidInput(
                f"the url is no address of a service ({shown_address(url)}); give one such as http://127.0.0.1:8480, "
                "as `hitherto serve` prints it"
            )
        if key is not None and not _SECRET.fullmatch(key):
            raise InvalidInput(
                "the key is none: one has only ASCII characters and no spaces; give what `hitherto keys create` printed"
            )
        self._url, self._timeout = str(URL(url)).rstrip("/"), timeout
        self._shown = shown_address(url).rstrip("/")
        self._home, self._turns = asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)
        self._session = ClientSession(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            connector=TCPConnector(limit=0),
            timeout=ClientTimeout(sock_connect=min(timeout, _CONNECTING), sock_read=timeout),
            cookie_jar=DummyCookieJar(),
            proxy=_proxy(url),
        )
        # It would send a DELETE once more by itself when a connection is cut; what is sent again is decided here.
        self._session._retry_connection = False  # pyright: ignore[reportPrivateUsage] — there is no public way

    async def aclose(self) -> None:
        await self._session.close()

    async def call(
        self,
        operation: Operation,
        headers: Mapping[str, str],
        arguments: Mapping[str, Any],
        made_with: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answer to the operation with these arguments of its verb; its object was `made_with` those. Raises the
        verb's errors."""
        given = dict(arguments)
        for name in MESSAGES & given.keys():
            given[name] = messages_of(given[name], given.get("wire"))  # what is none is refused here
        headers = {**headers, **_scope(given.pop("scope", None)), **_named(TENANT, given.pop("tenant", None))}
        if "key" in operation.parameters:
            headers[IDEMPOTENCY_KEY] = _key(given.pop("key", None))
        path = operation.path
        for name in operation.in_path:
            value = given.pop(operation.named(name))
            path = path.replace(f"{{{name}}}", in_path(str(argument_to_json(value))))
        params = {name: value for name, value in (made_with or {}).items() if value is not None}
        content = dict[str, Any]()
        if operation.has_body and operation.given:
            headers["Content-Type"] = "application/json"
            content["data"] = _encoded({name: argument_to_json(value) for name, value in given.items()})
        elif not operation.has_body:
            params |= _query(operation, given)
        if params:
            content["params"] = params
        if operation.waits:
            content["timeout"] = PATIENT
        content |= {"repeatable": operation.repeatable, "headers": headers}
        try:
            found = await self.request(operation.method, PREFIX + path, **content)
        except NotFound:
            if operation.none_is_404:
                return None
            raise
        hint = operation.hints["return"]
        return None if hint is type(None) else self.read(found, hint)

    def read(self, body: bytes, hint: Any) -> Any:
        """What the body of an answer has in it, as this type. Raises ServiceError for anything else."""
        try:
            return answer_from_json(json.loads(body), hint)
        except (ValueError, RecursionError):
            raise ServiceError(
                f"{self._shown} answered with something else than the service does; is this its address, and "
                "is it of the same version?"
            ) from None

    async def request(
        self, method: str, path: str, *, repeatable: bool = True, first: bool = False, **content: Any
    ) -> bytes:
        """The body of the answer to a request, sent again while the service is away: a `repeatable` one in any case,
        others if they cannot have been done, but the `first` one not where nobody listens. Raises the error that the
        service answers with, or ServiceUnavailable."""
        tries = AsyncRetrying(
            stop=stop_before_delay(self._timeout),
            wait=_Pause(),
            retry=retry_if_exception_type(_Again),
            reraise=True,
        )
        try:
            async for attempt in tries:
                with attempt:
                    try:
                        return await self._once(method, path, repeatable, **content)
                    except _Again as again:
                        if first and isinstance(again.__cause__, ClientConnectorError):
                            raise again.error from again.__cause__
                        raise
        except _Again as again:
            raise again.error from again.__cause__
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, method: str, path: str, repeatable: bool, **content: Any) -> bytes:
        try:
            async with self._answer(method, path, **content) as response:
                body = await response.read()
        except ClientSSLError as error:
            raise ServiceUnavailable(
                f"no secure connection to the service: {error}; see whether it speaks HTTPS there, and whether this "
                "machine trusts its certificate (SSL_CERT_FILE names others that it may)"
            ) from error
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise _Again(self._away()) from error
        except ClientError as error:
            raise (_Again(self._away()) if repeatable else self._away()) from error
        if response.status < 300:
            return body
        found = _error(response.status, body)
        whole = isinstance(content.get("data", b""), bytes)  # else it was read, and cannot be read again
        again = (isinstance(found, TooManyRequests) and whole) or (response.status in _AWAY and repeatable)
        raise _Again(found, _seconds(response)) if again else found

    @block
    async def stream(self, path: str, **content: Any) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The parts of the answer to a GET, as they come."""
        try:
            async with self._answer("GET", path, **content) as response:
                if response.status >= 300:
                    raise _error(response.status, await response.read())
                yield response.content.iter_any()
        except ClientError as error:
            raise self._away() from error

    @block
    async def _answer(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, **content: Any
    ) -> AsyncGenerator[ClientResponse]:
        self._check()
        texts = {k: json.dumps(v) if isinstance(v, dict | bool) else v for k, v in (params or {}).items()}
        if isinstance(data := content.get("data"), bytes):
            content["data"] = BytesIO(data)  # which aiohttp sends in parts
        query = f"?{urlencode(texts, doseq=True, errors='replace')}" if texts else ""
        url = URL(f"{self._url}{path}{query}", encoded=True)
        patience = None if content.get("timeout") is PATIENT else self._timeout
        async with self._turns:
            self._check()
            try:
                async with asyncio.timeout(patience):  # the session's own timeouts leave out the sending
                    response = await self._session.request(method, url, allow_redirects=False, **content)
            except ClientError:
                raise
            except TimeoutError as error:
                raise ServerTimeoutError from error
            async with response:
                yield response

    def _check(self) -> None:
        """Raises InvalidInput where the connections cannot be used."""
        if self._home is not asyncio.get_running_loop():
            raise InvalidInput(
                "the connections to the service were opened in another event loop, and belong to it; connect once more "
                "here"
            )
        if self._session.closed:
            raise InvalidInput("the connections to the service are closed; connect once more")

    def _away(self) -> HithertoError:
        return ServiceUnavailable(f"no answer from the service at {self._shown}; is `hitherto serve` running?")


class _Again(Exception):
    """An error after which the request may be sent again, not before `seconds` have passed."""

    def __init__(self, error: HithertoError, seconds: float | None = None) -> None:
        super().__init__()
        self.error, self.seconds = error, seconds


class _Pause(wait_base):
    """As long as the service says, or twice as long after each attempt."""

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        error = None if outcome is None else outcome.exception()
        said = error.seconds if isinstance(error, _Again) else None
        return min(_LONGEST_PAUSE, 0.1 * 2**retry_state.attempt_number) if said is None else said


def _error(status: int, body: bytes) -> HithertoError:
    try:
        problem: object = json.loads(body)
    except (ValueError, RecursionError):
        problem = None
    if isinstance(problem, dict) and isinstance(problem.get("type"), str):
        return error_of(cast("dict[str, Any]", problem))
    told = f"the service, or something before it, answered {status} without a reason"
    return ServiceUnavailable(told) if status in _AWAY else ServiceError(told)


def _is_address(url: str) -> bool:
    try:
        address = http_parts(url)
        return bool(URL(url).host) and address.port != 0 and "@" not in address.netloc and not address.query
    except ValueError:
        return False


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for it (HTTP_PROXY, HTTPS_PROXY, NO_PROXY)."""
    address = urlsplit(url)
    return None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)


def in_path(name: str) -> str:
    """A name as a part of a path. Dots alone would be taken for this part or the one above."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _seconds(response: ClientResponse) -> float | None:
    said = response.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else None


def _encoded(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this is not JSON: {error}; pass only what json.dumps can write") from None


def _key(given: str | None) -> str:
    """An idempotency key, in a header. One that is not plain ASCII cannot stand there."""
    return uuid4().hex if given is None else quote(given, safe="")


def _query(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, value in given.items():
        shape = argument_to_json(value)
        if shape is None:
            if operation.parameters[name].default is not None:
                found[name] = ""
        else:
            found[name] = shape
    return found


def _scope(scope: object) -> dict[str, str]:
    return {} if scope is None else scope_headers(Scope.checked(scope))


def scope_headers(scope: Scope) -> dict[str, str]:
    """The headers that name a scope."""
    return {**_named(TENANT, scope.tenant), **_named(USER, scope.user), **_named(AGENT, scope.agent)}


def _named(header: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {header: quote(value, safe="")}
