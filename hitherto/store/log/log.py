"""Conversations and their messages: units of work, and single-statement reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from weakref import WeakValueDictionary

from psycopg import AsyncConnection

from hitherto.aside import aside
from hitherto.blocks import block
from hitherto.core.facts.queries import KnownFacts, KnownFactsQuery
from hitherto.core.log.append import key_hash
from hitherto.core.log.branch import Branch
from hitherto.core.log.conversations import (
    SAID,
    AgentDefaults,
    ConversationFilter,
    ConversationInfo,
    Erasure,
    ExpiredConversation,
    Lasting,
    MessageRange,
    RangesRead,
    Receipt,
    ScopeCounts,
    ScopePart,
)
from hitherto.core.log.head import Head, HeadWithCalls
from hitherto.core.log.message import Logged, Payload
from hitherto.core.log.ranges import Ranges
from hitherto.core.page import PAGE_ENTRY, PAGE_SIZE
from hitherto.core.scope import Scope
from hitherto.store import rows
from hitherto.store.connections.part import Part
from hitherto.store.connections.pool import Connections
from hitherto.store.connections.row_security import RowSecurityConnection
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.facts.context_columns import known_from
from hitherto.store.facts.rows import known_values
from hitherto.store.log import erase_scope, heads, listing
from hitherto.store.sql import SQL
from hitherto.store.unit import Unit

_NEVER = 2**62
"""A seq, and a revision, that no conversation reaches."""


class LogStore(Part):
    """Conversations and their messages. All methods raise what `Store` says."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._gates = WeakValueDictionary[tuple[Scope, str], asyncio.Lock]()

    @block
    async def write(
        self,
        scope: Scope,
        conversation: str,
        *,
        key: str | None = None,
        digest: int | None = None,
        calls: Collection[str] = (),
        ids: Collection[str] = (),
    ) -> AsyncGenerator[Unit]:
        """Begin a unit of work on a conversation; others on the same one wait. Leaving it without a commit, by an error
        or not, changes nothing. The first commit creates a conversation that does not exist. Of `calls` (ids), the head
        has those that are open; of `ids` of messages, the unit knows those that are there.

        With `digest`, its row is locked too: it stays as `head.running` shows it until the unit ends. Raises StoreError
        where the conversation or the row is not free in time.
        """

        async def begin(connection: RowSecurityConnection) -> Unit:
            unit = Unit(connection, scope, conversation)
            await unit.begin(key, digest, calls, ids)
            return unit

        # Tasks that want the same conversation wait here, without a connection: else a busy conversation would take the
        # whole pool from the others. Between processes, the row's lock does the same.
        gate = self._gates.setdefault((scope, conversation), asyncio.Lock())
        async with gate, self._with_connection(begin) as unit:
            yield unit

    async def head(
        self, scope: Scope, conversation: str, *, at: int | None = None, upto: int | None = None
    ) -> Head | None:
        """The newest head, or the one at revision `at`, as far as message `upto`; None when there is no such
        conversation or revision. `upto` goes with `at`."""
        names = rows.scope_values(scope, conversation)
        if at is None:
            found = await self._all(SQL["head"], names, of=rows.named)
        else:
            past = {**names, "at": at, "upto": upto}
            found = await self._all(SQL["head_at"], past, of=rows.named) if 0 <= at <= _NEVER else []
        return await heads.head_from(found[0]) if found else None

    async def relatives_with(
        self, scope: Scope, relatives: Mapping[int, int], seqs: Collection[int]
    ) -> list[tuple[int, str, list[int]]]:
        """Of conversations that have messages in common up to a seq, by their numbers, and of those that have any of
        these too, as one was forked from the other: the number, the id, and which of `seqs` are not erased yet there;
        none without any."""
        refs, throughs = rows.integers(list(relatives)), rows.integers(list(relatives.values()))
        values = {"tenant": scope.tenant, "refs": refs, "throughs": throughs, "seqs": rows.integers(list(seqs))}
        return [(ref, name, list(there)) for ref, name, there in await self._all(SQL["relatives_with"], values)]

    async def head_and_known(
        self,
        scope: Scope,
        conversation: str,
        asked: KnownFactsQuery,
        *,
        at: int | None = None,
        upto: int | None = None,
        calls: Collection[str] = (),
    ) -> tuple[HeadWithCalls | None, KnownFacts, bool]:
        """The head, as `head` gives it, the facts that a context of the conversation may show (as they are now), and
        whether the scope has another conversation with messages that is not private, or its user a document, in one
        round trip. Of `calls` (ids), the newest head has those that are open."""
        names = rows.scope_values(scope, conversation)
        query = SQL["head"] if at is None else SQL["head_at"]

        async def read(connection: RowSecurityConnection) -> tuple[Any, list[rows.Row], list[rows.Row], Any]:
            async with connection.pipeline():
                found = opened = None
                if at is None or 0 <= at <= _NEVER:
                    found = await connection.execute_often(query, {**names, "at": at, "upto": upto}, named=True)
                if calls and at is None:
                    hashes = [heads.call_hash(call) for call in calls]
                    opened = await connection.execute_often(SQL["open_calls"], {**names, "hashes": hashes})
                known = await connection.execute(SQL["known"], known_values(scope, conversation, asked), binary=True)
                others = await connection.execute_often(SQL["others"], names)
            row = None if found is None else await found.fetchone()
            opened_rows = [] if opened is None else await opened.fetchall()
            return row, opened_rows, await known.fetchall(), await others.fetchone()

        async with self._with_connection(read) as (row, opened, known, (others,)):
            head = None if row is None else await heads.head_with_calls(row, opened)
            return head, known_from(known, scope), others

    async def messages(self, scope: Scope, conversation: str, ref: int, reading: MessageRange) -> list[Logged]:
        """The messages of `reading`, ascending by seq; none when `ref` is not that conversation's."""
        values = {
            **_reading_values(scope, conversation, ref, reading),
            "tokens": reading.tokens,
            "tools_from": _NEVER if reading.tools_from is None else reading.tools_from,
            **lasting_values(reading.lasting),
            "limit": None if reading.limit is None else max(reading.limit, 0),
        }
        # Binary, as whole histories are read: numbers and times are parsed in a fraction of the time.
        return await self._all(SQL["messages"], values, of=rows.as_messages, binary=True)

    async def messages_of(
        self, scope: Scope, wanted: Mapping[tuple[str, str], Ranges]
    ) -> dict[tuple[str, str], RangesRead]:
        """The messages of ranges of seqs, in conversations of the scope's user, each by its agent and its id."""
        parts = [(where, first, last) for where, some in wanted.items() for first, last in some]
        values = {
            "tenant": scope.tenant,
            "user": scope.user,
            "agents": [agent for (agent, _), _, _ in parts],
            "conversations": [conversation for (_, conversation), _, _ in parts],
            "firsts": rows.integers(first for _, first, _ in parts),
            "lasts": rows.integers(last for _, _, last in parts),
        }
        begins, found = dict.fromkeys(wanted, 0), {where: list[Logged]() for where in wanted}
        if parts:
            read: list[tuple[int, int, Logged]]
            read = await self._all(SQL["messages_of"], values, of=rows.as_messages_of_ranges, binary=True)
            for nth, view_start, message in read:
                where = parts[nth - 1][0]
                begins[where] = view_start
                found[where].append(message)
        return {where: RangesRead(begins[where], messages) for where, messages in found.items()}

    async def seq_of(self, scope: Scope, conversation: str, id: str) -> int | None:
        """The message of the conversation that has this id, or had it before it was erased; None if none has."""
        found = await self._all(SQL["messages_by_id"], rows.id_values(rows.scope_values(scope, conversation), [id]))
        return found[0][1] if found else None

    async def page(self, scope: Scope, conversation: str, ref: int, reading: MessageRange) -> list[Logged]:
        """The first messages of `reading` (which may have no more than `start`, `stop`, `live_at` and `limit`), as many
        as a page has room for; empty where there are none. What is not on the page is not read."""
        most = PAGE_SIZE // PAGE_ENTRY
        values = {
            **_reading_values(scope, conversation, ref, reading),
            "limit": most if reading.limit is None else min(max(reading.limit, 0), most),
            **rows.PAGE,
        }
        ((stop,),) = await self._all(SQL["page_stop"], values)
        return await self.messages(scope, conversation, ref, replace(reading, stop=stop))

    async def payloads(
        self, scope: Scope, conversation: str, ref: int, reading: MessageRange, *, wire: str
    ) -> list[Payload] | None:
        """The items of the messages of `reading` (which may have no more than `start`, `stop` and `live_at`), parsed,
        ascending by seq: a whole history in a fraction of the time that its messages take. None where one of them was
        erased, or is not of the format `wire`; empty when `ref` is not that conversation's."""
        found = await self._all(SQL["payloads"], {**_reading_values(scope, conversation, ref, reading), "wire": wire})
        if not all(usable for _, usable in found):
            return None
        return await aside(sum(len(raw) for raw, _ in found), _items_from, [raw for raw, _ in found])

    async def receipt(self, scope: Scope, conversation: str, key: str) -> Receipt | None:
        """What an idempotency key of the conversation answered; None if it was not used, or its retention has ended."""
        values = {"tenant": scope.tenant, "key_hash": key_hash(scope, conversation, key)}
        found = await self._all(SQL["receipt"], values, of=rows.named)
        return rows.value_from(Receipt, found[0]) if found else None

    async def defaults(self, *, tenant: str, agent: str | None) -> AgentDefaults:
        """The defaults that are set for an agent, or (None) for all agents of the tenant, of which only `ttl` counts.
        `Head` has what applies, once a conversation exists."""
        found = await self._all(SQL["defaults"], {"tenant": tenant, "agent": agent or ""})
        return heads.defaults_from(found[0]) if found else AgentDefaults()

    async def set_defaults(self, *, tenant: str, agent: str | None, defaults: AgentDefaults) -> None:
        """Set the defaults of the agent, or of all, in place of those set before."""
        values = {
            "tenant": tenant,
            "agent": agent or "",
            "policy": defaults.policy,
            "cross_session": defaults.cross_session.to_json(),
            "ttl": defaults.ttl,
            "time_zone": defaults.time_zone,
        }

        async def put(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["set_defaults"], values)

        async with self._with_connection(put):
            pass

    async def zone(self, scope: Scope) -> str | None:
        """The time zone that is set for the scope's user, else for its agent. `Head` has it, once a conversation
        exists."""
        found = await self._all(SQL["zone"], {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent})
        return found[0][0] if found else None

    async def user_zone(self, *, tenant: str, user: str) -> str | None:
        """The time zone that is set for a user."""
        found = await self._all(SQL["user_zone"], {"tenant": tenant, "user": user})
        return found[0][0] if found else None

    async def set_user_zone(self, *, tenant: str, user: str, time_zone: str | None) -> None:
        """Set the time zone of a user, in place of the one before; None: no zone."""
        values = {"tenant": tenant, "user": user, "time_zone": time_zone}

        async def put(connection: AsyncConnection[Any]) -> None:
            await connection.execute(SQL["set_user_zone" if time_zone else "unset_user_zone"], values)

        async with self._with_connection(put):
            pass

    async def listed(self, asked: ConversationFilter, *, limit: int) -> tuple[list[ConversationInfo], bool]:
        """A page of at most `limit` conversations, most recently written first, and whether there are more. No title is
        made of a message that has expired or is not shown any more."""
        one_scope = asked.user is not None and asked.agent is not None
        query = SQL["listed"] if one_scope else SQL["listed_within"]
        found = await self._all(query, listing.listed_values(asked, limit))
        return [listing.info_from(asked.tenant, row[:-1]) for row in found], bool(found and found[-1][-1])

    async def info(self, scope: Scope, conversation: str) -> ConversationInfo | None:
        """One conversation as `listed` shows it; None if it does not exist."""
        found = await self._all(SQL["info"], rows.scope_values(scope, conversation))
        return listing.info_from(scope.tenant, found[0]) if found else None

    async def branches(
        self, scope: Scope, conversation: str, ref: int, seq: int | None, *, after: int, limit: int
    ) -> list[Branch]:
        """The branches in whose place message `seq` stands, or (None) all where there are several, ascending by seq: at
        most `limit`, those after the seq `after`."""
        names = {**rows.scope_values(scope, conversation), "ref": ref}

        async def read(connection: RowSecurityConnection) -> tuple[list[rows.Row], rows.Row | None]:
            async with connection.pipeline():
                ways = await connection.execute(SQL["ways"], {**names, "seq": seq, "after": after, "limit": limit})
                state = await connection.execute(SQL["retracted"], names)
            return await ways.fetchall(), await state.fetchone()

        async with self._with_connection(read) as (found, state):
            return [] if state is None else [heads.branch_from(row, *state) for row in found]

    async def transcript(
        self, scope: Scope, conversation: str, *, before: int | None, limit: int
    ) -> tuple[int, list[tuple[Logged, Sequence[int | None]]]]:
        """The revision, and the newest messages before the seq `before` that users see, newest first, at most `limit`
        and one more. With each six numbers: where several ways part before it, the first message of the present one,
        its place among them, how many there are, and the first messages of the ways beside it; and the message that it
        follows. One round trip."""
        names = rows.scope_values(scope, conversation)
        values = {**names, "before": _NEVER if before is None else before, "limit": limit}

        async def read(connection: RowSecurityConnection) -> list[rows.Row]:
            return await (await connection.execute_often(SQL["transcript"], values)).fetchall()

        async with self._with_connection(read) as found:
            rev = found[0][0] if found else 0
            return rev, [(rows.logged_from(row[1:-6]), row[-6:]) for row in found if row[1] is not None]

    async def scopes(
        self, by: ScopePart, *, tenant: str | None = None, user: str | None = None, beyond: str = "", limit: int
    ) -> list[ScopeCounts]:
        """At most `limit` tenants, or users or agents of a `tenant` (agents of one `user`, if named), by name in the
        store's own order; those after the name `beyond`. `tenant` or `user` narrows the list to that one.
        There are those that have a conversation, a document or a current fact."""
        self._check_tenant(tenant)
        start = beyond if user is None else user
        values = {"tenant": tenant, "user": user, "beyond": beyond, "start": start, "limit": max(limit, 0)}
        return [listing.counts_from(row) for row in await self._all(SQL[f"{by}s"], values)]

    async def due(self, *, tenant: str | None = None, limit: int = 1_000) -> list[ExpiredConversation]:
        """Conversations of any tenant, or of one `tenant`, with messages to be erased; for the engine's own purge."""
        found = await self._all(SQL["due"], {"tenant": tenant, "limit": max(limit, 0)})
        return [
            ExpiredConversation(Scope(tenant=tenant, user=user, agent=agent), name)
            for tenant, user, agent, name in found
        ]

    async def begin_erasure(self, *, tenant: str, user: str | None) -> Erasure:
        """Record that a tenant, or a user of it, is to be erased, and remove all that the search index has of them. It
        is recorded until `end_erasure`."""
        async with self._with_connection(lambda connection: erase_scope.begin(connection, tenant, user)) as begun:
            return begun

    async def erasures(self) -> list[Erasure]:
        """Those that are recorded and have not ended, the oldest first; for the engine's own purge."""
        found = await self._all(SQL["erasures"], {})
        return [Erasure(tenant=tenant, user=user or None, requested_at=at) for tenant, user, at in found]

    async def conversations_of(self, erasing: Erasure, *, limit: int) -> list[ConversationInfo]:
        """At most `limit` conversations that are to be erased, in any order: those that were there when it began. They
        have no titles."""
        values = {**erase_scope.erasure_values(erasing), "limit": limit}
        found = await self._all(SQL["conversations_to_erase"], values)
        return [listing.info_from(erasing.tenant, row) for row in found]

    async def end_erasure(self, erasing: Erasure) -> None:
        """Erase what is left once the conversations are gone, and the record itself: documents, facts with their
        evidence and history, membership of subjects, kept contexts, runs, names in the ledger (the costs stay), and
        what is left of scopes in the search index; of a whole tenant also its subjects, the defaults of its agents.
        Conversations, documents, facts and runs that were added since it began stay, and contexts but for those that
        showed facts."""
        async with self._with_connection(lambda connection: erase_scope.end(connection, erasing)):
            pass

    async def conversations_about(self, *, tenant: str, subject: str) -> list[tuple[Scope, str, int]]:
        """The conversations about a subject: the scope, the id and the number of each, in any order."""
        found = await self._all(SQL["conversations_about"], {"tenant": tenant, "subject": subject})
        return [(Scope(tenant=tenant, user=user, agent=agent), name, ref) for user, agent, name, ref in found]

    async def kept_about(self, *, tenant: str, subject: str) -> tuple[int, int, int, int]:
        """How many conversations are about a subject, with how many messages, how many documents were archived from
        them, and how many facts about it hold."""
        ((conversations, messages, documents, facts),) = await self._all(
            SQL["kept_about"], {"tenant": tenant, "subject": subject}
        )
        return conversations, messages, documents, facts

    async def erase_subject(self, *, tenant: str, subject: str) -> None:
        """Erase a subject once the conversations about it are gone: its name, its members, the facts about it of every
        user, with their evidence and history, and kept contexts that showed them."""
        async with self._with_connection(lambda connection: erase_scope.end_of_subject(connection, tenant, subject)):
            pass

    async def forget_receipts(self, *, older_than: timedelta) -> int:
        """Delete idempotency receipts of any tenant beyond their stated retention; returns how many."""

        async def forget(connection: AsyncConnection[Any]) -> int:
            gone, values = 0, {"older_than": older_than}
            allow_long_work(connection)
            for (tenant,) in await (await connection.execute(SQL["tenants_with_old_receipts"], values)).fetchall():
                gone += (await connection.execute(SQL["forget_receipts"], {**values, "tenant": tenant})).rowcount
            return gone

        async with self._with_connection(forget) as forgotten:
            return forgotten


def _items_from(texts: Sequence[str]) -> list[Payload]:
    return json.loads(f"[{','.join(texts)}]")


def lasting_values(lasting: Lasting | None) -> dict[str, int]:
    """The values of `Lasting` for the statement `messages`."""
    if lasting is None:
        return {"begins": _NEVER, "first_turn": _NEVER, "last_turns": _NEVER, "last_turn": _NEVER}
    last_turns = max(lasting.last - SAID + 1, 0)
    return {
        "begins": lasting.start,
        "first_turn": lasting.first,
        "last_turns": last_turns,
        "last_turn": lasting.last,
    }


def _reading_values(scope: Scope, conversation: str, ref: int, reading: MessageRange) -> dict[str, Any]:
    return {
        **rows.scope_values(scope, conversation),
        "ref": ref,
        "start": reading.start,
        "stop": reading.stop,
        "live": reading.live_at is not None,
        "live_at": _NEVER if reading.live_at is None else reading.live_at,
    }
