"""Facts of users about subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from hitherto.core.facts.change import check_change, no_such_fact
from hitherto.core.facts.fact import MOST_EVIDENCE, Fact, FactAction, FactEvent, FactState, NewFact, Subject, Visibility
from hitherto.core.facts.queries import (
    AddedFact,
    CurrentFacts,
    FactChange,
    FactFilter,
    KnownFacts,
    KnownFactsQuery,
)
from hitherto.core.log.message import storable
from hitherto.core.recall.vectors import Space
from hitherto.core.scope import Scope
from hitherto.store.connections.part import Part
from hitherto.store.errors import ours
from hitherto.store.facts import rows
from hitherto.store.facts.context_columns import known_from
from hitherto.store.facts.rows import NUMBERS
from hitherto.store.rows import PAGE, Row
from hitherto.store.sql import SQL

_Connection = AsyncConnection[Any]

_VERSIONS = range(1, 2**31)
"""What a fact's version can be."""


class FactStore(Part):
    """Facts of users about subjects. All methods raise what `Store` says.

    A fact belongs to its scope: tenant, user and agent. Another tenant's, user's or (without `all_agents`) agent's
    facts are never found, counted or named. There is one exception: a fact that its owner shares is shown to users who
    are members of its subject, in the same tenant and for the same agent, as long as the owner is a member too. Then it
    comes without its evidence. Facts about the user (subject "") are never shown to others.

    Facts are extracted with a digest (`Changes.learned`, and `Unit.current_facts` before it), or remembered by an agent
    (`Unit.remember`). Evidence is removed with
    the messages it names. An unconfirmed fact that loses its last evidence goes with it: if messages were erased, the
    fact is erased whole; if they were retracted, it is WITHDRAWN. The facts that a withdrawn fact had superseded are
    then current again (RESTORED, by no user), at the next version and private, unless a current fact says the same. A
    confirmed fact that loses its last evidence by an erasure stays, but its history loses whatever else the fact said
    before. A clear leaves facts as they are. An unconfirmed fact whose messages have all expired is shown by no method,
    whether they are erased yet or not.

    A `RepeatedFact` counts as said again if any message that says so is new; else nothing of it is written. A change of
    category makes a new version and empties the fact's metadata.
    """

    async def subject(self, tenant: str, id: str) -> Subject | None:
        """A subject as it was set; None if it never was."""
        found = await self._all(SQL["subject"], {"tenant": tenant, "subject": id})
        return rows.set_subject_from(found[0]) if found else None

    async def subjects(self, tenant: str, *, after: str = "", limit: int = 1_000) -> list[Subject]:
        """A page of at most `limit` of the subjects that were set, by id, those after the id `after`."""
        values = {"tenant": tenant, "after": after, "limit": limit, **PAGE}
        return [rows.set_subject_from(row) for row in await self._all(SQL["subjects"], values)]

    async def set_subject(
        self, tenant: str, id: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Subject:
        """Set what is given and leave the rest as it is, under concurrent calls too; a subject that was never set has
        its id as its name and no members. Returns it as it is afterwards. A user who is no longer a member sees no
        shared facts."""
        values = {
            "tenant": tenant,
            "subject": id,
            "name": None if name is None else storable(name),
            "members": [] if members is None else list(members),
        }

        async def put(connection: _Connection) -> Row | None:
            # The first statement locks the subject's row: one transaction at a time sets members, and reads what was
            # set before.
            async with connection.pipeline():
                await connection.execute("begin isolation level read committed")
                await connection.execute(SQL["set_subject"], values)
                if members is not None:
                    await connection.execute(SQL["forget_members"], values)
                    await connection.execute(SQL["set_members"], values)
                found = await connection.execute(SQL["subject"], values)
                await connection.execute("commit")
            return await found.fetchone()

        async with self._with_connection(put) as row:
            assert row is not None, "it was just set"
            return rows.set_subject_from(row)

    async def current_facts(self, scope: Scope, subject: str) -> CurrentFacts:
        """The scope's current facts about a subject. A subject that was never set has its id as its name, and no
        members; so has, for a user who is none of its members, one that has some. The subject "" has the user's
        name."""

        async def read(connection: _Connection) -> CurrentFacts:
            return await rows.read_current_facts(connection, scope, subject)

        async with self._with_connection(read) as found:
            return found

    async def known(self, scope: Scope, subject: str, *, space: Space | None = None) -> KnownFacts:
        """The facts about a subject that a context may show; the subject as `current_facts` has it."""
        values = rows.known_values(scope, None, KnownFactsQuery(subject=subject, space=space))

        async def read(connection: _Connection) -> list[Row]:
            return await (await connection.execute(SQL["known"], values, binary=True)).fetchall()

        async with self._with_connection(read) as columns:
            return known_from(columns, scope)

    async def facts(self, scope: Scope, criteria: FactFilter) -> list[Fact]:
        """Facts ascending by id, at most `criteria.limit`."""
        values = rows.filter_values(scope, criteria)
        if values is None:
            return []
        return await self._facts(scope, "facts" if criteria.conversation is None else "facts_said_in", values)

    async def fact(self, scope: Scope, id: int, *, all_agents: bool = False) -> Fact | None:
        """One fact, in any state, or one that is shared with the user; None where there is none of that id."""
        if id not in NUMBERS:
            return None
        found = await self._facts(scope, "fact", {**_scope_filter(scope, all_agents=all_agents), "id": id})
        return found[0] if found else None

    async def replaced(self, scope: Scope, id: int, *, limit: int) -> list[Fact]:
        """The scope's own facts whose place this fact took, whatever their category: the last `limit`, the latest
        last."""
        if id not in NUMBERS:
            return []
        return await self._facts(scope, "replaced_facts", {**rows.owner_values(scope), "id": id, "limit": limit})

    async def to_forget(self, scope: Scope, id: int) -> list[int]:
        """The ids of what goes with one of the scope's own facts, but what is deleted: those about its subject that say
        the same, in any state, all that any of these has replaced, by itself or through others, and what says the same
        as those and has ended. The last is the fact itself."""
        if id not in NUMBERS:
            return []
        return [row[0] for row in await self._all(SQL["facts_to_forget"], {**rows.owner_values(scope), "id": id})]

    async def messages_of(self, scope: Scope, id: int, *, mentions: bool) -> list[tuple[str, int]]:
        """Messages that say one of the user's own facts, those that were taken back too; or, with `mentions`, those
        that may mention it: conversation and seq, the first `MOST_EVIDENCE`."""
        values = {**rows.owner_values(scope), "id": id, "mention": mentions, "most_evidence": MOST_EVIDENCE}
        return [(conversation, seq) for conversation, seq in await self._all(SQL["messages_of_fact"], values)]

    async def asked_to_forget(self, scope: Scope, ref: int, first: int, last: int) -> set[int]:
        """The messages from `first` to `last` of a conversation that were said in turns in which an agent was asked to
        forget: they are shown in their own contexts and log alone."""
        values = {"tenant": scope.tenant, "ref": ref, "first": first, "last": last}
        return {seq for (seq,) in await self._all(SQL["asked_to_forget"], values)}

    async def note_mentions(self, scope: Scope, id: int, messages: Sequence[tuple[str, int]]) -> None:
        """Keep in mind that these messages, by conversation and seq, may mention a fact of the scope that is to be
        forgotten: once it is deleted, nothing is learned from them."""
        names, seqs = [name for name, _ in messages], [seq for _, seq in messages]
        await self._all(SQL["note_mentions"], {**rows.owner_values(scope), "id": id, "names": names, "seqs": seqs})

    async def history(
        self, scope: Scope, id: int, *, all_agents: bool = False, after: int = 0, limit: int = 1_000
    ) -> tuple[FactEvent, ...]:
        """What happened to one of the scope's own facts, oldest first: at most `limit` events after the first `after`;
        nothing for any other."""
        if id not in NUMBERS or not 0 <= after < NUMBERS.stop:
            return ()
        values = {**_scope_filter(scope, all_agents=all_agents), "id": id, "after": after, "limit": limit}
        found = await self._all(SQL["fact_history"], values)
        return tuple(map(rows.event_from, found))

    async def versions(self, scope: Scope, asked: Sequence[tuple[int, int]]) -> list[Fact | None]:
        """Facts as they were at a version, for pairs of id and version, in the order of `asked`: with the content,
        category and visibility of that version, and without evidence. A fact of the scope's own is returned in any
        state but DELETED; one of another user's only while it is shared with the scope's user, and if it was shared at
        that version. None in the place of any other."""
        there = [one for one in asked if one[0] in NUMBERS and one[1] in _VERSIONS]
        ids, versions = [one[0] for one in there], [one[1] for one in there]
        values = {**rows.owner_values(scope), "ids": ids, "versions": versions}
        found = rows.facts_from(await self._all(SQL["fact_versions"], values) if there else (), ())
        as_they_were = {(fact.id, fact.version): fact for fact in found}
        return [as_they_were.get(one) for one in asked]

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        """Add a fact by hand: it is private, confirmed and has no evidence. If it is `single_valued`, it supersedes the
        other current facts of its category about the subject. Its `supersedes` is not read: that is for learned facts.

        Where a current fact of the scope's own about the subject says the same, that fact counts as added by hand from
        then on (ADDED, by the user): it is confirmed, gets the next version, takes category and metadata unless that
        category is "other", and keeps its visibility. If it is so already, nothing is written. `single_valued` then
        refers to the category that it has afterwards.
        """
        values = rows.new_values(scope, subject, fact, by=scope.user)

        async def hold(connection: _Connection) -> tuple[_Connection, Row | None]:
            while True:
                async with connection.pipeline():
                    await connection.execute("begin")
                    await connection.execute(SQL["make_fact_subject"], values)
                    held = await connection.execute(SQL["hold_fact_subject"], values)
                    alike = await connection.execute(SQL["alike"], values)
                if await held.fetchone() is not None:
                    return connection, await alike.fetchone()
                await connection.execute("rollback")  # an erasure has deleted the row that was waited for

        async with self._with_connection(hold) as (connection, alike):
            kept, otherwise = (values, False) if alike is None else rows.kept_values(values, alike)
            with ours():
                made = None
                async with connection.pipeline():
                    await connection.execute(SQL["hold_facts"], rows.beside_values(kept, fact.single_valued))
                    if fact.single_valued:
                        await connection.execute(SQL["index_hold_scope"], kept)
                    if alike is None:
                        made = await connection.execute(SQL["learn_fact"], kept)
                    elif otherwise:
                        await connection.execute(SQL["keep_fact"], kept)
                        await connection.execute(SQL["note_fact"], kept)
                    if fact.single_valued:
                        await connection.execute(SQL["supersede_facts"], {**kept, "facts": []})
                    await connection.execute("commit")
                row = alike if made is None else await made.fetchone()
        assert row is not None, "what nobody has said before is new"
        return AddedFact(row[0], new=alike is None)

    async def change(self, scope: Scope, id: int, change: FactChange, *, all_agents: bool = False) -> Fact:
        """Change one of the scope's own facts, and return it as it is afterwards, at the next version; sharing a shared
        fact, or unsharing a private one, changes nothing. A fact that is EDITED or RESTORED is confirmed too; a
        RESTORED one is current again, and private. A DELETED fact loses all contents and evidence, those in its history
        too; `Unit.forgotten` still has the messages of one that an agent had remembered.

        Raises NotFound for a fact that does not exist, is not the scope's own or is deleted; StaleVersion when it is
        not at the version `expect`; InvalidFact for any change but DELETED, RESTORED and UNSHARED of one that is not
        current, for RESTORED of one that is, and where another current fact says the same already
        (`core.facts.change.check_change`).
        """
        values = {**_scope_filter(scope, all_agents=all_agents), "id": id, **rows.change_values(change)}

        async def hold(connection: _Connection) -> tuple[_Connection, Row | None]:
            async with connection.pipeline():
                await connection.execute("begin")
                await connection.execute(SQL["hold_subject_of_fact"], values)
                found = await connection.execute(SQL["held_fact"], values)
            return connection, await found.fetchone()

        if id not in NUMBERS:
            raise no_such_fact(scope, id, all_agents=all_agents)
        async with self._with_connection(hold) as (connection, row):
            if row is None:
                raise no_such_fact(scope, id, all_agents=all_agents)
            agent, subject, category, fingerprint, state, version, visibility, content, alike = row
            check_change(change.action, id, state=FactState(state), version=version, expect=change.expect, alike=alike)
            about = {**values, "agent": agent, "subject": subject, "by": scope.user, "facts": [id]}
            if change.action is not FactAction.EDITED:
                about |= {"category": category, "fingerprint": fingerprint}
            statement = _statement(change.action, visibility)
            single_valued = change.single_valued and change.action in (FactAction.EDITED, FactAction.RESTORED)
            goes = change.action is FactAction.DELETED or (
                change.action is FactAction.EDITED and content != values["content"]
            )
            with ours():
                async with connection.pipeline():
                    await connection.execute(SQL["hold_facts"], rows.beside_values(about, single_valued))
                    if goes or single_valued:
                        await connection.execute(SQL["index_hold_scope"], about)
                    if statement is not None:
                        await connection.execute(statement, about)
                        await connection.execute(SQL["note_fact"], about)
                    if single_valued:
                        await connection.execute(SQL["supersede_facts"], {**about, "facts": []})
                    if goes:
                        await connection.execute(SQL["unindex_fact"], about)
                    found = await connection.execute(SQL["fact"], about)
                    evidence = await connection.execute(SQL["evidence"], {**about, **_evidence_of([id])})
                    await connection.execute("commit")
                return rows.facts_from(await found.fetchall(), await evidence.fetchall())[0]

    async def _facts(self, scope: Scope, name: LiteralString, values: dict[str, Any]) -> list[Fact]:
        """The facts that a statement finds, with the evidence of the user's own."""
        found = await self._all(SQL[name], values)
        own = [row[0] for row in found if row[1] == scope.user]
        evidence: Sequence[Row] = ()
        if own:
            values = {"tenant": scope.tenant, "user": scope.user, **_evidence_of(own)}
            evidence = await self._all(SQL["evidence"], values)
        return rows.facts_from(found, evidence)


def _evidence_of(facts: list[int]) -> dict[str, Any]:
    return {"ids": facts, "most_evidence": MOST_EVIDENCE}


def _scope_filter(scope: Scope, *, all_agents: bool) -> dict[str, Any]:
    return {**rows.owner_values(scope), "all_agents": all_agents}


def _statement(action: FactAction, visibility: str) -> LiteralString | None:
    """The statement for a change to a fact with this visibility; None if there is nothing to change."""
    match action:
        case FactAction.EDITED:
            return SQL["edit_fact"]
        case FactAction.CONFIRMED:
            return SQL["confirm_fact"]
        case FactAction.RESTORED:
            return SQL["restore_fact"]
        case FactAction.SHARED:
            return None if visibility == Visibility.SHARED else SQL["change_visibility"]
        case FactAction.UNSHARED:
            return None if visibility == Visibility.PRIVATE else SQL["change_visibility"]
        case FactAction.DELETED:
            return SQL["delete_fact"]
        case (
            FactAction.EXTRACTED
            | FactAction.REMEMBERED
            | FactAction.ADDED
            | FactAction.REPEATED
            | FactAction.SUPERSEDED
            | FactAction.WITHDRAWN
        ):
            raise AssertionError("check_change has refused it")
