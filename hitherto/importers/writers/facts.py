"""Adding a file's facts to those of the users that they are about."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hitherto.core.export import VERSION, ExportEnd, ExportHeader, FactRecord, line_of
from hitherto.core.facts.extract import UNSURE
from hitherto.core.facts.fact import (
    CATEGORIES,
    LONGEST_CATEGORY,
    OTHER,
    Fact,
    FactAction,
    FactEvent,
    FactState,
    Visibility,
    category_of,
    fingerprint_of_fact,
)
from hitherto.core.log.message import CANONICAL, storable
from hitherto.core.plain_text import plain
from hitherto.core.scope import THE_USER, Scope, checked_name
from hitherto.engine.facts.arguments import content_of
from hitherto.errors import InvalidInput
from hitherto.importers.imported import ImportedFact, Unreadable
from hitherto.tokens.by_model import counter_for

if TYPE_CHECKING:
    from hitherto.engine.facts.facts import Facts
    from hitherto.engine.memory import Memory

_MEM0 = "mem0"
"""What a fact's metadata name its id in the file."""

_MAY_BE_DELETED = (
    "it is as old as one that was deleted here, and may be that one: left out; to have it: hitherto facts add"
)

_READ = 1_000


@dataclass(frozen=True, slots=True)
class WrittenFacts:
    """How many facts are new, and how many were there, changed or deleted since; those that cannot be kept; and what is
    there otherwise than in the file."""

    new: int
    skipped: int
    unreadable: list[Unreadable]
    notes: list[str]


async def import_facts(memory: Memory, facts: Sequence[ImportedFact], *, scope: Scope, own_users: bool) -> WrittenFacts:
    """Add the facts, unconfirmed, with their dates; each once, whatever became of it here. With `own_users`, those of
    other users than the scope's go to these, else they are left out."""
    unreadable, notes, records, skipped = list[Unreadable](), list[str](), list[FactRecord](), 0
    for user, of_user in _by_user(facts, scope, unreadable).items():
        if user != scope.user and not own_users:
            words = f"it is a fact of the user {user!r}, and not of {scope.user!r}, for whom this is imported: left out"
            more = f" (and {len(of_user) - 1:,} others)" if len(of_user) > 1 else ""
            unreadable.append(Unreadable(f"{of_user[0].place}{more}: {words}", count=len(of_user)))
            continue
        whose = replace(scope, user=user)
        known, new = await _KnownFacts.of(memory.facts(whose, subject=THE_USER)), list[tuple[str, FactRecord]]()
        for one in of_user:
            try:
                record = _record(one, whose, len(records) + len(new) + 1)
            except InvalidInput as error:
                unreadable.append(Unreadable(f"{one.place}: {error}"))
                continue
            if not known.has(record.fact):
                new.append((one.place, record))
                continue
            skipped += 1
            if await known.says_something_else(record.fact):
                notes.append(
                    f"{one.place}: it says something else by now than when it was imported; the fact here stays"
                )
        kept, doubtful = known.without_deleted(new)
        records += kept
        unreadable += doubtful
        skipped += len(new) - len(kept) - len(doubtful)
        if user != scope.user and kept:
            notes.append(
                f"the file names the user {user!r}, to whom these facts went: {len(kept):,}; to see them: --user {user}"
            )
    if not records:
        return WrittenFacts(0, skipped, unreadable, notes)
    records.sort(key=lambda one: one.fact.extracted_at)  # lists have facts in the order in which they were learned
    report = await memory.import_from(io.BytesIO(b"".join(_export(records, scope.tenant))))
    return WrittenFacts(report.facts, skipped + report.skipped, unreadable, notes)


def _by_user(
    facts: Iterable[ImportedFact], scope: Scope, unreadable: list[Unreadable]
) -> dict[str, list[ImportedFact]]:
    by_user = dict[str, list[ImportedFact]]()
    for one in facts:
        try:
            user = scope.user if one.user is None else checked_name(one.user, "user")
        except InvalidInput as error:
            unreadable.append(Unreadable(f"{one.place}: {error}"))
        else:
            by_user.setdefault(user, []).append(one)
    return by_user


