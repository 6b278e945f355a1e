"""Forks: the rows of a conversation that begins with the messages of another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from hitherto.core.log.head import HeadWithCalls
from hitherto.store.facts.learn import hold_facts_of
from hitherto.store.log import heads
from hitherto.store.sql import SQL


async def fork(connection: AsyncConnection[Any], at: dict[str, Any], name: str, row: Any, after: HeadWithCalls) -> bool:
    """Insert the conversation `name` with the messages below `after.next_seq` of the one at `at`, which is locked and
    has the head's row `row`. Returns False, with nothing inserted, where there is one of that name."""
    stop = after.next_seq
    values = {"tenant": at["tenant"], "source": at["ref"], "stop": stop}
    made = await (await connection.execute(SQL["fork_conversation"], {**values, "fork": name})).fetchone()
    if made is None:
        return False
    values |= {"ref": made[0]}
    copies = dict(await (await connection.execute(SQL["digests_to_copy"], values)).fetchall())
    await hold_facts_of(connection, at, last=stop - 1)  # evidence of facts that are erased meanwhile cannot be copied
    frontiers = {
        stage: one if one.digest is None else replace(one, digest=copies[one.digest])
        for stage, one in after.frontiers.items()
    }
    head = replace(after, frontiers=frontiers)
    async with connection.pipeline():
        for table in ("messages", "branches", "open_calls", "forgettings", "evidence"):
            await connection.execute(SQL[f"copy_{table}"], values)
        await connection.execute(
            SQL["copy_digests"], {**values, "digests": list(copies), "copies": list(copies.values())}
        )
        await connection.execute(SQL["insert_fork"], {**values, "end": stop - 1, "rev": head.rev})
        await connection.execute(SQL["index_scope"], at)  # deletions of relatives wait for each other by its row
        described = {**heads.head_values(head), "updated_at": None, "said_at": None}
        await connection.execute(SQL["update_conversation"], {**values, **described})
        retracted = heads.retracted_before(row, stop)
        await connection.execute(SQL["note_retracted"], {**values, "retracted": retracted})
        if after.open_calls:
            opened = heads.open_call_values(after.open_calls)
            await connection.execute(SQL["insert_open_calls"], {**values, **opened})
        await connection.execute(SQL["count_awaited"], {**values, **heads.awaited_values(head)})
        await connection.execute(SQL["note_said"], values)
        await connection.execute(SQL["note_digested"], values)
    return True
