"""Stages act within a turn that is not finished."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Call, Conversation, Message, assistant, tool_result, user
from hitherto.core.policy.span import Fate, Reason
from hitherto.policies import (
    Action,
    Chunk,
    Keep,
    LastFraction,
    LastMessages,
    LastTokens,
    Policy,
    Prefix,
    Redact,
    Render,
    ShadowTurn,
    Shorten,
    Stage,
    Summarize,
    Tokens,
    Window,
    token_threshold,
)
from hitherto.providers.scripted import Scripted
from hitherto.store.store import Store
from tests.acceptance.dialogue import PLENTY, bodies, each, fates, made, new_to, rounds, says_each, summary_of
from tests.conftest import SCOPE
from tests.engine.validity import assert_whole
from tests.lengths import examples, lasting
from tests.memories import open_on

few = settings(
    max_examples=examples(6),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


_names = count(1)


def policy(action: Redact, keep: Keep | None = None, *, within_turn: bool = True, after: int = 400) -> Policy:
    return Policy("mine", (Stage(Tokens(after), keep or LastTokens(200), action, within_turn=within_turn),))


def result(at: int, words: int = 40) -> str:
    return json.dumps({"order": f"order_{at}", "note": "filler " * words})


async def loop(chat: Conversation, steps: Sequence[int], *, together: bool = False, first: int = 0) -> None:
    for at, words in enumerate(steps, first):
        call = assistant(calls=[Call(id=f"c{at}", name="look")])
        answer = tool_result(f"c{at}", result(at, words))
        if together:
            await chat.append(call, answer)
        else:
            await chat.append(call)
            await chat.append(answer)


async def redacted(chat: Conversation, budget: int = 100_000) -> list[int]:
    fates = (await chat.context(budget=budget)).manifest.fates
    return [seq for one in fates if one.fate is Fate.REDACTED for seq in range(one.start, one.end + 1)]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "call and result together"])
@pytest.mark.parametrize("action", [Redact(), Shorten(characters=50)], ids=["redact", "shorten"])
@pytest.mark.parametrize("keep", [LastTokens(200), LastMessages(8)], ids=str)
async def test_old_results_of_a_loop(store: Store, action: Redact, keep: Keep, together: bool) -> None:
    async with open_on(store, policy=policy(action, keep)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        await loop(chat, [40] * 20, together=together)
        gone = await redacted(chat)
        assert gone == list(range(2, 2 * len(gone) + 1, 2)), "results from the oldest on, and no calls"
        assert 8 <= len(gone) <= 18
        shown = [item["content"] for item in (await chat.context(budget=100_000)).messages if item["role"] == "tool"]
        assert ("order_0" in shown[0]) is isinstance(action, Shorten)
        assert shown[-1] == result(19)


async def test_without_within_turn_nothing_of_it(store: Store) -> None:
    async with open_on(store, policy=policy(Redact(), within_turn=False)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        await loop(chat, [40] * 20)
        assert await redacted(chat) == []


async def test_balanced_goes_by_the_budget_that_is_given(store: Store) -> None:
    """An agent that gives a turn its budget does not have to set it too."""
    async with open_on(store) as memory:
        for name, budget in (("given", 2_000), ("set", None)):
            chat = memory.conversation(name, scope=SCOPE)
            async with chat.turn("Look at all orders.", budget=budget) as turn:
                for at in range(10):
                    await turn.add(assistant(calls=[Call(id=f"c{at}", name="look")]))
                    await turn.add(tool_result(f"c{at}", result(at, 150)))
                await turn.add(assistant("Done."))
            assert bool(await redacted(chat, 4_000)) is (name == "given")
            await chat.append(user("Thank you."), budget=2_000)
            assert await redacted(chat, 4_000)


@lasting
@few
@given(steps=st.lists(st.integers(0, 300), min_size=1, max_size=14), keep=st.integers(1, 400), together=st.booleans())
async def test_a_result_that_no_message_follows_is_whole(
    store: Store, steps: list[int], keep: int, together: bool
) -> None:
    """The model has not seen it yet. And what is shown of a result never changes again."""
    async with open_on(store, policy=policy(Shorten(characters=50), LastTokens(keep), after=keep + 50)) as memory:
        chat = memory.conversation(f"c{next(_names)}", scope=SCOPE)
        await chat.append(user("Look at all orders."))
        before: dict[str, str] = {}
        for at, words in enumerate(steps):
            call = assistant(calls=[Call(id=f"c{at}", name="look")])
            answer = tool_result(f"c{at}", result(at, words))
            await chat.append(*([call, answer] if together else [call]))
            if not together:
                await chat.append(answer)
            items = (await chat.context(budget=100_000)).messages
            assert items[-1]["content"] == result(at, words)
            now = {item["tool_call_id"]: item["content"] for item in items if item["role"] == "tool"}
            assert all(now[call] == text for call, text in before.items())
            before = {call: text for call, text in now.items() if text.startswith("⟦")}


# digests

TASK = "Look at all orders."


def digesting(
    action: Action | None = None, keep: Keep | None = None, *, within_turn: bool = True, render: Render | None = None
) -> Policy:
    stage = Stage(Tokens(400), keep or LastTokens(200), action or Summarize(), render, within_turn=within_turn)
    return Policy("mine", (stage,))


@pytest.mark.parametrize(
    "policy",
    [
        digesting(),
        digesting(keep=LastFraction(0.01)),
        digesting(keep=LastMessages(4)),
        digesting(keep=Window(30, LastTokens(200))),
        digesting(Chunk(20), LastMessages(4)),
        digesting(Chunk(20)),
        token_threshold(400, 4, within_turn=True),
    ],
    ids=str,
)
async def test_finished_groups_of_a_loop_are_digested(store: Store, policy: Policy) -> None:
    """The newest stay, and what the user said; and nothing goes to the model twice, also when the turn is over."""
    model = Scripted(then=says_each)
    async with open_on(store, policy=policy, model=model, budget=20_000) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(TASK))
        for at in range(20):
            await chat.append(assistant(calls=[Call(id=f"c{at}", name="look")]))
            await chat.append(tool_result(f"c{at}", result(at)))
            await made(memory)
            context = await chat.context(budget=PLENTY)
            assert TASK in bodies(context)
            assert context.messages[-1]["content"] == result(at)
        rows, context = await chat.digests(), await chat.context(budget=PLENTY)
        assert len(rows) >= 3
        end = rows[-1].end
        assert 30 <= end <= 38, "all but the newest, up to a result"
        digested = Reason.CHUNKED if isinstance(policy.stages[0].action, Chunk) else Reason.SUMMARIZED
        assert fates(context) == [
            (0, 0, Fate.IN, Reason.QUESTION),
            (1, end, Fate.DIGESTED, digested),
            (end + 1, 40, Fate.IN, Reason.VERBATIM),
        ]
        told = await chat.expand((1, end), budget=PLENTY)
        assert all(f"order_{at}" in told.text for at in range(end // 2))
        await chat.append(assistant("Done."))
        await rounds(memory, chat, range(1, 40))
        shown = new_to(model)
        assert shown[: end + 1] == [*range(end + 1)]
        assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("render", [None, ShadowTurn(), Prefix()], ids=["system", "shadow turn", "prefix"])
async def test_the_digest_then_what_the_user_said_then_the_newest(store: Store, render: Render | None) -> None:
    async with open_on(store, policy=digesting(render=render), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("Hello."), assistant("Hello."), user("One more thing."), user(TASK))
        await loop(chat, [40] * 10)
        await made(memory)
        row = (await chat.digests())[-1]
        items = (await chat.context(budget=PLENTY)).messages
        digest = each(0, row.end)
        match render:
            case None:
                assert items[0]["content"] == summary_of(0, row.end)
                said = items[1:3]
            case ShadowTurn():
                assert items[1]["content"] == digest
                said = items[2:4]
            case _:
                said = [
                    {**items[0], "content": items[0]["content"].removeprefix(f"[Previous context: {digest}]\n\n")},
                    items[1],
                ]
        assert [one["content"] for one in said] == ["One more thing.", TASK]
        assert items[-1]["content"] == result(9)


async def test_what_the_user_said_meanwhile(store: Store) -> None:
    """A task without an answer stays, also where the user says more while an agent is at work on it."""
    async with open_on(store, policy=digesting(), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(TASK))
        for at in range(3):
            await loop(chat, [40] * 10, first=10 * at)
            await made(memory)
            more = f"And {at}."
            said = [TASK, *(f"And {earlier}." for earlier in range(at))]
            assert [text for text in bodies(await chat.context(user(more), budget=PLENTY)) if text in said] == said
            await chat.append(user(more))
        await chat.append(assistant("Done."))
        await loop(chat, [40] * 10, first=30)
        await chat.append(assistant("Done."))
        await made(memory)
        assert TASK not in bodies(await chat.context(user("Thanks."), budget=PLENTY))


@pytest.mark.parametrize("policy", [token_threshold(400, 4), digesting(within_turn=False)], ids=str)
async def test_no_digest_within_a_turn_otherwise(store: Store, policy: Policy) -> None:
    async with open_on(store, policy=policy, model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(TASK))
        await loop(chat, [40] * 20)
        await made(memory)
        assert await chat.digests() == []


async def test_nothing_is_taken_while_a_call_waits(store: Store) -> None:
    async with open_on(store, policy=digesting(), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(TASK), assistant(calls=[Call(id="slow", name="build")]))
        await loop(chat, [40] * 10)
        assert await chat.digests() == []
        await chat.append(tool_result("slow", "built"))
        await loop(chat, [40] * 10, first=10)
        await made(memory)
        rows = await chat.digests()
        assert rows[0].end >= 22, "the slow call and its result are of one group"


async def test_rewound_into_a_digest_of_the_turn(store: Store) -> None:
    async with open_on(store, policy=digesting(), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user(TASK))
        await loop(chat, [40] * 10)
        await made(memory)
        before, row = (await chat.digests())[-2:]
        assert before.end < row.end - 2
        await chat.rewind(to=row.end - 2)
        assert fates(await chat.context(budget=PLENTY)) == [
            (0, 0, Fate.IN, Reason.QUESTION),
            (1, before.end, Fate.DIGESTED, Reason.SUMMARIZED),
            (before.end + 1, row.end - 2, Fate.IN, Reason.VERBATIM),
            (row.end - 1, 20, Fate.DROPPED, Reason.RETRACTED),
        ]
        await loop(chat, [40] * 10, first=20)
        await made(memory)
        again = (await chat.digests())[-1]
        assert (again.start, again.base is None) == (0, False)
        assert again.end > 20


@lasting
@few
@given(
    data=st.data(),
    keep=st.one_of(st.builds(LastMessages, st.integers(1, 6)), st.builds(LastTokens, st.integers(1, 300))),
)
async def test_no_group_is_taken_apart(store: Store, data: st.DataObject, keep: Keep) -> None:
    """Calls side by side, whose results come in any order and between others."""
    action = data.draw(st.sampled_from([Summarize(), Chunk(1)]))
    async with open_on(store, policy=digesting(action, keep), model=Scripted(then=says_each)) as memory:
        chat = memory.conversation(f"c{next(_names)}", scope=SCOPE)
        await chat.append(user(TASK))
        waiting, batch, number = list[str](), list[Message](), 0
        for _ in range(data.draw(st.integers(5, 40))):
            if waiting and data.draw(st.booleans()):
                call = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
                batch.append(tool_result(call, result(number)))
            else:
                calls = [Call(id=f"c{number}-{at}", name="look") for at in range(data.draw(st.integers(1, 2)))]
                batch.append(assistant(calls=calls))
                waiting += [one.id for one in calls]
                number += 1
            if data.draw(st.booleans()):
                await chat.append(*batch)
                batch = []
                await made(memory)
                context = await chat.context(budget=PLENTY)
                assert_whole("openai.chat", context.messages)
                assert not {span.reason for span in context.manifest.fates} & {Reason.CALL_NOT_IN, Reason.BUDGET}
