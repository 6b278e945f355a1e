"""Facts on PostgreSQL: whoever is at work beside, nothing waits for ever, and nothing of what has gone is left."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from typing import Any

import psycopg
import pytest

from hitherto.core.changes import Changes
from hitherto.core.facts.fact import OTHER, FactState, LearnedFacts, RepeatedFact
from hitherto.core.facts.queries import MOST_SHARED, FactFilter
from hitherto.core.log.append import extended
from hitherto.core.log.ranges import ranges
from hitherto.core.scope import THE_USER
from hitherto.errors import InvalidFact, NotFound
from hitherto.other_systems.views import create_views
from hitherto.store.store import Store
from tests.databases import OpenStore
from tests.lengths import examples, lasting
from tests.patience import PATIENCE
from tests.postgres.asking import rows
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import DELETE, RESTORE, SHARE, UNSHARE, edit, learn, learned, new
from tests.store.recall.samples import SPACE, indexed, made, vectors_of
from tests.store.samples import HOUR, SCOPE, chances, user, write

MEMBER = replace(SCOPE, user="ben")


@pytest.fixture
def database(store: OpenStore) -> str:
    """That of the store."""
    return store.owners_url


@pytest.fixture
async def stores(database: str) -> AsyncIterator[list[Store]]:
    """Two stores on one database, as in two processes."""
    found = [Store(database, patience=20) for _ in range(2)]
    for store in found:
        await store.open()
    yield list(found)
    for store in found:
        await store.aclose()


async def count(database: str, query: str) -> int:
    ((found,),) = [tuple(row.values()) for row in await rows(database, query)]
    return found


LEFT = {
    "entries of what is not indexed": """
        select count(*) from search_entry e where kind = 4 and not exists (
            select from fact f where f.tenant = e.tenant and f.id = e.origin and f.state = 'current' and f.indexed)""",
    "what is indexed without an entry": """
        select count(*) from fact f where state = 'current' and indexed and not exists (
            select from search_entry e where e.tenant = f.tenant and e.kind = 4 and e.origin = f.id)""",
    "entries with other words": """
        select count(*) from fact f join search_entry e on e.tenant = f.tenant and e.kind = 4 and e.origin = f.id
        where e.hashes <> f.hashes or e.counts <> f.counts or e.length <> f.length""",
    "vectors without an entry": """
        select count(*) from search_vector v where not exists (
            select from search_entry e where e.tenant = v.tenant and e.scope = v.scope and e.no = v.no)""",
    "codes that are not those of the vectors": """
        select count(*) from fact f join search_entry e on e.tenant = f.tenant and e.kind = 4 and e.origin = f.id
        join search_vector v on v.tenant = e.tenant and v.scope = e.scope and v.no = e.no
        where f.code is distinct from v.code or f.space is distinct from v.space""",
    "codes of what has no entry": """
        select count(*) from fact f where code is not null and not exists (
            select from search_entry e where e.tenant = f.tenant and e.kind = 4 and e.origin = f.id)""",
    "evidence in what was erased": """
        select count(*) from fact_evidence e
        join message m on m.tenant = e.tenant and m.conversation = e.conversation and m.seq = e.seq where m.erased""",
    "evidence that does not know what was taken back": """
        select count(*) from fact_evidence e
        join message m on m.tenant = e.tenant and m.conversation = e.conversation and m.seq = e.seq
        where e.retracted <> (m.retracted_rev is not null)""",
    "what is added by hand and not confirmed": """
        select count(*) from fact f where state <> 'deleted' and not confirmed and exists (
            select from fact_event e where e.tenant = f.tenant and e.fact = f.id and e.action = 'added')""",
    "facts that their last event does not tell": """
        select count(*) from fact f join lateral (
            select * from fact_event e where e.tenant = f.tenant and e.fact = f.id order by no desc limit 1) e on true
        where (f.version, f.category, f.content, f.visibility) <> (e.version, e.category, e.content, e.visibility)""",
    "what nobody says nor stands for": """
        select count(*) from fact f where state = 'current' and not confirmed and not exists (
            select from fact_evidence e where e.tenant = f.tenant and e.fact = f.id and not e.retracted)""",
    "words of what was deleted": """
        select count(*) from fact f left join fact_event e on e.tenant = f.tenant and e.fact = f.id
        where state = 'deleted' and (f.content <> '' or e.content <> '' or f.hashes <> '' or f.code is not null)""",
    "events whose numbers have holes": """
        select count(*) from (select max(no) - count(*) as holes from fact_event group by tenant, fact) e
        where holes <> 0""",
}
"""What there must be none of once all is indexed."""


class Crowd:
    """Some who learn, forget, review and index at once, in any order."""

    SAID = tuple(f"Statement {n}." for n in range(14))
    CATEGORIES = ("hobby", "habit", "city")

    def __init__(self, stores: list[Store], seed: int) -> None:
        self._stores = stores
        self._chance: random.Random = chances(seed)
        self._turns = itertools.count()
        self.done = Counter[str]()

    async def anybody(self) -> None:
        """Do each thing so many times, in some order, each with one of the stores."""
        ways: dict[str, tuple[int, Callable[[Store], Awaitable[None]]]] = {
            "learn": (8, self._learn),
            "take back": (2, self._take_back),
            "erase": (2, self._erase),
            "delete": (1, self._delete),
            "change": (6, self._change),
            "add": (2, self._add),
            "index": (5, self._index),
        }
        every = [way for way, (times, _) in ways.items() for _ in range(times)]
        for way in self._chance.sample(every, len(every)):
            with suppress(NotFound, InvalidFact):  # what others did first
                await ways[way][1](self._chance.choice(self._stores))
                self.done[way] += 1

    def _name(self) -> tuple[str, str]:
        name = self._chance.choice(["a", "b", "c", "himself"])
        return name, THE_USER if name == "himself" else "s"

    async def _learn(self, store: Store) -> None:
        name, subject = self._name()
        chance = self._chance
        async with store.write(SCOPE, name) as unit:
            if unit.head.subject != subject:
                await unit.commit(Changes(head=replace(unit.head, subject=subject)))
                return
            said = [user("so it is") for _ in range(4)]
            logged, head = extended(unit.head, said, [1] * len(said))
            known = (await unit.current_facts(subject)).facts
            seqs = [one.seq for one in logged]
            facts = tuple(
                new(
                    content,
                    *sorted(chance.sample(seqs, 2)),
                    supersedes=tuple(one.id for one in chance.sample(known, min(len(known), 2))),
                    single_valued=chance.random() < 0.2,
                    category=chance.choice(self.CATEGORIES),
                )
                for content in chance.sample(self.SAID, 3)
            )
            repeated = tuple(
                RepeatedFact(
                    fact=one.id,
                    seqs=(chance.choice(seqs),),
                    confidence=0.9,
                    category=chance.choice([None, *self.CATEGORIES]),
                    single_valued=chance.random() < 0.2,
                )
                for one in chance.sample(known, min(len(known), 3))
            )
            changes = Changes(
                head=head, messages=logged, learned=LearnedFacts(subject=subject, facts=facts, repeated=repeated)
            )
            await unit.commit(changes)

    async def _take_back(self, store: Store) -> None:
        async with store.write(SCOPE, self._name()[0]) as unit:
            tail = await unit.tail(3)
            if tail:
                head = replace(unit.head, rev=unit.head.rev + 1)
                await unit.commit(Changes(head=head, retract=ranges(one.seq for one in tail)))

    async def _erase(self, store: Store) -> None:
        name, _ = self._name()
        head = await store.head(SCOPE, name)
        if head is not None and head.next_seq > 6:
            start = self._chance.randrange(head.next_seq - 5)
            await write(store, name, erase=((start, start), (start + 2, start + 4)))

    async def _delete(self, store: Store) -> None:
        async with store.write(SCOPE, self._name()[0]) as unit:
            await unit.delete(facts=True)

    async def _change(self, store: Store) -> None:
        found = await store.facts.facts(SCOPE, FactFilter(state=None))
        if found:
            edits = [
                edit(content, category=self._chance.choice(self.CATEGORIES), single_valued=self._chance.random() < 0.3)
                for content in (*self._chance.sample(self.SAID, 2), "Something else.")
            ]
            changes = [DELETE, SHARE, UNSHARE, RESTORE, replace(RESTORE, single_valued=True), *edits]
            change = changes[next(self._turns) % len(changes)]
            await store.facts.change(SCOPE, self._chance.choice(found).id, change)

    async def _add(self, store: Store) -> None:
        fact = new(self._chance.choice(self.SAID), category=self._chance.choice([*self.CATEGORIES, OTHER]))
        await store.facts.add(SCOPE, "s", replace(fact, single_valued=self._chance.random() < 0.3))

    async def _index(self, store: Store) -> None:
        work = await store.index.take(space=SPACE, lease=HOUR, limit=40)
        while work is not None and not work.done:
            if not await store.index.add(work, made(work.sources)):
                return
            if work.unembedded:
                await store.index.embed(work, SPACE, vectors_of(work, SPACE))
            if work.untidy:
                await store.index.compact_index(work)
            work = await store.index.more(work, space=SPACE, lease=HOUR, limit=40)
        if work is not None:
            await store.index.release(work)


@lasting
@pytest.mark.parametrize("seed", range(examples(1)))
async def test_whatever_happens_at_once_comes_to_an_end(stores: list[Store], database: str, seed: int) -> None:
    """Nobody waits for one who waits for him: the database would end one of them, with an error."""
    crowd = Crowd(stores, seed)
    await asyncio.gather(*(crowd.anybody() for _ in range(9)))
    assert min(crowd.done[way] for way in ("learn", "take back", "erase", "delete", "change", "add", "index")) > 2
    await indexed(stores[0], space=SPACE)
    assert {what: n for what, query in LEFT.items() if (n := await count(database, query))} == {}
    states = {row["state"] for row in await rows(database, "select distinct state from fact")}
    assert {FactState.CURRENT, FactState.SUPERSEDED, FactState.DELETED} <= states


async def take_back_both(store: Store, *_: int) -> None:
    await take_back(store, "c", 2)


async def take_back_the_later(store: Store, *_: int) -> None:
    await take_back(store, "c", 1)


async def erase_both(store: Store, *_: int) -> None:
    await write(store, "c", erase=((0, 1),))


async def delete_both(store: Store, *_: int) -> None:
    async with store.write(SCOPE, "c") as unit:
        await unit.delete(facts=True)


async def learn_in_their_place(store: Store, *both: int) -> None:
    await learn(store, "c", new("Dives.", 0, supersedes=both[::-1]))


async def learn_alone(store: Store, *_: int) -> None:
    await learn(store, "c", new("Dives.", 0, single_valued=True))


async def repeat_the_later(store: Store, earlier: int, later: int) -> None:
    again = RepeatedFact(fact=later, seqs=(0,), confidence=0.9)
    await learn(store, "c", new("Dives.", 0, supersedes=(earlier,)), repeated=[again])


async def repeat_alone(store: Store, _: int, later: int) -> None:
    await learn(store, "c", repeated=[RepeatedFact(fact=later, seqs=(0,), confidence=0.9, single_valued=True)])


async def repeat_in_a_category_alone(store: Store, _: int, later: int) -> None:
    again = RepeatedFact(fact=later, seqs=(0,), confidence=0.9, category="hobby", single_valued=True)
    await learn(store, "c", repeated=[again])


async def add_alone(store: Store, *_: int) -> None:
    await store.facts.add(SCOPE, THE_USER, new("Dives.", single_valued=True))


async def add_the_later_alone(store: Store, *_: int) -> None:
    await store.facts.add(SCOPE, THE_USER, new("Sings.", category=OTHER, single_valued=True))


async def edit_alone(store: Store, _: int, later: int) -> None:
    await store.facts.change(SCOPE, later, edit("Dives.", single_valued=True))


@pytest.mark.parametrize("superseded_before", [False, True])
@pytest.mark.parametrize(
    "do",
    [
        *(take_back_both, take_back_the_later, erase_both, delete_both, learn_in_their_place, learn_alone),
        *(repeat_the_later, repeat_alone, repeat_in_a_category_alone, add_alone, add_the_later_alone, edit_alone),
    ],
)
async def test_several_facts_are_held_in_their_order(
    store: Store, database: str, do: Callable[..., Awaitable[None]], superseded_before: bool
) -> None:
    """As whoever indexes does, who may have the first of them: so none is held by one who waits for one before it."""
    earlier, later = await learned(store, "Swims.", "Sings.")
    if superseded_before:
        await rows(
            database,
            f"update fact set state = 'superseded', ended_at = now(), superseded_by = {later} where id = {earlier}",
        )
    async with await psycopg.AsyncConnection[object].connect(database) as indexing:
        hold = "select from hitherto.fact where id = %s for no key update"
        await indexing.execute(hold, [earlier])
        doing = asyncio.create_task(asyncio.wait_for(do(store, earlier, later), PATIENCE))
        await asyncio.wait([doing], timeout=0.1)
        await indexing.execute("set local lock_timeout = '2s'")
        await indexing.execute(hold, [later])
        await indexing.rollback()
        await doing


Take = Callable[[Store, int], Awaitable[object]]


async def edited(store: Store, fact: int) -> None:
    await store.facts.change(SCOPE, fact, edit("Dives."))


async def discarded(store: Store, fact: int) -> None:
    await store.facts.change(SCOPE, fact, DELETE)


async def superseded(store: Store, fact: int) -> None:
    await store.facts.change(SCOPE, fact, edit("Swims.", category="city"))
    await store.facts.add(SCOPE, "s", new("Dives.", category="city", single_valued=True))


async def learned_otherwise(store: Store, fact: int) -> None:
    await learn(store, "c", new("Dives.", 0, supersedes=(fact,)))


async def withdrawn(store: Store, _: int) -> None:
    await take_back(store, "c", 1)


async def erased(store: Store, _: int) -> None:
    await write(store, "c", erase=((1, 1),))


async def forgotten(store: Store, _: int) -> None:
    async with store.write(SCOPE, "c") as unit:
        await unit.delete(facts=True)


@pytest.mark.parametrize("take", [edited, discarded, superseded, learned_otherwise, withdrawn, erased, forgotten])
async def test_what_a_fact_was_leaves_the_index(store: Store, database: str, take: Take) -> None:
    """Out of segments too, which are put in order later."""
    *_, fact = await learned(store, "Sings.", "Swims.", subject="s")
    await learned(store, "Rows.", name="other", subject="s")
    await indexed(store, space=SPACE)
    await rows(database, "update search_scope set packed = next_no, stale = false")
    await rows(
        database,
        "insert into search_segment (tenant, scope, segment, lengths, kinds, origins, places, times) "
        "select tenant, ref, 0, '', '', '', '', '' from search_scope",
    )
    await take(store, fact)
    assert await count(database, f"select count(*) from search_entry where kind = 4 and origin = {fact}") == 0
    assert await count(database, "select count(*) from search_entry where kind = 4") == (1 if take is forgotten else 2)
    assert await rows(database, "select stale from search_scope") == [{"stale": True}]
    assert await rows(database, "select stale from search_segment") == [{"stale": True}]
    assert {what: n for what, query in LEFT.items() if (n := await count(database, query))} == {}
    assert [one.id for one in await store.facts.facts(SCOPE, FactFilter())].count(fact) == (take is edited)


@pytest.mark.parametrize("seed", range(2))
async def test_the_columns_of_what_is_known_are_its_rows(store: Store, database: str, seed: int) -> None:
    """In any scripts, with codes in this space, in another or none, and others' between one's own."""
    chance = chances(seed)
    await store.facts.set_subject(SCOPE.tenant, "s", members=(SCOPE.user, MEMBER.user))
    for n in range(60):
        words = chance.sample(["Likes", "tea", "她喜歡喝茶", "🧶🧶", "naïve", "𝔘𝔫𝔦", "e\u0301"], chance.randrange(7))
        fact = new(" ".join([*words, str(n)]), category=chance.choice(["hobby", "愛好", "🧶"]), tokens=n)
        scope = chance.choice([SCOPE, MEMBER])
        added = await store.facts.add(scope, "s", fact)
        await store.facts.change(scope, added.id, chance.choice([SHARE, UNSHARE]))
    await rows(database, "insert into search_space (name, dimensions) values ('signs', 16), ('others', 8)")
    await rows(
        database,
        "update fact set space = s.id, code = substring(sha256(fact.id::text::bytea) for s.dimensions / 8) "
        f"from search_space s where s.id = fact.id / {seed + 1} % 3",
    )
    told = await store.facts.known(SCOPE, "s", space=SPACE)
    found = await rows(
        database,
        f"select * from fact where user_id = '{SCOPE.user}' or visibility = 'shared' order by id",
    )
    assert [len(found) - len(told.ids), len(found) > 20] == [0, True]
    (space,) = await rows(database, "select id from search_space where name = 'signs'")
    ends = told.sizes.cumsum().tolist()
    for at, (fact, start, end) in enumerate(zip(found, [0, *ends][:-1], ends, strict=True)):
        assert (told.ids[at], told.versions[at], told.tokens[at]) == (fact["id"], fact["version"], fact["tokens"])
        assert (told.own[at], told.shared[at]) == (fact["user_id"] == SCOPE.user, fact["visibility"] == "shared")
        assert (told.categories[at], told.contents[at]) == (fact["category"], fact["content"])
        assert (told.lengths[at], told.terms[start:end].tobytes()) == (fact["length"], fact["hashes"])
        assert told.counts[start:end].tobytes() == fact["counts"]
        assert told.codes is not None
        assert told.coded is not None
        assert told.coded[at] == (fact["space"] == space["id"])
        assert told.codes[at].tobytes() == (fact["code"] if told.coded[at] else bytes(2))
    assert list(told.contents[3:7]) == [fact["content"] for fact in found[3:7]]
    assert told.contents[-1] == found[-1]["content"]


async def test_of_what_others_share_the_newest_are_known(store: Store, database: str) -> None:
    await store.facts.set_subject(SCOPE.tenant, "s", members=(SCOPE.user, MEMBER.user))
    own = await store.facts.add(SCOPE, "s", new("Swims."))
    shared = await store.facts.add(MEMBER, "s", new("Sings."))
    await store.facts.change(MEMBER, shared.id, SHARE)
    await rows(
        database,
        f"""insert into fact (tenant, user_id, agent, subject, category, content, fingerprint, visibility, confidence,
                              tokens, length, hashes, counts)
            select tenant, user_id, agent, subject, category, content, n, visibility, confidence, tokens, length,
                   hashes, counts
            from fact, generate_series(1, {MOST_SHARED + 50}) n where fact.id = {shared.id}""",
    )
    last = await store.facts.add(SCOPE, "s", new("Rows."))
    known = await store.facts.known(SCOPE, "s")
    newest = range(last.id - MOST_SHARED, last.id)
    assert known.ids.tolist() == [own.id, *newest, last.id]
    assert known.own.tolist() == [True, *[False] * MOST_SHARED, True]


async def test_the_third_seeds_table_shows_what_is_known(
    make_database: Callable[[], Coroutine[Any, Any, str]],
) -> None:
    database = await make_database()
    store = Store(database)
    await store.open()
    first, second, _ = await learned(store, "Swims.", "Sings.", "Rows.", name="conv_1", subject="mum")
    await learned(store, "Dives.", name="conv_2", subject="mum", supersedes=(first,))
    await store.facts.change(SCOPE, second, SHARE)
    await take_back(store, "conv_1", 1)
    await store.facts.add(SCOPE, THE_USER, new("Fences."))
    await create_views(database)
    found = await rows(database, "select * from legacy_facts order by id")
    assert list(found[0]) == [
        *("id", "legacy_id", "user_id", "category", "content", "visibility", "source_conversation_id"),
        *("extracted_at", "updated_at", "tenant", "agent"),
    ]
    assert [(row["legacy_id"], row["content"], row["visibility"], row["source_conversation_id"]) for row in found] == [
        ("mum", "Sings.", "shared", "conv_1"),
        ("mum", "Dives.", "private", "conv_2"),
        ("", "Fences.", "private", None),
    ]
    async with store.write(SCOPE, "conv_1") as unit:
        await unit.delete()
    (sings, *_) = await rows(database, "select * from legacy_facts order by id")
    assert (sings["content"], sings["source_conversation_id"]) == ("Sings.", None)
    await store.aclose()


HELD = {"edit_fact", "confirm_fact", "keep_fact", "restore_fact", "change_visibility", "delete_fact", "note_fact"}
"""What is done to one fact, by its number, after it was found to be the user's own."""

