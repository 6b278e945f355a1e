"""When a conversation's first facts come, what is known meanwhile, and what a defect in merging costs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import hitherto
from hitherto import Memory, Scope, assistant, user
from hitherto.engine.digests import attempt
from hitherto.engine.digests.make import DigestMaker, DigestResult
from hitherto.engine.facts import learn
from hitherto.errors import DatabaseUnavailable
from hitherto.providers.scripted import Scripted, items
from hitherto.store.store import Store
from tests.acceptance.family import ANA, ROSA, Says, dialogue, fact, opened, redigested, sources
from tests.engine.facts.reviewing import CELLO

CITY = "current city"
TURIN = Says("Mum lives in Turin.", "other", "Lives in Turin.")
STILL = Says("She is still there, in Turin.", CITY, "Lives in Turin.")
GENOA = Says("Mum has moved to Genoa.", CITY, "Lives in Genoa.")


async def current(memory: Memory) -> list[tuple[str, str]]:
    """The facts that hold, with their categories."""
    return [(one.content, one.category) for one in await memory.facts(ANA, subject=ROSA).list()]


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[object]]) -> None:
    """Something happens once the model has answered, and before what was learned is written."""
    before = DigestMaker.make

    async def make(self: DigestMaker, *given: Any) -> DigestResult:
        made = await before(self, *given)
        await happens()
        return made

    monkeypatch.setattr(DigestMaker, "make", make)


class TestMeanwhile:
    async def test_what_came_meanwhile_is_known(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is added while the model thinks may say what it found."""
        said = Says("She is so good at chess.", "hobby", "Enjoys playing chess.")
        async with opened(store, said) as memory:
            mine = memory.facts(ANA, subject=ROSA)
            meanwhile(monkeypatch, lambda: mine.add("enjoys playing CHESS", category="hobby"))
            await dialogue(memory, "a", said.text)
            assert await current(memory) == [("enjoys playing CHESS", "hobby")]
            assert (await fact(memory, "enjoys playing CHESS")).repeated == 1

    @pytest.mark.parametrize("relation", ["again", "instead"])
    async def test_what_went_meanwhile_is_neither_repeated_nor_replaced(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, relation: str
    ) -> None:
        """The model was shown it; the statement is a fact of its own then."""
        said = Says("The cello, always the cello.", "hobby", "Loves the cello.", **{relation: CELLO.content})
        async with opened(store, CELLO, said) as memory:
            await dialogue(memory, "a", CELLO.text)
            before = await fact(memory, CELLO.content)
            meanwhile(monkeypatch, lambda: memory.facts(ANA).delete(before.id))
            await dialogue(memory, "b", said.text)
            assert await current(memory) == [("Loves the cello.", "hobby")]
            assert sources(await fact(memory, "Loves the cello.")) == [("b", 0)]

    async def test_what_a_person_confirms_stays(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """A later statement stands beside it, whatever the model says; one from before that comes too late."""
        said = Says("It was the viola.", "hobby", "Played the viola.", instead=CELLO.content)
        async with opened(store, CELLO, said) as memory:
            await dialogue(memory, "a", CELLO.text)
            mine, before = memory.facts(ANA), await fact(memory, CELLO.content)
            with monkeypatch.context() as meantime:
                meanwhile(meantime, lambda: mine.confirm(before.id))
                await dialogue(memory, "b", said.text)
            assert await current(memory) == [(CELLO.content, "hobby")]
            await dialogue(memory, "c", said.text)
            assert await current(memory) == [(CELLO.content, "hobby"), (said.content, "hobby")]


class TestDefects:
    async def test_a_defect_in_merging_costs_the_facts_and_not_the_digest(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its messages do not count as read: a later digest of them teaches what they say."""
        real, calls = learn.merged, 0

        def merged(*given: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise ValueError("a defect")
            return real(*given, **options)

        monkeypatch.setattr(learn, "merged", merged)
        async with opened(store, CELLO) as memory:
            chat = await dialogue(memory, "a", CELLO.text)
            assert [(row.status.value, row.tries) for row in await chat.digests()] == [("completed", 1)]
            assert await current(memory) == []
            assert "Merging facts failed" in caplog.text
            calls = 0
            await redigested(memory, "b", CELLO.text)
            assert await current(memory) == [(CELLO.content, "hobby")]

    async def test_a_store_that_fails_is_no_defect(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """The digest is written once it is back, and its facts with it."""
        real, calls = attempt.merge_found, 0  # what a unit raises at its end

        async def merge_found(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise DatabaseUnavailable("away for a moment")
            return await real(*given)

        monkeypatch.setattr(attempt, "merge_found", merge_found)
        async with opened(store, CELLO) as memory:
            chat = await dialogue(memory, "a", CELLO.text)
            assert [row.status.value for row in await chat.digests()] == ["completed"]
            assert await current(memory) == [(CELLO.content, "hobby")]
            assert calls == 2


async def test_a_line_in_the_log_says_whose_facts_they_are(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="hitherto.digest")
    async with opened(store, CELLO) as memory:
        chat = await dialogue(memory, "k12", CELLO.text)
        (row,) = await chat.digests()
    (record,) = [one for one in caplog.records if one.getMessage().startswith("Facts learned")]
    assert record.getMessage() == "Facts learned from k12: 1 (known before: 0)"
    told = {name: getattr(record, name) for name in ("tenant", "user", "agent", "conversation", "digest")}
    whose = {"tenant": ANA.tenant, "user": ANA.user, "agent": ANA.agent}
    assert told == {**whose, "conversation": "k12", "digest": row.id}


SCOPE = Scope(tenant="acme", user="ana", agent="support")
TOLD = items("They talked.", facts=[("hobby", "Plays the cello")])


@pytest.mark.parametrize(
    ("policy", "first", "read"),
    [
        ("chunks", 32, (0, 19)),
        ("sliding_window:facts=true", 6, (0, 5)),
        ("sliding_window:after_seq=1,facts=true", 2, (0, 1)),
        ("rolling:facts=true", 42, (0, 29)),
        ("summarize:facts=true", 40, (0, 29)),
    ],
)
async def test_the_first_facts_of_a_conversation(policy: str, first: int, read: tuple[int, int]) -> None:
    async with hitherto.open("memory:", model=Scripted(then=TOLD), embedder="none", policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for messages in range(2, first + 1, 2):
            assert await memory.facts(SCOPE).list() == []
            await chat.append(user("I play the cello."), assistant("How lovely."))
            await memory.wait_for_digests()
            assert bool(await memory.facts(SCOPE).list()) is (messages == first)
        (digest,) = await chat.digests()
        assert (digest.start, digest.end) == read


async def test_a_window_leaves_nothing_unread() -> None:
    """Each round is read as it ends, so that what a short conversation said last is known too."""
    policy = "sliding_window:facts=true"
    async with hitherto.open("memory:", model=Scripted(then=TOLD), embedder="none", policy=policy) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for number in range(7):
            await chat.append(user(f"Said {number}."), assistant("I see."))
            await memory.wait_for_digests()
        assert max(digest.end for digest in await chat.digests()) == 13
