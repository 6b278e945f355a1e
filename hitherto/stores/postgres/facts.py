"""Facts on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import AsyncConnection

from hitherto.core.fact import Did, Fact, FactEvent, FactState, NewFact, Subject, Visibility
from hitherto.core.message import storable
from hitherto.core.scope import Scope
from hitherto.errors import InvalidFact, NotFound, Outdated
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
_Held = tuple[dict[str, Any], Row, int | None]
"""What is bound of a fact that is held, the fact itself, and the other current one that says what it would say."""


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
        return [] if values is None else await self._facts(scope, "facts", values)

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

    async def version(self, scope: Scope, id: int, version: int) -> Fact | None:
        if id not in NUMBERS or not 0 < version < 2**31:
            return None
        values = {**_walls(scope, every_agent=False), "id": id, "version": version}
        found = await self._facts(scope, "fact_version", values)
        return found[0] if found else None

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        values = fact_rows.new_values(scope, subject, fact, by=scope.user)

        async def hold(connection: _Connection) -> tuple[_Connection, Row | None]:
            async with connection.pipeline():
                await connection.execute("begin")
                await connection.execute(SQL["make_book"], values)
                await connection.execute(SQL["hold_book"], values)
                await connection.execute(SQL["hold_facts"], _beside(values, fact.alone))
                alike = await connection.execute(SQL["alike"], values)
            return connection, await alike.fetchone()

        async with self._got(hold) as (connection, alike):
            if alike is not None:
                return AddedFact(alike[0], new=False)
            with ours():
                async with connection.pipeline():
                    ends = fact.supersedes or fact.alone
                    if ends:
                        await connection.execute(SQL["index_hold_scope"], values)
                    made = await connection.execute(SQL["learn_fact"], values)
                    if ends:
                        await connection.execute(SQL["supersede_facts"], values)
                    await connection.execute("commit")
                row = await made.fetchone()
        assert row is not None, "what nobody has said before is new"
        return AddedFact(row[0], new=True)

    async def change(self, scope: Scope, id: int, change: FactChange, *, every_agent: bool = False) -> Fact:
        values = {**_walls(scope, every_agent=every_agent), "id": id, **fact_rows.change_values(change)}

        alone = change.alone and change.did in (Did.EDITED, Did.RESTORED)

        async def hold(connection: _Connection) -> tuple[_Connection, _Held | None]:
            async with connection.pipeline():
                await connection.execute("begin")
                await connection.execute(SQL["hold_book_of_fact"], values)
                found = await connection.execute(SQL["fact_in_book"], values)
            row = await found.fetchone()
            if row is None:
                return connection, None
            agent, subject, category, fingerprint = row
            about = {**values, "agent": agent, "subject": subject, "by": scope.user, "facts": [id]}
            if change.did is not Did.EDITED:
                about |= {"category": category, "fingerprint": fingerprint}
            async with connection.pipeline():
                await connection.execute(SQL["hold_facts"], _beside(about, alone))
                held = await connection.execute(SQL["hold_fact"], values)
                alike = await connection.execute(SQL["alike"], about)
            state = await held.fetchone()
            assert state is not None, "nobody deletes it meanwhile"
            same = await alike.fetchone()
            return connection, (about, state, None if same is None or same[0] == id else same[0])

        if id not in NUMBERS:
            raise _not_found(scope, id)
        async with self._got(hold) as (connection, held):
            if held is None:
                raise _not_found(scope, id)
            about, row, alike = held
            statement = _statement(id, change, row, alike)
            goes = change.did is Did.DELETED or (change.did is Did.EDITED and row[3] != values["content"])
            with ours():
                async with connection.pipeline():
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
    return {**values, "firsts": [], "lasts": [], "ref": None, "fingerprints": [], "categories": categories}


def _statement(id: int, change: FactChange, row: Row, alike: int | None) -> LiteralString | None:
    """What the change asks for, of a fact that `hold_fact` has read; None where nothing is to be changed. `alike` is
    another one that says what the fact would say then."""
    state, version, visibility, _ = row
    if change.expect is not None and change.expect != version:
        raise Outdated(
            f"the fact {id} is at version {version} and not {change.expect}: somebody changed it meanwhile; look at it "
            "again, and say what is to be done to it as it is now",
            actual=version,
        )
    if change.did not in (Did.DELETED, Did.RESTORED) and state != FactState.CURRENT:
        raise InvalidFact(f"the fact {id} is {state} and can only be restored or deleted; change one that is current")
    match change.did:
        case Did.RESTORED if state == FactState.CURRENT:
            raise InvalidFact(f"the fact {id} is current; there is nothing to restore")
        case Did.EDITED | Did.RESTORED if alike is not None:
            raise InvalidFact(f"the fact {alike} says already what {id} would say then; delete one of the two")
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
            raise InvalidFact(
                f"{change.did.value!r} is nothing that a user does to a fact; give edited, confirmed, shared, unshared,"
                " restored or deleted"
            )


def _not_found(scope: Scope, id: int) -> NotFound:
    return NotFound(f"there is no fact {id} of {scope}; facts() lists those that there are")
