"""Digests: claims of workers, and single-statement reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection, AsyncCursor

from hitherto.core.digests.digest import (
    Backlog,
    Claim,
    Digest,
    DigestJob,
    DigestWork,
    EarlierDigest,
    FailedDigest,
    Needs,
)
from hitherto.core.ledger import ModelCall
from hitherto.core.log.message import Payload, storable
from hitherto.core.scope import Scope
from hitherto.store import ledger, rows
from hitherto.store.connections.part import Part
from hitherto.store.sql import SQL


class DigestStore(Part):
    """Digests, which units of work begin and end. All methods raise what `Store` says."""

    async def digests(self, scope: Scope, conversation: str, *, after: int = 0, limit: int = 1_000) -> list[Digest]:
        """A page of at most `limit` digests in order of their ids, failed and superseded ones and clears too; those
        after the id `after`."""
        return await self._digests("digests", scope, conversation, after=after, limit=limit, **rows.PAGE)

    async def digest(self, scope: Scope, conversation: str, digest: int) -> Digest | None:
        """The digest of that id, whatever its status; None where the conversation has none."""
        found = await self._digests("digest", scope, conversation, digest=digest)
        return found[0] if found else None

    async def last_clear(self, scope: Scope, conversation: str, *, end: int, rev: int) -> Digest | None:
        """The newest clear that hides all messages up to seq `end` at revision `rev`; None where there is none."""
        found = await self._digests("last_clear", scope, conversation, end=end, rev=rev)
        return found[0] if found else None

    async def _digests(self, name: str, scope: Scope, conversation: str, **values: int) -> list[Digest]:
        found = await self._all(SQL[name], {**rows.scope_values(scope, conversation), **values}, of=rows.named)
        return [rows.digest_from(row) for row in found]

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        """The opaque items of that digest, whatever its status; None when it has none."""
        found = await self.digest(scope, conversation, digest)
        return None if found is None or found.opaque is None else tuple(json.loads(found.opaque))

    async def earlier(
        self, scope: Scope, conversation: str, *, within: timedelta, until: datetime | None = None
    ) -> EarlierDigest | None:
        """The newest completed summary, made no longer than `within` ago by the store's clock, of the scope's other
        conversations that are not private; of each only the one that stands for it now. With `until`, of those that
        were completed by then."""
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["earlier"], {**names, "within": within, "until": until})
        return EarlierDigest(conversation=found[0][0], digest=found[0][1], text=found[0][2]) if found else None

    async def claim(
        self, tenant: str, digest: int, *, lease: timedelta, able: Collection[Needs] = tuple(Needs)
    ) -> DigestWork | None:
        """Claim a digest in progress that is due and needs nothing, or one of what the caller is `able` to do, and read
        what is needed to make it; None for any other.

        The row's `attempt` and `tries` go up by one, so that an earlier claim on it is lost. For `lease`, by the
        store's clock, nobody else can claim it. None too while a unit of work holds the row. (A due time further away
        than anything here sets counts as due: it was left by a clock that was put back.)
        """
        values = {"tenant": tenant, "digest": digest, "lease": lease, "able": list(able)}

        async def take(connection: AsyncConnection[Any]) -> tuple[Any, list[Any]]:
            async with connection.pipeline():
                claimed = await connection.execute(SQL["claim"], values)
                messages = await connection.execute(SQL["claimed_messages"], values)
            row = await rows.named(claimed).fetchone()
            return row, [] if row is None else await rows.fetched(messages)

        async with self._with_connection(take) as (row, messages):
            return None if row is None else rows.work_from(tenant, row, messages)

    async def prolong(self, claims: Sequence[Claim], *, lease: timedelta) -> frozenset[Claim]:
        """Renew claims for `lease` from now; returns those that still hold. A claim whose row a unit of work holds is
        not renewed, but still holds."""

        async def hold(connection: AsyncConnection[Any]) -> frozenset[Claim]:
            # One transaction, in the order in which units of work lock digests, so that there is no deadlock.
            asked: list[tuple[Claim, AsyncCursor[Any]]] = []
            async with connection.pipeline():
                for one in sorted(claims, key=lambda claim: claim.digest):
                    values = {"tenant": one.tenant, "digest": one.digest, "attempt": one.attempt, "lease": lease}
                    asked.append((one, await connection.execute(SQL["prolong"], values)))
            return frozenset([one for one, cursor in asked if await cursor.fetchone() is not None])

        async with self._with_connection(hold) as held:
            return held

    async def put_off(
        self,
        work: DigestWork,
        *,
        wait: timedelta,
        error: str | None = None,
        counted: bool = True,
        calls: Sequence[ModelCall] = (),
    ) -> bool:
        """Give a claim back: the digest is due again in `wait` (at most an hour), and `error` says why; the `calls` go
        into the ledger. Not `counted`, the attempt does not count as a try. Returns whether the claim still held; if
        not, only the ledger is written. It waits for a unit of work that holds the row, but not without limit."""
        claim = work.claim
        values = {
            "tenant": claim.tenant,
            "digest": claim.digest,
            "attempt": claim.attempt,
            "wait": wait,
            "error": None if error is None else storable(error),
            "counted": counted,
        }

        async def give_back(connection: AsyncConnection[Any]) -> bool:
            # One transaction: on an autocommit connection, a pipeline is one.
            async with connection.pipeline():
                done = await connection.execute(SQL["put_off"], values)
                noted = await ledger.note(connection, work.scope, work.conversation, calls)
            await ledger.note_nameless(connection, calls, noted)
            return await done.fetchone() is not None

        async with self._with_connection(give_back) as held:
            return held

    async def due_digests(
        self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs), busy: Collection[str] = ()
    ) -> list[DigestJob]:
        """Digests of any tenant that can be claimed and that the caller is `able` to make, the longest due first; those
        of tenants that are `busy` come after all others. Read without a lock: another may claim them first."""
        found = await self._all(SQL["due_digests"], {"limit": max(limit, 0), "able": list(able), "busy": list(busy)})
        return [DigestJob(tenant, digest) for tenant, digest in found]

    async def show_worker(self, worker: UUID) -> None:
        """Record that a worker is there; `Backlog.workers` counts those of the last 30 seconds."""

        async def show(connection: AsyncConnection[Any]) -> None:
            async with connection.pipeline():
                await connection.execute(SQL["show_worker"], {"worker": worker})
                await connection.execute(SQL["forget_dead_workers"])

        async with self._with_connection(show):
            pass

    async def forget_worker(self, worker: UUID) -> None:
        """Record that a worker has stopped."""

        async def forget(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["forget_worker"], {"worker": worker})

        async with self._with_connection(forget):
            pass

    async def rested(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[FailedDigest]:
        """Of each conversation whose `Head.resume_at` has come, its newest failed digest, the longest waiting first;
        only those that the caller is `able` to make."""
        found = await self._all(SQL["rested"], {"limit": max(limit, 0), "able": list(able)})
        return [
            FailedDigest(scope=Scope(tenant=tenant, user=user, agent=agent), conversation=name, digest=digest)
            for tenant, user, agent, name, digest in found
        ]

    async def unread(self, *, limit: int = 100) -> list[tuple[Scope, str]]:
        """The conversations whose `Head.facts_due_at` has come, the longest due first."""
        found = await self._all(SQL["unread"], {"limit": max(limit, 0)})
        return [(Scope(tenant=tenant, user=user, agent=agent), name) for tenant, user, agent, name in found]

    async def rest_longer(self, scope: Scope, conversation: str, *, wait: timedelta) -> None:
        """Have a conversation that `rested` or `unread` gave go on in `wait`, so that it comes after others. One that
        somebody holds stays as it is."""
        values = {**rows.scope_values(scope, conversation), "wait": wait}

        async def postpone(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["rest_longer"], values)

        async with self._with_connection(postpone):
            pass

    async def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        """Those of `jobs` that are due or claimed."""
        values = {"tenants": [one.tenant for one in jobs], "digests": [one.digest for one in jobs]}
        return [DigestJob(tenant, digest) for tenant, digest in await self._all(SQL["unsettled"], values)]

    async def backlog(self, *, tenant: str | None = None) -> Backlog:
        """The current backlog, of all tenants or of one."""
        return rows.value_from(Backlog, (await self._all(SQL["backlog"], {"tenant": tenant}, of=rows.named))[0])
