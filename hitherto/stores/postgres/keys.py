"""`KeyStore` on PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from hitherto.core.key import ApiKey, KeyAccess, Right
from hitherto.stores.postgres import rows
from hitherto.stores.postgres.recall.index import WithConnection
from hitherto.stores.postgres.sql import SQL


class PostgresKeys:
    """`KeyStore` on the connections of a store."""

    def __init__(self, got: WithConnection) -> None:
        self._with_connection = got

    async def add(self, key: ApiKey, hash: bytes) -> ApiKey:
        values = {
            "tenant": key.tenant,
            "id": key.id,
            "user": key.user,
            "name": key.name,
            "hash": hash,
            "rights": sorted(key.rights),
            "requests": key.requests,
            "size": key.size,
            "seconds": key.seconds,
        }
        (row,) = await self._all("add_key", values)
        return _key_from(row)

    async def find(self, hash: bytes) -> KeyAccess | None:
        found = await self._all("find_key", {"hash": hash})
        if not found:
            return None
        ((tenant, number, user, rights, requests, size, seconds),) = found
        return KeyAccess(
            id=number,
            tenant=tenant,
            user=user,
            rights=frozenset(map(Right, rights)),
            requests=requests,
            size=size,
            seconds=seconds,
        )

    async def keys(self, tenant: str) -> list[ApiKey]:
        return [_key_from(row) for row in await self._all("keys", {"tenant": tenant})]

    async def revoke(self, tenant: str, key: UUID) -> ApiKey | None:
        found = await self._all("revoke_key", {"tenant": tenant, "id": key})
        return _key_from(found[0]) if found else None

    async def _all(self, name: str, values: dict[str, Any]) -> list[rows.Row]:
        async def read(connection: AsyncConnection[Any]) -> list[rows.Row]:
            return await (await connection.execute(SQL[name], values)).fetchall()

        async with self._with_connection(read) as found:
            return found


def _key_from(row: rows.Row) -> ApiKey:
    tenant, number, user, name, rights, requests, size, seconds, created_at, revoked_at = row
    return ApiKey(
        id=number,
        tenant=tenant,
        user=user,
        name=name,
        rights=frozenset(map(Right, rights)),
        requests=requests,
        size=size,
        seconds=seconds,
        created_at=created_at,
        revoked_at=revoked_at,
    )
