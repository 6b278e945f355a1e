"""Facts in a unit of work: writes what was learned, and withdraws or erases what rested on removed messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString

from psycopg import AsyncConnection

from hitherto.core.changes import Changes
from hitherto.core.facts.fact import FactAction, LearnedFacts, NewFact
from hitherto.core.facts.queries import AddedFact
from hitherto.core.log.message import storable
from hitherto.core.scope import THE_USER, Scope
from hitherto.store.facts import rows
from hitherto.store.sql import SQL

_NOTHING = LearnedFacts(subject=THE_USER)


def ends_facts(changes: Changes) -> bool:
    """Whether entries of facts may be deleted from the index."""
    learned = changes.learned or _NOTHING
    learned_anew = any(fact.supersedes or fact.single_valued for fact in learned.facts)
    taken = changes.erase or changes.retract or changes.restored
    return bool(taken or learned_anew or any(one.single_valued for one in learned.repeated))


async def hold_facts(connection: AsyncConnection[Any], at: dict[str, Any], changes: Changes) -> None:
    """Lock the subjects and the facts that the changes are about.

    Subjects, and then facts, are locked in order, so that there is no deadlock. Only the subject that is learned about
    comes first, as the unit has locked it already. (So a deadlock is possible between two units that both learn about
    one subject and remove messages that were said when their conversation was about another; the database would end one
    of them.)
    """
    learned = changes.learned or _NOTHING
    taken = (*changes.erase, *changes.retract, *changes.restored)
    about = {**at, "subject": learned.subject}
    something = bool(learned.facts or learned.repeated)
    if something:
        await connection.execute(SQL["make_fact_subject"], about)
        await connection.execute(SQL["hold_fact_subject"], about)
    if not something and not taken:
        return
    again = learned.repeated
    known = [*(one.fact for one in again), *(ended for fact in learned.facts for ended in fact.supersedes)]
    values = {
        **about,
        **_bounds(taken),
        "facts": rows.numbers(known),
        "fingerprints": [fact.fingerprint for fact in learned.facts],
        "categories": [
            storable(one.category) for one in (*learned.facts, *again) if one.single_valued and one.category is not None
        ],
        "categories_of": rows.numbers(one.fact for one in again if one.single_valued and one.category is None),
    }
    if taken:
        await connection.execute(SQL["hold_fact_subjects"], values)
    await connection.execute(SQL["hold_facts"], values)


async def hold_facts_of(connection: AsyncConnection[Any], at: dict[str, Any], *, last: int) -> None:
    """Lock the facts that rest on any message of a conversation that is to be deleted, and their subjects."""
    nothing: dict[str, Any] = {"subject": "", "facts": [], "fingerprints": [], "categories": [], "categories_of": []}
    values = {**at, **nothing, **_bounds([(0, last)])}
    await connection.execute(SQL["hold_fact_subjects"], values)
    await connection.execute(SQL["hold_facts"], values)


async def learn(
    connection: AsyncConnection[Any], scope: Scope, at: dict[str, Any], changes: Changes, *, now: datetime
) -> None:
    """Write what was learned, at the time `now`, then withdraw, restore or erase what rested on messages that are
    retracted, restored or erased. The caller has locked the facts, and the scope's index where entries may be deleted
    (`ends_facts`)."""
    learned = changes.learned or _NOTHING
    about = {**at, "subject": learned.subject}
    for one in learned.repeated:
        if one.fact in rows.NUMBERS:
            category = None if one.category is None else storable(one.category)
            values = {**about, "id": one.fact, "seqs": list(one.seqs), "confidence": one.confidence}
            again = await connection.execute(SQL["repeat_fact"], {**values, "category": category})
            # Only then: to fetch the result costs a round trip.
            row = await again.fetchone() if one.single_valued else None
            if row is not None:
                fingerprint, category = row
                values |= {
                    "facts": [],
                    "single_valued": True,
                    "fingerprint": fingerprint,
                    "category": category,
                    "by": None,
                }
                await connection.execute(SQL["supersede_facts"], values)
    for fact in learned.facts:
        new = rows.new_values(scope, learned.subject, fact, by=None)
        values = {**new, "ref": at["ref"], "seqs": list(fact.seqs), "now": now}
        made = await connection.execute(SQL["learn_fact"], values)
        if fact.single_valued:
            # Only a new fact ends others by `single_valued`. To fetch the result costs a round trip.
            row = await made.fetchone()
            values["single_valued"] = row is not None and row[1]
        if fact.supersedes or values["single_valued"]:
            await connection.execute(SQL["supersede_facts"], values)
    if learned.facts or learned.repeated:
        seqs = {seq for one in (*learned.facts, *learned.repeated) for seq in one.seqs}
        await connection.execute(SQL["say_in_relatives"], {**about, "seqs": sorted(seqs)})
    if changes.retract:
        back = {**at, **_bounds(changes.retract)}
        await connection.execute(SQL["withdraw_facts"], back)
        await connection.execute(SQL["restore_replaced"], back)
    if changes.restored:
        await connection.execute(SQL["return_facts"], {**at, **_bounds(changes.restored)})
    if changes.erase:
        await connection.execute(
            SQL["erase_facts"],
            {
                **at,
                **_bounds(changes.erase),
                "confirmed": changes.forget,
                "keep": changes.keep_facts,
                "history": False,
            },
        )


async def count_remembered(connection: AsyncConnection[Any], at: dict[str, Any], seq: int) -> tuple[int, int]:
    """How many facts the scope's agent has remembered of message `seq`, and how many in the last 24 hours."""
    return await _counts(connection, "remembered", {**at, "seq": seq})


