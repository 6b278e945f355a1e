"""Who calls: the key of a request, and what of it is allowed to whom."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from hitherto.core.key import KeyAccess, Right, hash_of
from hitherto.core.scope import Scope, checked_name
from hitherto.errors import Forbidden, InvalidInput, InvalidScope, Unauthorized
from hitherto.http.operations import AGENT, PREFIX, TENANT, USER, summary_of
from hitherto.limiter import served_caller

if TYPE_CHECKING:
    from hitherto.store.keys import KeyStore

LOOK_AGAIN = 1.0
"""Seconds after which a request that takes long looks whether its key was revoked."""

_UNKNOWN = "\0"
"""The tenant of all keys that are not looked up yet. No tenant has this name."""

LOCAL = "local"
"""The tenant of requests without a key."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take: so many `requests` a minute (None: any number), each of at most `size` bytes and
    `seconds`."""

    requests: int | None
    size: int
    seconds: float

    def of(self, key: KeyAccess | None) -> Limits:
        """The limits of a key; where it has none of its own, these apply. Neither can be exceeded."""
        if key is None:
            return self
        given = [limit for limit in (self.requests, key.requests) if limit is not None]
        return Limits(
            requests=min(given, default=None),
            size=min(self.size, key.size or self.size),
            seconds=min(self.seconds, key.seconds or self.seconds),
        )


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whose request it is. Without a `key` it comes from this machine, where none is asked for, and may do all."""

    key: KeyAccess | None
    tenant: str
    limits: Limits

    @property
    def key_id(self) -> str:
        """The id of the key, empty without one: its requests are counted under it."""
        return "" if self.key is None else str(self.key.id)

    def check(self, right: Right) -> None:
        """Raises Forbidden."""
        if self.key is not None and not self.key.allows(right):
            raise Forbidden(f"this key does not have the right {right.value!r}")

    def user(self, given: str | None) -> str | None:
        """The user that a request is for, who was `given` in it. Raises Forbidden for another than the key's own."""
        own = None if self.key is None else self.key.user
        if own is not None and given not in (None, own):
            raise Forbidden(
                "this key is for one user alone, and not for the one that the request names: name that user, or none"
            )
        return own or given

    def scope(self, headers: Headers) -> Scope:
        """The scope of a request. Raises InvalidScope if it does not name a user and an agent, Forbidden."""
        user, agent = self.user(name_in(headers, USER)), name_in(headers, AGENT)
        if user is None or agent is None:
            raise InvalidScope(
                f"whose conversations? Name the {'user' if user is None else 'agent'} in the header "
                f"{USER if user is None else AGENT}"
            )
        return Scope(tenant=self.tenant, user=user, agent=agent)


def needs(right: Right) -> Any:
    """A dependency of routes: Forbidden for a key without the right, before anything else is looked at; then
    InvalidInput for a query parameter that the route does not have. The paths of other systems pass those over."""

    async def check(request: Request) -> None:
        caller: Caller = request.scope["caller"]
        caller.check(right)
        route: APIRoute = request.scope["route"]
        if route.path.startswith(PREFIX):
            _check_query(request, sorted(field.alias for field in route.dependant.query_params))

    return Depends(check)


def _check_query(request: Request, known: list[str]) -> None:
    for name in request.query_params:
        if name not in known:
            raise InvalidInput(
                f"there is no query parameter {name[:100]!r} here; "
                + (f"there are {', '.join(known)}" if known else "this path has none")
            )


def route_options(name: str, tag: str, right: Right, text: str) -> dict[str, Any]:
    """What a route is declared with: its name and its group in the document, what it does, and the right it needs."""
    return {
        "operation_id": name,
        "tags": [tag],
        "summary": summary_of(text),
        "description": f"{text} Needs the right `{right}`.",
        "dependencies": [needs(right)],
    }


class KeyWatch:
    """Looks whether the key of a request is still known, while that takes long: at most once a second."""

    def __init__(self, authentication: Authentication, headers: Headers) -> None:
        self._authentication, self._headers = authentication, headers
        self._looked = time.monotonic()

    async def look(self, *, now: bool = False) -> None:
        """Raises Unauthorized for one that was revoked."""
        if now or time.monotonic() - self._looked > LOOK_AGAIN:
            await self._authentication.caller(self._headers)
            self._looked = time.monotonic()


class Authentication:
    """Finds the caller of a request by its key. With `keys` None, requests need no key and are the tenant `local`'s;
    those that a web page makes are answered for pages of the `origins` alone."""

    def __init__(self, keys: KeyStore | None, limits: Limits, origins: Collection[str] = ()) -> None:
        self._keys, self._limits, self._origins = keys, limits, origins

    async def caller(self, headers: Headers) -> Caller:
        """The caller that the headers name.

        Raises Unauthorized without a usable key, Forbidden if the request is meant for another tenant.
        """
        key = None
        scheme, _, secret = headers.get("Authorization", "").partition(" ")
        if self._keys is None:
            check_host(headers)
            check_site(headers, self._origins)
            if scheme.lower() == "bearer":
                raise Unauthorized(
                    "this service runs without keys, and looks at none: leave the key out, or start the service with "
                    "--require-keys"
                )
        else:
            if scheme.lower() != "bearer" or not secret.strip():
                raise Unauthorized("this service needs a key, in the header Authorization: Bearer …")
            hashed = hash_of(secret.strip())
            served_caller.set((_UNKNOWN, hashed.hex()))
            key = await self._keys.find(hashed)
            if key is None:
                raise Unauthorized("this key is not known here, or was revoked")
        tenant = LOCAL if key is None else key.tenant
        if name_in(headers, TENANT) not in (None, tenant):
            raise Forbidden("this key is not of the tenant that the request names")
        served_caller.set((tenant, (key and key.user) or headers.get(USER, "")))
        return Caller(key=key, tenant=tenant, limits=self._limits.of(key))


def check_host(headers: Headers) -> None:
    """Raises Forbidden for a name of this machine that a web page may have given it (DNS rebinding)."""
    if not _is_local(headers.get("Host", "localhost")):
        raise Forbidden("without keys, this service is called by the name localhost or the address of this machine")


def check_site(headers: Headers, origins: Collection[str]) -> None:
    """Raises Forbidden for a request that a web page of another site makes: it could not read the answer, but what it
    sets off would be done."""
    origin = headers.get("Origin")
    if origin in origins or "*" in origins:
        return
    own = origin is None or origin.partition("://")[2] == headers.get("Host", "")
    if not own or headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise Forbidden(
            "without keys, web pages cannot call this service; name the page's origin in the setting cors_origins "
            "(HITHERTO_CORS_ORIGINS)"
        )


def _is_local(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def name_in(headers: Headers, name: str) -> str | None:
    """A name in a header. Raises InvalidScope."""
    given = text_in(headers, name)
    return None if given is None else checked_name(given, f"the header {name}")


def text_in(headers: Headers, name: str) -> str | None:
    """The text in a header, where it is percent-encoded UTF-8. Raises InvalidInput."""
    given = headers.get(name)
    try:
        if given is None or given.isascii():
            return None if given is None else unquote(given, errors="strict")
    except UnicodeDecodeError:
        pass
    raise InvalidInput(f"the header {name} is not percent-encoded UTF-8, as quote(…) of Python's urllib.parse makes it")
