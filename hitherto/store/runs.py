"""Runs: what agents did, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from hitherto.core.run import EventKind, NewEvent, Run, RunEvent, RunStatus
from hitherto.core.scope import Scope
from hitherto.store import rows
from hitherto.store.connections.part import Part
from hitherto.store.errors import ours
from hitherto.store.sql import SQL


class RunStore(Part):
    """Runs. All methods raise what `Store` says. Nothing is written twice: where the connection is lost while `begin`,
    `add` or `end` write, they raise DatabaseUnavailable, and it is open whether it was written, as with `Unit.commit`.

    A run is deleted with its conversation. Where a message from its `start` to its `end` is erased (while it runs: any
    from its `start` on), the payloads of its events are too, and later ones have none, but for those that quote
    nothing.
    """

    async def begin(
        self, scope: Scope, conversation: str, *, strategy: str | None, injection: bool, start: int | None = None
    ) -> Run:
        """Begin a run, whose messages are those from `start` on (None: those that come next). The conversation need not
        be there."""
        values = {"strategy": strategy, "injection": injection, "start": start}
        (row,) = await self._once("begin_run", {**rows.scope_values(scope, conversation), **values})
        return run_from(row)

    async def add(self, scope: Scope, run: UUID, events: Sequence[NewEvent]) -> bool:
        """Record events in their order, all or none. Returns whether the run is there and has not ended; if not,
        nothing is written."""
        values = {
            "kinds": [one.kind.value for one in events],
            "names": [one.name for one in events],
            "call_ids": [one.call_id for one in events],
            "payloads": [one.raw for one in events],
        }
        return bool(await self._once("count_run_events", {**_at(scope, run), **values}, then="add_run_events"))

    async def end(self, scope: Scope, run: UUID, *, status: RunStatus, freed: int) -> Run | None:
        """End a run: the newest message is its last. Returns it, or None if it is not there or has ended before."""
        found = await self._once("end_run", {**_at(scope, run), "status": status.value, "freed": freed})
        return run_from(found[0]) if found else None

    async def run(self, scope: Scope, run: UUID) -> Run | None:
        """A run; None if it is not there."""
        found = await self._all(SQL["run"], _at(scope, run), of=rows.named)
        return run_from(found[0]) if found else None

    async def runs(self, scope: Scope, conversation: str, *, before: UUID | None = None, limit: int) -> list[Run]:
        """At most `limit` runs of the conversation, the last begun first; those that were begun before `before`."""
        values = {**rows.scope_values(scope, conversation), "before": before, "limit": max(limit, 0)}
        return [run_from(row) for row in await self._all(SQL["runs"], values, of=rows.named)]

    async def events(self, scope: Scope, run: UUID, *, after: int = -1, limit: int) -> list[RunEvent]:
        """A page of at most `limit` events of a run in their order, those after number `after`. As long as its
        conversation has expired messages that are not erased, they have no payloads that could quote one."""
        values = {**_at(scope, run), "after": after, "limit": max(limit, 0), **rows.PAGE}
        return [run_event_from(row) for row in await self._all(SQL["run_events"], values, of=rows.named)]

    async def _once(self, name: str, values: dict[str, Any], *, then: str | None = None) -> list[Any]:
        """Write, never twice: the connection is known to live before, and lost in the middle is an error."""

        async def begin(connection: AsyncConnection[Any]) -> AsyncConnection[Any]:
            await connection.execute("begin")
            return connection

        async with self._with_connection(begin) as connection:
            with ours():
                async with connection.pipeline():
                    found = await connection.execute(SQL[name], values)
                    if then is not None:
                        await connection.execute(SQL[then], values)
                    await connection.execute("commit")
                return await rows.named(found).fetchall()


def _at(scope: Scope, run: UUID) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "run": run}


def run_from(row: Any) -> Run:
    return rows.value_from(Run, row, status=RunStatus(row.status))


def run_event_from(row: Any) -> RunEvent:
    return rows.value_from(RunEvent, row, kind=EventKind(row.kind))
