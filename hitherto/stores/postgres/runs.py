"""`RunStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from hitherto.core.run import EventKind, NewEvent, Run, RunEvent, RunStatus
from hitherto.core.scope import Scope
from hitherto.stores.postgres import rows
from hitherto.stores.postgres.errors import ours
from hitherto.stores.postgres.recall.index import WithConnection
from hitherto.stores.postgres.sql import SQL


class PostgresRuns:
    """`RunStore` on the connections of a store."""

    def __init__(self, got: WithConnection) -> None:
        self._with_connection = got

    async def begin(
        self, scope: Scope, conversation: str, *, strategy: str | None, injection: bool, start: int | None = None
    ) -> Run:
        values = {"strategy": strategy, "injection": injection, "start": start}
        (row,) = await self._once("begin_run", {**rows.scope_values(scope, conversation), **values})
        return run_from(row)

    async def add(self, scope: Scope, run: UUID, events: Sequence[NewEvent]) -> bool:
        values = {
            "kinds": [one.kind.value for one in events],
            "names": [one.name for one in events],
            "call_ids": [one.call_id for one in events],
            "payloads": [one.raw for one in events],
        }
        return bool(await self._once("count_run_events", {**_at(scope, run), **values}, then="add_run_events"))

    async def end(self, scope: Scope, run: UUID, *, status: RunStatus, freed: int) -> Run | None:
        found = await self._once("end_run", {**_at(scope, run), "status": status.value, "freed": freed})
        return run_from(found[0]) if found else None

    async def run(self, scope: Scope, run: UUID) -> Run | None:
        found = await self._all("run", _at(scope, run))
        return run_from(found[0]) if found else None

    async def runs(self, scope: Scope, conversation: str, *, before: UUID | None = None, limit: int) -> list[Run]:
        values = {**rows.scope_values(scope, conversation), "before": before, "limit": max(limit, 0)}
        return [run_from(row) for row in await self._all("runs", values)]

    async def events(self, scope: Scope, run: UUID, *, after: int = -1, limit: int) -> list[RunEvent]:
        values = {**_at(scope, run), "after": after, "limit": max(limit, 0)}
        return [run_event_from(row) for row in await self._all("run_events", values)]

    async def _all(self, name: str, values: dict[str, Any]) -> list[rows.Row]:
        async def read(connection: AsyncConnection[Any]) -> list[rows.Row]:
            return await rows.fetched(await connection.execute(SQL[name], values))

        async with self._with_connection(read) as found:
            return found

    async def _once(self, name: str, values: dict[str, Any], *, then: str | None = None) -> list[rows.Row]:
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
                return await found.fetchall()


def _at(scope: Scope, run: UUID) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent, "run": run}


def run_from(row: Sequence[Any]) -> Run:
    number, conversation, strategy, injection, start, end, status, freed, events, started_at, ended_at = row
    return Run(
        id=number,
        conversation=conversation,
        strategy=strategy,
        injection=injection,
        start=start,
        end=end,
        status=RunStatus(status),
        freed=freed,
        events=events,
        started_at=started_at,
        ended_at=ended_at,
    )


def run_event_from(row: rows.Row) -> RunEvent:
    no, kind, name, call_id, raw, created_at = row
    return RunEvent(no=no, kind=EventKind(kind), name=name, call_id=call_id, raw=raw, created_at=created_at)
