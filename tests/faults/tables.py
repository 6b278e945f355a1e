"""What stands in the tables, read past all code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString

import psycopg

from tests.faults.waiting import until

_TIMES: tuple[LiteralString, ...] = (
    "update hitherto.conversation set updated_at = updated_at + %(by)s, resume_at = resume_at + %(by)s, "
    "facts_due_at = facts_due_at + %(by)s",
    "update hitherto.message set created_at = created_at + %(by)s",
    "update hitherto.receipt set created_at = created_at + %(by)s",
    "update hitherto.digest set created_at = created_at + %(by)s, due_at = due_at + %(by)s, "
    "completed_at = completed_at + %(by)s",
    "update hitherto.model_call set created_at = created_at + %(by)s",
    "update hitherto.worker set seen_at = seen_at + %(by)s",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A digest of messages, as far as these tests look at it. `new` is where the messages begin that it was made of."""

    id: int
    conversation: str
    stage: str
    status: str
    start: int
    end: int
    base: int | None
    new: int
    attempt: int
    tries: int
    claimed: bool
    due: bool
    text: str
    error: str | None


LISTENS = "datname = current_database() and pid <> pg_backend_pid() and query like '%listen hitherto_digests'"
"""Which sessions listen for digests that are due."""

_ROWS = """
select d.id, c.id, d.stage, d.status, d.start_seq, d.end_seq, d.base_id,
       greatest(d.start_seq, coalesce(b.end_seq + 1, 0)), d.attempt, d.tries, d.claimed,
       d.due_at is not null, d.text, d.error
from hitherto.digest d
join hitherto.conversation c on c.tenant = d.tenant and c.ref = d.conversation
left join hitherto.digest b on b.tenant = d.tenant and b.id = d.base_id and b.conversation = d.conversation
where d.action = 'summarize'
order by d.id
"""


class Tables:
    """A look at a database's tables, each time on a connection of its own: the server may have been away."""

    def __init__(self, database: str) -> None:
        self.database = database

    async def all(self, query: LiteralString, values: dict[str, Any] | None = None) -> list[Any]:
        async with await psycopg.AsyncConnection[Any].connect(self.database, autocommit=True) as connection:
            cursor = await connection.execute(query, values)
            return [] if cursor.description is None else await cursor.fetchall()

    async def one(self, query: LiteralString, values: dict[str, Any] | None = None) -> Any:
        """The only value."""
        ((value,),) = await self.all(query, values)
        return value

    async def digests(self) -> list[Row]:
        return [Row(*row) for row in await self.all(_ROWS)]

    async def digest(self, id: int | None) -> Row:
        return next(row for row in await self.digests() if row.id == id)

    async def calls(self) -> list[tuple[int | None, str | None]]:
        """The ledger: of each call its digest, and why it came to nothing if it did."""
        return await self.all("select digest, cause from hitherto.model_call order by created_at")

    async def listens(self) -> bool:
        """Whether somebody is notified of digests that are due."""
        return await self.one(f"select exists (select from pg_stat_activity where {LISTENS})")

    async def moved(self, by: timedelta) -> None:
        """Move all times by so much: to the code it is the same as a clock that jumped the other way."""
        async with await psycopg.AsyncConnection[Any].connect(self.database) as connection:
            for statement in _TIMES:
                await connection.execute(statement, {"by": by})

    async def wait_for_digests(self, digests: Sequence[int | None] = ()) -> None:
        """Returns once no digest is in progress, and those of `digests` have been."""

        async def look() -> bool:
            rows = await self.digests()
            in_progress = [row for row in rows if row.status == "processing"]
            return not in_progress and set(digests) <= {row.id for row in rows}

        await until(look, "all digests have come to an end")
