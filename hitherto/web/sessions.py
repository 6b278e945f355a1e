"""Who looks at the pages: sessions of those who signed in with a key, and tokens that their forms carry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from uuid import UUID

from starlette.datastructures import Headers

from hitherto.core.key import KeyAccess, hash_of
from hitherto.core.scope import checked_name
from hitherto.errors import Forbidden, Unauthorized
from hitherto.http.server.callers import LOCAL, Authentication, Caller, Limits, check_host, check_site
from hitherto.limiter import served_caller

if TYPE_CHECKING:
    from hitherto.store.keys import KeyStore

COOKIE = "hitherto_session"
LASTS = 3_600
"""Seconds of a session after it was last used."""

_RENEWED = 600
"""Seconds after which a session that is used is made anew, which is how it lasts."""


class Sessions(Authentication):
    """Sessions of keys, which any process that has the database takes. A session is its key's id and when it ends,
    signed with what is kept of the key: it is over when the key is revoked. Without `keys` there is nobody to sign in,
    and a session only binds forms to a browser."""

    def __init__(self, keys: KeyStore | None, limits: Limits) -> None:
        super().__init__(keys, limits)
        self.needed = keys is not None

    async def caller(self, headers: Headers) -> Caller:
        """Whose session the headers carry. Raises Unauthorized without one that still lasts, Forbidden where none is
        asked for and another site's page is what asks."""
        if self._keys is None:
            check_host(headers)
            check_site(headers, ())
            served_caller.set((LOCAL, ""))
            return Caller(key=None, tenant=LOCAL, limits=self._limits)
        found = await self._key_of(session_in(headers))
        if found is None:
            raise Unauthorized("sign in with a key")
        key = found[0]
        served_caller.set((key.tenant, key.user or ""))
        return Caller(key=key, tenant=key.tenant, limits=self._limits.of(key))

    async def sign_in(self, secret: str) -> str:
        """A session for the key of this secret. Raises Unauthorized."""
        assert self._keys is not None
        hashed = hash_of(secret.strip())
        key = await self._keys.find(hashed)
        if key is None:
            raise Unauthorized("this key is not known here, or was revoked")
        return _signed(key, hashed)

    async def renewed(self, session: str) -> str | None:
        """The session made anew, where it has been used for a while; None where it is new, or no session."""
        told = _read(session)
        if told is None or told[2] - time.time() > LASTS - _RENEWED:
            return None
        found = await self._key_of(session)
        return None if found is None else _signed(*found)

    async def _key_of(self, session: str) -> tuple[KeyAccess, bytes] | None:
        """The key of a session that lasts, and what is kept of its secret."""
        told = _read(session)
        if self._keys is None or told is None or told[2] < time.time():
            return None
        found = await self._keys.signed(told[0], told[1])
        signature = session.partition(".")[2].encode()
        if found is None or not hmac.compare_digest(signature, _signature(told[3], found[1]).encode()):
            return None
        return found


def session_in(headers: Headers) -> str:
    """The session that a request carries, "" without one."""
    try:
        found = SimpleCookie(headers.get("Cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def new_session() -> str:
    """The session of a browser that need not sign in."""
    return secrets.token_urlsafe(24)


def form_token(session: str) -> str:
    """What forms of a session carry, and no other page can know."""
    return hmac.new(session.encode(), b"form", hashlib.sha256).hexdigest()


def check_form(session: str, token: str) -> None:
    """Raises Forbidden for a form that is not of this session's pages."""
    if not session or not hmac.compare_digest(form_token(session).encode(), token.encode()):
        raise Forbidden("this form is not of this session any more; go back, load the page again, and send it then")


def _signed(key: KeyAccess, hashed: bytes) -> str:
    told = json.dumps([key.tenant, str(key.id), int(time.time()) + LASTS]).encode()
    payload = base64.urlsafe_b64encode(told).decode()
    return f"{payload}.{_signature(payload, hashed)}"


def _signature(payload: str, hashed: bytes) -> str:
    return hmac.new(hashed, f"session {payload}".encode(), hashlib.sha256).hexdigest()


def _read(session: str) -> tuple[str, UUID, int, str] | None:
    """The tenant, the key and the end that a session tells of, and the part that is signed; None where it is none."""
    payload = session.partition(".")[0]
    try:
        match json.loads(base64.urlsafe_b64decode(payload)):
            case [str(tenant), str(key), int(ends)]:
                return checked_name(tenant, "tenant"), UUID(key), ends, payload
            case _:
                return None
    except (ValueError, RecursionError):
        return None
