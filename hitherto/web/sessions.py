"""Who looks at the pages: sessions of those who signed in with a key, and tokens that their forms carry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
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
LONGEST = 12 * 3_600
"""Seconds of a session after its sign-in, however much it is used."""

_RENEWED = 600
"""Seconds after which a session that is used is made anew, which is how it lasts."""


_SIGNED_OUT = 1_000
"""Sign-ins of a key that were taken back and are remembered."""


class Sessions(Authentication):
    """Sessions of keys, which any process that has the database takes. A session is its key's id and when it ends,
    signed with what is kept of the key: it is over when the key is revoked. A session that was signed out is over in
    the process that did it. Without `keys` there is nobody to sign in, and a session only binds forms to a browser."""

    def __init__(self, keys: KeyStore | None, limits: Limits) -> None:
        super().__init__(keys, limits)
        self.needed = keys is not None
        self._signed_out = dict[UUID, dict[str, None]]()
        """The last sign-ins of each key that were taken back, in their order."""

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
        return _signed(key, hashed, secrets.token_urlsafe(12), int(time.time()) + LONGEST)

    def sign_out(self, session: str) -> None:
        """End a session, and those that were made of it."""
        if (told := _read(session)) is not None:
            ended = self._signed_out.setdefault(told.key, {})
            ended[told.id] = None
            if len(ended) > _SIGNED_OUT:
                del ended[next(iter(ended))]

    async def renewed(self, session: str) -> str | None:
        """The session made anew, where it has been used for a while; None where it is new, or no session."""
        told = _read(session)
        if told is None or told.ends - time.time() > LASTS - _RENEWED:
            return None
        found = await self._key_of(session)
        return None if found is None else _signed(*found, told.id, told.latest)

    async def _key_of(self, session: str) -> tuple[KeyAccess, bytes] | None:
        """The key of a session that lasts, and what is kept of its secret."""
        told = _read(session)
        if self._keys is None or told is None or told.ends < time.time():
            return None
        if told.id in self._signed_out.get(told.key, ()):
            return None
        found = await self._keys.signed(told.tenant, told.key)
        payload, _, signature = session.partition(".")
        if found is None or not hmac.compare_digest(signature.encode(), _signature(payload, found[1]).encode()):
            return None
        return found


def session_in(headers: Headers) -> str:
    """The session that a request carries, "" without one. The gate has left no other cookie."""
    return headers.get("Cookie", "").removeprefix(f"{COOKIE}=").strip('"')


def new_session() -> str:
    """The session of a browser that need not sign in."""
    return secrets.token_urlsafe(24)


def form_token(session: str) -> str:
    """What forms of a session carry, and no other page can know. It stays when the session is made anew."""
    told = _read(session)
    return hmac.new((told.id if told else session).encode(), b"form", hashlib.sha256).hexdigest()


def seal_of(session: str, address: str) -> str:
    """What shows that this session was led to an address by what it did, and not by a link that anybody made."""
    return hmac.new(form_token(session).encode(), address.encode(), hashlib.sha256).hexdigest()[:32]


def check_form(session: str, token: str) -> None:
    """Raises Forbidden for a form that is not of this session's pages."""
    if not session or not hmac.compare_digest(form_token(session).encode(), token.encode()):
        raise Forbidden("this form is not of this session any more; go back, load the page again, and send it then")


@dataclass(frozen=True)
class _Told:
    """What a session tells: whose key it is of, when it ends, when at the latest, and the sign-in that began it."""

    tenant: str
    key: UUID
    ends: int
    latest: int
    id: str


def _signed(key: KeyAccess, hashed: bytes, id: str, latest: int) -> str:
    told = [key.tenant, str(key.id), min(int(time.time()) + LASTS, latest), latest, id]
    payload = base64.urlsafe_b64encode(json.dumps(told).encode()).decode()
    return f"{payload}.{_signature(payload, hashed)}"


def _signature(payload: str, hashed: bytes) -> str:
    return hmac.new(hashed, f"session {payload}".encode(), hashlib.sha256).hexdigest()


def _read(session: str) -> _Told | None:
    """What a session tells, of which nothing is checked; None where it is none."""
    try:
        match json.loads(base64.urlsafe_b64decode(session.partition(".")[0])):
            case [str(tenant), str(key), int(ends), int(latest), str(id)]:
                return _Told(checked_name(tenant, "tenant"), UUID(key), ends, latest, checked_name(id, "id"))
            case _:
                return None
    except (ValueError, RecursionError):
        return None
