"""The ledger: model calls recorded, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from psycopg import AsyncConnection, AsyncCursor

from hitherto.core.ledger import By, Costs, ModelCall, Spending
from hitherto.core.log.message import storable
from hitherto.core.scope import Scope
from hitherto.store.connections.part import Part
from hitherto.store.rows import Row, named, value_from
from hitherto.store.sql import SQL


class LedgerStore(Part):
    """The ledger, into which units of work write too. All methods raise what `Store` says."""

    async def note_calls(self, scope: Scope, conversation: str | None, calls: Sequence[ModelCall]) -> None:
        """Write model calls to the ledger outside of a unit of work: no digest came of them.

        User and tenant are named in them only while something of theirs is kept (a conversation, a document or a fact),
        so that a call that ends after an erasure does not bring a name back; what it cost is kept anyway.
        """

        async def write(connection: AsyncConnection[Any]) -> None:
            async with connection.pipeline():
                noted = await note(connection, scope, conversation, calls)
            await note_nameless(connection, calls, noted)

        async with self._with_connection(write):
            pass

    async def spent(self, tenant: str, user: str | None = None, *, day: date | None = None) -> Spending:
        """What the model calls of the tenant, or of one user of it, took on `day` (UTC), by default today by the
        store's clock."""
        (row,) = await self._all(SQL["spent"], {"tenant": tenant, "user": user, "day": day}, of=named)
        return value_from(Spending, row)

    async def has_other_users(self, tenant: str, user: str) -> bool:
        """Whether another user of the tenant has a conversation."""
        return bool((await self._all(SQL["has_other_users"], {"tenant": tenant, "user": user}))[0][0])

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        """Sums of the ledger, the most expensive first (by day: the latest first), of one tenant or of all; `since` and
        `until` are days in UTC, both inclusive."""
        self._check_tenant(tenant)
        found = await self._all(SQL["costs"], costs_values(by, tenant, since, until), of=named)
        return [value_from(Costs, row) for row in found]


def call_values(scope: Scope, ref: int, call: ModelCall) -> dict[str, Any]:
    """What `insert_call` binds: a call that was made for the conversation `ref`."""
    return {**_values(scope, call), "ref": ref}


def noted_values(scope: Scope, conversation: str | None, call: ModelCall) -> dict[str, Any]:
    """What `note_call` binds: a call that was made for the conversation of that name, or for none."""
    return {**_values(scope, call), "conversation": conversation}


async def note(
    connection: AsyncConnection[Any], scope: Scope, conversation: str | None, calls: Sequence[ModelCall]
) -> list[AsyncCursor[Any]]:
    """Record calls that were made for the conversation of that name, or for none. `note_nameless` gets the cursors."""
    return [await connection.execute(SQL["note_call"], noted_values(scope, conversation, call)) for call in calls]


async def note_nameless(
    connection: AsyncConnection[Any], calls: Sequence[ModelCall], noted: Sequence[AsyncCursor[Any]]
) -> None:
    """Record the calls that were not recorded for their tenant, of which nothing is kept, for none."""
    gone = [call for call, cursor in zip(calls, noted, strict=True) if not cursor.rowcount]
    if gone:
        now = datetime.now(UTC)
        rows = [[*_figures(call).values(), now] for call in gone]
        await connection.execute(SQL["note_nameless_calls"], nameless_values(rows))


def nameless_values(rows: Sequence[Row]) -> dict[str, Any]:
    """What `note_nameless_calls` binds of rows of `take_calls`."""
    columns = zip(*rows, strict=True)
    return {"tenant": "", **{name: list(column) for name, column in zip(_NAMELESS, columns, strict=True)}}


_NAMELESS = (
    "purposes", "models", "tokens_in", "tokens_cached", "tokens_out", "latency_ms", "costs", "causes", "created_at",
)  # fmt: skip


def costs_values(by: By, tenant: str | None, since: date | None, until: date | None) -> dict[str, Any]:
    """What `costs` binds."""
    return {"by": by, "tenant": tenant, "since": since, "until": until}


def _values(scope: Scope, call: ModelCall) -> dict[str, Any]:
    return {
        "tenant": scope.tenant,
        "user": scope.user,
        "agent": scope.agent,
        "key": call.key,
        "digest": call.digest,
        **_figures(call),
    }


def _figures(call: ModelCall) -> dict[str, Any]:
    return {
        "purpose": call.purpose.value,
        "model": storable(call.model),
        "tokens_in": call.tokens_in,
        "tokens_cached": call.tokens_cached,
        "tokens_out": call.tokens_out,
        "latency_ms": call.latency_ms,
        "cost": call.cost,
        "cause": None if call.cause is None else call.cause.value,
    }
