"""Facts in the search index, and searches about one subject."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from hitherto.core.recall.filter import CODES, EntryKind, SearchFilter
from hitherto.core.recall.index import Source
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    ADA,
    BEN,
    CONFIRM,
    DELETE,
    EVERYTHING,
    MUM,
    edit,
    fact_of,
    learn,
    learned,
    new,
    set_whole,
    shared_by,
)
from tests.store.recall.samples import (
    MINE,
    SPACE,
    block_of,
    candidates,
    found,
    having,
    indexed,
    keys_of,
    made,
    search_data,
    taken,
    vector_of,
)
from tests.store.recall.test_documents import archived, chunked
from tests.store.samples import SCOPE, head_of, user, write

FACTS = replace(MINE, kinds=frozenset({EntryKind.FACT}))

waits = pytest.mark.parametrize("waits", [False, True], ids=["indexed", "waiting"])


async def _edit(store: Store, fact: int) -> None:
    await store.facts.change(SCOPE, fact, edit("coffee"))


async def _supersede(store: Store, fact: int) -> None:
    await learn(store, "c", new("coffee", 0, supersedes=(fact,)))


async def _replace_by_hand(store: Store, fact: int) -> None:
    await store.facts.add(SCOPE, THE_USER, new("coffee", single_valued=True))


async def _withdraw(store: Store, fact: int) -> None:
    await take_back(store, "c", 1)


async def _erase(store: Store, fact: int) -> None:
    await write(store, "c", erase=((0, 0),))


async def _delete(store: Store, fact: int) -> None:
    await store.facts.change(SCOPE, fact, DELETE)


async def _delete_all(store: Store, fact: int) -> None:
    async with store.write(SCOPE, "c") as unit:
        await unit.delete(facts=True)


WAYS: dict[str, tuple[Callable[[Store, int], Awaitable[None]], list[str]]] = {
    "edited": (_edit, ["coffee"]),
    "superseded": (_supersede, ["coffee"]),
    "replaced by hand": (_replace_by_hand, ["coffee"]),
    "withdrawn": (_withdraw, []),
    "erased": (_erase, []),
    "deleted": (_delete, []),
    "deleted with its conversation": (_delete_all, []),
}

each_way = pytest.mark.parametrize(("way", "left"), WAYS.values(), ids=WAYS.keys())


class TestSearchFact:
    @waits
    async def test_a_fact_is_told_whole(self, store: Store, waits: bool) -> None:
        (fact,) = await learned(store, "green tea", subject=MUM.id, metadata={"category": "drinks"})
        await store.facts.change(SCOPE, fact, CONFIRM)
        if not waits:
            await indexed(store, space=SPACE)
        kept = await fact_of(store, fact)
        source = Source(
            kind=EntryKind.FACT,
            origin=fact,
            place=0,
            text="green tea",
            said_at=kept.evidence[0].said_at,
            agent=SCOPE.agent,
            subject=MUM.id,
        )
        if waits:
            assert (await search_data(store, FACTS)).waiting == (source,)
            return
        (one,) = [one for one in await candidates(store, space=SPACE) if one.source.kind is EntryKind.FACT]
        assert one.source == source
        assert one.passages[0].vector is not None
        assert np.allclose(one.passages[0].vector, vector_of("green tea"), atol=0.001)

    @waits
    async def test_its_time_is_that_of_the_newest_message_that_says_it(self, store: Store, waits: bool) -> None:
        long_ago = [datetime(2020, month, 1, tzinfo=UTC) for month in (6, 5)]
        await write(store, "c", *(replace(user("Green tea!"), said_at=at) for at in long_ago))
        await learn(store, "c", new("green tea", 0, 1))
        await store.facts.add(SCOPE, THE_USER, new("black tea"))
        if not waits:
            await indexed(store, space=SPACE)
        found = await search_data(store, FACTS)
        sources = found.waiting if waits else [one.source for one in await candidates(store, FACTS)]
        times = {one.text: one.said_at for one in sources}
        added = next(one for one in await store.facts.facts(SCOPE, EVERYTHING) if one.content == "black tea")
        assert times == {"green tea": long_ago[0], "black tea": added.extracted_at}

    async def test_a_fact_has_its_columns(self, store: Store) -> None:
        (fact,) = await learned(store, "tea and tea")
        await indexed(store, space=SPACE)
        told = await search_data(store, replace(MINE, subject=THE_USER), words=["tea"], spaces=[SPACE])
        (key,) = [one.key for one in await candidates(store, FACTS)]
        block, at = block_of(told, key)
        assert block.kinds[at] == CODES[EntryKind.FACT] == 4
        assert block.origins is not None
        assert block.places is not None
        assert block.times is not None
        assert (block.origins[at], block.places[at], block.lengths[at]) == (fact, 0, 3)
        assert abs(block.times[at] - (await fact_of(store, fact)).evidence[0].said_at.timestamp()) < 0.001
        assert having(told, "tea")[key] == 2
        assert (told.entries, told.embedded) == (2, 2)

    @each_way
    async def test_what_a_worker_has_in_hand_is_gone_too(
        self, store: Store, way: Callable[[Store, int], Awaitable[None]], left: list[str]
    ) -> None:
        (fact,) = await learned(store, "tea")
        work = await taken(store.index)
        await way(store, fact)
        assert await store.index.add(work, made(work.sources))
        await store.index.release(work)
        assert await found(store, FACTS) == left
        await indexed(store)
        assert await found(store, FACTS) == left
        assert len(having(await search_data(store, FACTS, words=["coffee"]), "coffee")) == len(left)

    @waits
    async def test_shared_facts_of_others_are_not_found(self, store: Store, waits: bool) -> None:
        """Contexts show them; a search stays within the scope."""
        await set_whole(store, ADA.tenant, MUM)
        await shared_by(store, "tea", scope=BEN)
        if not waits:
            await indexed(store)
        for criteria in (MINE, replace(MINE, subject=MUM.id), replace(MINE, all_agents=True)):
            assert await found(store, criteria) == []
            assert (await search_data(store, criteria)).entries == 0
        assert await found(store, replace(FACTS, scope=BEN)) == ["tea"]

    @waits
    async def test_facts_of_all_agents_are_asked_for(self, store: Store, waits: bool) -> None:
        other = replace(SCOPE, agent="another")
        await learned(store, "mine")
        await learned(store, "theirs", scope=other)
        if not waits:
            await indexed(store)
        assert await found(store, FACTS) == ["mine"]
        everyone = replace(FACTS, all_agents=True)
        assert await found(store, everyone) == ["mine", "theirs"]
        agents = {one.agent for one in (await search_data(store, everyone)).waiting}
        agents |= {one.source.agent for one in await candidates(store, everyone)}
        assert agents == {SCOPE.agent, "another"}

    async def test_facts_and_the_other_filters(self, store: Store) -> None:
        (fact,) = await learned(store, "tea")
        at = (await fact_of(store, fact)).evidence[0].said_at
        await indexed(store)
        keys = keys_of(await search_data(store))
        for criteria, there in (
            (FACTS, True),
            (replace(FACTS, exclude_conversation="c"), True),
            (replace(FACTS, hidden={"c": 0}), True),
            (replace(FACTS, conversation="c"), False),
            (replace(FACTS, conversation="c", as_of=9), False),
            (replace(FACTS, doc_type="note"), False),
            (replace(FACTS, after=at, before=at), True),
            (replace(FACTS, after=at + timedelta(microseconds=1)), False),
            (replace(FACTS, before=at - timedelta(microseconds=1)), False),
            (replace(FACTS, subject=THE_USER), True),
            (replace(FACTS, subject=MUM.id), False),
            (replace(FACTS, kinds=frozenset({EntryKind.MESSAGE, EntryKind.PASSAGE})), False),
        ):
            told = await candidates(store, criteria, keys=keys)
            assert [one.source.text for one in told if one.source.kind is EntryKind.FACT] == ["tea"] * there, criteria

    async def test_a_subject_leaves_what_is_about_it(self, store: Store) -> None:
        for name, subject in (("c", MUM.id), ("d", THE_USER), ("e", "dad")):
            await write(store, name, user(f"talk in {name}"), user("more"), subject=subject)
            await learn(store, name, new(f"fact of {name}", 0))
        await chunked(store, 0, 1, "chunk of c")
        for name in ("c", "d"):
            await archived(store, name, 0, 1, f"passage of {name}")
        await indexed(store)
        everything = {one.source.text for one in await candidates(store)}
        assert everything >= {"talk in c", "chunk of c", "passage of c", "passage of d", "fact of e"}
        for subject, name, beside in (
            (MUM.id, "c", ["chunk of c", "passage of c"]),
            (THE_USER, "d", ["passage of d"]),
            ("dad", "e", []),
        ):
            criteria = replace(MINE, subject=subject)
            keys = keys_of(await search_data(store))
            told = await candidates(store, criteria, keys=keys)
            texts = sorted({one.source.text for one in told})
            assert texts == sorted(["more", f"talk in {name}", f"fact of {name}", *beside])
            assert {one.source.subject for one in told} == {subject}
            assert (await search_data(store, criteria)).about == ((await head_of(store, name)).ref,)
        assert await candidates(store, replace(MINE, subject="nobody"), keys=keys_of(await search_data(store))) == []

    async def test_conversations_about_a_subject_are_numbered(self, store: Store) -> None:
        other = replace(SCOPE, agent="another")
        refs: dict[tuple[str, str], int] = {}
        for name, scope, subject in (
            ("c", SCOPE, MUM.id),
            ("d", SCOPE, THE_USER),
            ("e", other, MUM.id),
            ("f", SCOPE, MUM.id),
            ("g", BEN, MUM.id),
            ("h", replace(SCOPE, tenant="another"), MUM.id),
        ):
            await write(store, name, user("tea"), scope=scope, subject=subject)
            refs[name, subject] = (await head_of(store, name, scope=scope)).ref
        about = {
            "none": (MINE, None),
            "mum": (replace(MINE, subject=MUM.id), (refs["c", MUM.id], refs["f", MUM.id])),
            "himself": (replace(MINE, subject=THE_USER), (refs["d", THE_USER],)),
            "nobody": (replace(MINE, subject="nobody"), ()),
            "every agent": (
                replace(MINE, subject=MUM.id, all_agents=True),
                tuple(refs[name, MUM.id] for name in ("c", "e", "f")),
            ),
            "another agent": (SearchFilter(scope=other, subject=MUM.id), (refs["e", MUM.id],)),
        }
        for name, (criteria, numbers) in about.items():
            assert (await search_data(store, criteria)).about == numbers, name
        await write(store, "d", user("tea"), subject=MUM.id)
        told = await search_data(store, replace(MINE, subject=MUM.id))
        assert told.about == tuple(sorted(refs[key] for key in refs if key[0] in "cdf")), "as it is now"
        assert {one.subject for one in told.waiting if one.conversation in ("c", "d", "f")} == {MUM.id}
