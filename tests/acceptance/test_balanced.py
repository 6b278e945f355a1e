"""`balanced`, the default policy: the newest turns word for word, a summary of what is older where a model is named,
and what bears on the question recalled."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Call, Conversation, Memory, Message, assistant, balanced, tool_result, user
from hitherto.core.context.recalled import LEAD
from hitherto.core.digests.digest import Needs, Status
from hitherto.core.policy.span import Fate, Reason
from hitherto.providers.extractive import Extractive
from hitherto.providers.scripted import Scripted, ScriptedEmbedder, ScriptedReranker
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, fates, made, says_each
from tests.acceptance.receipts import check
from tests.conftest import SCOPE
from tests.lengths import examples, lasting
from tests.memories import open_on

FILLER = "Nothing of note happened on that day, and nothing else was said about it by anybody. "
FUNCTION = "```python\ndef invoice_total(items):\n    return sum(item.price * item.count for item in items)\n```"

READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


def days(count: int, first: int = 0) -> list[Message]:
    """Rounds of about 50 tokens."""
    return [
        one
        for number in range(first, first + count)
        for one in (user(f"Day {number}. {FILLER}"), assistant(f"Noted as {number}. {FILLER}"))
    ]


async def filled(memory: Memory, *messages: Message, name: str = "c") -> Conversation:
    chat = memory.conversation(name, scope=SCOPE)
    await chat.append(*messages)
    await memory.wait_for_digests()
    await memory.wait_for_index()
    return chat


async def context_of(chat: Conversation, question: str | Message, **options: Any) -> hitherto.Context:
    context = await chat.context(question, **options)
    await check(chat, context)
    return context


async def test_it_is_what_counts_where_nobody_says_anything(store: Store) -> None:
    async with open_on(store) as memory:
        chat = await filled(memory, *days(2))
        assert await chat.policy() == balanced()
        context = await context_of(chat, "What happened?")
        assert context.manifest.policy_from == "default"
        assert context.manifest.policy["name"] == "balanced"


async def test_where_everything_fits_nothing_is_searched(store: Store) -> None:
    embedder = ScriptedEmbedder()
    async with open_on(store, embedder=embedder) as memory:
        chat = await filled(memory, *days(20))
        before = len(embedder.calls)
        context = await context_of(chat, "What happened on day 3?")
        assert (context.manifest.recalled, context.manifest.missing) == ([], [])
        assert fates(context) == [(0, 39, Fate.IN, "verbatim")]
        assert len(embedder.calls) == before
        await context_of(chat, "What happened on day 3?", budget=1_000)
        assert len(embedder.calls) > before, "where it does not fit, it is asked"


async def test_without_a_model_there_is_no_digest_and_nothing_is_missing(store: Store) -> None:
    async with open_on(store, budget=2_000) as memory:
        chat = await filled(memory, user("The boathouse key hangs behind the blue kayak."), *days(100))
        assert await chat.digests() == []
        context = await context_of(chat, "Where does the boathouse key hang?")
        assert "behind the blue kayak" in json.dumps(context.request)
        assert context.manifest.missing == []
        assert context.tokens > 1_800, "the budget is used"
        assert context.manifest.fates[-1].fate is Fate.IN, "the newest turn is there"


async def test_with_a_model_what_is_older_becomes_a_summary(store: Store) -> None:
    """At half of the budget, keeping the newest turns, a quarter of it."""
    async with open_on(store, model=Scripted(then=says_each), budget=2_000, **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        number = 0
        while not (rows := await chat.digests()):
            await chat.append(*days(1, number))
            await memory.wait_for_digests()
            number += 1
        (row,), log = rows, await chat.messages()
        before = sum(one.tokens for one in log[:-2])
        assert before < 1_000 <= before + sum(one.tokens for one in log[-2:])
        assert row.needs is Needs.MODEL
        kept = sum(one.tokens for one in log[row.end + 1 :])
        assert 400 < kept <= 500
        context = await context_of(chat, "And now?")
        assert context.manifest.digest == row.id
        assert context.manifest.sections["digest"] > 0


async def test_the_window_counts_where_it_is_smaller(store: Store) -> None:
    given: dict[str, Any] = {"budget": 100_000, "context_window": 2_000}
    async with open_on(store, model=Scripted(then=says_each), **given, **ONE_TRY) as memory:
        chat = await filled(memory, *days(25))
        assert len(await chat.digests()) == 1


async def test_a_process_that_only_appends_names_the_model_too(database: str) -> None:
    """It needs no key for that; a worker elsewhere makes the digest."""
    given: dict[str, Any] = {"budget": 2_000, **ONE_TRY}
    async with hitherto.open(
        database, model="gpt-4.1-mini", model_base_url="http://127.0.0.1:9/v1", worker=False, **given
    ) as api:
        chat = api.conversation("c", scope=SCOPE)
        await chat.append(*days(30))
        (row,) = await chat.digests()
        assert (row.status, row.needs, row.attempt) == (Status.PROCESSING, Needs.MODEL, 0)
    async with hitherto.open(database, model=Scripted(then=says_each), **given) as worker:
        chat = worker.conversation("c", scope=SCOPE)
        await made(worker)
        assert {one.status for one in await chat.digests()} == {Status.COMPLETED}


async def test_from_other_conversations_too_unless_told_otherwise(store: Store) -> None:
    async with open_on(store, budget=1_000) as memory:
        await filled(memory, user("The boathouse key hangs behind the blue kayak."), name="other")
        chat = await filled(memory, *days(60))
        asked = "Where does the boathouse key hang?"
        assert {one.conversation for one in (await context_of(chat, asked, recall="own")).manifest.recalled} <= {"c"}
        there = await context_of(chat, asked)
        assert "other" in {one.conversation for one in there.manifest.recalled}
        assert (await context_of(chat, asked, recall=False)).manifest.recalled == []


@pytest.mark.parametrize("rounds", [0, 60])
async def test_the_reranker_is_called_once(store: Store, rounds: int) -> None:
    """In a new conversation for what is elsewhere, and for what is its own where that is cut."""
    reranker = ScriptedReranker()
    async with open_on(store, budget=1_000, reranker=reranker) as memory:
        keys = [f"The boathouse key number {number} hangs behind the kayak." for number in range(10)]
        await filled(memory, *map(user, keys), name="other")
        chat = await filled(memory, *days(rounds)) if rounds else memory.conversation("c", scope=SCOPE)
        context = await context_of(chat, "Where does the boathouse key number 7 hang?")
        assert "other" in {one.conversation for one in context.manifest.recalled}
        assert len(reranker.calls) == 1
        assert any("Day 7." in text for text in reranker.calls[0][1]) is bool(rounds)


def step(number: int) -> tuple[Message, Message]:
    """A call and its result, of about 70 tokens."""
    call = assistant(calls=[Call(id=f"call_{number}", name="read", arguments=json.dumps({"page": number}))])
    return call, tool_result(f"call_{number}", f"Page {number}. {FILLER}{FILLER}")


async def test_within_a_loop_what_is_recalled_stands_still(store: Store) -> None:
    """While nothing is cut anew, the same bytes stand in the same place."""
    async with open_on(store, budget=1_200) as memory:
        chat = await filled(memory, *days(2), user("Read page 100."), *step(100), assistant("I see."), *days(30, 2))
        incoming = user("Read the log of the harbor page by page, and say what happened on day 5.")
        seen: list[tuple[int, list[tuple[int, Any]]]] = []
        for number in range(24):
            context = await context_of(chat, incoming)
            blocks = [(at, one) for at, one in enumerate(context.messages) if str(one["content"]).startswith(LEAD)]
            first = next(one.start for one in context.manifest.fates if one.reason is Reason.VERBATIM)
            seen.append((first, blocks))
            call, result = step(number)
            await chat.append(incoming, call)
            await memory.wait_for_index()  # what is searched before it is indexed may have another score then
            incoming = result
        pairs = [*itertools.pairwise(seen)]
        assert [one for one, after in pairs if one[0] == after[0] and one != after] == []
        assert sum(one == after for one, after in pairs) > 12


@pytest.mark.parametrize("tools", [(), (READ,)])
async def test_the_first_results_of_a_conversation_take_nothing_of_what_is_recalled(
    store: Store, tools: tuple[Any, ...]
) -> None:
    """From the first request on that has tools, or results of any, while all fits."""
    async with open_on(store, budget=2_000) as memory:
        lines = [f"The ferry of line {number} is kept in the harbor of {number}. {FILLER}" for number in range(60)]
        await filled(memory, *days(60), *map(user, lines), name="other")
        chat = memory.conversation("c", scope=SCOPE)
        incoming = user("Look up in which harbor the ferry of line 7 is kept.")
        blocks: list[str] = []
        for number in range(8):
            context = await context_of(chat, incoming, tools=tools)
            blocks += [str(one["content"]) for one in context.messages if str(one["content"]).startswith(LEAD)]
            call, result = step(number)
            await chat.append(incoming, call)
            await memory.wait_for_index()
            incoming = result
        assert len(blocks) == 8
        assert len({*blocks[0 if tools else 1 :]}) == 1


@pytest.mark.parametrize("rounds_between", [0, 40])
async def test_now_add_vat_to_that_function(store: Store, rounds_between: int) -> None:
    """What a new user tries: some rounds with code, then a question that means it. Default settings."""
    async with open_on(store) as memory:
        chat = await filled(
            memory,
            user("Write a function that adds up an invoice."),
            assistant(f"Here it is:\n\n{FUNCTION}\n\nIt takes items with a price and a count."),
            user("And one that prints it?"),
            assistant("```python\ndef print_invoice(items):\n    print(invoice_total(items))\n```"),
            user("Thanks, and how do I test them?"),
            assistant("Use pytest: write a function whose name begins with test_."),
            *(one for _ in range(rounds_between) for one in days(8)),
        )
        budget = None if rounds_between == 0 else 2_000
        context = await context_of(chat, "Now add VAT to that function that adds up an invoice.", budget=budget)
        assert FUNCTION in context.messages[1]["content"] or FUNCTION.splitlines()[1] in json.dumps(
            context.request
        ).replace("\\n", "\n")


@lasting
@settings(max_examples=examples(10))
@given(st.integers(1, 60), st.integers(60, 3_000), st.integers(0, 400), st.booleans())
@example(rounds=57, budget=461, words=107, modeled=True)  # the digest leaves the newest turn no room
@example(rounds=1, budget=60, words=12, modeled=False)  # nor does the first message
async def test_whatever_the_sizes(rounds: int, budget: int, words: int, modeled: bool) -> None:
    """Within the budget, every message with one fate, and the newest turn where it fits beside the first message and
    the digest."""
    model = Scripted(then=says_each) if modeled else Extractive()
    async with hitherto.open("memory:", model=model, budget=budget, **ONE_TRY) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(*days(rounds), user("The last. " + "word " * words))
        await memory.wait_for_digests()
        context = await context_of(chat, "What happened on day 0?")
        assert context.tokens <= budget
        if not modeled:
            assert await chat.digests() == []
        (newest,) = (await chat.messages())[-1:]
        fate, sections = context.manifest.fates[-1].fate, context.manifest.sections
        beside = sum(sections[name] for name in ("framing", "digest", "incoming"))
        beside += sum(one.tokens for one in context.manifest.fates if one.reason is Reason.BEGINNING)
        assert fate in (Fate.IN, Fate.RECALLED) or beside + newest.tokens > budget
