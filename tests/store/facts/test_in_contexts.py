"""Reading facts: the columns for a context, the current facts that a unit holds, and lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from hitherto.core.changes import Changes
from hitherto.core.facts.fact import Subject
from hitherto.core.facts.queries import FactFilter, KnownFacts, KnownFactsQuery
from hitherto.core.recall.codes import codes_of
from hitherto.core.recall.terms import analyzed
from hitherto.core.scope import THE_USER
from hitherto.store.store import Store
from tests.store.digests.samples import begun
from tests.store.digests.stage_samples import take_back
from tests.store.facts.samples import (
    ADA,
    BEN,
    CONFIRM,
    DELETE,
    EVERYTHING,
    MUM,
    SHARE,
    current_contents,
    edit,
    fact_of,
    known,
    learn,
    learned,
    listed,
    new,
    rows_of,
    set_whole,
    shared_by,
)
from tests.store.recall.samples import OTHER_SPACE, SPACE, indexed, vector_of
from tests.store.samples import OTHER_STAGE, SCOPE, dialogue, digested, ending, timeless, user, write

TEXTS = ("She likes tea, tea and coffee.", "她喜歡茶。", "!", "Zoë’s café")


async def _add(store: Store, made: int) -> None:
    await store.facts.add(SCOPE, THE_USER, new("Sings."))


async def _change(store: Store, made: int) -> None:
    await store.facts.change(SCOPE, made, edit("Sings."))


async def _delete(store: Store, made: int) -> None:
    await store.facts.change(SCOPE, made, DELETE)


async def _learn(store: Store, made: int) -> None:
    await learn(store, "other", new("Sings.", 0))


async def _erase(store: Store, made: int) -> None:
    await write(store, "other", erase=((0, 0),))


async def _take_back(store: Store, made: int) -> None:
    await take_back(store, "other", 1)


async def _forget(store: Store, made: int) -> None:
    async with store.write(SCOPE, "other") as unit:
        await unit.delete(facts=True)


WAYS: dict[str, Callable[[Store, int], Coroutine[Any, Any, None]]] = {
    "add": _add,
    "edit": _change,
    "delete": _delete,
    "learn": _learn,
    "erase": _erase,
    "take back": _take_back,
    "delete the conversation": _forget,
}


def row(number: int, version: int, text: str, *, own: bool = True, shared: bool = False, tokens: int = 5) -> object:
    """The row that `rows_of` returns for such a fact."""
    terms = analyzed(text)
    pairs = tuple(zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True))
    return (number, version, own, shared, tokens, terms.length, "hobby", text, pairs)


def shapes(told: KnownFacts) -> set[int]:
    columns = (told.ids, told.versions, told.own, told.shared, told.tokens, told.sizes, told.lengths)
    return {*(len(column) for column in columns), len(told.categories), len(told.contents)}


class TestKnownFact:
    async def test_known_facts_come_in_columns(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        mine = await learned(store, *TEXTS, subject=MUM.id)
        bens = await shared_by(store, "Ben's.", scope=BEN)
        await store.facts.change(SCOPE, mine[1], SHARE)
        await store.facts.change(SCOPE, mine[2], replace(edit("Likes milk."), tokens=9))
        await store.facts.change(SCOPE, mine[3], DELETE)
        told = await store.facts.known(SCOPE, MUM.id)
        assert told.subject == MUM
        assert rows_of(told) == [
            row(mine[0], 1, TEXTS[0]),
            row(mine[1], 2, TEXTS[1], shared=True),
            row(mine[2], 2, "Likes milk.", tokens=9),
            row(bens, 2, "Ben's.", own=False, shared=True),
        ]
        assert shapes(told) == {4}
        assert len(told.terms) == len(told.counts) == told.sizes.sum()
        assert (told.codes, told.coded) == (None, None)

    async def test_those_up_to_the_last_digest_are_taken(self, store: Store) -> None:
        """The last to end, whatever began after it."""
        asked = KnownFactsQuery(subject=THE_USER)
        first = await begun(store, "c")
        await digested(store, "c", 0, 3, stage=OTHER_STAGE)
        (sings,) = await learned(store, "Sings.", name="d")
        _, before, _ = await store.head_and_known(SCOPE, "c", asked)
        await write(store, "c", outcomes=[ending("completed", first)])
        _, after, _ = await store.head_and_known(SCOPE, "c", asked)
        assert (before.taken, after.taken) == (0, sings)

    async def test_a_fact_without_words_is_known_too(self, store: Store) -> None:
        made = await learned(store, "…", "Swims.", "?")
        told = await store.facts.known(SCOPE, THE_USER)
        assert rows_of(told) == [row(made[0], 1, "…"), row(made[1], 1, "Swims."), row(made[2], 1, "?")]

    async def test_codes_are_those_of_the_space_that_is_asked_for(self, store: Store) -> None:
        await set_whole(store, ADA.tenant, MUM)
        mine = await learned(store, "Swims.", "Sings.", subject=MUM.id)
        bens = await shared_by(store, "Ben's.", scope=BEN)
        assert (await store.facts.known(SCOPE, MUM.id, space=SPACE)).coded is None, "nothing is embedded yet"
        await indexed(store, space=SPACE)
        (late,) = await learned(store, "Late.", subject=MUM.id)
        told = await store.facts.known(SCOPE, MUM.id, space=SPACE)
        assert told.ids.tolist() == [*mine, bens, late]
        assert told.coded is not None
        assert told.codes is not None
        assert told.coded.tolist() == [True, True, True, False]
        made = codes_of(np.stack([vector_of(text) for text in ("Swims.", "Sings.", "Ben's.")]))
        assert told.codes.dtype == np.uint8
        assert told.codes[:3].tolist() == made.tolist()
        for space in (OTHER_SPACE, None):
            none = await store.facts.known(SCOPE, MUM.id, space=space)
            assert (none.codes, none.coded) == (None, None)
        _, beside, _ = await store.head_and_known(SCOPE, "c", KnownFactsQuery(subject=THE_USER, space=SPACE))
        assert beside.codes is not None
        assert beside.codes[:3].tolist() == made.tolist()

    async def test_an_edited_fact_has_no_code_until_it_is_embedded_anew(self, store: Store) -> None:
        (made, other) = await learned(store, "Swims.", "Sings.")
        await indexed(store, space=SPACE)
        await store.facts.change(SCOPE, made, CONFIRM)
        await store.facts.change(SCOPE, other, edit("Dives."))
        told = await store.facts.known(SCOPE, THE_USER, space=SPACE)
        assert told.coded is not None
        assert told.coded.tolist() == [True, False]
        await indexed(store, space=SPACE)
        told = await store.facts.known(SCOPE, THE_USER, space=SPACE)
        assert told.coded is not None
        assert told.codes is not None
        assert told.coded.tolist() == [True, True]
        assert told.codes[1].tolist() == codes_of(vector_of("Dives.")[np.newaxis])[0].tolist()

    async def test_a_head_comes_with_what_is_known(self, store: Store) -> None:
        await learned(store, "Swims.", name="mine")
        await learned(store, "Sings.", subject=MUM.id)
        await write(store, "c", *dialogue(1))
        for asked in (THE_USER, MUM.id, "nobody"):
            for at in (None, 0, 1, 2, 3):
                head, told, _ = await store.head_and_known(SCOPE, "c", KnownFactsQuery(subject=asked), at=at)
                assert timeless(head) == timeless(await store.head(SCOPE, "c", at=at))
                assert (told.subject.id, list(told.contents)) == (MUM.id, ["Sings."]), "as they are now"
            for at in (4, -1):
                head, told, _ = await store.head_and_known(SCOPE, "c", KnownFactsQuery(subject=asked), at=at)
                assert (head, list(told.contents)) == (None, ["Sings."])

    @pytest.mark.parametrize("at", [None, 0, 1])
    async def test_the_subject_asked_for_counts_before_there_is_a_conversation(
        self, store: Store, at: int | None
    ) -> None:
        await learned(store, "Swims.", name="mine")
        await learned(store, "Sings.", name="gone", subject=MUM.id)
        for name in ("new", "gone"):
            async with store.write(SCOPE, name) as unit:
                await unit.delete()
            for subject, contents in ((THE_USER, ["Swims."]), (MUM.id, ["Sings."]), ("nobody", [])):
                head, told, _ = await store.head_and_known(SCOPE, name, KnownFactsQuery(subject=subject), at=at)
                assert (head, told.subject.id, list(told.contents)) == (None, subject, contents)

    async def test_a_head_keeps_its_subject_and_what_was_extracted(self, store: Store) -> None:
        await write(store, "c", *dialogue(2))
        head = await store.head(SCOPE, "c")
        assert head is not None
        assert (head.subject, head.extracted) == (THE_USER, ())
        await write(store, "c", *dialogue(1), subject="mum 🌹", extracted=((0, 1), (3, 3)))
        async with store.write(SCOPE, "c") as unit:
            assert (unit.head.subject, unit.head.extracted) == ("mum 🌹", ((0, 1), (3, 3)))
            assert (await unit.current_facts("mum 🌹")).subject == Subject(id="mum 🌹", name="mum 🌹")
            await unit.commit(Changes(head=replace(unit.head, rev=unit.head.rev + 1)))
        for at in (None, 0, 1, 2, 3):
            head = await store.head(SCOPE, "c", at=at)
            assert head is not None
            assert (head.subject, head.extracted) == ("mum 🌹", ((0, 1), (3, 3))), "not kept for past revisions"
        async with store.write(SCOPE, "new") as unit:
            assert (unit.head.subject, unit.head.extracted) == (THE_USER, ())
            assert (await unit.current_facts(THE_USER)).subject == Subject(id=THE_USER, name=SCOPE.user)

    @pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
    async def test_a_book_is_held_until_the_unit_ends(
        self, store: Store, way: Callable[[Store, int], Coroutine[Any, Any, None]]
    ) -> None:
        (made,) = await learned(store, "Swims.", name="other")
        await write(store, "c", user("I fence."))
        async with store.write(SCOPE, "c") as unit:
            book = await unit.current_facts(THE_USER)
            doing = asyncio.create_task(way(store, made))
            ended, _ = await asyncio.wait([doing], timeout=0.05)
            assert not ended
            assert await unit.current_facts(THE_USER) == book
            assert await known(store) == ["Swims."], "to read, nobody waits"
        await doing
        assert await current_contents(store) != ["Swims."]

    async def test_a_book_says_when_a_fact_was_last_said(self, store: Store) -> None:
        """Or when a person changed it; messages that were taken back do not count."""

        async def last() -> list[datetime | None]:
            return [one.said_at for one in (await store.facts.current_facts(SCOPE, THE_USER)).facts]

        (made,) = await learned(store, "Swims.")
        first = (await fact_of(store, made)).evidence[0].said_at
        await write(store, "c", user("As I said: I swim."))
        await learn(store, "c", new("Swims.", 1))
        again = (await fact_of(store, made)).evidence[1].said_at
        assert (await last(), again > first) == ([again], True)
        await take_back(store, "c", 1)
        assert await last() == [first]
        await write(store, "c", user("I swim a lot."))
        changed = await store.facts.change(SCOPE, made, CONFIRM)
        assert await last() == [changed.updated_at]
        assert (await store.facts.change(SCOPE, made, SHARE)).updated_at > changed.updated_at
        assert await last() == [changed.updated_at], "to share it says nothing of whether it holds"
        await learn(store, "c", new("Swims.", 2))
        assert (await fact_of(store, made)).repeated == 2
        assert await last() == [changed.updated_at], "nor does it when what was said before is digested later"
        await write(store, "c", erase=((0, 2),))
        assert await last() == [changed.updated_at]
        added = await store.facts.add(SCOPE, THE_USER, new("Sings."))
        assert (await last())[1] == (await fact_of(store, added.id)).updated_at
        (gone,) = await learned(store, "Rows.", name="gone")
        async with store.write(SCOPE, "gone") as unit:
            await unit.delete()
        assert (await last())[2] == (await fact_of(store, gone)).extracted_at

    async def test_a_book_says_what_a_person_has_confirmed(self, store: Store) -> None:
        """A model's confidence confirms nothing, and neither does sharing."""

        async def confirmed() -> list[bool]:
            return [one.confirmed for one in (await store.facts.current_facts(SCOPE, THE_USER)).facts]

        (made,) = await learned(store, "Swims.", confidence=1.0)
        await store.facts.change(SCOPE, made, SHARE)
        await store.facts.add(SCOPE, THE_USER, new("Sings."))
        assert await confirmed() == [False, True]
        await store.facts.change(SCOPE, made, CONFIRM)
        assert await confirmed() == [True, True]

    async def test_books_of_others_are_not_held(self, store: Store) -> None:
        await learned(store, "Swims.", name="c")
        async with store.write(SCOPE, "c") as unit:
            await unit.current_facts(THE_USER)
            await asyncio.wait_for(store.facts.add(BEN, THE_USER, new("Ben's.")), timeout=5)
            await asyncio.wait_for(learned(store, "Theirs.", scope=replace(SCOPE, agent="another")), timeout=5)
            await asyncio.wait_for(write(store, "d", *dialogue(1)), timeout=5)

    async def test_facts_are_listed_in_pages(self, store: Store) -> None:
        made = await learned(store, *(f"{n}" for n in range(7)))
        await store.facts.change(SCOPE, made[2], DELETE)
        for limit in (1, 2, 3, 6, 7, 100):
            pages: list[str] = []
            after = 0
            for _ in range(9):
                page = await store.facts.facts(SCOPE, FactFilter(after=after, limit=limit))
                assert len(page) <= limit
                pages += [fact.content for fact in page]
                after = page[-1].id if page else after
            assert pages == ["0", "1", "3", "4", "5", "6"]
        assert (
            await listed(store, limit=0)
            == await listed(store, limit=-1)
            == await listed(store, after=-5, limit=0)
            == []
        )
        assert len(await listed(store, after=-5)) == 6

    async def test_facts_are_listed_by_what_is_wanted(self, store: Store) -> None:
        old, _, gone = await learned(store, "Old.", "Habit.", "Gone.")
        await learned(store, "New.", name="d", category="habit", supersedes=(old,))
        await learned(store, "Habit.", "Mum's.", name="m", subject=MUM.id)
        await store.facts.change(SCOPE, gone, DELETE)
        await store.facts.add(SCOPE, THE_USER, new("By hand.", category="Habit"))
        await learned(store, "Another agent's.", scope=replace(SCOPE, agent="another"))
        current = ["Habit.", "New.", "Habit.", "Mum's.", "By hand."]
        assert await listed(store) == current
        assert await listed(store, all_agents=True) == [*current, "Another agent's."]
        assert await listed(store, subject=THE_USER) == ["Habit.", "New.", "By hand."]
        assert await listed(store, subject=MUM.id) == ["Habit.", "Mum's."]
        assert await listed(store, category="habit") == ["New."]
        assert await listed(store, conversation="c") == ["Habit."]
        assert await listed(store, conversation="c", state=None) == ["Old.", "Habit."]
        assert await listed(store, conversation="x") == []
        assert await listed(store, state=None) == ["Old.", "Habit.", "", *current[1:]]
        assert [fact.id for fact in await store.facts.facts(SCOPE, replace(EVERYTHING, limit=1, after=old))] == [
            old + 1
        ]
        for number in (old, gone):
            state = (await fact_of(store, number)).state
            assert [fact.id for fact in await store.facts.facts(SCOPE, FactFilter(state=state))] == [number]

    async def test_facts_are_listed_by_the_conversation_that_says_them(self, store: Store) -> None:
        _, two, _ = await learned(store, "One.", "Two.", "Three.", category="habit")
        await learned(store, "Two.", "Four.", name="d")
        await learned(store, "Five.", subject=MUM.id)
        assert await listed(store, conversation="c") == ["One.", "Two.", "Three.", "Five."]
        assert await listed(store, conversation="d") == ["Two.", "Four."]
        assert await listed(store, conversation="c", after=two, limit=1) == ["Three."]
        assert await listed(store, conversation="c", subject=MUM.id) == ["Five."]
        assert await listed(store, conversation="d", category="habit") == ["Two."]
        assert await listed(store, conversation="c", mine=False) == []
        await take_back(store, "c", 3)
        assert await listed(store, conversation="c", state=None) == ["One."], "what was taken back says nothing"
        assert await listed(store, conversation="d") == ["Two.", "Four."]
