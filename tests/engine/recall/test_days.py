"""Recall by days: a question that names a day finds what was said on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hitherto import user
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.memories import open_on

FIRST = datetime(2026, 6, 1, 8, tzinfo=UTC)
ASKED = datetime(2026, 7, 30, 12, tzinfo=UTC)  # a Thursday
DID = (
    *("repaired the bicycle", "baked rye bread", "visited Ida", "painted the shed", "swam in the lake"),
    *("read about bees", "planted leeks", "watched a film about July", "ran eight kilometers", "mended a coat"),
)
SAID = (
    *("It took two hours.", "In the evening I was tired.", "It went better than last week.", "Seven days to go."),
    *("Tomorrow I will rest.", "Nine people were there.", "I did it on Tuesday, as ever.", "What a month."),
)


@pytest.mark.parametrize("embedder", ["none", "wordllama"])
async def test_a_day_is_found_among_sixty(store: Store, embedder: str) -> None:
    """Ten ways to ask for a day: what was said on it is among the first five, each time."""
    async with open_on(store, embedder=embedder) as memory:
        for day in range(60):
            at = FIRST + timedelta(days=day)
            did, said = user(f"I {DID[day % 10]}.", at=at), user(SAID[day % 8], at=at + timedelta(hours=9))
            await memory.conversation("diary", scope=SCOPE).append(did, said)
        await memory.wait_for_index()
        for question, day in {
            "What did I do on 9 July?": 38,
            "What did I do on July 9th?": 38,
            "What happened on 9.7.?": 38,
            "What did I tell you on 2026-07-09?": 38,
            "What was I doing on the ninth of July?": 38,
            "What did I do yesterday?": 58,
            "What did I do last Tuesday?": 57,
            "What did I do two weeks ago?": 45,
            "What did I do on June 17, 2026?": 16,
            "What did I say the day before yesterday?": 57,
        }.items():
            found = await memory.recall(question, scope=SCOPE, limit=5, at=ASKED)
            assert {2 * day, 2 * day + 1} <= {hit.start for hit in found.hits}, question
            assert all(hit.scores.day > 0 for hit in found.hits if hit.start in (2 * day, 2 * day + 1))


@pytest.mark.parametrize("embedder", ["none", "wordllama"])
@pytest.mark.parametrize(
    ("question", "others"),
    [
        ("What did I do on 9 July?", "What did I do?"),
        ("7月9日に何をしましたか？", "何をしましたか"),
        ("7月9日我做了什么？", "我做了什么"),
        ("7월 9일에 무엇을 했나요?", "무엇을 했나요"),
        ("Was habe ich am 9.7. gemacht?", "Was habe ich gemacht"),
    ],
)
async def test_words_that_only_ask_do_not_stand_before_the_day(
    store: Store, embedder: str, question: str, others: str
) -> None:
    async with open_on(store, worker=False, embedder=embedder) as memory:
        chat = memory.conversation("diary", scope=SCOPE)
        for day in range(20, 60):
            at = FIRST + timedelta(days=day)
            await chat.append(user("8." if day == 38 or day % 5 else others, at=at))
        (hit,) = (await memory.recall(question, scope=SCOPE, limit=1, at=ASKED)).hits
        assert hit.scores.day > 0


@pytest.mark.parametrize("indexed", [True, False])
async def test_a_context_asks_from_the_day_of_its_question(store: Store, indexed: bool) -> None:
    async with open_on(store, worker=indexed, embedder="none") as memory:
        chat = memory.conversation("diary", scope=SCOPE, policy="none")
        for day in range(40):
            await chat.append(user(f"I {DID[day % 10]}. " + "So it goes. " * 20, at=FIRST + timedelta(days=day)))
        if indexed:
            await memory.wait_for_index()
        asked = user("What did I do yesterday?", at=FIRST + timedelta(days=5))
        context = await chat.context(asked, budget=600, recall=1)
        assert [one.start for one in context.manifest.recalled] == [4]
