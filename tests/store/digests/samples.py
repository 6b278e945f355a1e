"""Helpers of the cases for digests: a digest in progress, its row, and calls in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hitherto.core.digests.digest import Digest, Needs
from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.store.samples import SCOPE, dialogue, fire, write

ELSEWHERE = Scope(tenant="another", user=SCOPE.user, agent=SCOPE.agent)

CALL = ModelCall(purpose=Purpose.DIGEST, model="m", latency_ms=5, cause=FailureCause.BUSY)


def entries(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """Copies of these calls with new keys, so that each is a new entry of the ledger."""
    return [replace(call) for call in calls]


async def begun(store: Store, name: str = "c", *, scope: Scope = SCOPE, needs: Needs | None = None) -> int:
    """Write six messages and set off a digest over messages 0 to 5; its id."""
    await write(store, name, *dialogue(3), scope=scope)
    return await fire(store, name, 0, 5, scope=scope, needs=needs)


async def row_of(store: Store, digest: int, *, name: str = "c") -> Digest:
    return next(row for row in await store.digests(SCOPE, name) if row.id == digest)


async def noted(store: Store) -> int:
    """How many model calls are in the ledger."""
    # A call that names nobody is counted under "".
    return sum([one.calls for tenant in (SCOPE.tenant, "") for one in await store.costs("model", tenant=tenant)])


async def add_failed(store: Store, name: str, sizes: Sequence[int]) -> None:
    """Add failed digests to a conversation of `SCOPE`, with texts of these sizes."""
    async with store._connections.borrowed() as connection:
        await connection.execute(
            """
            insert into hitherto.digest (tenant, conversation, stage, spec, action, start_seq, end_seq, status, attempt,
                fired_rev, text, created_at, completed_at)
            select c.tenant, c.ref, 'failed', '{}', 'summarize', 0, 0, 'failed', 1, 1, repeat('x', s.size), now(), now()
            from hitherto.conversation c cross join unnest(%(sizes)s::integer[]) with ordinality as s (size, nth)
            where c.tenant = %(tenant)s and c.user_id = %(user)s and c.agent = %(agent)s and c.id = %(name)s
            order by s.nth
            """,
            {"tenant": SCOPE.tenant, "user": SCOPE.user, "agent": SCOPE.agent, "name": name, "sizes": list(sizes)},
        )
