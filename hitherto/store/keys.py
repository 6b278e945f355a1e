"""The keys of the service."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from hitherto.core.key import ApiKey, KeyAccess, Right
from hitherto.store import rows
from hitherto.store.connections.part import Part
from hitherto.store.sql import SQL

_Key = TypeVar("_Key", bound=KeyAccess)


class KeyStore(Part):
    """Keys, each with the hash of its secret. All methods raise what `Store` says.

    When a tenant is erased, its keys are deleted; when a user is, those that are this user's alone.
    """

    async def add(self, key: ApiKey, hash: bytes) -> ApiKey:
        """Keep a key; its `created_at` is the store's time. Returns it as it is kept. Repeated, it changes nothing."""
        values = {**rows.values_of(key), "hash": hash, "rights": sorted(key.rights)}
        (row,) = await self._all(SQL["add_key"], values, of=rows.named)
        return _key_from(ApiKey, row)

    async def find(self, hash: bytes) -> KeyAccess | None:
        """What the key of a secret, of any tenant, allows; None if there is none, or if it was revoked. It says nothing
        that a person wrote: this is asked for before it is known whose request it is."""
        found = await self._all(SQL["find_key"], {"hash": hash}, of=rows.named)
        return _key_from(KeyAccess, found[0]) if found else None

    async def signed(self, tenant: str, key: UUID) -> tuple[KeyAccess, bytes] | None:
        """What a key allows, and the hash of its secret, which signs sessions; None as with `find`."""
        found = await self._all(SQL["session_key"], {"tenant": tenant, "id": key}, of=rows.named)
        return (_key_from(KeyAccess, found[0]), found[0].hash) if found else None

    async def keys(self, tenant: str) -> list[ApiKey]:
        """All keys of a tenant, the oldest first, revoked ones too."""
        found = await self._all(SQL["keys"], {"tenant": tenant}, of=rows.named)
        return [_key_from(ApiKey, row) for row in found]

    async def revoke(self, tenant: str, key: UUID) -> ApiKey | None:
        """Revoke a key, from the next `find` on. Returns it; None if the tenant has none of that id. Repeated, it
        changes nothing."""
        found = await self._all(SQL["revoke_key"], {"tenant": tenant, "id": key}, of=rows.named)
        return _key_from(ApiKey, found[0]) if found else None


def _key_from(kind: type[_Key], row: Any) -> _Key:
    return rows.value_from(kind, row, rights=frozenset(map(Right, row.rights)))
