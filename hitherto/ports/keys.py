"""The port for the keys of the service."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from hitherto.core.key import ApiKey, KeyAccess


class KeyStore(Protocol):
    """Keys, each with the hash of its secret. All methods raise what `Store` says.

    When a tenant is erased, its keys are deleted; when a user is, those that are this user's alone.
    """

    async def add(self, key: ApiKey, hash: bytes) -> ApiKey:
        """Keep a key; its `created_at` is the store's time. Returns it as it is kept. Repeated, it changes nothing."""
        ...

    async def find(self, hash: bytes) -> KeyAccess | None:
        """What the key of a secret, of any tenant, allows; None if there is none, or if it was revoked. It says nothing
        that a person wrote: this is asked for before it is known whose request it is."""
        ...

    async def keys(self, tenant: str) -> list[ApiKey]:
        """All keys of a tenant, the oldest first, revoked ones too."""
        ...

    async def revoke(self, tenant: str, key: UUID) -> ApiKey | None:
        """Revoke a key, from the next `find` on. Returns it; None if the tenant has none of that id. Repeated, it
        changes nothing."""
        ...