@dataclass(eq=False)
class _KnownFacts:
    """What a user has of earlier imports: the facts by their ids in the file, what is said by those that hold, and how
    many that were learned at a time were deleted since, of which nothing else is left."""

    facts: Facts
    by_id: dict[str, Fact] = field(default_factory=dict[str, Fact])
    said: set[str] = field(default_factory=set[str])
    deleted: Counter[datetime] = field(default_factory=Counter[datetime])

    @classmethod
    async def of(cls, facts: Facts) -> _KnownFacts:
        known, after = cls(facts), 0
        while page := await facts.list(state=None, shared=False, after=after, limit=_READ):
            for one in page:
                if one.state is FactState.DELETED:
                    known.deleted[one.extracted_at] += 1
                elif isinstance(own := one.metadata.get(_MEM0), str):
                    known.by_id[own] = one
                if one.state is FactState.CURRENT:
                    known.said.add(fingerprint_of_fact(one.content))
            after = page[-1].id
        return known

    def has(self, fact: Fact) -> bool:
        return fact.metadata.get(_MEM0) in self.by_id or fingerprint_of_fact(fact.content) in self.said

    def without_deleted(self, new: Sequence[tuple[str, FactRecord]]) -> tuple[list[FactRecord], list[Unreadable]]:
        """The facts, each with its place, but for those that were deleted here. Where more are of a time than were
        deleted, nobody knows which these were: they are told."""
        learned = Counter(at for at, _ in {(one.fact.extracted_at, one.fingerprint) for _, one in new})
        kept, doubtful = list[FactRecord](), list[Unreadable]()
        for place, one in new:
            at = one.fact.extracted_at
            if not self.deleted[at]:
                kept.append(one)
            elif self.deleted[at] < learned[at]:
                doubtful.append(Unreadable(f"{place}: {_MAY_BE_DELETED}"))
        return kept, doubtful

    async def says_something_else(self, fact: Fact) -> bool:
        """Whether it does not say any more what it said when it was imported."""
        here = self.by_id.get(fact.metadata.get(_MEM0, ""))
        if here is None or fingerprint_of_fact(here.content) == fingerprint_of_fact(fact.content):
            return False
        first = (await self.facts.history(here.id, limit=1))[0]
        return fingerprint_of_fact(first.content) != fingerprint_of_fact(fact.content)


def _record(fact: ImportedFact, scope: Scope, number: int) -> FactRecord:
    """The fact as a record of an export, which has a place for its dates. Raises InvalidFact."""
    content = content_of(fact.content)
    category, other = category_of(storable(plain(fact.category or OTHER)), CATEGORIES)
    category = other.get("category", category)[:LONGEST_CATEGORY]  # one that an application defines keeps its name
    learned_at = fact.created_at or datetime.now(UTC)
    metadata: dict[str, Any] = {} if fact.id is None else {_MEM0: fact.id}
    kept = Fact(
        id=number,
        user=scope.user,
        agent=scope.agent,
        subject=THE_USER,
        category=category,
        content=content,
        visibility=Visibility.PRIVATE,
        state=FactState.CURRENT,
        confidence=UNSURE,
        confirmed=False,
        repeated=0,
        version=1,
        metadata=metadata,
        extracted_at=learned_at,
        updated_at=max(learned_at, fact.updated_at or learned_at),
    )
    learned = FactEvent(
        action=FactAction.EXTRACTED,
        at=learned_at,
        by=None,
        version=1,
        category=category,
        content=content,
        visibility=Visibility.PRIVATE,
    )
    return FactRecord(
        fact=kept,
        fingerprint=fingerprint_of_fact(content),
        tokens=counter_for(CANONICAL).count(content),
        sources=(),
        events=(learned,),
    )


def _export(records: Sequence[FactRecord], tenant: str) -> Iterable[bytes]:
    now = datetime.now(UTC)
    yield line_of(ExportHeader(version=VERSION, tenant=tenant, user=None, agent=None, exported_at=now))
    yield from map(line_of, records)
    yield line_of(ExportEnd(records=len(records) + 1))
