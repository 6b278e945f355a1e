"""Kept contexts: what models were sent, as receipts that refer to the log."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import ForeignKeyViolation

from hitherto.core.context.manifest import ContextRecord, KeptContext, manifest_of
from hitherto.core.scope import Scope
from hitherto.store import rows
from hitherto.store.connections.part import Part
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.sql import SQL

_Connection = AsyncConnection[Any]


class ContextStore(Part):
    """Kept contexts. All methods raise what `Store` says.

    A context is deleted with the conversation, when a message that it showed or that was incoming is erased, and when
    anything of another conversation that it took something from is erased. Instructions and tools are kept once for all
    contexts of a tenant that have them.
    """

    async def keep(
        self,
        scope: Scope,
        conversation: str,
        record: ContextRecord,
        *,
        newest: int | None = None,
        lifetime: timedelta | None = None,
    ) -> None:
        """Keep a context, for `lifetime` (None: without an end). The conversation need not be there, unless the context
        has messages of it. With `newest`, only that many of the conversation's stay: the oldest go. Nothing is kept if
        the conversation, or a message that the context showed, was erased meanwhile, or another conversation that it
        took something from."""
        values = {
            **rows.scope_values(scope, conversation),
            "manifest": record.manifest,
            "instructions": record.instructions,
            "tools": record.tools,
            "shown": rows.multirange(record.shown),
            "agents": [agent for agent, _ in record.others],
            "names": [name for _, name in record.others],
            "taken": [rows.multirange(taken) for taken in record.others.values()],
            "next_seq": record.next_seq,
            "incoming": list(record.incoming),
            "newest": newest,
            "lifetime": lifetime,
        }

        # In one order, so that two that keep the same texts do not wait for each other.
        texts = sorted({one for one in (record.instructions, record.tools) if one is not None})
        statement = SQL["keep_context" if record.next_seq else "keep_first_context"]

        async def put(connection: _Connection) -> None:
            async with connection.pipeline(), connection.transaction():
                for text in texts:
                    await connection.execute(SQL["keep_context_text"], {"tenant": scope.tenant, "text": text})
                if record.others:
                    await connection.execute(SQL["hold_others"], values)
                await connection.execute(statement, values)
                if newest is not None:
                    await connection.execute(SQL["keep_newest_contexts"], values)

        async def put_again(connection: _Connection) -> None:
            for _ in range(2):
                # A text that was there may be dropped as unused before the context that needs it is.
                with suppress(ForeignKeyViolation):
                    return await put(connection)
            return await put(connection)

        async with self._with_connection(put_again, once=True):
            pass

    async def kept(
        self, scope: Scope, conversation: str, *, before: int | None = None, limit: int
    ) -> list[KeptContext]:
        """At most `limit` contexts of the conversation whose lifetime has not ended, the newest first; those before the
        id `before`."""
        values = {**rows.scope_values(scope, conversation), "before": before, "limit": max(limit, 0), **rows.PAGE}

        async def read(connection: _Connection) -> list[rows.Row]:
            return await (await connection.execute(SQL["contexts"], values)).fetchall()

        async with self._with_connection(read) as found:
            return [KeptContext(id=row[0], kept_at=row[1], manifest=manifest_of(*row[2:])) for row in found]

    async def forget(self, *, tenant: str | None = None) -> int:
        """Delete contexts whose lifetime has ended, and instructions and tools that no context has any more, of all
        tenants or of one. Returns how many contexts were deleted."""

        async def delete(connection: _Connection) -> int:
            gone = 0
            allow_long_work(connection)
            for (found,) in await (await connection.execute(SQL["tenants_with_ended_contexts"])).fetchall():
                if tenant in (None, found):
                    gone += (await connection.execute(SQL["forget_contexts"], {"tenant": found})).rowcount
            for (found,) in await (await connection.execute(SQL["tenants_with_unused_texts"])).fetchall():
                if tenant in (None, found):
                    async with connection.transaction():
                        await drop_unused_texts(connection, found)
            return gone

        async with self._with_connection(delete) as gone:
            return gone


async def drop_unused_texts(connection: _Connection, tenant: str) -> None:
    """Drop instructions and tools of a tenant that no context has, within a transaction."""
    held = await (await connection.execute(SQL["hold_unused_texts"], {"tenant": tenant})).fetchall()
    if held:
        unused = {"tenant": tenant, "hashes": [hashed for (hashed,) in held]}
        await connection.execute(SQL["drop_unused_texts"], unused)