async def count_forgettings(connection: AsyncConnection[Any], at: dict[str, Any], turn: int) -> tuple[int, int]:
    """How often the scope's agent was asked to forget in a turn, and in the last 24 hours."""
    return await _counts(connection, "forgettings", {**at, "turn": turn})


async def _counts(
    connection: AsyncConnection[Any], statement: LiteralString, values: dict[str, Any]
) -> tuple[int, int]:
    """The counts of a turn and of a day. Until the transaction ends, no other counts: the row of facts about the user,
    the first in the order of subjects, stands for all."""
    values = {**values, "subject": THE_USER}
    async with connection.pipeline():
        await connection.execute(SQL["make_fact_subject"], values)
        await connection.execute(SQL["hold_fact_subject"], values)
        found = await connection.execute(SQL[statement], values)
    of_turn, of_day = await found.fetchone() or (0, 0)
    return of_turn, of_day


async def remember(
    connection: AsyncConnection[Any], scope: Scope, at: dict[str, Any], subject: str, fact: NewFact, *, coming: int
) -> AddedFact:
    """Write what an agent remembers. The message with the seq `coming` may be one that is appended next."""
    values = {
        **rows.new_values(scope, subject, fact, by=None),
        "action": FactAction.REMEMBERED.value,
        "ref": at["ref"],
        "seqs": list(fact.seqs),
        "coming": coming,
    }
    async with connection.pipeline():
        await connection.execute(SQL["make_fact_subject"], values)
        await connection.execute(SQL["hold_fact_subject"], values)
        await connection.execute(SQL["hold_facts"], rows.beside_values(values, fact.single_valued))
        if fact.single_valued:
            await connection.execute(SQL["index_hold_scope"], values)
        made = await connection.execute(SQL["learn_fact"], values)
    number, new = await made.fetchone() or (0, False)
    if fact.single_valued and new:  # as where facts are extracted
        await connection.execute(SQL["supersede_facts"], values)
    return AddedFact(number, new=new)


async def forget_facts_of(connection: AsyncConnection[Any], at: dict[str, Any], *, last: int) -> None:
    """Delete all facts that rest on this conversation alone, except those that were added by hand."""
    await connection.execute(
        SQL["erase_facts"], {**at, **_bounds([(0, last)]), "confirmed": True, "keep": False, "history": True}
    )


def _bounds(taken: Sequence[tuple[int, int]]) -> dict[str, Any]:
    return {"firsts": [first for first, _ in taken], "lasts": [last for _, last in taken]}
