"""Erasing a user or a tenant: what each step of it does, in a transaction of its own."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from hitherto.core.log.conversations import Erasure
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.contexts import drop_unused_texts
from hitherto.store.ledger import nameless_values
from hitherto.store.sql import SQL

_AT_ONCE = 10_000
"""Calls in the ledger that are taken from a tenant at once."""


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
        for ref in refs:
            await connection.execute(SQL["unindex_erased"], {**values, "ref": ref})
        await connection.execute(SQL["forget_names"], values)
        if erasure.user is None:
            await connection.execute(SQL["forget_tenant"], values)
            await _unname_calls(connection, erasure.tenant)
        else:
            await connection.execute(SQL["forget_user_in_calls"], values)
        await connection.execute(SQL["forget_keys"], values)
        await drop_unused_texts(connection, erasure.tenant)
        await connection.execute(SQL["drop_scopes"], {**values, "refs": refs})
        await connection.execute(SQL["end_erasure"], values)


async def end_of_subject(connection: AsyncConnection[Any], tenant: str, subject: str) -> None:
    values = {"tenant": tenant, "subject": subject}
    allow_long_work(connection)
    async with connection.transaction():
        await connection.execute(SQL["hold_fact_subjects_about"], values)
        await connection.execute(SQL["hold_facts_about"], values)
        refs = await (await connection.execute(SQL["hold_indexes_about"], values)).fetchall()
        await connection.execute(SQL["erase_facts_about"], values)
        for (ref,) in refs:
            await connection.execute(SQL["unindex_erased"], {"tenant": tenant, "ref": ref})
        await connection.execute(SQL["forget_subject"], values)
        await drop_unused_texts(connection, tenant)


async def _unname_calls(connection: AsyncConnection[Any], tenant: str) -> None:
    """What a tenant's calls cost stays, under no name."""
    values = {"tenant": tenant, "limit": _AT_ONCE}
    while taken := await (await connection.execute(SQL["take_calls"], values)).fetchall():
        await connection.execute(SQL["note_nameless_calls"], nameless_values(taken))


async def _indexes(connection: AsyncConnection[Any], values: dict[str, Any]) -> list[int]:
    """The numbers of the scopes' indexes, which are locked."""
    return [row[0] for row in await (await connection.execute(SQL["hold_indexes"], values)).fetchall()]
