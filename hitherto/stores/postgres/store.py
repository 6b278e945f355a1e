"""The store on PostgreSQL: a pool, units of work, and single-statement reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import date, timedelta
from typing import Any, LiteralString, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from psycopg import AsyncConnection, AsyncCursor
from psycopg_pool import PoolClosed, PoolTimeout

from hitherto.aside import aside
from hitherto.core.digests.digest import Digest, Needs
from hitherto.core.ledger import Costs, ModelCall, Spending
from hitherto.core.log.append import key_hash
from hitherto.core.log.head import Head
from hitherto.core.log.message import Logged, Payload, storable
from hitherto.core.scope import Scope
from hitherto.errors import StoreError
from hitherto.garbage import few_collections
from hitherto.ports.digests import Backlog, Claim, DigestJob, DigestWork, EarlierDigest, FailedDigest
from hitherto.ports.facts import KnownFacts, KnownFactsQuery
from hitherto.ports.ledger import By
from hitherto.ports.log import (
    AgentDefaults,
    ConversationFilter,
    ConversationInfo,
    Erasure,
    ExpiredConversation,
    MessageRange,
    Receipt,
    ScopeCounts,
    ScopePart,
    Unit,
)
from hitherto.stores.postgres import errors, ledger, rows, schema
from hitherto.stores.postgres.connections.pool import Connections
from hitherto.stores.postgres.connections.silence import allow_long_work
from hitherto.stores.postgres.contexts import PostgresContexts
from hitherto.stores.postgres.documents import PostgresDocuments
from hitherto.stores.postgres.export import PostgresExport
from hitherto.stores.postgres.facts.context_columns import known_from
from hitherto.stores.postgres.facts.facts import PostgresFacts
from hitherto.stores.postgres.facts.rows import known_values
from hitherto.stores.postgres.keys import PostgresKeys
from hitherto.stores.postgres.log import erasure, heads, listing
from hitherto.stores.postgres.recall.index import PostgresIndex
from hitherto.stores.postgres.row_security.connection import RowSecurityConnection
from hitherto.stores.postgres.runs import PostgresRuns
from hitherto.stores.postgres.sql import SQL
from hitherto.stores.postgres.unit import PostgresUnit
from hitherto.stores.postgres.wake import Notifier, listen

_NEVER = 2**62
"""A seq, and a revision, that no conversation reaches."""

_T = TypeVar("_T")


class PostgresStore:
    """`Store` on the PostgreSQL at `url` (a libpq URL or key=value string), version 14 or later.

    Holds at most `pool_size` connections; a verb waits at most `patience` seconds for one. If `prepared`, statements
    that come often are prepared, which a connection pooler in between must support. If `read_only`, nothing is written,
    and the schema must be there. `start_again` is called when no connection can be made.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        patience: float = 10.0,
        prepared: bool = True,
        read_only: bool = False,
        start_again: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._url = url
        self._patience = patience
        self._read_only = read_only
        self._gates = WeakValueDictionary[tuple[Scope, str], asyncio.Lock]()
        self._connections = Connections(
            url,
            size=pool_size,
            patience=patience,
            prepared=prepared,
            read_only=read_only,
            start_again=start_again,
        )
        self._notifier = Notifier(url)
        self.index = PostgresIndex(self._with_connection)
        self.documents = PostgresDocuments(self._with_connection)
        self.facts = PostgresFacts(self._with_connection)
        self.export = PostgresExport(self._with_connection)
        self.contexts = PostgresContexts(self._with_connection)
        self.runs = PostgresRuns(self._with_connection)
        self.keys = PostgresKeys(self._with_connection)

    async def open(self) -> None:
        await schema.ensure(self._url, patience=self._patience, upgrade=not self._read_only)
        try:
            await self._connections.open()
        except PoolTimeout as error:
            raise errors.unreachable(self._url, error) from error

    @property
    def row_security(self) -> bool:
        """Whether row-level security holds for the role of the connections."""
        return self._connections.row_security

    async def aclose(self) -> None:
        await self._notifier.aclose()
        await self._connections.aclose()

    @asynccontextmanager
    async def write(
        self, scope: Scope, conversation: str, *, key: str | None = None, digest: int | None = None
    ) -> AsyncGenerator[Unit]:
        async def begin(connection: RowSecurityConnection) -> PostgresUnit:
            unit = PostgresUnit(connection, scope, conversation)
            await unit.begin(key, digest)
            return unit

        # Tasks that want the same conversation wait here, without a connection: else a busy conversation would take the
        # whole pool from the others. Between processes, the row's lock does the same.
        gate = self._gates.setdefault((scope, conversation), asyncio.Lock())
        async with gate, self._with_connection(begin) as unit:
            yield unit

    async def head(self, scope: Scope, conversation: str, *, at: int | None = None) -> Head | None:
        names = rows.scope_values(scope, conversation)
        if at is None:
            found = await self._all(SQL["head"], names, named=True)
        else:
            past = {**names, "at": at}
            found = await self._all(SQL["head_at"], past, named=True) if 0 <= at <= _NEVER else []
        return await heads.head_from(found[0]) if found else None

    async def head_and_known(
        self, scope: Scope, conversation: str, asked: KnownFactsQuery, *, at: int | None = None
    ) -> tuple[Head | None, KnownFacts]:
        names = rows.scope_values(scope, conversation)
        query = SQL["head"] if at is None else SQL["head_at"]

        async def read(connection: RowSecurityConnection) -> tuple[Any, list[rows.Row]]:
            async with connection.pipeline():
                found = None
                if at is None or 0 <= at <= _NEVER:
                    found = await connection.execute_often(query, {**names, "at": at}, named=True)
                known = await connection.execute(SQL["known"], known_values(scope, conversation, asked), binary=True)
            return None if found is None else await found.fetchone(), await known.fetchall()

        async with self._with_connection(read) as (row, known):
            return None if row is None else await heads.head_from(row), known_from(known, scope)

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: MessageRange) -> list[Logged]:
        values = {
            **_reading_values(scope, conversation, ref, reading),
            "tokens": reading.tokens,
            "tools_from": _NEVER if reading.tools_from is None else reading.tools_from,
            "limit": None if reading.limit is None else max(reading.limit, 0),
        }
        # Binary, as whole histories are read: numbers and times are parsed in a fraction of the time.
        return await rows.logged_all(await self._all(SQL["messages"], values, binary=True))

    async def payloads(
        self, scope: Scope, conversation: str, ref: int, reading: MessageRange, *, wire: str
    ) -> list[Payload] | None:
        found = await self._all(SQL["payloads"], {**_reading_values(scope, conversation, ref, reading), "wire": wire})
        if not all(usable for _, usable in found):
            return None
        return await aside(sum(len(raw) for raw, _ in found), _items_from, [raw for raw, _ in found])

    async def digests(self, scope: Scope, conversation: str) -> list[Digest]:
        found = await self._all(SQL["digests"], rows.scope_values(scope, conversation), named=True)
        return [rows.digest_from(row) for row in found]

    async def opaque(self, scope: Scope, conversation: str, digest: int) -> tuple[Payload, ...] | None:
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["opaque"], {**names, "digest": digest})
        text = found[0][0] if found else None
        return None if text is None else tuple(await aside(len(text), json.loads, text))

    async def earlier(self, scope: Scope, conversation: str, *, within: timedelta) -> EarlierDigest | None:
        names = rows.scope_values(scope, conversation)
        found = await self._all(SQL["earlier"], {**names, "within": within})
        return EarlierDigest(conversation=found[0][0], digest=found[0][1], text=found[0][2]) if found else None

    async def receipt(self, scope: Scope, conversation: str, key: str) -> Receipt | None:
        values = {"tenant": scope.tenant, "key_hash": key_hash(scope, conversation, key)}
        found = await self._all(SQL["receipt"], values)
        return rows.receipt_from(found[0]) if found else None

    async def defaults(self, *, tenant: str, agent: str | None) -> AgentDefaults:
        found = await self._all(SQL["defaults"], {"tenant": tenant, "agent": agent or ""})
        return heads.defaults_from(found[0]) if found else AgentDefaults()

    async def set_defaults(self, *, tenant: str, agent: str | None, defaults: AgentDefaults) -> None:
        values = {
            "tenant": tenant,
            "agent": agent or "",
            "policy": defaults.policy,
            "cross_session": defaults.cross_session.to_json(),
            "ttl": defaults.ttl,
        }

        async def put(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["set_defaults"], values)

        async with self._with_connection(put):
            pass

    async def claim(
        self, tenant: str, digest: int, *, lease: timedelta, able: Collection[Needs] = tuple(Needs)
    ) -> DigestWork | None:
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

    async def due_digests(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[DigestJob]:
        found = await self._all(SQL["due_digests"], {"limit": max(limit, 0), "able": list(able)})
        return [DigestJob(tenant, digest) for tenant, digest in found]

    def wake_workers(self) -> None:
        self._notifier.notify()

    async def listen(self, woken: Callable[[], None]) -> None:
        await listen(self._url, woken)

    async def show_worker(self, worker: UUID) -> None:
        async def show(connection: AsyncConnection[Any]) -> None:
            async with connection.pipeline():
                await connection.execute(SQL["show_worker"], {"worker": worker})
                await connection.execute(SQL["forget_dead_workers"])

        async with self._with_connection(show):
            pass

    async def forget_worker(self, worker: UUID) -> None:
        async def forget(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["forget_worker"], {"worker": worker})

        async with self._with_connection(forget):
            pass

    async def rested(self, *, limit: int = 100, able: Collection[Needs] = tuple(Needs)) -> list[FailedDigest]:
        found = await self._all(SQL["rested"], {"limit": max(limit, 0), "able": list(able)})
        return [
            FailedDigest(scope=Scope(tenant=tenant, user=user, agent=agent), conversation=name, digest=digest)
            for tenant, user, agent, name, digest in found
        ]

    async def unsettled(self, jobs: Sequence[DigestJob]) -> list[DigestJob]:
        values = {"tenants": [one.tenant for one in jobs], "digests": [one.digest for one in jobs]}
        return [DigestJob(tenant, digest) for tenant, digest in await self._all(SQL["unsettled"], values)]

    async def note_calls(self, scope: Scope, conversation: str | None, calls: Sequence[ModelCall]) -> None:
        async def note(connection: AsyncConnection[Any]) -> None:
            async with connection.pipeline():
                noted = await ledger.note(connection, scope, conversation, calls)
            await ledger.note_nameless(connection, calls, noted)

        async with self._with_connection(note):
            pass

    async def spent(self, tenant: str, *, day: date | None = None) -> Spending:
        return ledger.spent_from((await self._all(SQL["spent"], {"tenant": tenant, "day": day}))[0])

    async def costs(
        self, by: By, *, tenant: str | None = None, since: date | None = None, until: date | None = None
    ) -> list[Costs]:
        self._check_tenant(tenant)
        found = await self._all(SQL["costs"], ledger.costs_values(by, tenant, since, until))
        return [ledger.costs_from(row) for row in found]

    async def backlog(self, *, tenant: str | None = None) -> Backlog:
        found = await self._all(SQL["backlog"], {"tenant": tenant})
        ((due, claimed, put_off, seconds, messages, resting, workers),) = found
        return Backlog(
            due=due,
            claimed=claimed,
            put_off=put_off,
            lag_seconds=seconds,
            lag_messages=messages,
            resting=resting,
            workers=workers,
        )

    async def listed(self, asked: ConversationFilter, *, limit: int) -> list[ConversationInfo]:
        one_scope = asked.user is not None and asked.agent is not None
        query = SQL["listed"] if one_scope else SQL["listed_within"]
        found = await self._all(query, listing.listed_values(asked, limit))
        return [listing.info_from(asked.tenant, row) for row in found]

    async def info(self, scope: Scope, conversation: str) -> ConversationInfo | None:
        found = await self._all(SQL["info"], rows.scope_values(scope, conversation))
        return listing.info_from(scope.tenant, found[0]) if found else None

    async def scopes(
        self, by: ScopePart, *, tenant: str | None = None, user: str | None = None, beyond: str = "", limit: int
    ) -> list[ScopeCounts]:
        self._check_tenant(tenant)
        start = beyond if user is None else user
        values = {"tenant": tenant, "user": user, "beyond": beyond, "start": start, "limit": max(limit, 0)}
        return [listing.counts_from(row) for row in await self._all(SQL[f"{by}s"], values)]

    async def due(self, *, tenant: str | None = None, limit: int = 1_000) -> list[ExpiredConversation]:
        found = await self._all(SQL["due"], {"tenant": tenant, "limit": max(limit, 0)})
        return [
            ExpiredConversation(Scope(tenant=tenant, user=user, agent=agent), name)
            for tenant, user, agent, name in found
        ]

    async def begin_erasure(self, *, tenant: str, user: str | None) -> Erasure:
        async with self._with_connection(lambda connection: erasure.begin(connection, tenant, user)) as begun:
            return begun

    async def erasures(self) -> list[Erasure]:
        found = await self._all(SQL["erasures"], {})
        return [Erasure(tenant=tenant, user=user or None, requested_at=at) for tenant, user, at in found]

    async def conversations_of(self, erasing: Erasure, *, limit: int) -> list[ConversationInfo]:
        values = {**erasure.erasure_values(erasing), "limit": limit}
        found = await self._all(SQL["conversations_to_erase"], values)
        return [listing.info_from(erasing.tenant, row) for row in found]

    async def end_erasure(self, erasing: Erasure) -> None:
        async with self._with_connection(lambda connection: erasure.end(connection, erasing)):
            pass

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        async def forget(connection: AsyncConnection[Any]) -> int:
            gone, values = 0, {"older_than": older_than}
            allow_long_work(connection)
            for (tenant,) in await (await connection.execute(SQL["tenants_with_old_receipts"], values)).fetchall():
                gone += (await connection.execute(SQL["forget_receipts"], {**values, "tenant": tenant})).rowcount
            return gone

        async with self._with_connection(forget) as forgotten:
            return forgotten

    def _check_tenant(self, tenant: str | None) -> None:
        """Raises StoreError where all tenants are asked for, and the role sees one at a time."""
        if tenant is None and self.row_security:
            raise StoreError(
                "this role sees one tenant at a time: name the tenant, or connect as the owner of the tables"
            )

    async def _all(
        self, query: LiteralString, values: dict[str, Any], *, named: bool = False, binary: bool = False
    ) -> list[Any]:
        async def fetch(connection: AsyncConnection[Any]) -> list[Any]:
            cursor = await connection.execute(query, values, binary=binary)
            return await rows.fetched(rows.named(cursor) if named else cursor)

        async with self._with_connection(fetch) as found:
            return found

    @asynccontextmanager
    async def _with_connection(self, get: Callable[[RowSecurityConnection], Awaitable[_T]]) -> AsyncGenerator[_T]:
        """Yields what `get` returns for a connection, which stays borrowed until the block ends. If the connection
        turns out to be dead, as all in the pool are after a restart of the server, `get` runs again with another one:
        at most three times. So it must be safe to run again.

        Raises Hitherto's errors for psycopg's, and DatabaseUnavailable if no connection is there in time.
        """
        try:
            for last in (False, False, True):
                async with self._connections.borrowed() as connection:
                    try:
                        with errors.ours():
                            got = await get(connection)
                    except StoreError:
                        if last or not connection.closed:
                            raise
                    else:
                        yield got
                        return
                await self._connections.renew(connection)
        except PoolClosed as error:
            raise StoreError(
                f"the store is not open ({error}); call open() first, and nothing after aclose()"
            ) from error
        except PoolTimeout as error:
            raise errors.unreachable(self._url, error) from error


def _items_from(texts: Sequence[str]) -> list[Payload]:
    with few_collections():
        return json.loads(f"[{','.join(texts)}]")


def _reading_values(scope: Scope, conversation: str, ref: int, reading: MessageRange) -> dict[str, Any]:
    return {
        **rows.scope_values(scope, conversation),
        "ref": ref,
        "start": reading.start,
        "stop": reading.stop,
        "live": reading.live_at is not None,
        "live_at": _NEVER if reading.live_at is None else reading.live_at,
    }
