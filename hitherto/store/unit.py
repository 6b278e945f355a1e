"""One unit of work on one conversation: two round trips, one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from datetime import datetime
from typing import Any, LiteralString

from psycopg import AsyncCursor

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import Digest, DigestOutcome
from hitherto.core.facts.fact import NewFact
from hitherto.core.facts.queries import AddedFact, CurrentFacts
from hitherto.core.log.append import key_hash
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.head import REPLACED, HeadWithCalls, check_retractable
from hitherto.core.log.message import Logged
from hitherto.core.log.probe import (
    AnyProbe,
    DialogueAt,
    Mark,
    ProbeAnswer,
    SeqAt,
    SpeakerAt,
    TokensAt,
    ToolIds,
    ToolItem,
    ToolTokens,
    TurnAt,
)
from hitherto.core.log.ranges import Ranges, before, joined, ranges
from hitherto.core.scope import Scope
from hitherto.store import ledger, rows
from hitherto.store.connections.row_security import RowSecurityConnection
from hitherto.store.connections.silence import allow_long_work
from hitherto.store.documents import document_values
from hitherto.store.errors import ours
from hitherto.store.facts.learn import count_forgettings, count_remembered, forget_facts_of, learn, remember
from hitherto.store.facts.rows import read_current_facts
from hitherto.store.log import forks, heads
from hitherto.store.recall import removal
from hitherto.store.sql import SQL

_AT_ONCE = 50
"""Messages that are written before others go on."""

_FEW = 4
"""So many messages are written sooner one by one than as arrays."""


class Unit:
    """One unit of work on one conversation, which it locks from beginning to end: one transaction, from `begin` to
    `commit` or `delete`. If neither comes, it is rolled back when the connection is given back.

    `head` is the newest head; where the conversation does not exist yet, one of revision 0 without messages. Its
    `clock` is read after the conversation is locked, and `now` never lies before it or the newest message's time.
    `receipt` is the earlier receipt of this unit's key, if there is one. `new`: the conversation did not exist. `known`
    has those of this unit's ids of messages that are in the log, or were before they were erased: the hash of each,
    with the message's seq.
    """

    def __init__(self, connection: RowSecurityConnection, scope: Scope, conversation: str) -> None:
        self._connection = connection
        self._scope, self._conversation = scope, conversation
        self._names = rows.scope_values(scope, conversation)
        self.receipt: Receipt | None = None
        self._row: Any = None
        self._calls: Collection[str] = ()
        self.new = False
        self.known: dict[str, int] = {}
        self._digest_end: tuple[int, Mark] | None = None
        """The last seq of the digest that is held, and the answer to `SeqAt` there."""
        self._done = self._switching = False

    async def begin(self, key: str | None, digest: int | None, calls: Collection[str], ids: Collection[str]) -> None:
        """Lock the conversation, and the digest if there is one, and read its head and the key's receipt: one round
        trip, two for a new conversation. Raises psycopg's errors."""
        self._calls = calls
        # Read committed, whatever the database's default: what is read after the lock needs a new snapshot.
        held = await self._hold(key, digest, calls, "begin isolation level read committed", ids)
        while not held:
            # The row was inserted here, or by another just now. It is missing again only if a third deleted it in
            # between.
            held, self.new = await self._hold(key, digest, calls, SQL["create"], ids), True

    async def _hold(
        self,
        key: str | None,
        digest: int | None,
        calls: Collection[str],
        first: LiteralString,
        ids: Collection[str] = (),
    ) -> bool:
        """After the statement `first`, lock the conversation and read it. Returns whether it is there."""
        receipt = end = opened = known = None
        # Results are fetched after the pipeline: to fetch one inside it would cost a round trip more.
        async with self._connection.pipeline():
            await self._connection.execute_often(first, self._names)
            locked = await self._connection.execute_often(SQL["lock"], self._names)
            if digest is not None:
                await self._connection.execute(SQL["hold_digest"], {**self._names, "digest": digest})
                end = await self._connection.execute(SQL["at_digest_end"], {**self._names, "digest": digest})
            found = await self._connection.execute_often(SQL["head"], self._names, named=True)
            if calls:
                values = {**self._names, "hashes": [heads.call_hash(call) for call in calls]}
                opened = await self._connection.execute_often(SQL["open_calls"], values)
            if ids:
                known = await self._connection.execute_often(SQL["messages_by_id"], rows.id_values(self._names, ids))
            if key is not None:
                receipt = await self._connection.execute_often(SQL["receipt"], self._key(key), named=True)
        row = await found.fetchone()
        earlier = None if receipt is None else await receipt.fetchone()
        if row is None or await locked.fetchone() is None:
            # A head without the lock: the row that was waited for was deleted, and another has created the conversation
            # anew.
            return False
        self._row = row
        self.head = await heads.head_with_calls(row, [] if opened is None else await opened.fetchall())
        self._at: dict[str, Any] = {"tenant": self._scope.tenant, "ref": self.head.ref}
        self._whose: dict[str, Any] = {**self._names, **self._at}
        if end is not None and (mark := await end.fetchone()) is not None:
            self._digest_end = mark[0], rows.mark_from(mark[1:])
        if known is not None:
            self.known = dict(await known.fetchall())
        if earlier is not None:
            self.receipt = rows.value_from(Receipt, earlier)
        return True

    def _key(self, key: str) -> dict[str, Any]:
        return {"tenant": self._scope.tenant, "key_hash": key_hash(self._scope, self._conversation, key)}

    async def probe(self, probe: AnyProbe) -> ProbeAnswer:
        """The live message that answers `probe`, or None; the answer to `ToolTokens` is a number, that to `ToolIds` a
        tuple. One index look-up, whatever the conversation's length; for these two one over the tool items of their
        range."""
        match probe:
            case DialogueAt(n):
                found = await self._one(SQL["dialogue_at"], {"n": n})
            case TurnAt(n):
                found = await self._one(SQL["turn_at"], {"n": n})
            case TokensAt(n):
                found = await self._one(SQL["tokens_at"], {"n": n})
            case SeqAt(n) if self._digest_end is not None and self._digest_end[0] == n:
                return self._digest_end[1]
            case SeqAt(n):
                found = await self._one(SQL["at"], {"n": n})
            case SpeakerAt(n):
                found = await self._one(SQL["speaker_at"], {"n": n})
            case ToolTokens(start, end, calls, never, leaves):
                values = {"start": start, "end": end, "calls": calls, "never": list(never), "leaves": leaves}
                [freed] = await self._one(SQL["tool_tokens"], values) or (0,)
                return freed
            case ToolIds(start):
                with ours():
                    read = await self._connection.execute(SQL["tool_ids"], {**self._at, "start": start})
                    return tuple(ToolItem(seq, (*calls,), (*answers,)) for seq, calls, answers in await read.fetchall())
        return None if found is None else rows.mark_from(found)

    async def tail(self, n: int, *, stop: int | None = None) -> list[Logged]:
        """The newest `n` live messages from `head.view_start` on, below seq `stop` (None: all), ascending by seq."""
        stop = self.head.next_seq if stop is None else stop
        values = {**self._at, "view_start": self.head.view_start, "stop": stop, "n": max(n, 0)}
        with ours():
            found = await rows.fetched(rows.as_messages(await self._connection.execute(SQL["tail"], values)))
        return found[::-1]

    async def ending_at(self, seq: int) -> HeadWithCalls:
        """The head as far as message `seq`, without what `Head` says of a past one."""
        past = {**self._names, "at": self.head.rev, "upto": seq}
        with ours():
            found = rows.named(await self._connection.execute(SQL["head_at"], past))
            return await heads.head_with_calls(await found.fetchone(), [])

    async def next_digest(self) -> int:
        """An id for a digest row, never given to another row."""
        row = await self._one(SQL["next_digest"], {})
        assert row is not None, "a sequence always has a next value"
        return int(row[0])

    async def _one(self, query: LiteralString, values: dict[str, Any]) -> rows.Row | None:
        with ours():
            return await (await self._connection.execute(query, {**self._at, **values})).fetchone()

    async def expired(self) -> tuple[Ranges, datetime | None]:
        """The messages that have expired by `head.clock` and are not erased yet, and when the next message expires."""
        values = {**self._at, "now": self.head.clock}
        with ours():
            due = await (await self._connection.execute(SQL["expired"], values)).fetchall()
            following = await (await self._connection.execute(SQL["next_expiry"], values)).fetchone()
        return ranges(row[0] for row in due), None if following is None else following[0]

    async def relatives(self) -> dict[int, int]:
        """The conversations, by their numbers, that have the first messages of this one too, as one was forked from the
        other, and up to which one. Nobody forks this one until the unit ends."""
        with ours():
            return dict(await (await self._connection.execute(SQL["relatives_of"], self._at)).fetchall())

    async def done_in_relatives(self) -> tuple[Ranges, Ranges]:
        """Of the messages that relatives have too: which are erased in any of them, and which were read for facts about
        the same subject, in one that is not private."""
        with ours():
            found = await (await self._connection.execute(SQL["done_in_relatives"], self._at)).fetchall()
        erased, extracted = list[tuple[int, int]](), list[tuple[int, int]]()
        for through, gone, read in found:
            erased += before(json.loads(gone), through + 1)
            extracted += before(json.loads(read or "[]"), through + 1)
        return joined(erased), joined(extracted)

    async def digests(self) -> list[Digest]:
        """All digests of the conversation, in order of their ids."""
        return await self._digests("all_digests")

    async def digest(self, digest: int) -> Digest | None:
        """One of them, as `Store.digest`."""
        found = await self._digests("digest", digest=digest)
        return found[0] if found else None

    async def _digests(self, name: str, **values: int) -> list[Digest]:
        with ours():
            cursor = rows.named(await self._connection.execute(SQL[name], {**self._names, **values}))
            return [rows.digest_from(row) for row in await rows.fetched(cursor)]

    async def current_facts(self, subject: str) -> CurrentFacts:
        """The scope's current facts about a subject, locked until the unit ends: nobody else changes them meanwhile. A
        unit asks for one subject only."""
        with ours():
            return await read_current_facts(self._connection, self._scope, subject, hold=True)

    async def remembered(self, seq: int) -> tuple[int, int]:
        """How many facts the scope's agent has remembered of message `seq` of this conversation, and how many of its
        user in the last 24 hours, deleted ones too. Nobody else counts them until the unit ends."""
        with ours():
            return await count_remembered(self._connection, self._whose, seq)

    async def forgettings(self, turn: int) -> tuple[int, int]:
        """How often the scope's agent was asked to forget in a turn of this conversation, and in the last 24 hours by
        its user. Nobody else counts them until the unit ends."""
        with ours():
            return await count_forgettings(self._connection, self._whose, turn)

    async def note_forgetting(self, turn: int, seq: int, *, private: bool) -> None:
        """The agent is asked to forget in a turn that message `seq` opens, which may be the next one, of a conversation
        that is `private` or not from now on. No search finds and no digest reads what is said in the turn. Takes the
        place of `commit`."""
        assert not self._done, "a unit of work commits once"
        with ours():
            async with self._connection.pipeline():
                values = {**self._whose, "turn": turn, "seq": seq, "private": private}
                await self._connection.execute(SQL["note_forgetting"], values)
                await self._connection.execute("commit")
        self._done = True

    async def forgotten(self, first: int, last: int) -> Ranges:
        """The messages from `first` to `last` of which an agent had remembered a fact that was deleted since, and those
        of turns in which it was asked to forget one."""
        with ours():
            found = await self._connection.execute(SQL["forgotten"], {**self._whose, "first": first, "last": last})
            return ranges([seq async for (seq,) in found])

    async def facts_left(self, facts: Collection[int]) -> set[int]:
        """Which of these facts are there, and not deleted."""
        with ours():
            found = await self._connection.execute(
                SQL["facts_left"], {**self._whose, "ids": rows.integers(list(facts))}
            )
            return {number async for (number,) in found}

    async def remember(self, subject: str, fact: NewFact) -> AddedFact:
        """Write a fact that the agent remembers about a subject: private, not confirmed, by nobody. Its messages are of
        this conversation; one of them may be that which is appended next. Where a current fact says the same, that was
        said again, unless it rests on these messages already. Takes the place of `commit`."""
        assert not self._done, "a unit of work commits once"
        with ours():
            coming = self.head.next_seq
            added = await remember(self._connection, self._scope, self._whose, subject, fact, coming=coming)
            await self._connection.execute("commit")
        self._done = True
        return added

    async def apply(self, changes: Changes, *, switching: bool = False) -> None:
        """Write changes that `commit` makes durable together with its own; `head` is then as they leave it. Raises
        what `commit` does. `switching`: other messages come back, so that these may be taken back however often that
        was done."""
        self._switching = switching
        with ours():
            async with self._connection.pipeline():
                await self._write(changes)
        await self._hold(None, None, self._calls, SQL["lock"])

    async def way_to(self, seq: int) -> tuple[Ranges, int]:
        """The messages, up to `seq`, that are to be shown again so that it is, and the message before them that is
        shown (-1: none)."""
        with ours():
            found = await (await self._connection.execute(SQL["way_to"], {**self._at, "seq": seq})).fetchall()
        shown = next((shown for _, _, shown in found if shown is not None), -1)
        parts = [(max(first, shown + 1), last) for first, last, _ in found]
        return joined([(first, last) for first, last in parts if first <= last]), shown

    def taken_back_with(self, seq: int) -> Ranges:
        """The messages behind `seq` that were taken back together with it."""
        return heads.retracted_with(self._row, seq)

    async def restore(self, ranges: Ranges) -> list[Logged]:
        """Show messages again that were taken back, and use the digests again that rest on them, from the revision
        that `commit` writes; returns their calls, results and reasoning items, without content. `head` is not changed
        by it, but its `retracted`."""
        values = {**self._at, "firsts": [one for one, _ in ranges], "lasts": [one for _, one in ranges]}
        retracted = heads.retracted_without(self._row, ranges)
        with ours():
            async with self._connection.pipeline():
                given = {**values, "rev": self.head.rev + 1, "retracted": retracted}
                await self._connection.execute(SQL["restore_messages"], given)
                found = await self._connection.execute(SQL["tools_in"], values)
            tools = await rows.fetched(rows.as_messages(found))
        await self._hold(None, None, self._calls, SQL["lock"])
        return tools

    async def tools(self, ranges: Ranges) -> list[Logged]:
        """The calls, results and reasoning items of these messages that are not erased, without content."""
        values = {**self._at, "firsts": [one for one, _ in ranges], "lasts": [one for _, one in ranges]}
        with ours():
            return await rows.fetched(rows.as_messages(await self._connection.execute(SQL["tools_in"], values)))

    async def answer(self, calls: Collection[str]) -> None:
        """Open calls that have their results again."""
        with ours():
            hashes = [heads.call_hash(call) for call in calls]
            await self._connection.execute(SQL["close_calls"], {**self._at, "hashes": hashes})

    async def forked_before(self, name: str) -> int | None:
        """The last message that this conversation has in common with its fork of this name, to which nothing was added
        yet; None where there is none."""
        found = await self._one(SQL["forked_before"], {**self._names, "source": self.head.ref, "fork": name})
        return None if found is None else int(found[0])

    async def fork(self, name: str, after: HeadWithCalls) -> bool:
        """Make a conversation of this name, as described as this one, with the messages below `after.next_seq` in the
        state `after`, which may be an earlier one of this conversation. Returns whether there was none of that name.
        Takes the place of `commit`."""
        assert not self._done, "a unit of work commits once"
        allow_long_work(self._connection)
        with ours():
            made = await forks.fork(self._connection, self._whose, name, self._row, after)
            await self._connection.execute("commit" if made else "rollback")
        self._done = True
        return made

    async def commit(self, changes: Changes) -> tuple[int, ...]:
        """Write everything or nothing; returns the ids of the digests in `changes.fire`, in their order. Those in
        progress are due at once.

        When it returns, the changes are as durable as the store is. At most once in a unit. Raises Conflict, and writes
        nothing, for a second digest of a stage in progress, a second completed one of a stage and range, or a second
        receipt of a key. When it raises DatabaseUnavailable, the connection was lost on the way, and whether the
        changes were written is not known.
        """
        assert not self._done, "a unit of work commits once"
        with ours():
            async with self._connection.pipeline():
                fired = await self._write(changes)
                await self._connection.execute_often("commit")
            ids = [int(row[0]) for cursor in fired if (row := await cursor.fetchone()) is not None]
        self._done = True
        return tuple(ids)

    async def delete(self, *, facts: bool = False) -> None:
        """Erase the conversation with everything derived from it. Receipts lose whatever could reveal its content, but
        still answer. Facts stay, without the evidence that was in it; with `facts`, those that have no other evidence
        are erased too, except those added by hand. Takes the place of `commit`."""
        assert not self._done, "a unit of work commits once"
        allow_long_work(self._connection)
        with ours():
            async with self._connection.pipeline():
                # A fact may rest on a message that was to come.
                await removal.hold_all(self._connection, self._whose, last=self.head.next_seq)
                await self._connection.execute(SQL["forget_receipts_of"], self._at)
                await self._connection.execute(SQL["forget_contexts_within"], {**self._whose, "ranges": None})
                await self._connection.execute(SQL["forget_runs_of"], self._names)
                await removal.unindex_all(self._connection, self._whose, last=self.head.last_seq)
                if facts:
                    await forget_facts_of(self._connection, self._whose, last=self.head.next_seq)
                await self._connection.execute(SQL["delete_conversation"], self._at)
                # Last, to find the calls too that were recorded while the deletion waited for its lock.
                await self._connection.execute(SQL["forget_calls_of"], self._at)
                await self._connection.execute("commit")
        self._done = True

    async def _write(self, changes: Changes) -> list[AsyncCursor[Any]]:
        """Send everything; returns the cursors that will have the ids of the new digests."""
        connection, at, head, now = self._connection, self._at, changes.head, self.head.now
        if changes.messages:
            await self._begin_branch()
            for start in range(0, len(changes.messages), _AT_ONCE):
                if start:
                    await asyncio.sleep(0)  # others go on in between
                some = changes.messages[start : start + _AT_ONCE]
                if len(some) > _FEW:
                    await connection.execute(SQL["insert_messages"], {**at, **rows.message_arrays(some)})
                else:
                    query = SQL["insert_message"]
                    values = [{**at, **rows.message_values(one)} for one in some]
                    await connection.kept_cursor(query).executemany(query, values)
        updated_at = None if changes.background else max([now, *[logged.created_at for logged in changes.messages]])
        hides = head.view_start != self.head.view_start or any(one.stage == REPLACED for one in changes.fire)
        moved = hides or bool(changes.messages or changes.retract or changes.restored or changes.erase)
        messages_rev = head.rev if moved else self.head.messages_rev
        said_at = changes.messages[-1].said_at if changes.messages else None
        dates = {"updated_at": updated_at, "said_at": said_at}
        values = {**at, **heads.head_values(head), "messages_rev": messages_rev, **dates}
        await connection.execute_often(SQL["update_conversation"], values)
        await self._write_calls(changes)
        if (changes.title, changes.metadata, changes.ttl) != (None, None, None):
            described = {"title": changes.title, "metadata": changes.metadata, "ttl": changes.ttl}
            await connection.execute(SQL["describe_conversation"], {**at, **described})
        if changes.key is not None and changes.receipt is not None:
            receipt = changes.receipt
            values = {
                **at,
                **self._key(changes.key),
                "fingerprint": receipt.fingerprint,
                "start": receipt.start,
                "end": receipt.end,
                "rev": receipt.rev,
                "now": now,
            }
            await connection.execute_often(SQL["insert_receipt"], values)
        await self._write_removals(changes)
        if moved and not changes.messages and not changes.erase:
            await connection.execute(SQL["note_said"], at)
        for outcome in changes.outcomes:
            await self._archive(outcome)
            values = {**at, **rows.outcome_values(outcome, head.rev), "now": now}
            await connection.execute(SQL["end_digest"], values)
        for call in changes.calls:
            await connection.execute(SQL["insert_call"], ledger.call_values(self._scope, self.head.ref, call))
        fired = [
            await connection.execute(
                SQL["insert_digest" if fire.id is None else "insert_digest_as"],
                {**at, **rows.fire_values(fire, head.rev), "now": now, "clock": head.clock},
            )
            for fire in changes.fire
        ]
        moved = head.view_start != self.head.view_start or bool(changes.restored)
        if moved or changes.outcomes or changes.rewritten or changes.supersede:
            await connection.execute(SQL["note_digested"], at)
        if moved or changes.erase or changes.retract or changes.rewritten or changes.supersede or changes.learned:
            gone = removal.going(changes, view_start=self.head.view_start)
            await removal.hold(connection, self._whose, changes, gone)
            await self._erase(changes.erase)
            await learn(connection, self._scope, self._whose, changes, now=now)
            await removal.unindex(connection, self._whose, gone)
        return fired

    async def _begin_branch(self) -> None:
        """Write which message the next one follows, where that is not the one with the seq before."""
        gone, head = self.head.retracted, self.head
        if gone and gone[-1][1] == head.last_seq:
            values = {**self._at, "start": head.next_seq, "parent": gone[-1][0] - 1}
            await self._connection.execute(SQL["insert_branch"], values)

    async def _write_calls(self, changes: Changes) -> None:
        """Write which calls have been made or answered, or are in messages that were taken back."""
        connection, at, after, before = self._connection, self._at, changes.head, self.head.open_calls
        if changes.retract:
            await connection.execute(SQL["forget_open_calls"], {**at, "ranges": rows.multirange(changes.retract)})
        closed = [heads.call_hash(call) for call in before if call not in after.open_calls]
        opened = {call: one for call, one in after.open_calls.items() if before.get(call) != one}
        if closed:
            await connection.execute_often(SQL["close_calls"], {**at, "hashes": closed})
        if opened:
            await connection.execute_often(SQL["insert_open_calls"], {**at, **heads.open_call_values(opened)})
        if changes.retract or changes.restored or after.view_start < self.head.view_start:
            await connection.execute(SQL["count_awaited"], {**at, **heads.awaited_values(after)})

    async def _write_removals(self, changes: Changes) -> None:
        """Write what is retracted, superseded and rewritten."""
        connection, at, rev = self._connection, self._at, changes.head.rev
        if changes.retract:
            if not self._switching:
                check_retractable(self.head)
            retracted = heads.retracted_and(self._row, changes.retract, rev)
            values = {**at, "ranges": rows.multirange(changes.retract), "rev": rev}
            await connection.execute(SQL["retract_messages"], values)
            await connection.execute(SQL["note_retracted"], {**at, "retracted": retracted})
            await connection.execute(SQL["drop_forgettings"], {**at, "next_seq": self.head.next_seq})
        if changes.supersede:
            values = {**at, "digests": list(changes.supersede), "rev": rev}
            await connection.execute(SQL["supersede_digests"], values)
        for digest in changes.rewritten:
            await connection.execute(SQL["rewrite_digest"], {**at, **rows.rewritten_values(digest)})

    async def _erase(self, erased: Ranges) -> None:
        """Erase messages, and the contexts and runs that have any of them. The caller has locked the scope's index: the
        erasure of a user has it too before it deletes contexts and runs."""
        if not erased:
            return
        allow_long_work(self._connection)
        values = {**self._whose, "ranges": rows.multirange(erased)}
        for name in (
            "forget_contexts_within",
            "mark_runs_within",
            "forget_runs_within",
            "erase_messages",
            "erase_open_calls",
            "forget_receipts_within",
        ):
            await self._connection.execute(SQL[name], values)

    async def _archive(self, outcome: DigestOutcome) -> None:
        """Insert the document that came with a digest. It comes before the end of the digest itself, which must still
        be in progress for it."""
        if outcome.archive is None or outcome.error is not None or outcome.superseded:
            return
        whose = {"user": self._scope.user, "agent": self._scope.agent, "digest": outcome.digest}
        values = {**self._at, **whose, **document_values(outcome.archive)}
        await self._connection.execute(SQL["archive_document"], values)
        await self._connection.execute(SQL["keep_passages"], values)