SHOWING = {"known", "facts", "facts_said_in", "fact", "fact_versions", "replaced_facts"}
"""What tells facts to a user."""


def test_every_statement_on_facts_names_its_owner() -> None:
    """What reads or changes facts names their owner; what is shared with him is asked for in one place."""
    folder = resources.files("hitherto.store.facts")
    text = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("facts.sql", "learn.sql"))
    named = dict(re.findall(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL))
    on_facts = {
        name: body
        for name, body in named.items()
        if re.search(r"(from|update) (hitherto\.fact(_subject|_event)?\b|\(\{shown_facts\})", body)
    }
    assert len(on_facts) > 20
    assert set(on_facts) > HELD | SHOWING
    for name, body in on_facts.items():
        assert name in HELD or "user_id = %(user)s" in body, name
        assert not re.search(r"\bf\.visibility = ", body), f"{name} has a rule of its own"
        # From each mention of the table on, to the next: what a fact is about may be looked up to ask for that.
        branches = re.findall(r"(?:hitherto\.fact\b|\{shown_facts\})(.*?)(?=hitherto\.|\{|\Z)", body, re.DOTALL)
        for branch in branches if name in SHOWING else ():
            whose = ("user_id = %(user)s", ") about", "f.id = n.id")  # the last: of the ids of what is shared
            assert any(one in branch for one in whose), (name, branch)
    assert {name for name, body in named.items() if "{shared_facts}" in body} == SHOWING - {
        "facts_said_in",
        "replaced_facts",
    }
