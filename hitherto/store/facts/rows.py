"""Facts: from rows, and to the values that statements bind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from psycopg import AsyncConnection

from hitherto.core.facts.fact import (
    OTHER,
    Evidence,
    Fact,
    FactAction,
    FactEvent,
    FactState,
    KnownFact,
    NewFact,
    Subject,
    Visibility,
)
from hitherto.core.facts.queries import MOST_SHARED, CurrentFacts, FactChange, FactFilter, KnownFactsQuery
from hitherto.core.log.message import storable
from hitherto.core.recall.terms import analyzed
from hitherto.core.scope import Scope
from hitherto.store.facts.context_columns import subject_from
from hitherto.store.rows import Row
from hitherto.store.sql import SQL

NUMBERS = range(1, 2**63)
"""The ids that a fact can have; the database refuses to look for others."""


def owner_values(scope: Scope) -> dict[str, Any]:
    return {"tenant": scope.tenant, "user": scope.user, "agent": scope.agent}


def known_values(scope: Scope, conversation: str | None, asked: KnownFactsQuery) -> dict[str, Any]:
    name, dimensions = (None, None) if asked.space is None else (asked.space.name, asked.space.dimensions)
    return {
        **owner_values(scope),
        "conversation": conversation,
        "subject": asked.subject,
        "facts": asked.facts,
        "most_shared": MOST_SHARED,
        "name": name,
        "dimensions": dimensions,
    }


def filter_values(scope: Scope, criteria: FactFilter) -> dict[str, Any] | None:
    """What `facts` binds; None where no fact can be wanted."""
    if criteria.limit <= 0 or criteria.after >= NUMBERS.stop:
        return None
    return {
        **owner_values(scope),
        "subject": criteria.subject,
        "mine": criteria.mine,
        "shared": criteria.shared,
        "all_agents": criteria.all_agents,
        "category": criteria.category,
        "conversation": criteria.conversation,
        "state": None if criteria.state is None else criteria.state.value,
        "confirmed": criteria.confirmed,
        "after": max(criteria.after, 0),
        "limit": criteria.limit,
    }


def new_values(scope: Scope, subject: str, fact: NewFact, *, by: str | None) -> dict[str, Any]:
    """What `learn_fact` and `supersede_facts` bind for a new fact, without messages: as a user adds it."""
    return {
        **owner_values(scope),
        "subject": subject,
        "action": (FactAction.EXTRACTED if by is None else FactAction.ADDED).value,
        "by": by,
        "confidence": fact.confidence if by is None else 1.0,
        "facts": numbers(fact.supersedes),
        "single_valued": fact.single_valued,
        "ref": None,
        "seqs": [],
        "coming": None,
        "now": None,
        **_said(fact),
    }


def beside_values(values: dict[str, Any], single_valued: bool) -> dict[str, Any]:
    """What `hold_facts` binds: the fact, and with `single_valued` all others of its category. They are locked before
    the scope's index, as an indexing worker does."""
    categories = [values["category"]] if single_valued else []
    nothing: dict[str, Any] = {"firsts": [], "lasts": [], "ref": None, "categories_of": []}
    return {**values, **nothing, "fingerprints": [values["fingerprint"]], "categories": categories}


def kept_values(values: dict[str, Any], alike: Row) -> tuple[dict[str, Any], bool]:
    """`values` of what a user adds, with the id of `alike`, the fact that says it already, and the category and
    metadata that this is to have; and whether that changes it."""
    number, category, metadata, confirmed, by_hand = alike
    kept = {"category": category, "metadata": metadata} if values["category"] == OTHER else {}
    values = {**values, **kept, "id": number}
    same = (values["category"], values["metadata"]) == (category, metadata)
    return values, not (confirmed and by_hand and same)


def change_values(change: FactChange) -> dict[str, Any]:
    """What statements bind of a change, whatever its action."""
    shared = change.action is FactAction.SHARED
    return {
        "action": change.action.value,
        "visibility": (Visibility.SHARED if shared else Visibility.PRIVATE).value,
        "facts": [],
        "single_valued": change.single_valued,
        **_said(change),
    }


def _said(fact: NewFact | FactChange) -> dict[str, Any]:
    return {
        "category": storable(fact.category),
        "fingerprint": fact.fingerprint,
        "tokens": fact.tokens,
        "metadata": json.dumps(dict(fact.metadata)),
        **term_values(storable(fact.content)),
    }


def term_values(content: str) -> dict[str, Any]:
    """The content of a fact, and what the search wants of its words."""
    terms = analyzed(content)
    return {
        "content": content,
        "length": terms.length,
        "hashes": terms.hashes.astype("<i8").tobytes(),
        "counts": terms.counts.tobytes(),
    }


def numbers(facts: Iterable[int]) -> list[int]:
    """Those that can be ids of facts: a model may make up any number."""
    return [fact for fact in facts if fact in NUMBERS]


async def read_current_facts(
    connection: AsyncConnection[Any], scope: Scope, subject: str, *, hold: bool = False
) -> CurrentFacts:
    """The current facts of a scope about a subject; with `hold`, locked until the transaction ends. One round trip."""
    values = {**owner_values(scope), "subject": subject}
    async with connection.pipeline():
        if hold:
            await connection.execute(SQL["make_fact_subject"], values)
            await connection.execute(SQL["hold_fact_subject"], values)
        named = await connection.execute(SQL["subject"], values)
        found = await connection.execute(SQL["current_facts"], values)
    about, name, members = await named.fetchone() or (subject, None, ())
    rows = await found.fetchall()
    return CurrentFacts(
        subject=subject_from(about, name, members, scope),
        facts=tuple(
            KnownFact(
                id=number,
                category=category,
                content=content,
                confidence=confidence,
                said_at=said_at,
                confirmed=confirmed,
            )
            for number, category, content, confidence, confirmed, said_at in rows
        ),
    )


def set_subject_from(row: Row) -> Subject:
    subject, name, members = row
    return Subject(id=subject, name=name, members=tuple(members))


def facts_from(found: Iterable[Row], evidence: Iterable[Row]) -> list[Fact]:
    """The facts of `found`, in its order, each with what `evidence` has of it."""
    said: dict[int, list[Evidence]] = {}
    for fact, conversation, seq, said_at in evidence:
        said.setdefault(fact, []).append(Evidence(conversation, seq, said_at))
    return [fact_from(row, tuple(said.get(row[0], ()))) for row in found]


def fact_from(row: Row, evidence: tuple[Evidence, ...]) -> Fact:
    """A fact from the first columns of a row of the statements that read facts."""
    (number, user, agent, subject, category, content, visibility, state, confidence, confirmed) = row[:10]
    (repeated, version, metadata, extracted_at, updated_at, ended_at, superseded_by) = row[10:17]
    return Fact(
        id=number,
        user=user,
        agent=agent,
        subject=subject,
        category=category,
        content=content,
        visibility=Visibility(visibility),
        state=FactState(state),
        confidence=confidence,
        confirmed=confirmed,
        repeated=repeated,
        version=version,
        metadata=json.loads(metadata),
        extracted_at=extracted_at,
        updated_at=updated_at,
        ended_at=ended_at,
        superseded_by=None if state in (FactState.CURRENT, FactState.WITHDRAWN) else superseded_by,
        evidence=evidence,
    )


def event_from(row: Row) -> FactEvent:
    action, at, by, version, category, content, visibility = row
    return FactEvent(
        action=FactAction(action),
        at=at,
        by=by,
        version=version,
        category=category,
        content=content,
        visibility=Visibility(visibility),
    )
