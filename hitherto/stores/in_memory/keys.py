"""Keys in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from hitherto.core.key import ApiKey, KeyAccess


class InMemoryKeys:
    """`KeyStore` in this process's memory."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._kept: dict[bytes, ApiKey] = {}

    async def add(self, key: ApiKey, hash: bytes) -> ApiKey:
        return self._kept.setdefault(hash, replace(key, created_at=self._clock()))

    async def find(self, hash: bytes) -> KeyAccess | None:
        found = self._kept.get(hash)
        return None if found is None or found.revoked_at is not None else found.access

    async def keys(self, tenant: str) -> list[ApiKey]:
        return [one for one in self._kept.values() if one.tenant == tenant]

    async def revoke(self, tenant: str, key: UUID) -> ApiKey | None:
        for secret, one in self._kept.items():
            if (one.tenant, one.id) == (tenant, key):
                self._kept[secret] = revoked = replace(one, revoked_at=one.revoked_at or self._clock())
                return revoked
        return None

    def forget(self, tenant: str, user: str | None, before: datetime) -> None:
        """Delete the keys of a tenant, or of a user, that were made by `before`."""
        self._kept = {
            secret: one
            for secret, one in self._kept.items()
            if one.tenant != tenant or user not in (None, one.user) or one.created_at > before
        }
