"""Keys to the service: whose they are, what they allow, and how much."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from uuid import UUID

PREFIX = "hitherto_"
"""What each secret begins with, so that people and scanners know one when they see it."""


class Right(StrEnum):
    """What a key allows: to read; to append and change; to review facts; to configure, export and erase as an
    operator. Each is given by itself, but that `admin` allows all."""

    READ = "read"
    WRITE = "write"
    REVIEW = "review"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """What a key allows, which is all that a request needs of it: access to a tenant, or to one `user` of it; at most
    `requests` a minute, each of at most `size` bytes and `seconds` (None: what the service allows)."""

    id: UUID
    tenant: str
    user: str | None
    rights: frozenset[Right]
    requests: int | None = None
    size: int | None = None
    seconds: float | None = None

    def allows(self, right: Right) -> bool:
        return right in self.rights or Right.ADMIN in self.rights


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(KeyAccess):
    """A key as it is listed, with its `name` for people. Its secret is not kept, only a hash of it."""

    name: str
    created_at: datetime
    revoked_at: datetime | None = None

    @property
    def access(self) -> KeyAccess:
        """What it allows, without its name."""
        return KeyAccess(**{field.name: getattr(self, field.name) for field in fields(KeyAccess)})


def in_order(rights: Collection[Right]) -> list[Right]:
    """The rights as they are always listed."""
    return [one for one in Right if one in rights]


def hash_of(secret: str) -> bytes:
    """SHA-256 of a secret. Secrets are random, so that nothing slower is needed."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
