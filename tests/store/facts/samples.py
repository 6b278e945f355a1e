"""Helpers of the cases: learning, changing and reading facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import NewDigest
from hitherto.core.facts.fact import (
    Fact,
    FactAction,
    FactEvent,
    LearnedFacts,
    NewFact,
    RepeatedFact,
    Subject,
    Visibility,
)
from hitherto.core.facts.queries import FactChange, FactFilter, KnownFacts, KnownFactsQuery
from hitherto.core.log.message import storable
from hitherto.core.scope import THE_USER, Scope
from hitherto.store.store import Store
from tests.store.samples import SCOPE, user, write

ADA, BEN, CAT = SCOPE, replace(SCOPE, user="ben"), replace(SCOPE, user="cat")
"""Ada and Ben are members of the subject `MUM`, Cat is not."""

MUM = Subject(id="mum", name="Rosa", members=(ADA.user, BEN.user))

SHARED = Visibility.SHARED
PRIVATE = Visibility.PRIVATE

SHARE = FactChange(action=FactAction.SHARED)
UNSHARE = FactChange(action=FactAction.UNSHARED)
CONFIRM = FactChange(action=FactAction.CONFIRMED)
DELETE = FactChange(action=FactAction.DELETED)
RESTORE = FactChange(action=FactAction.RESTORED)

EVERYTHING = FactFilter(state=None)


def print_of(content: str) -> str:
    """The fingerprint that the suites give to a fact's content."""
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def new(content: str, *seqs: int, **given: Any) -> NewFact:
    """A fact to write, of 5 tokens, stated by the messages `seqs` with a confidence of 0.5."""
    made = NewFact(
        category="hobby", content=content, fingerprint=print_of(content), tokens=5, confidence=0.5, seqs=seqs
    )
    return replace(made, **given)


def edit(
    content: str,
    *,
    expect: int | None = None,
    category: str = "hobby",
    metadata: dict[str, str] | None = None,
    single_valued: bool = False,
) -> FactChange:
    return FactChange(
        action=FactAction.EDITED,
        expect=expect,
        content=content,
        fingerprint=print_of(content),
        tokens=6,
        category=category,
        metadata=metadata or {},
        single_valued=single_valued,
    )


async def set_whole(store: Store, tenant: str, subject: Subject) -> Subject:
    """Set the name and the members of a subject; the subject as it is afterwards."""
    return await store.facts.set_subject(tenant, subject.id, name=subject.name, members=subject.members)


async def learn(
    store: Store,
    name: str,
    *facts: NewFact,
    repeated: Sequence[RepeatedFact] = (),
    fire: Sequence[NewDigest] = (),
    scope: Scope = SCOPE,
    subject: str | None = None,
) -> list[int]:
    """Learn facts about a subject (None: the conversation's) in one unit; the ids of the facts that are new,
    ascending."""
    before = await _own(store, scope)
    async with store.write(scope, name) as unit:
        about = unit.head.subject if subject is None else subject
        assert (await unit.current_facts(about)).subject.id == about
        head = replace(unit.head, rev=unit.head.rev + 1)
        taught = LearnedFacts(subject=about, facts=facts, repeated=tuple(repeated))
        await unit.commit(Changes(head=head, fire=tuple(fire), learned=taught))
    return [number for number in await _own(store, scope) if number not in before]


async def _own(store: Store, scope: Scope) -> list[int]:
    return await _listed(store, scope, replace(EVERYTHING, shared=False, limit=9_999))


async def learned(
    store: Store, *contents: str, name: str = "c", scope: Scope = SCOPE, subject: str = THE_USER, **given: Any
) -> list[int]:
    """Learn facts about a subject from a conversation, each from a separate message; their ids."""
    written = await write(store, name, *(user(storable(content)) for content in contents), scope=scope, subject=subject)
    first = written.logged[0].seq
    return await learn(
        store, name, *(new(content, first + at, **given) for at, content in enumerate(contents)), scope=scope
    )


