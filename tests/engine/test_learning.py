"""What a digest teaches while the book changes under it, and where something is wrong with the comparing; on both
stores."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

import pytest

from hitherto import Memory, assistant, user
from hitherto.core.ledger import ModelCall
from hitherto.engine import learning
from hitherto.engine.embedding import Embedding
from hitherto.engine.learning import Learner, Prepared
from hitherto.errors import DatabaseUnreachable
from hitherto.ports.store import Store
from tests.acceptance.family import ANA, ROSA, Says, fact, opened, redigested, talk
from tests.engine.facts.reviewing import CELLO, CITIES

CITY = "current city"
TURIN = Says("Mum lives in Turin.", "other", "Lives in Turin.")
STILL = Says("She is still there, in Turin.", CITY, "Lives in Turin.")
GENOA = Says("Mum has moved to Genoa.", CITY, "Lives in Genoa.")

WORDS: dict[str, Any] = {"embedder": "wordllama"}


async def current(memory: Memory) -> list[tuple[str, str]]:
    """The facts that hold, with their categories."""
    return [(one.content, one.category) for one in await memory.facts(ANA, subject=ROSA).list()]


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[object]]) -> None:
    """Something happens once all is compared, and before what was learnt is written."""
    before = Learner.prepared

    async def prepared(self: Learner, *given: Any) -> Prepared | None:
        found = await before(self, *given)
        await happens()
        return found

    monkeypatch.setattr(Learner, "prepared", prepared)


class TestOneValueAtATime:
    async def test_a_value_that_is_said_again_is_the_only_one(self, store: Store) -> None:
        """It takes the category, too, where it was under none in particular."""
        async with opened(store, TURIN, STILL, GENOA, **CITIES) as memory:
            await talk(memory, "a", TURIN.text)
            await talk(memory, "b", GENOA.text)
            assert await current(memory) == [("Lives in Turin.", "other"), ("Lives in Genoa.", CITY)]
            await talk(memory, "c", STILL.text)
            assert await current(memory) == [("Lives in Turin.", CITY)]
            turin, genoa = await fact(memory, "Lives in Turin."), await fact(memory, "Lives in Genoa.")
            assert (turin.repeated, genoa.superseded_by) == (1, turin.id)

    async def test_values_from_before_the_category_was_declared(self, store: Store) -> None:
        several = {"fact_categories": CITIES["fact_categories"]}
        async with opened(store, STILL, GENOA, **several) as memory:
            await talk(memory, "a", STILL.text)
            await talk(memory, "b", GENOA.text)
            assert len(await current(memory)) == 2
        await store.open()
        async with opened(store, STILL, GENOA, **CITIES) as memory:
            await talk(memory, "c", STILL.text)
            assert await current(memory) == [("Lives in Turin.", CITY)]

    async def test_what_was_said_before_is_no_value_again(self, store: Store) -> None:
        """Its message waits for its digest while another conversation goes on."""
        async with opened(store, TURIN, STILL, GENOA, **CITIES) as memory:
            await talk(memory, "a", TURIN.text)
            waits = memory.conversation("waits", scope=ANA, subject=ROSA)
            await waits.append(user(STILL.text), assistant("I see."))
            await talk(memory, "b", GENOA.text)
            await waits.append(user("That is all."), assistant("I see."))
            await memory.settled()
            assert await current(memory) == [("Lives in Turin.", "other"), ("Lives in Genoa.", CITY)]
            assert (await fact(memory, "Lives in Turin.")).repeated == 1


class TestMeanwhile:
    async def test_what_came_meanwhile_is_compared_too(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is added while the model thinks may say what it found, in other words."""
        said = Says("She is so good at chess.", "hobby", "Rosa enjoys playing chess.")
        async with opened(store, said, **WORDS) as memory:
            mine = memory.facts(ANA, subject=ROSA)
            meanwhile(monkeypatch, lambda: mine.add("Rosa is into chess.", category="hobby"))
            await talk(memory, "a", said.text)
            assert await current(memory) == [("Rosa is into chess.", "hobby")]
            assert (await fact(memory, "Rosa is into chess.")).repeated == 1

    async def test_only_what_came_gets_vectors_while_all_is_held(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[list[str]] = []

        class Recording(Embedding):
            async def documents(self, texts: Sequence[str], tenant: str, ledger: list[ModelCall]) -> Any:
                asked.append(list(texts))
                return await super().documents(texts, tenant, ledger)

        monkeypatch.setattr(learning, "Embedding", Recording)
        async with opened(store, CELLO, **WORDS) as memory:
            mine = memory.facts(ANA, subject=ROSA)
            await mine.add("Was a nurse.")
            meanwhile(monkeypatch, lambda: mine.add("Kept bees."))
            await talk(memory, "a", CELLO.text)
            assert asked == [["Was a nurse.", CELLO.content], ["Kept bees."]]
            asked.clear()
            await talk(memory, "b", CELLO.text, "She loved it.")
            assert [text for texts in asked for text in texts] == [], "once for all digests"


class TestDefects:
    @pytest.mark.parametrize("when", ["prepared", "settled"])
    async def test_a_defect_in_comparing_costs_the_facts_and_not_the_digest(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
    ) -> None:
        """Its messages do not count as read: a later digest of them teaches what they say."""
        real, calls = learning.merged, 0

        def merged(*given: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == (1 if when == "prepared" else 2):
                raise ValueError("a defect")
            return real(*given, **options)

        monkeypatch.setattr(learning, "merged", merged)
        numbers = count()
        async with opened(store, CELLO) as memory:
            mine = memory.facts(ANA, subject=ROSA)
            meanwhile(monkeypatch, lambda: mine.add(f"Had {next(numbers)} bees."))
            chat = await talk(memory, "a", CELLO.text)
            assert [(row.status.value, row.tries) for row in await chat.digests()] == [("completed", 1)]
            assert await current(memory) == [("Had 0 bees.", "other")]
            assert "A defect in what compares facts" in caplog.text
            calls = 0
            await redigested(memory, "b", CELLO.text)
            assert (CELLO.content, "hobby") in await current(memory)

    async def test_a_store_that_fails_is_no_defect(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """The digest is written once it is back, and its facts with it."""
        real, calls = Learner._settled, 0  # pyright: ignore[reportPrivateUsage]  # what a unit raises at its end

        async def settled(self: Learner, *given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise DatabaseUnreachable("away for a moment")
            return await real(self, *given)

        monkeypatch.setattr(Learner, "_settled", settled)
        async with opened(store, CELLO) as memory:
            chat = await talk(memory, "a", CELLO.text)
            assert [row.status.value for row in await chat.digests()] == ["completed"]
            assert await current(memory) == [(CELLO.content, "hobby")]
            assert calls == 2


async def test_a_line_in_the_log_says_whose_facts_they_are(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="hitherto.digest")
    async with opened(store, CELLO) as memory:
        chat = await talk(memory, "k12", CELLO.text)
        (row,) = await chat.digests()
    (record,) = [one for one in caplog.records if one.getMessage().startswith("Facts learnt")]
    assert record.getMessage() == "Facts learnt from k12: 1 (known before: 0)"
    told = {name: getattr(record, name) for name in ("tenant", "user", "agent", "conversation", "digest")}
    whose = {"tenant": ANA.tenant, "user": ANA.user, "agent": ANA.agent}
    assert told == {**whose, "conversation": "k12", "digest": row.id}
