"""The keys of a tenant to the service: made, listed and revoked."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID, uuid4

from hitherto.core.key import PREFIX, ApiKey, Right, hash_of
from hitherto.core.scope import checked_name
from hitherto.engine.arguments import checked_limit
from hitherto.engine.services import Services
from hitherto.errors import InvalidInput, NotFound

_MOST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was just made. `secret` is what requests carry; it cannot be shown again."""

    key: ApiKey
    secret: str


class Keys:
    """The keys of one tenant to the service (`hitherto serve`)."""

    def __init__(self, services: Services, tenant: str) -> None:
        self._services, self._tenant = services, checked_name(tenant, "tenant")

    async def create(
        self,
        name: str,
        *,
        rights: Iterable[Right | Literal["read", "write", "review", "admin"]] = (Right.READ, Right.WRITE),
        user: str | None = None,
        requests: int | None = None,
        size: int | None = None,
        seconds: float | None = None,
    ) -> NewKey:
        """Make a key, with a `name` for people. With `user`, it is for that user of the tenant alone.

        It allows at most `requests` a minute, each of at most `size` bytes and `seconds`; by default what the service
        allows. Raises InvalidScope for an unusable name or user, InvalidInput for other unusable values, and for a key
        for one user with the right `admin`, which is for the whole tenant.
        """
        try:
            chosen = frozenset(Right(one) for one in ([rights] if isinstance(rights, str) else rights))
        except ValueError:
            chosen = frozenset[Right]()
        if not chosen:
            raise InvalidInput(f"rights is {rights!r}; give one or more of {', '.join(Right)}")
        if user is not None and Right.ADMIN in chosen:
            raise InvalidInput(
                "a key for one user alone cannot have the right admin, which is for the whole tenant; leave the user "
                "or this right out"
            )
        if seconds is not None and not 0 < seconds <= 3_600:
            raise InvalidInput(f"seconds is {seconds!r}; give more than 0, at most 3600")
        key = ApiKey(
            id=uuid4(),
            tenant=self._tenant,
            user=None if user is None else checked_name(user, "user"),
            name=checked_name(name, "name"),
            rights=chosen,
            requests=None if requests is None else checked_limit(requests, most=_MOST, name="requests"),
            size=None if size is None else checked_limit(size, most=_MOST, name="size"),
            seconds=seconds,
            created_at=datetime.now(UTC),
        )
        secret = PREFIX + secrets.token_urlsafe(32)
        return NewKey(key=await self._services.store.keys.add(key, hash_of(secret)), secret=secret)

    async def list(self) -> Sequence[ApiKey]:
        """All keys of the tenant, the oldest first, revoked ones too."""
        return await self._services.store.keys.keys(self._tenant)

    async def revoke(self, key: UUID | str) -> ApiKey:
        """Revoke a key, from the next request on. Raises NotFound for a key that the tenant does not have."""
        try:
            number = key if isinstance(key, UUID) else UUID(key)
        except (ValueError, AttributeError, TypeError):
            raise InvalidInput("this is no key's id; give the one that a list of keys shows, not its secret") from None
        revoked = await self._services.store.keys.revoke(self._tenant, number)
        if revoked is None:
            raise NotFound(f"tenant {self._tenant!r} has no key {number}")
        return revoked
