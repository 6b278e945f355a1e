"""Erasing a user or a tenant: what each step of it does, in a transaction of its own."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from hitherto.ports.log import Erasure
from hitherto.stores.postgres.contexts import drop_unused_texts
from hitherto.stores.postgres.silence import allow_long_work
from hitherto.stores.postgres.sql import SQL


def erasure_values(erasure: Erasure) -> dict[str, Any]:
    return {"tenant": erasure.tenant, "user": erasure.user or "", "requested_at": erasure.requested_at}


async def begin(connection: AsyncConnection[Any], tenant: str, user: str | None) -> Erasure:
    values = {"tenant": tenant, "user": user or ""}
    allow_long_work(connection)
    async with connection.transaction():
        row = await (await connection.execute(SQL["begin_erasure"], values)).fetchone()
        assert row is not None, "an insertion that returns its row"
        await connection.execute(SQL["drop_indexes"], {**values, "refs": await _indexes(connection, values)})
    return Erasure(tenant=tenant, user=user, requested_at=row[0])


async def end(connection: AsyncConnection[Any], erasure: Erasure) -> None:
    values = erasure_values(erasure)
    allow_long_work(connection)
    async with connection.transaction():
        await connection.execute(SQL["hold_erasure"], values)
        await connection.execute(SQL["hold_documents_of"], values)
        await connection.execute(SQL["hold_fact_subjects_of"], values)
        await connection.execute(SQL["hold_facts_of"], values)
        refs = await _indexes(connection, values)
        await connection.execute(SQL["erase_documents_of"], values)
        await connection.execute(SQL["erase_facts_of"], values)
        await connection.execute(SQL["forget_names"], values)
        await connection.execute(SQL["forget_keys"], values)
        await drop_unused_texts(connection, erasure.tenant)
        await connection.execute(SQL["drop_scopes"], {**values, "refs": refs})
        await connection.execute(SQL["end_erasure"], values)


async def _indexes(connection: AsyncConnection[Any], values: dict[str, Any]) -> list[int]:
    """The numbers of the scopes' indexes, which are locked."""
    return [row[0] for row in await (await connection.execute(SQL["hold_indexes"], values)).fetchall()]
