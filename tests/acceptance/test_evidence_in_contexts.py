"""What recall does with the room that a budget leaves: whole messages, passages of long ones, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto import Call, Conversation, Memory, RecallOptions, assistant, tool_result, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.policy.span import Fate
from hitherto.store.store import Store
from tests.acceptance.test_recalled_context import context_of, opened
from tests.conftest import SCOPE

PLAIN = "Nothing of note happened on that day, and nothing else was said about it by anybody. "
NEEDLE = "The spare key of the boathouse hangs behind the blue kayak."
PASSAGES = [f"Report {number}. " + PLAIN * 8 for number in range(40)]
LONG = "\n\n".join([*PASSAGES[:30], NEEDLE, *PASSAGES[30:]])
ASKED = "Where does the spare key of the boathouse hang?"


async def filled(memory: Memory, *messages: Any, after: int = 60) -> Conversation:
    chat = memory.conversation("long", scope=SCOPE)
    if messages:
        await chat.append(*messages)
    for number in range(after):
        await chat.append(user(f"Entry {number}. {PLAIN}"), assistant(f"Noted as {number}. {PLAIN}"))
    await memory.wait_for_index()
    return chat


def recalled_text(request: Any) -> str:
    return next((str(one["content"]) for one in request["messages"] if str(one["content"]).startswith(LEAD)), "")


async def test_recall_takes_the_room_that_is_left(store: Store) -> None:
    async with opened(store) as memory:
        chat = await filled(memory, after=100)
        context = await context_of(chat, "What happened on the day of entry 7?", budget=1_000, recall=True)
        assert len(context.manifest.recalled) > 8
        assert context.tokens > 900
        assert context.manifest.sections["recalled"] > context.manifest.request.recall_tokens
        few = await context_of(chat, "What happened on the day of entry 7?", budget=1_000, recall=2)
        assert len(few.manifest.recalled) == 2


async def test_short_messages_fill_the_room_too(store: Store) -> None:
    """They are more than are looked for at first."""
    async with opened(store) as memory:
        chat = await filled(memory, *(user(f"Boat {number}.") for number in range(150)))
        context = await context_of(chat, "Which boat?", budget=4_000, recall=True)
        assert len(context.manifest.recalled) == 100


async def test_what_tells_nothing_keeps_nothing_back(store: Store) -> None:
    """It comes first in the search, as its author is named, and is no hit."""
    async with opened(store) as memory:
        boats = [
            {"role": "user", "name": "Ben", "content": f"The boat {number} leaves at noon."} for number in range(30)
        ]
        okay = {"role": "user", "name": "Ann", "content": "Okay!"}
        chat = await filled(memory, *boats, *[okay] * 90)
        context = await context_of(chat, "What did Ann say of the boat?", budget=4_000, recall=True)
        assert len([one for one in context.manifest.recalled if one.start is not None and one.start < 30]) > 20


async def test_a_ceiling_of_recalled_tokens(store: Store) -> None:
    async with opened(store, recall_max_tokens=100) as memory:
        chat = await filled(memory)
        context = await context_of(chat, "What happened on the day of entry 7?", budget=1_000, recall=True)
        assert 0 < sum(one.tokens for one in context.manifest.recalled) <= 100
        assert context.manifest.request.recall_tokens == 100, "no more is set aside"


async def test_a_message_too_large_for_the_room_is_cut_to_what_matches(store: Store) -> None:
    async with opened(store) as memory:
        chat = await filled(memory, user("See the report."), assistant(LONG))
        context = await context_of(chat, ASKED, budget=1_500, recall=True)
        text = recalled_text(context.request)
        assert NEEDLE in text
        assert "…" in text
        assert LONG not in json.dumps(context.request, ensure_ascii=False)
        (one,) = [one for one in context.manifest.recalled if one.start == 1]
        shown = [LONG[start:end] for start, end in one.characters]
        assert any(NEEDLE in part for part in shown)
        assert sum(map(len, shown)) < len(LONG) / 2
        assert one.characters == sorted(one.characters)
        (span,) = [span for span in context.manifest.fates if span.start <= 1 <= span.end]
        assert span.fate is Fate.RECALLED


@pytest.mark.parametrize("few", [2, 8])
async def test_what_follows_a_message_too_large_for_the_rest_is_whole(store: Store, few: int) -> None:
    """It is cut into what is left in the end; one too large for all of the room, or one of the five best, at once."""
    large = "\n\n".join([f"{NEEDLE} {ASKED}", *PASSAGES[:6]])
    async with opened(store) as memory:
        best = [user(f"{NEEDLE} {ASKED} That is what entry {number} says.") for number in range(few)]
        chat = await filled(memory, *best, assistant(large), after=40)
        found = await memory.recall(ASKED, scope=SCOPE, conversation="long", limit=60)
        ranks = [hit.start for hit in found.hits]
        assert (0 < ranks.index(few) < 5) is (few < 5)
        after = set(ranks[ranks.index(few) + 1 :])
        last = first = 0
        for budget in range(600, 3_600, 200):
            context = await context_of(chat, ASKED, budget=budget, recall=True)
            order = [one.start for one in context.manifest.recalled]
            cut = [one.start for one in context.manifest.recalled if one.characters]
            assert cut in ([], [few])
            if cut and order[-1] == few:
                last += not after.isdisjoint(order)
            elif cut:
                first += order.index(few) <= ranks.index(few)
        assert bool(last) is (few > 5), "smaller ones that rank lower were shown whole instead"
        assert first or few > 5


@pytest.mark.parametrize("budget", [120, 600, 2_000])
async def test_a_message_larger_than_the_budget_that_matches_best(store: Store, budget: int) -> None:
    """Of 300,000 words, with the answer far behind what a search returns of a text."""
    huge = f"{LONG * 5}\n\n{NEEDLE}\n\n" + PLAIN * 20_000
    async with opened(store) as memory:
        chat = await filled(memory, user("See the log."), assistant(huge))
        context = await context_of(chat, ASKED, budget=budget, recall=True)
        assert (NEEDLE in recalled_text(context.request)) == (budget > 120)


async def test_what_has_no_room_is_in_the_manifest(store: Store) -> None:
    one_passage = f"{NEEDLE} " + "Its story is long. " * 38
    async with opened(store) as memory:
        chat = await filled(memory, user("Hello."), user(one_passage))
        context = await context_of(chat, ASKED, budget=220, recall=True)
        assert NEEDLE not in recalled_text(context.request)
        best = context.manifest.left_out[0]
        assert (best.conversation, best.start) == ("long", 1)
        assert best.tokens > 100


async def test_the_newest_turn_stays_verbatim(store: Store) -> None:
    """Even where it takes part of what is reserved for recall."""
    newest = "def total(prices):\n    return sum(prices)\n" + "# a comment that takes room\n" * 60
    async with opened(store) as memory:
        chat = await filled(memory)
        await chat.append(user("Write a function that sums prices."), assistant(newest))
        context = await context_of(chat, "Now add VAT to that function.", budget=700, recall=True)
        said = [one["content"] for one in context.messages]
        assert said[-1] == "Now add VAT to that function."
        assert newest in said
        assert "Write a function that sums prices." in said


async def test_a_question_does_not_move_the_cut(store: Store) -> None:
    """Up to what is recalled, each request is as the one before."""
    async with opened(store) as memory:
        chat = await filled(memory)
        asked = ["Thanks!", ASKED, "What happened on the day of entry 7?"]
        made = [await context_of(chat, text, budget=1_000, recall=True) for text in asked]
        stable = [
            [one["content"] for one in context.messages if not str(one["content"]).startswith(LEAD)][:-1]
            for context in made
        ]
        assert stable[0] == stable[1] == stable[2] != []


async def test_a_tools_group_is_cut_and_rebuilt(store: Store) -> None:
    async with opened(store) as memory:
        chat = memory.conversation("long", scope=SCOPE)
        await chat.append(user("Read the log."), assistant(calls=[Call(id="c1", name="read")]), tool_result("c1", LONG))
        for number in range(40):
            await chat.append(user(f"Entry {number}. {PLAIN}"), assistant(f"Noted as {number}. {PLAIN}"))
        await memory.wait_for_index()
        context = await context_of(chat, ASKED, budget=1_200, recall=RecallOptions(limit=3))
        assert NEEDLE in recalled_text(context.request)
        (one,) = [one for one in context.manifest.recalled if one.start == 1]
        assert (one.start, one.end) == (1, 2)
        assert one.characters
