"""Facts on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from hitherto.core.fact import Did, Fact, FactEvent, FactState, NewFact, Subject, Visibility
from hitherto.core.fact_change import check_change, no_such_fact
from hitherto.core.message import storable
from hitherto.core.scope import Scope
from hitherto.ports.embedder import Space
from hitherto.ports.facts import AddedFact, Book, FactChange, FactsWanted, Known, KnownAsked
from hitherto.stores.postgres import fact_rows
from hitherto.stores.postgres.fact_rows import NUMBERS
from hitherto.stores.postgres.faults import ours
from hitherto.stores.postgres.index import Got
from hitherto.stores.postgres.known import known_from
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.sql import SQL

_Connection = AsyncConnection[Any]

_VERSIONS = range(1, 2**31)
"""What a fact's version can be."""


class PostgresFacts:
    """`FactStore` on the connections of a store."""

    def __init__(self, got: Got) -> None:
        self._got = got

    async def subject(self, tenant: str, id: str) -> Subject | None:
        found = await self._all("subject", {"tenant": tenant, "subject": id})
        return fact_rows.set_subject_from(found[0]) if found else None

    async def subjects(self, tenant: str) -> list[Subject]:
        return [fact_rows.set_subject_from(row) for row in await self._all("subjects", {"tenant": tenant})]

    async def set_subject(
        self, tenant: str, id: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Subject:
        values = {
            "tenant": tenant,
            "subject": id,
            "name": None if name is None else storable(name),
            "members": [] if members is None else list(members),
        }

        async def put(connection: _Connection) -> Row | None:
            # Who holds the subject's row sets its members alone, and reads what others have set before.
            async with connection.pipeline():
                await connection.execute("begin isolation level read committed")
                await connection.execute(SQL["set_subject"], values)
                if members is not None:
                    await connection.execute(SQL["forget_members"], values)
                    await connection.execute(SQL["set_members"], values)
                found = await connection.execute(SQL["subject"], values)
                await connection.execute("commit")
            return await found.fetchone()

        async with self._got(put) as row:
            assert row is not None, "it was just set"
            return fact_rows.set_subject_from(row)

    async def book(self, scope: Scope, subject: str) -> Book:
        async def read(connection: _Connection) -> Book:
            return await fact_rows.read_book(connection, scope, subject)

        async with self._got(read) as book:
            return book

    async def known(self, scope: Scope, subject: str, *, space: Space | None = None) -> Known:
        values = fact_rows.known_values(scope, None, KnownAsked(subject=subject, space=space))

        async def read(connection: _Connection) -> list[Row]:
            return await (await connection.execute(SQL["known"], values, binary=True)).fetchall()

        async with self._got(read) as rows:
            return known_from(rows, scope)

    async def facts(self, scope: Scope, wanted: FactsWanted) -> list[Fact]:
        values = fact_rows.wanted_values(scope, wanted)
        if values is None:
            return []
        return await self._facts(scope, "facts" if wanted.conversation is None else "facts_said_in", values)

    async def fact(self, scope: Scope, id: int, *, every_agent: bool = False) -> Fact | None:
        if id not in NUMBERS:
            return None
        found = await self._facts(scope, "fact", {**_walls(scope, every_agent=every_agent), "id": id})
        return found[0] if found else None

    async def history(self, scope: Scope, id: int, *, every_agent: bool = False) -> tuple[FactEvent, ...]:
        if id not in NUMBERS:
            return ()
        found = await self._all("fact_history", {**_walls(scope, every_agent=every_agent), "id": id})
        return tuple(map(fact_rows.event_from, found))

    async def versions(self, scope: Scope, asked: Sequence[tuple[int, int]]) -> list[Fact | None]:
        there = [one for one in asked if one[0] in NUMBERS and one[1] in _VERSIONS]
        ids, versions = [one[0] for one in there], [one[1] for one in there]
        values = {**fact_rows.owner_values(scope), "ids": ids, "versions": versions}
        found = fact_rows.facts_from(await self._all("fact_versions", values) if there else (), ())
        as_they_were = {(fact.id, fact.version): fact for fact in found}
        return [as_they_were.get(one) for one in asked]

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        values = fact_rows.new_values(scope, subject, fact, by=scope.user)

        async def hold(connection: _Connection) -> tuple[_Connection, Row | None]:
            async with connection.pipeline():
                await connection.execute("begin")
                await connection.execute(SQL["make_book"], values)
                await connection.execute(SQL["hold_book"], values)
                alike = await connection.execute(SQL["alike"], values)
            return connection, await alike.fetchone()

        async with self._got(hold) as (connection, alike):
            kept, otherwise = (values, False) if alike is None else fact_rows.kept_values(values, alike)
            with ours():
                made = None
                async with connection.pipeline():
                    await connection.execute(SQL["hold_facts"], _beside(kept, fact.alone))
                    if fact.alone:
                        await connection.execute(SQL["index_hold_scope"], kept)
                    if alike is None:
                        made = await connection.execute(SQL["learn_fact"], kept)
                    elif otherwise:
                        await connection.execute(SQL["keep_fact"], kept)
                        await connection.execute(SQL["note_fact"], kept)
                        await connection.execute(SQL["count_book"], kept)
                    if fact.alone:
                        await connection.execute(SQL["supersede_facts"], {**kept, "facts": []})
                    await connection.execute("commit")
                row = alike if made is None else await made.fetchone()
        assert row is not None, "what nobody has said before is new"
        return AddedFact(row[0], new=alike is None)

    async def change(self, scope: Scope, id: int, change: FactChange, *, every_agent: bool = False) -> Fact:
        values = {**_walls(scope, every_agent=every_agent), "id": id, **fact_rows.change_values(change)}

        async def hold(connection: _Connection) -> tuple[_Connection, Row | None]:
            async with connection.pipeline():
                await connection.execute("begin")
                await connection.execute(SQL["hold_book_of_fact"], values)
                found = await connection.execute(SQL["fact_in_book"], values)
            return connection, await found.fetchone()

        if id not in NUMBERS:
            raise no_such_fact(scope, id, every_agent=every_agent)
        async with self._got(hold) as (connection, row):
            if row is None:
                raise no_such_fact(scope, id, every_agent=every_agent)
            agent, subject, category, fingerprint, state, version, visibility, content, alike = row
            check_change(change.did, id, state=FactState(state), version=version, expect=change.expect, alike=alike)
            about = {**values, "agent": agent, "subject": subject, "by": scope.user, "facts": [id]}
            if change.did is not Did.EDITED:
                about |= {"category": category, "fingerprint": fingerprint}
            statement = _statement(change.did, visibility)
            alone = change.alone and change.did in (Did.EDITED, Did.RESTORED)
            goes = change.did is Did.DELETED or (change.did is Did.EDITED and content != values["content"])
            with ours():
                async with connection.pipeline():
                    await connection.execute(SQL["hold_facts"], _beside(about, alone))
                    if goes or alone:
                        await connection.execute(SQL["index_hold_scope"], about)
                    if statement is not None:
                        await connection.execute(statement, about)
                        await connection.execute(SQL["note_fact"], about)
                        await connection.execute(SQL["count_book"], about)
                    if alone:
                        await connection.execute(SQL["supersede_facts"], {**about, "facts": []})
                    if goes:
                        await connection.execute(SQL["unindex_fact"], about)
                    found = await connection.execute(SQL["fact"], about)
                    evidence = await connection.execute(SQL["evidence"], {**about, "ids": [id]})
                    await connection.execute("commit")
                return fact_rows.facts_from(await found.fetchall(), await evidence.fetchall())[0]

    async def _facts(self, scope: Scope, name: LiteralString, values: dict[str, Any]) -> list[Fact]:
        """Facts, and then the messages that say those of the user's own."""
        found = await self._all(name, values)
        own = [row[0] for row in found if row[1] == scope.user]
        evidence: Sequence[Row] = ()
        if own:
            evidence = await self._all("evidence", {"tenant": scope.tenant, "user": scope.user, "ids": own})
        return fact_rows.facts_from(found, evidence)

    async def _all(self, name: LiteralString, values: dict[str, Any]) -> list[Row]:
        async def fetch(connection: _Connection) -> list[Any]:
            return await (await connection.execute(SQL[name], values)).fetchall()

        async with self._got(fetch) as found:
            return found


def _walls(scope: Scope, *, every_agent: bool) -> dict[str, Any]:
    return {**fact_rows.owner_values(scope), "every_agent": every_agent}


def _beside(values: dict[str, Any], alone: bool) -> dict[str, Any]:
    """What `hold_facts` binds: what ends with a fact is held before the scope's index is, as whoever indexes does."""
    categories = [values["category"]] if alone else []
    nothing: dict[str, Any] = {"firsts": [], "lasts": [], "ref": None, "categories_of": []}
    return {**values, **nothing, "fingerprints": [values["fingerprint"]], "categories": categories}


def _statement(did: Did, visibility: str) -> LiteralString | None:
    """What writes a change that may be made to a fact so visible; None where there is nothing to be changed."""
    match did:
        case Did.EDITED:
            return SQL["edit_fact"]
        case Did.CONFIRMED:
            return SQL["confirm_fact"]
        case Did.RESTORED:
            return SQL["restore_fact"]
        case Did.SHARED:
            return None if visibility == Visibility.SHARED else SQL["show_fact"]
        case Did.UNSHARED:
            return None if visibility == Visibility.PRIVATE else SQL["show_fact"]
        case Did.DELETED:
            return SQL["blank_fact"]
        case Did.EXTRACTED | Did.ADDED | Did.REPEATED | Did.SUPERSEDED | Did.WITHDRAWN:
            raise AssertionError("check_change has refused it")