async def shared_by(store: Store, content: str, *, scope: Scope = ADA, subject: str = MUM.id, name: str = "c") -> int:
    """Learn a fact from a conversation and share it; its id."""
    (number,) = await learned(store, content, name=name, scope=scope, subject=subject)
    await store.facts.change(scope, number, SHARE)
    return number


async def fact_of(store: Store, number: int, *, scope: Scope = SCOPE) -> Fact:
    """An existing fact."""
    found = await store.facts.fact(scope, number)
    assert found is not None, f"the fact {number} is there"
    return found


async def version_of(store: Store, number: int, version: int, *, scope: Scope = SCOPE) -> Fact | None:
    """A fact as it was at a version, None if there is no such version."""
    (found,) = await store.facts.versions(scope, [(number, version)])
    return found


async def said(store: Store, number: int, *, scope: Scope = SCOPE) -> list[tuple[str, int]]:
    """The conversation and seq of each message that states a fact."""
    return [(one.conversation, one.seq) for one in (await fact_of(store, number, scope=scope)).evidence]


async def actions_of(store: Store, number: int, *, scope: Scope = SCOPE) -> list[FactAction]:
    """The actions in a fact's history."""
    return [event.action for event in await store.facts.history(scope, number)]


async def listed(store: Store, *, scope: Scope = SCOPE, **criteria: Any) -> list[str]:
    """The contents of the facts that the filter `criteria` selects."""
    return [fact.content for fact in await store.facts.facts(scope, FactFilter(**criteria))]


async def current_contents(store: Store, subject: str = THE_USER, *, scope: Scope = SCOPE) -> list[str]:
    return [fact.content for fact in (await store.facts.current_facts(scope, subject)).facts]


async def known(store: Store, subject: str = THE_USER, *, scope: Scope = SCOPE) -> list[str]:
    """The contents of the facts that a context may show."""
    return list((await store.facts.known(scope, subject)).contents)


async def seen(store: Store, number: int, *, scope: Scope) -> bool:
    """Whether a user is shown a fact about `MUM`; every way to read it must agree."""
    one = await store.facts.fact(scope, number)
    told = await store.facts.known(scope, MUM.id)
    ways = {
        "fact": one is not None,
        "fact of every agent": await store.facts.fact(scope, number, all_agents=True) is not None,
        "facts": number in await _listed(store, scope, FactFilter()),
        "facts of every agent": number in await _listed(store, scope, FactFilter(all_agents=True)),
        "facts about": number in await _listed(store, scope, FactFilter(subject=MUM.id)),
        "known": number in told.ids.tolist(),
        "head_and_known": number in await _shown(store, scope),
    }
    assert len(set(ways.values())) == 1, ways
    return one is not None


async def _listed(store: Store, scope: Scope, criteria: FactFilter) -> list[int]:
    return [fact.id for fact in await store.facts.facts(scope, criteria)]


async def _shown(store: Store, scope: Scope) -> list[int]:
    _, told, _ = await store.head_and_known(scope, "no such conversation", KnownFactsQuery(subject=MUM.id))
    return told.ids.tolist()


def rows_of(known: KnownFacts) -> list[tuple[object, ...]]:
    """The facts that a context may show, as rows; a fact's terms and their counts come last in its row."""
    ends = known.sizes.cumsum().tolist()
    starts = [0, *ends][:-1]
    terms, counts = known.terms.tolist(), known.counts.tolist()
    columns = (known.ids, known.versions, known.own, known.shared, known.tokens, known.lengths)
    return [
        (
            *(column[at].item() for column in columns),
            known.categories[at],
            known.contents[at],
            tuple(zip(terms[start:end], counts[start:end], strict=True)),
        )
        for at, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


async def facts_snapshot(store: Store, scope: Scope, *subjects: str) -> tuple[object, ...]:
    """Everything the store returns about a scope's facts, to compare before and after."""
    facts = store.facts
    listing = await facts.facts(scope, EVERYTHING)
    histories: list[tuple[FactEvent, ...]] = [await facts.history(scope, one.id) for one in listing]
    books = [await facts.current_facts(scope, subject) for subject in (THE_USER, *subjects)]
    told = [rows_of(await facts.known(scope, subject)) for subject in (THE_USER, *subjects)]
    return listing, histories, books, told
